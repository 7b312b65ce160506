"""What is stored: the same recordings give the same bytes, near enough to what was computed."""

from __future__ import annotations

import dataclasses
import os
import runpy
import shutil
import typing
from collections.abc import Callable
from pathlib import Path

import make_prepared_fixture
import numpy as np
import pytest
import tiny
from places import ROOT
from preparing import KALUNGA, SCHALK, ZYMA, Said, content, manifest, pick, prepare, python, task_of

from jbench import files
from jbench.data import recording, windows
from jbench.data.load import prepared_set
from jbench.data.prepare import build_set, codec, convert, raw_files
from jbench.data.prepare.signal import process
from jbench.plan import select
from jbench.spec.challenges import Jitter
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override
from jbench.spec.task import Classes, Crop, Keystrokes, Target, Task, Trim, Value, Where, Window


@pytest.mark.slow
def test_windows_are_those_of_the_signal_and_the_clamp_is_not_stored(small: Path, reference: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordReader

    from jbench.data.sources import kalunga

    task, facts = task_of(KALUNGA), manifest(reference)
    for i, ref in enumerate(kalunga.recordings(select.datasets()[KALUNGA], small / KALUNGA)):
        raw, events = kalunga.read(ref)
        data, names = process(raw, task.signal)
        want = windows.windows(data, 120.0, [float(t) + 2.0 for t in events['onset']], task.window, None)
        entry = facts['recordings'][i]
        got = [codec.decode_window(r) for r in ArrayRecordReader(str(reference / entry['shard'])).read_all()]
        assert [k for _, k in got] == list(range(32)) and entry['ch_names'] is None and facts['ch_names'] == list(names)
        for x, (y, _) in zip(want, got, strict=True):
            assert np.all(np.abs(x - y) <= np.abs(x).max(1, keepdims=True) * codec.ERROR)
            assert np.abs(x - y).max() <= facts['error_bound']
    assert 'clamp' not in facts['spec']['signal']
    index = files.read_npz(reference / 'index.npz')
    assert len(index['window.id']) == 96 == facts['n_windows']
    assert list(index['window.id'][[0, 31, 32, 95]]) == [0, 31, 1 << 20, (2 << 20) + 31]
    assert set(index['event.type'][index['window.event']]) == {'Stimulus'}
    np.testing.assert_allclose(index['window.onset'], index['event.onset'][index['window.event']] + 2.0)


@pytest.mark.slow
def test_baseline_is_taken_after_scaling(small: Path, tmp_path: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordReader

    task, dataset = override(task_of(KALUNGA), 'signal.baseline', (0.0, 0.2)), select.datasets()[KALUNGA]
    folder, refs = build_set.locate(task, dataset, small, tmp_path)
    assert folder is not None
    build_set.prepare(task, dataset, folder, refs[:1], lambda *facts: None)
    shard = folder / manifest(folder)['recordings'][0]['shard']
    for record in ArrayRecordReader(str(shard)).read_all():
        x, _ = codec.decode_window(record)
        assert np.abs(x[:, :24].mean(1)).max() < 1e-3 and np.median(np.abs(x)) > 0.1


@pytest.mark.slow
def test_tfds_reads_a_set_without_network(reference: Path) -> None:
    code = """
    import socket, sys, json
    def refuse(*args, **kwargs): raise AssertionError('network')
    socket.socket.connect = socket.socket.sendto = socket.getaddrinfo = refuse
    import numpy as np
    import tensorflow_datasets as tfds
    from array_record.python.array_record_module import ArrayRecordReader
    from jbench.data.prepare import codec
    folder = sys.argv[1]
    source = tfds.builder_from_directory(folder).as_data_source('all')
    shards = [r['shard'] for r in json.load(open(folder + '/manifest.json'))['recordings']]
    stored = [r for s in shards for r in ArrayRecordReader(folder + '/' + s).read_all()]
    assert len(source) == len(stored) == 96
    for got, record in zip(source, stored):
        x, number = codec.decode_window(record)
        same = np.frombuffer(got['x'], '<i2').reshape(got['shape']) * got['scale'][:, None]
        assert np.array_equal(same, x) and got['id'] == number
    assert [source[k]['subject'] for k in (0, 32, 64)] == [b'01', b'04', b'05']
    assert 'tensorflow' not in sys.modules and 'jax' not in sys.modules
    """
    done = python(code, reference)
    assert done.wait(60) == 0, done.stderr.read()


@pytest.mark.slow
def test_two_preparations_give_the_same_bytes(small: Path, reference: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(small, tmp_path / 'elsewhere')
    for path in moved.rglob('*.fif*'):
        os.utime(path, (1e9, 1e9))
    again = prepare(KALUNGA, moved, tmp_path / 'work')
    assert again.name == reference.name and content(again) == content(reference)
    assert str(tmp_path) not in (again / 'manifest.json').read_text()
    assert [p.name for p in again.parent.iterdir() if p != again] == [again.name.partition('-')[0] + '.lock']


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_set_that_differs_from_its_publication_is_partial(data_dir: Path, tmp_path: Path) -> None:
    folder = prepare(ZYMA, pick(data_dir, tmp_path, ZYMA, 'Subject0[0-2]_*', '*.csv'), tmp_path / 'work')
    assert manifest(folder)['notes'] == [
        'partial: sampling rate: found 125 Hz, declared 500 Hz',
        'partial: number of channels: found 19, declared 20',
        'partial: duration: found 32 s, declared 62 s',
    ]
    assert [r['n_windows'] for r in manifest(folder)['recordings']] == [6] * 6
    assert set(files.read_npz(folder / 'index.npz')['event.gender']) == {'F'}


@pytest.mark.slow
def test_runs_without_imagery_make_no_windows(data_dir: Path, tmp_path: Path) -> None:
    facts = manifest(prepare(SCHALK, pick(data_dir, tmp_path, SCHALK, '*R0[124].edf'), tmp_path / 'work'))
    assert [(r['run'], r['n_windows']) for r in facts['recordings']] == [('R04', 15)] and facts['notes'] == []
    with pytest.raises(RequestError, match=r'no recording holds an event that makes a window; .* type Action'):
        prepare(SCHALK, pick(data_dir, tmp_path / 'rest', SCHALK, '*R0[12].edf'), tmp_path / 'work')


def test_what_is_stored_has_not_changed() -> None:
    """Whoever changes it raises PREPARATION and runs make_prepared_fixture.py: else old sets would serve as new."""
    found, golden = make_prepared_fixture.stored(), files.read_npz(make_prepared_fixture.PATH)
    assert found['x'].shape == (6, 3, 120) and np.abs(golden['x']).max() == codec.INT16
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
    golden = files.read_npz(make_prepared_fixture.PATH)
    assert make_prepared_fixture.differences({**golden, name: change(golden[name])}, golden) == [name]


def test_a_part_is_the_same_whatever_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for size in (1, recording.BLOCK):
        monkeypatch.setattr(recording, 'BLOCK', size)
        folder = tmp_path / str(size)
        folder.mkdir()
        part = convert.make(make_prepared_fixture.task(), tiny.DATASET, tiny.ref(1), folder)
        found.append((part, content(folder)))
    assert found[0] == found[1] and len(found[0][1]) == 2


@pytest.mark.slow
def test_a_set_takes_half_of_what_its_windows_do_and_little_more(tmp_path: Path) -> None:
    """Each window adds its scales and some words, each shard up to 192 KiB: array_record fills blocks of 64 KiB."""
    task = task_of(KALUNGA)
    ref = tiny.ref(1, seconds=2400)
    part = convert.make(task, tiny.DATASET, ref, tmp_path)
    n, floats = part['n_windows'], part['n_windows'] * 3 * 480 * 4
    assert n > 880
    stored = (tmp_path / f'{ref.name}.array_record').stat().st_size
    assert stored <= floats / 2 + n * (4 * 3 + 160) + (192 << 10)
    x = next(iter(windows.windows(process(tiny.read(ref).raw, task.signal)[0], 120.0, [10.0], task.window, None)))
    assert len(codec.encode_window(x, 0, {'subject': '01', 'target': '"13"'})) < x.nbytes * 0.53


# ---- parts of a recording ----


def plain(window: Window, crop: Crop | None, **signal: object) -> Task:
    """A task on the signal as it was recorded."""
    task = make_prepared_fixture.task()
    asked = {'band': None, 'notch': (), 'scaler': 'none', 'sfreq': tiny.SFREQ, 'baseline': None, 'crop': crop, **signal}
    return dataclasses.replace(task, window=window, signal=dataclasses.replace(task.signal, **asked))


WHOLE = Window(trigger='Eeg', duration=2.0, stride=2.0)
BY_SUBJECT = Classes(field='subject')


@pytest.mark.parametrize(
    ('crop', 'seconds', 'first', 'kept'),
    [
        (Crop(start=0.0, skip=60.0, longest=120.0), 250, 0, 120),  # as published: the first minute is read
        (Crop(start=0.0, skip=60.0, longest=120.0), 151, 0, 91),
        (Crop(start=60.0, skip=60.0, longest=120.0), 250, 60, 120),  # as meant
        (Crop(), 151, 60, 91),
        (Crop(start=60.0, skip=60.0, longest=1200.0), 65, 60, 5),
        (Crop(start=30.0, skip=10.0, longest=120.0), 100, 30, 70),  # the file ends first
    ],
)
def test_a_crop_keeps_one_part_of_a_recording(
    crop: Crop, seconds: int, first: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The windows of the covering event are those of that part, whether the recording is preloaded or not."""
    task, ref = dataclasses.replace(plain(WHOLE, crop), target=BY_SUBJECT), tiny.ref(4, seconds=seconds)
    found = []
    for size in (recording.BLOCK, 1):
        monkeypatch.setattr(recording, 'BLOCK', size)
        (folder := tmp_path / str(size)).mkdir()
        part = convert.make(task, tiny.DATASET, ref, folder)
        assert part['findings'] == [] and part['windows']['onset'] == [2.0 * k for k in range(kept // 2)]
        found.append(stored_windows(folder))
    x = tiny.read(ref).raw.get_data()[:, int(first * tiny.SFREQ) :]
    want = np.stack([x[:, int(512 * k) : int(512 * (k + 1))] for k in range(kept // 2)])
    np.testing.assert_allclose(found[0], want, atol=np.abs(want).max() * codec.ERROR)
    np.testing.assert_array_equal(*found)
    covering = part['events']['type'].index('Eeg')
    assert (part['events']['onset'][covering], part['events']['duration'][covering]) == (0.0, kept)
    assert part['native']['seconds'] == seconds  # what the contract compares is the file


def stored_windows(folder: Path) -> np.ndarray:
    """The windows of the one shard of a folder, [N, C, T]."""
    from array_record.python.array_record_module import ArrayRecordReader

    (shard,) = folder.glob('*.array_record')
    return np.stack([codec.decode_window(r)[0] for r in ArrayRecordReader(str(shard)).read_all()])


def test_filters_and_scaling_see_the_kept_part_alone(tmp_path: Path) -> None:
    crop = Crop(start=5.0, skip=5.0, longest=20.0)
    task, ref = make_prepared_fixture.task(), tiny.ref(4, seconds=60)
    raw = tiny.read(ref).raw
    want = process(raw.copy().crop(5.0, 25.0, include_tmax=False), task.signal)[0]
    table = recording.crop(raw, recording.event_table(tiny.read(ref), ref, tiny.DATASET), crop)
    np.testing.assert_array_equal(process(raw, task.signal)[0], want)
    assert table['duration'][table['type'] == 'Eeg'] == [20.0]


def test_events_lie_relative_to_the_kept_part(tmp_path: Path) -> None:
    """Events 1.0013 s + 2.7 s k; a state lasts over the border, and still labels the windows that it overlaps."""
    raw, events = tiny.read(tiny.ref(4, seconds=40))
    onset = events['onset']
    table = {
        'onset': np.array([0.0, 2.0, 3.0, *onset, 24.5]),
        'duration': np.array([40.0, 5.0, 1.0, *np.ones(len(onset)), 9.0]),
        'type': np.array(['Eeg', 'Seizure', 'Seizure', *events['type'], 'Seizure']),
    }
    kept = recording.crop(raw, table, Crop(start=5.0, skip=5.0, longest=20.0))
    np.testing.assert_allclose(kept['onset'][kept['type'] == 'Stimulus'], [t - 5.0 for t in onset if 4.0 < t < 25.0])
    assert kept['onset'][kept['type'] == 'Seizure'].tolist() == [-3.0, 19.5]
    assert raw.n_times == 20 * tiny.SFREQ
    task = plain(Window(), Crop(start=5.0, skip=5.0, longest=20.0))
    part = convert.make(task, tiny.DATASET, tiny.ref(4, seconds=40), tmp_path)
    np.testing.assert_allclose(part['windows']['onset'], [t - 5.0 for t in onset if 5.0 <= t < 25.0])
    assert part['windows']['target'] == [f'"{c}"' for c, t in zip(events['code'], onset, strict=True) if 5 <= t < 25]


def test_a_recording_of_which_nothing_is_left_is_one_finding(tmp_path: Path) -> None:
    for seconds, crop in ((20, Crop(skip=20.0, start=0.0)), (20, Crop(skip=0.0, start=20.0))):
        part = convert.make(plain(WHOLE, crop), tiny.DATASET, tiny.ref(1, seconds=seconds), tmp_path)
        (finding,) = part['findings']
        assert finding.level == 'fatal' and 'nothing is left of its 20.0 s after signal.crop' in str(finding)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_conditions_are_on_the_whole_recording_and_come_before_the_crop(tmp_path: Path) -> None:
    """A recording that is too short for the crop, and not asked for, is no fault."""
    asked = dataclasses.replace(WHOLE, where=(Where(field='duration', least=40.0),))
    task = dataclasses.replace(plain(asked, Crop(start=0.0, skip=30.0, longest=10.0)), target=BY_SUBJECT)
    refs = [tiny.ref(0, seconds=60), tiny.ref(1, seconds=20), tiny.ref(2, seconds=40)]
    build_set.prepare(task, tiny.DATASET, tmp_path / 'set-0', refs, lambda *facts: None)
    facts = manifest(tmp_path / 'set-0')
    assert [(r['subject'], r['n_windows']) for r in facts['recordings']] == [('00', 5), ('02', 5)]


def test_conditions_choose_triggers(tmp_path: Path) -> None:
    task = plain(Window(where=(Where(field='code', values=('2',)),)), None)
    part = convert.make(task, tiny.DATASET, tiny.ref(1), tmp_path)
    assert part['windows']['target'] == ['"2"'] * 3 and part['findings'] == []
    assert part['events']['code'] == ['', '2', '2', '2']
    task = plain(Window(where=(Where(field='cod', values=('2',)),)), None)
    (finding,) = convert.make(task, tiny.DATASET, tiny.ref(2), tmp_path)['findings']
    assert "unknown column of the event table 'cod'; did you mean 'code'" in str(finding)


OTHER = {
    'picks': ('Oz',),
    'sfreq': 100.0,
    'band': (1.0, 40.0),
    'notch': (50.0,),
    'scaler': 'standard',
    'baseline': (0.0, 0.1),
    'clamp': 5.0,
    'factor': 0.5,
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
    'held': True,
    'blank': 9,
    'length': 9,
    'crop': Crop(start=1.0),
    'bads': 'drop',
    'reference': 'average',
    'regions': True,
    'where': (Where(field='code'),),
    'last': 1.0,
    'trim': Trim(),
    'mapping': (('1', 0),),
    'encoder': 'gpt2',
    'group': 'other',
    'scaled': True,
    'jitter': Jitter(),
    'steps': 9,
    'answers': 9,
}


AT_LOAD = {'clamp', 'factor', 'mapping', 'clip', 'scaled', 'blank', 'length'}  # fields that act on stored windows


@pytest.mark.parametrize('target', typing.get_args(Target), ids=lambda t: t.__name__)
def test_every_field_that_decides_what_is_stored_names_the_folder(
    target: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = dataclasses.replace(make_prepared_fixture.task(), target=target())
    (tmp_path / 'Tiny').mkdir()

    def folder(t: Task) -> str:
        return build_set.locate(t, tiny.DATASET, tmp_path, tmp_path)[0].name

    names = {folder(task)}
    for part in ('signal', 'window', 'target'):
        spec = getattr(task, part)
        for field in dataclasses.fields(spec):
            if field.name == 'kind':
                continue
            assert getattr(spec, field.name) != OTHER[field.name]
            changed = dataclasses.replace(task, **{part: dataclasses.replace(spec, **{field.name: OTHER[field.name]})})
            assert (folder(changed) in names) == (field.name in AT_LOAD), field.name
            names.add(folder(changed))
    assert folder(dataclasses.replace(task, drop=(Where(field='code'),), level='recording')) in names
    plain, trained = (override(task, 'signal.scaler', s) for s in ('none', 'train'))
    assert folder(plain) == folder(trained) not in names
    monkeypatch.setattr(build_set, 'PREPARATION', build_set.PREPARATION + 1)
    assert folder(task) not in names


def test_a_correction_that_leaves_the_size_of_a_table_alone_names_another_folder(tmp_path: Path) -> None:
    """So do other facts, to which recordings are held; what is only said of a dataset does not."""
    (table := tmp_path / 's_events.tsv').write_text('open')
    (tmp_path / 's_meg.ds').mkdir()  # a recording of CTF is a folder
    refs = [tiny.ref(0)._replace(files=(str(tmp_path / 's_meg.ds'), str(table)))]
    for size in (1, raw_files.SMALL):
        table.write_text('open' * size)
        before = build_set.fingerprint(refs)
        assert build_set.fingerprint(refs) == before
        table.write_text('shut' * size)
        assert build_set.fingerprint(refs) != before
    task, other = make_prepared_fixture.task(), dataclasses.replace(tiny.DATASET, sfreq=(500.0,))
    assert build_set.stored_spec(task, other) != build_set.stored_spec(task, tiny.DATASET)
    assert build_set.stored_spec(task, dataclasses.replace(other, title='-')) == build_set.stored_spec(task, other)


@pytest.mark.parametrize(
    ('target', 'other'),
    [
        (Classes(), Classes(mapping=(('1', 0), ('2', 0)))),
        (Value(field='code'), Value(field='code', clip=(0.0, 1.0), scaled=True)),
        (Keystrokes(field='code'), Keystrokes(field='code', blank=9, length=9)),
    ],
    ids=lambda t: t.kind,
)
def test_fields_that_act_at_load_leave_what_is_stored_as_it_is(target: Target, other: Target, tmp_path: Path) -> None:
    task, found = make_prepared_fixture.task(), []
    for k, (asked, clamp, scaler) in enumerate(((target, 20.0, 'none'), (other, 5.0, 'train'))):
        signal = dataclasses.replace(task.signal, clamp=clamp, scaler=scaler)
        made = dataclasses.replace(task, target=asked, signal=signal)
        (folder := tmp_path / str(k)).mkdir()
        found.append(
            (
                convert.make(made, tiny.DATASET, tiny.ref(1), folder),
                content(folder),
                build_set.stored_spec(made, tiny.DATASET),
            )
        )
    assert found[0] == found[1] and found[0][0]['n_windows'] == 6


@pytest.mark.slow
def test_channels_are_matched_by_name(tmp_path: Path) -> None:
    """One recording in another order, one that names a channel twice: each row holds the channel of its name."""
    task = make_prepared_fixture.task()
    refs = [tiny.ref(0), tiny.ref(1, 'permuted'), tiny.ref(2, 'twice'), tiny.ref(3)]
    build_set.prepare(task, tiny.DATASET, tmp_path / 'set-0', refs, lambda *facts: None)
    data = prepared_set.open_set(tmp_path / 'set-0', task)
    assert data.signal.ch_names == ('Oz', 'O1', 'Fz', 'Oz-0', 'Oz-1')
    assert data.manifest['notes'] == [
        'channels: zeros for Oz, O1 in 1 of 4 recordings, which lack them: 02_0_twice',
        'channels: zeros for Oz-0, Oz-1 in 3 of 4 recordings, which lack them: 00_0_, 01_0_permuted, 03_0_',
    ]
    assert [r['ch_names'] for r in data.manifest['recordings']][1:3] == [['Fz', 'O1', 'Oz'], ['Oz-0', 'Oz-1', 'Fz']]
    for k, ref in enumerate(refs):
        signal, names = process(tiny.read(ref).raw, task.signal)
        want = next(iter(windows.windows(signal, 120.0, [1.0013 - 0.3], task.window, (0.0, 0.3))))
        (got,) = prepared_set.read(data, np.array([6 * k]), None)
        for c, row in zip(data.signal.ch_names, got, strict=True):
            if c in names:
                np.testing.assert_allclose(row, want[names.index(c)], atol=2e-4 * np.abs(want).max())
            else:
                assert not row.any()


@pytest.mark.parametrize(
    ('what', 'size', 'form'),
    [('long', size, 'HxC') for size in ('24', '24x', '0x8', '24x8,', 'axb')]
    + [('generated', size, 'H') for size in ('0', '1x2', 'two')],
)
def test_the_benchmark_wants_hours_and_channels(what: str, size: str, form: str, capsys: pytest.CaptureFixture) -> None:
    run = runpy.run_path(str(ROOT / 'benchmarks' / 'prepare.py'))
    assert run['numbers']('24x8,1x256', 'HxC') == [(24, 8), (1, 256)]
    assert run['main']([what, size]) == 2
    assert capsys.readouterr().err.startswith(f'prepare: {size!r}: expected {form}, ')
