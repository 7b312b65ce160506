"""What is stored: the same recordings give the same bytes, near enough to what was computed."""

from __future__ import annotations

import dataclasses
import os
import shutil
import typing
from collections.abc import Callable
from pathlib import Path

import make_prepared_fixture
import numpy as np
import pytest
import tiny
from preparing import KALUNGA, SCHALK, ZYMA, Said, content, manifest, pick, prepare, python, task_of

from jbench import plan
from jbench.data import cache, fs, loader, parts, recording, records, windows
from jbench.data.signal import process
from jbench.spec import RequestError, Target, Task


def test_windows_are_those_of_the_signal_and_the_clamp_is_not_stored(small: Path, reference: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordReader

    from jbench.data.sources import kalunga

    task, facts = task_of(KALUNGA), manifest(reference)
    for i, ref in enumerate(kalunga.recordings(plan.datasets()[KALUNGA], small / KALUNGA)):
        raw, events = kalunga.read(ref)
        data, names = process(raw, task.signal)
        want = windows.windows(data, 120.0, [float(t) + 2.0 for t in events['onset']], task.window, None)
        entry = facts['recordings'][i]
        got = [records.decode_window(r) for r in ArrayRecordReader(str(reference / entry['shard'])).read_all()]
        assert [k for _, k in got] == list(range(32)) and entry['ch_names'] == list(names)
        for x, (y, _) in zip(want, got, strict=True):
            assert np.all(np.abs(x - y) <= np.abs(x).max(1, keepdims=True) * records.ERROR)
            assert np.abs(x - y).max() <= facts['error_bound']
    assert 'clamp' not in facts['spec']['signal']
    index = fs.read_npz(reference / 'index.npz')
    assert len(index['window.id']) == 96 == facts['n_windows']
    assert list(index['window.id'][[0, 31, 32, 95]]) == [0, 31, 1 << 20, (2 << 20) + 31]
    assert set(index['event.type'][index['window.event']]) == {'Stimulus'}
    np.testing.assert_allclose(index['window.onset'], index['event.onset'][index['window.event']] + 2.0)


def test_baseline_is_taken_after_scaling(small: Path, tmp_path: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordReader

    from jbench.overrides import override

    task, dataset = override(task_of(KALUNGA), 'signal.baseline', (0.0, 0.2)), plan.datasets()[KALUNGA]
    folder, refs = cache.locate(task, dataset, small, tmp_path)
    assert folder is not None
    cache.prepare(task, dataset, folder, refs[:1], lambda *facts: None)
    shard = folder / manifest(folder)['recordings'][0]['shard']
    for record in ArrayRecordReader(str(shard)).read_all():
        x, _ = records.decode_window(record)
        assert np.abs(x[:, :24].mean(1)).max() < 1e-3 and np.median(np.abs(x)) > 0.1


def test_tfds_reads_a_set_without_network(reference: Path) -> None:
    code = """
    import socket, sys, json
    def refuse(*args, **kwargs): raise AssertionError('network')
    socket.socket.connect = socket.socket.sendto = socket.getaddrinfo = refuse
    import numpy as np
    import tensorflow_datasets as tfds
    from array_record.python.array_record_module import ArrayRecordReader
    from jbench.data import records
    folder = sys.argv[1]
    source = tfds.builder_from_directory(folder).as_data_source('all')
    shards = [r['shard'] for r in json.load(open(folder + '/manifest.json'))['recordings']]
    stored = [r for s in shards for r in ArrayRecordReader(folder + '/' + s).read_all()]
    assert len(source) == len(stored) == 96
    for got, record in zip(source, stored):
        x, number = records.decode_window(record)
        same = np.frombuffer(got['x'], '<i2').reshape(got['shape']) * got['scale'][:, None]
        assert np.array_equal(same, x) and got['id'] == number
    assert [source[k]['subject'] for k in (0, 32, 64)] == [b'01', b'04', b'05']
    assert 'tensorflow' not in sys.modules and 'jax' not in sys.modules
    """
    done = python(code, reference)
    assert done.wait(60) == 0, done.stderr.read()


def test_two_preparations_give_the_same_bytes(small: Path, reference: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(small, tmp_path / 'elsewhere')
    for path in moved.rglob('*.fif*'):
        os.utime(path, (1e9, 1e9))
    again = prepare(KALUNGA, moved, tmp_path / 'work')
    assert again.name == reference.name and content(again) == content(reference)
    assert str(tmp_path) not in (again / 'manifest.json').read_text()
    assert [p.name for p in again.parent.iterdir() if p != again] == [again.name.partition('-')[0] + '.lock']


def test_kalunga_whole_keeps_the_recording_of_two_subjects_once(data_dir: Path, tmp_path: Path) -> None:
    said: Said = []
    facts = manifest(prepare(KALUNGA, data_dir, tmp_path, lambda *f: said.append(f)))
    assert said[0] == (f'prepare {KALUNGA}', 0, 14) and said[-1] == (f'prepare {KALUNGA}', 14, 14)
    assert facts['notes'] == [
        'duplicate: recording record-[2012.07.11-15.33.08] of subject 07 equals that of subject '
        '03, sample for sample; kept once'
    ]
    assert len(facts['recordings']) == 13 and facts['n_windows'] == 13 * 32
    assert [r['subject'] for r in facts['recordings']].count('03') == 2
    assert facts['subjects'] == {'present': [f'{k:02d}' for k in range(1, 13)], 'declared': 12}


def test_a_set_that_differs_from_its_publication_is_partial(data_dir: Path, tmp_path: Path) -> None:
    folder = prepare(ZYMA, pick(data_dir, tmp_path, ZYMA, 'Subject0[0-2]_*', '*.csv'), tmp_path / 'work')
    assert manifest(folder)['notes'] == [
        'partial: sampling rate: found 125 Hz, declared 500 Hz',
        'partial: number of channels: found 19, declared 20',
        'partial: duration: found 32 s, declared 62 s',
    ]
    assert [r['n_windows'] for r in manifest(folder)['recordings']] == [6] * 6
    assert set(fs.read_npz(folder / 'index.npz')['event.gender']) == {'F'}


def test_runs_without_imagery_make_no_windows(data_dir: Path, tmp_path: Path) -> None:
    facts = manifest(prepare(SCHALK, pick(data_dir, tmp_path, SCHALK, '*R0[124].edf'), tmp_path / 'work'))
    assert [(r['run'], r['n_windows']) for r in facts['recordings']] == [('R04', 15)] and facts['notes'] == []
    with pytest.raises(RequestError, match=r'no recording holds an event that makes a window; .* type Action'):
        prepare(SCHALK, pick(data_dir, tmp_path / 'rest', SCHALK, '*R0[12].edf'), tmp_path / 'work')


def test_what_is_stored_has_not_changed() -> None:
    """Whoever changes it raises PREPARATION and runs make_prepared_fixture.py: else old sets would serve as new."""
    found, golden = make_prepared_fixture.stored(), fs.read_npz(make_prepared_fixture.PATH)
    assert found['x'].shape == (6, 3, 120) and np.abs(golden['x']).max() == records.INT16
    assert make_prepared_fixture.differences(found, golden) == []


@pytest.mark.parametrize(
    ('name', 'change'),
    [
        ('x', lambda x: np.roll(x, 1, 2)),  # an event one sample late
        ('x', lambda x: x[:, ::-1]),  # channels in another order
        ('scale', lambda x: x * 1.0005),  # another spread
        ('target', lambda x: np.roll(x, 1)),  # codes swapped
        ('onset', lambda x: x + 1 / 256),
        ('preparation', lambda x: x + 1),
    ],
)
def test_a_change_of_what_is_stored_is_seen(name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    golden = fs.read_npz(make_prepared_fixture.PATH)
    assert make_prepared_fixture.differences({**golden, name: change(golden[name])}, golden) == [name]


def test_a_part_is_the_same_whatever_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for size in (1, recording.BLOCK):
        monkeypatch.setattr(recording, 'BLOCK', size)
        folder = tmp_path / str(size)
        folder.mkdir()
        part = parts.make(make_prepared_fixture.task(), tiny.DATASET, tiny.ref(1), folder)
        found.append((part, content(folder)))
    assert found[0] == found[1] and len(found[0][1]) == 2


def test_a_set_takes_half_of_what_its_windows_do_and_little_more(tmp_path: Path) -> None:
    """Each window adds its scales and some words, each shard up to 192 KiB: array_record fills blocks of 64 KiB."""
    task = task_of(KALUNGA)
    ref = tiny.ref(1, seconds=2400)
    part = parts.make(task, tiny.DATASET, ref, tmp_path)
    n, floats = part['n_windows'], part['n_windows'] * 3 * 480 * 4
    assert n > 880
    stored = (tmp_path / f'{ref.name}.array_record').stat().st_size
    assert stored <= floats / 2 + n * (4 * 3 + 160) + (192 << 10)
    x = next(iter(windows.windows(process(tiny.read(ref).raw, task.signal)[0], 120.0, [10.0], task.window, None)))
    assert len(records.encode_window(x, 0, {'subject': '01', 'target': '"13"'})) < x.nbytes * 0.53


OTHER = {
    'picks': ('Oz',),
    'sfreq': 100.0,
    'band': (1.0, 40.0),
    'notch': (50.0,),
    'scaler': 'standard',
    'baseline': (0.0, 0.1),
    'clamp': 5.0,
    'trigger': 'Action',
    'start': 0.1,
    'duration': 2.0,
    'stride': 1.0,
    'keep_incomplete': True,
    'field': 'other',
    'prefix': 'a',
    'event': 'Other',
    'until': True,
    'clip': (0.0, 1.0),
    'core': (0.0, 1.0),
    'blank': 9,
    'length': 9,
}


@pytest.mark.parametrize('target', typing.get_args(Target), ids=lambda t: t.__name__)
def test_every_field_that_decides_what_is_stored_names_the_folder(
    target: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the clamp, which is applied to stored windows."""
    task = dataclasses.replace(make_prepared_fixture.task(), target=target())
    (tmp_path / 'Tiny').mkdir()

    def folder(t: Task) -> str:
        return cache.locate(t, tiny.DATASET, tmp_path, tmp_path)[0].name

    names = {folder(task)}
    for part in ('signal', 'window', 'target'):
        spec = getattr(task, part)
        for field in dataclasses.fields(spec):
            if field.name == 'kind':
                continue
            assert getattr(spec, field.name) != OTHER[field.name]
            changed = dataclasses.replace(task, **{part: dataclasses.replace(spec, **{field.name: OTHER[field.name]})})
            assert (folder(changed) in names) == (field.name == 'clamp'), field.name
            names.add(folder(changed))
    monkeypatch.setattr(cache, 'PREPARATION', cache.PREPARATION + 1)
    assert folder(task) not in names


def test_channels_are_matched_by_name(tmp_path: Path) -> None:
    """One recording in another order, one that names a channel twice: each row holds the channel of its name."""
    task = make_prepared_fixture.task()
    refs = [tiny.ref(0), tiny.ref(1, 'permuted'), tiny.ref(2, 'twice'), tiny.ref(3)]
    cache.prepare(task, tiny.DATASET, tmp_path / 'set-0', refs, lambda *facts: None)
    data = loader.open_set(tmp_path / 'set-0', task)
    assert data.signal.ch_names == ('Oz', 'O1', 'Fz', 'Oz-0', 'Oz-1')
    assert 'channels: 02_0_twice holds Oz-0, Oz-1 instead of O1, Oz' in data.manifest['notes']
    for k, ref in enumerate(refs):
        signal, names = process(tiny.read(ref).raw, task.signal)
        want = next(iter(windows.windows(signal, 120.0, [1.0013 - 0.3], task.window, (0.0, 0.3))))
        (got,) = loader.read(data, np.array([6 * k]), None)
        for c, row in zip(data.signal.ch_names, got, strict=True):
            if c in names:
                np.testing.assert_allclose(row, want[names.index(c)], atol=2e-4 * np.abs(want).max())
            else:
                assert not row.any()
