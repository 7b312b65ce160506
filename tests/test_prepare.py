"""Preparation: every broken file is named, a killed run goes on, and the same recordings give the same bytes."""

from __future__ import annotations

import dataclasses
import gzip
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import mne
import numpy as np
import pytest
from edfio import Edf, EdfAnnotation, EdfSignal

from jbench import plan
from jbench.data import cache, fs, records, windows
from jbench.data.signal import process
from jbench.spec import RequestError, Task

ROOT = Path(cache.__file__).parents[2]
KALUNGA, ZYMA, SCHALK = 'Kalunga2016Online', 'Zyma2019Electroencephalograms', 'Schalk2004Bci2000'
TASKS = {KALUNGA: 'ssvep', ZYMA: 'mental_arithmetic', SCHALK: 'motor_imagery'}
Said = list[tuple[str, int, int]]


def task_of(name: str) -> Task:
    return plan.apply(plan.tasks()[TASKS[name]][-1], plan.datasets()[name], ())


def prepare(name: str, data: Path, work: Path, say: Callable[[str, int, int], None] = lambda *facts: None) -> Path:
    """The folder of a prepared set."""
    task, dataset = task_of(name), plan.datasets()[name]
    folder, refs = cache.locate(task, dataset, data, work)
    assert folder is not None
    cache.prepare(task, dataset, folder, refs, say)
    return folder


def manifest(folder: Path) -> dict:
    return json.loads((folder / 'manifest.json').read_text())


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def pick(data_dir: Path, target: Path, name: str, *patterns: str) -> Path:
    """A tree of copies of some files of a dataset; returns its data_dir."""
    for pattern in patterns:
        for path in sorted((data_dir / name).glob(pattern)):
            goal = target / name / path.relative_to(data_dir / name)
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, goal)
    return target


@pytest.fixture(scope='module')
def small(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Kalunga recordings."""
    return pick(data_dir, tmp_path_factory.mktemp('small'), KALUNGA, 'subject0[145]/*')


@pytest.fixture(scope='module')
def reference(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their prepared set."""
    return prepare(KALUNGA, small, tmp_path_factory.mktemp('reference'))


# --------------------------------------------------------------------------------------------------- what is stored


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


# ------------------------------------------------------------------------------------------------------ broken files


def fif(
    path: Path,
    change: Callable[[np.ndarray], np.ndarray] = lambda x: x,
    *,
    drop: tuple[str, ...] = (),
    sfreq: float = 256.0,
) -> None:
    """Rewrite a recording with other samples (single precision, so that they may be NaN), channels or rate."""
    raw = mne.io.read_raw_fif(path, preload=True, verbose='ERROR').drop_channels(list(drop))
    info = mne.create_info(raw.ch_names, sfreq, 'eeg')
    mne.io.RawArray(change(raw.get_data()), info, raw.first_samp, verbose='ERROR').save(
        path, overwrite=True, fmt='single', verbose='ERROR'
    )


def rewrite_events(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    mne.write_events(path, change(mne.read_events(path)), overwrite=True, verbose='ERROR')


def put(row: int, column: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[row, column] = value
        return x

    return change


def truncate(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def at_a_buffer(raw: Path) -> None:
    """A plain FIF file that ends after some whole buffer: MNE reads it as a shorter recording, without a word."""
    whole = gzip.decompress(raw.read_bytes())
    raw.unlink()
    raw.with_suffix('').write_bytes(whole[: whole.rindex(bytes.fromhex('0000012c'))])


KALUNGA_FAULTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    '02': (lambda raw, eve: truncate(raw, 0.7), r'must be readable: found .*: Compressed file ended'),
    '03': (lambda raw, eve: raw.write_bytes(b''), r'must not be empty: found 0 bytes'),
    '04': (lambda raw, eve: raw.write_text('<!DOCTYPE html><title>404</title>'), r"a web page \('<!DOCTYPE html>"),
    '05': (lambda raw, eve: fif(raw, lambda x: x * 1e3), r'the unit must be volts: found a median .*e-03 V'),
    '06': (lambda raw, eve: fif(raw, lambda x: x * 1e-3), r'the unit must be volts: found .*e-09 V'),
    '07': (lambda raw, eve: fif(raw, put(2, 512, np.nan)), r'1 that are NaN .* channel O2 at 2\.00 s'),
    '08': (lambda raw, eve: fif(raw, put(0, 0, np.inf)), r'1 that are NaN .* channel Oz at 0\.00 s'),
    '09': (lambda raw, eve: eve.unlink(), r'an event file must lie beside .*: found none, expected record'),
    '10': (lambda raw, eve: rewrite_events(eve, put(31, 0, 10**6)), r'events must lie inside .*: found 1 outside'),
    '11': (lambda raw, eve: rewrite_events(eve, put(5, 2, 9)), r'codes must be known: found code 9, expected 1 \(rest'),
    '12': (lambda raw, eve: rewrite_events(eve, lambda e: e[:20]), r'no event may be missing: found 20 events'),
    '13': (lambda raw, eve: truncate(eve, 0.5), r'the file must end as its format does'),
    '14': (lambda raw, eve: fif(raw, drop=('PO8',)), r'number of channels .*: found 7 \(without PO8\), expected 8 '),
    '15': (lambda raw, eve: fif(raw, sfreq=128.0), r'the sampling rate .*: found 128 Hz, expected 256 Hz as in'),
    '16': (lambda raw, eve: at_a_buffer(raw), r'the file must end as its format does'),
    '18': (lambda raw, eve: rewrite_events(eve, lambda e: np.vstack([e, e[-1] + [0, 0, 1]])), r'two Stimulus events'),
}
GOOD = ('01', '17')


def lines(error: RequestError) -> list[str]:
    return [line.strip() for line in str(error).splitlines()[1:]]


def test_every_broken_fif_file_is_named_at_once_and_a_repair_costs_only_itself(data_dir: Path, tmp_path: Path) -> None:
    source = sorted((data_dir / KALUNGA / 'subject01').iterdir())
    for number, subject in enumerate((*GOOD, *KALUNGA_FAULTS)):
        folder = tmp_path / KALUNGA / f'subject{subject}'
        folder.mkdir(parents=True, exist_ok=True)
        eve, raw = (Path(shutil.copyfile(p, folder / p.name)) for p in source)
        if subject in ('01', '02', '05', '17'):  # no two recordings alike
            fif(raw, lambda x, number=number: np.roll(x, number, 1))
        if subject in KALUNGA_FAULTS:
            KALUNGA_FAULTS[subject][0](raw, eve)
    with pytest.raises(RequestError) as caught:
        prepare(KALUNGA, tmp_path, tmp_path / 'work')
    found = lines(caught.value)
    text = str(caught.value)
    assert re.match(rf'{KALUNGA}: 16 faults in 18 recordings \(all were checked', text)
    for subject, (_, pattern) in KALUNGA_FAULTS.items():
        here = [line for line in found if f'/subject{subject}/record-' in line]
        assert len(here) == 1 and re.search(pattern, here[0]), (subject, here)
        assert all(re.search(r': found .+, expected .+; \w+', line) for line in here)
    assert not re.search(r'Traceback|Error\b|Exception', text)
    for subject in KALUNGA_FAULTS:
        shutil.rmtree(tmp_path / KALUNGA / f'subject{subject}')
    folder = tmp_path / KALUNGA / 'subject02'
    folder.mkdir()
    eve, raw = (Path(shutil.copyfile(p, folder / p.name)) for p in source)
    fif(raw, lambda x: np.roll(x, 99, 1))
    said: Said = []
    facts = manifest(prepare(KALUNGA, tmp_path, tmp_path / 'work', lambda *f: said.append(f)))
    assert said[0] == (f'prepare {KALUNGA}', 2, 3), 'the good ones were kept'
    assert [r['subject'] for r in facts['recordings']] == ['01', '02', '17']


def edf(path: Path, scale: float = 1.0, sfreq: float = 125.0, drop: int = 0, note: str = '') -> None:
    """Rewrite an EDF file with other samples, rate, channels or annotations."""
    raw = mne.io.read_raw_edf(path, preload=True, verbose='ERROR')
    x = raw.get_data()[drop:, : int(raw.n_times / sfreq) * int(sfreq)] * 1e6 * scale
    signals = [
        EdfSignal(row, sfreq, label=name, physical_dimension='uV', physical_range=(row.min(), row.max()))
        for row, name in zip(x, raw.ch_names[drop:], strict=True)
    ]
    Edf(signals, annotations=[EdfAnnotation(1.0, None, note)] if note else None).write(path)


EDF_FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    '01': (lambda p: truncate(p, 0.6), r'must hold what its header promises: found \d+ bytes, .* truncated'),
    '02': (lambda p: p.write_bytes(b''), r'must not be empty'),
    '03': (lambda p: p.write_text('\n<html><body>Sign in</body></html>'), r"a web page \('<html><body>Sign in"),
    '04': (lambda p: p.write_bytes(p.read_bytes().replace(b'\n', b'\r\n')), r'expected \d+ bytes; the file is longer'),
    '05': (lambda p: edf(p, 1e3), r'the unit must be volts'),
    '06': (lambda p: edf(p, 1e-3), r'the unit must be volts'),
    '07': (lambda p: edf(p, sfreq=100.0), r'the sampling rate .*: found 100 Hz, expected 125 Hz as in'),
    '08': (lambda p: edf(p, drop=1), r'the number of channels .*: found 18 \(without Fp1\), expected 19 as in'),
    '09': (lambda p: p.write_bytes(p.read_bytes()[:236] + b'garbage ' + p.read_bytes()[244:]), r'that of an EDF'),
    '10': (lambda p: p.write_bytes(os.urandom(5000)), r'must begin as its format does'),
    '11': (lambda p: truncate(p, 0.001), r'must be that of an EDF|must hold what its header'),
    '12': (lambda p: p.write_bytes(p.read_bytes().replace(b'EEG Fp1', b'Fp1    ')), r'with their type: found Fp1'),
}


def test_every_broken_edf_file_is_named_at_once(data_dir: Path, tmp_path: Path) -> None:
    pick(data_dir, tmp_path, ZYMA, 'Subject0?_1.edf', 'Subject1[012]_1.edf', 'Subject0?_2.edf')
    for subject, (change, _) in EDF_FAULTS.items():
        change(tmp_path / ZYMA / f'Subject{subject}_1.edf')
    with pytest.raises(RequestError) as caught:
        prepare(ZYMA, tmp_path, tmp_path / 'work')
    found = lines(caught.value)
    assert len(found) == len(EDF_FAULTS)
    for subject, (_, pattern) in EDF_FAULTS.items():
        here = [line for line in found if f'/Subject{subject}_1.edf' in line]
        assert len(here) == 1 and re.search(pattern, here[0]), (subject, here)
    assert not re.search(r'Traceback|Error\b|Exception', str(caught.value))


def test_unknown_and_missing_annotations_are_named(data_dir: Path, tmp_path: Path) -> None:
    folder = pick(data_dir, tmp_path, SCHALK, '*R0[48].edf', '*R12.edf') / SCHALK
    for run, note in (('R04', 'T7'), ('R08', '')):
        raw = mne.io.read_raw_edf(folder / f'S001{run}.edf', preload=True, verbose='ERROR')
        rows = raw.get_data()[:, :1600] * 1e6
        marks = [EdfAnnotation(1.0, None, note)] if note else None
        Edf(
            [
                EdfSignal(r, 160.0, label=c, physical_dimension='uV', physical_range=(-800, 800))
                for r, c in zip(rows, raw.ch_names, strict=True)
            ],
            annotations=marks,
        ).write(folder / f'S001{run}.edf')
    with pytest.raises(RequestError) as caught:
        prepare(SCHALK, tmp_path, tmp_path / 'work')
    found = lines(caught.value)
    assert len(found) == 2 and 'R04.edf: annotations must be there and known: found T7, expected T0, T1' in found[0]
    assert 'R08.edf: annotations must be there and known: found none' in found[1]


def test_one_recording_in_two_files_is_refused(data_dir: Path, tmp_path: Path) -> None:
    folder = pick(data_dir, tmp_path, SCHALK, '*R04.edf') / SCHALK
    (folder / 'S001').mkdir()
    shutil.copy(folder / 'S001R04.edf', folder / 'S001')
    with pytest.raises(RequestError, match=r'one recording in several files: .*S001R04\.edf, .*S001R04\.edf'):
        prepare(SCHALK, tmp_path, tmp_path / 'work')


def test_a_changed_file_of_the_same_size_is_prepared_again(small: Path, tmp_path: Path) -> None:
    """Parts of an unfinished preparation count only for the file that they were made of."""
    data = shutil.copytree(small, tmp_path / 'data')
    (bad,) = (data / KALUNGA / 'subject05').glob('*-eve.fif')
    rewrite_events(bad, put(5, 2, 9))
    with pytest.raises(RequestError, match='code 9'):
        prepare(KALUNGA, data, tmp_path / 'work')
    (other,) = (data / KALUNGA / 'subject04').glob('*-eve.fif')
    rewrite_events(other, put(5, 2, 1))
    rewrite_events(bad, put(5, 2, 1))
    said: Said = []
    prepare(KALUNGA, data, tmp_path / 'work', lambda *f: said.append(f))
    assert said[0][1:] == (1, 3)


# ------------------------------------------------------------------------------------------- interruption and workers

RUN = """
import sys, json
print('main', flush=True)
import jax
from pathlib import Path
sys.path.insert(0, {tests!r})
import test_prepare
def say(what, done, total):
    print('done', done, flush=True)
folder = test_prepare.prepare(test_prepare.KALUNGA, Path(sys.argv[1]), Path(sys.argv[2]), say)
print('folder', folder)
"""


def python(code: str, *args: object, **options: object) -> subprocess.Popen[str]:
    """A fresh process, in a group of its own."""
    import textwrap

    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(code), *map(str, args)],
        text=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )  # type: ignore[call-overload]


def running(small: Path, work: Path, folder: Path, **options: object) -> subprocess.Popen[str]:
    """A process that prepares, from a program that imports jax and has no main guard."""
    program = folder / 'program.py'
    program.write_text(RUN.format(tests=str(ROOT / 'tests')).replace('import jax\n', 'import jax.numpy\n'))
    return subprocess.Popen(
        [sys.executable, str(program), str(small), str(work)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        **options,
    )  # type: ignore[call-overload]


def group(session: int) -> list[str]:
    """Command lines of the living processes of a session."""
    found = []
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text().rpartition(')')[2].split()
            if int(fields[3]) == session and fields[0] != 'Z':
                found.append((stat.parent / 'cmdline').read_text().replace('\0', ' '))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='reads /proc')
def test_killed_at_any_time_it_leaves_nothing_running_and_the_next_run_completes(
    small: Path, reference: Path, tmp_path: Path
) -> None:
    for seed in range(4):
        run = running(small, tmp_path / 'work', tmp_path)
        assert run.stdout is not None
        while not run.stdout.readline().startswith('done'):
            assert run.poll() is None, run.communicate()
        time.sleep(random.Random(seed).uniform(0, 0.7))
        os.kill(run.pid, signal.SIGKILL)  # the parent alone: its workers must follow
        run.wait()
        assert until(lambda session=run.pid: not group(session), 10), group(run.pid)
        ready = list((tmp_path / 'work').rglob('manifest.json'))
        assert not ready or (seed > 0 and content(ready[0].parent) == content(reference))
    run = running(small, tmp_path / 'work', tmp_path)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert out.count('main') == 1, 'workers import neither the main program nor jax'
    assert err == ''
    folder = Path(out.split('folder ')[1].strip())
    assert content(folder) == content(reference)
    assert not list((tmp_path / 'work').rglob('*.tmp*')) and not list((tmp_path / 'work').rglob('*.parts'))


class Killed(BaseException):
    """Stands for kill -9 between two writes."""


def test_stopped_between_any_two_writes_the_set_is_absent_and_then_whole(
    small: Path, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0

    def counted(function: Callable) -> Callable:
        def call(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return function(*args, **options)

        return call

    for module, name in ((fs, 'link_or_copy'), (fs, 'write_atomic'), (cache, 'write_metadata'), (shutil, 'rmtree')):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    stops = 0
    for k in range(20):
        left = k
        try:
            folder = prepare(KALUNGA, small, tmp_path)
            break
        except Killed:
            stops += 1
            ready = list(tmp_path.rglob('manifest.json'))
            assert not ready or content(ready[0].parent) == content(reference)
    assert stops >= 6 and content(folder) == content(reference)


def test_two_processes_at_once_make_one_set(small: Path, reference: Path, tmp_path: Path) -> None:
    runs = [running(small, tmp_path / 'work', tmp_path) for _ in range(2)]
    outs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outs
    (ready,) = (tmp_path / 'work').rglob('manifest.json')
    assert content(ready.parent) == content(reference)
    assert sum('done 3' in out for out, _ in outs) == 1, 'one works, the other waits'


SOURCE = """
import os, signal, sys, time
import numpy as np
from jbench.data.recording import Recording
def read(ref):
    if ref.run == 'slow':
        time.sleep(60)
    if ref.run == 'signals':
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        raise ZeroDivisionError(f'still here, jax {"jax" in sys.modules}, threads {os.environ["OMP_NUM_THREADS"]}')
    if ref.run == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    if ref.run == 'memory':
        raise MemoryError
    if ref.run == 'extra':
        from jbench.spec import MissingExtraError
        raise MissingExtraError('pandas', 'moabb', 'this dataset')
"""


@pytest.fixture
def odd_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Prepares recordings of a reader that does what its run says."""
    (tmp_path / 'odd_source.py').write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    dataset = dataclasses.replace(plan.datasets()[KALUNGA], source='odd_source')

    def go(*runs: str, say: Callable[[str, int, int], None] = lambda *f: None) -> None:
        refs = [cache.RecordingRef(KALUNGA, '01', str(k), run, (str(tmp_path / run),)) for k, run in enumerate(runs)]
        cache.prepare(task_of(KALUNGA), dataset, tmp_path / 'set-0', refs, say)

    return go


def test_a_stop_is_seen_at_once(odd_source: Callable[..., None]) -> None:
    began, calls = time.monotonic(), []

    def stop(*facts: object) -> None:
        calls.append(time.monotonic())
        if len(calls) > 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        odd_source('slow', 'slow', say=stop)
    assert time.monotonic() - began < 15 and max(np.diff(calls[1:])) < 2
    assert until(lambda: not multiprocessing.active_children(), 5)


def test_workers_ignore_signals_and_never_import_jax(odd_source: Callable[..., None]) -> None:
    with pytest.raises(RequestError, match='the reader failed: still here, jax False, threads 1'):
        odd_source('signals')


def test_a_killed_worker_is_told_as_lack_of_memory(odd_source: Callable[..., None]) -> None:
    with pytest.raises(RequestError, match=r'was killed, most likely .* memory ran out; \d of 2 recordings are'):
        odd_source('killed', 'slow')
    assert until(lambda: not multiprocessing.active_children(), 5)


@pytest.mark.parametrize(
    ('run', 'message'),
    [('memory', '/memory: memory ran out'), ('extra', r"this dataset needs pandas, .* '.\[moabb\]'")],
)
def test_what_is_no_fault_of_a_file_is_told_as_such(odd_source: Callable[..., None], run: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        odd_source(run)


# ------------------------------------------------------------------------------------------- disks, damage afterwards


def test_a_full_disk_names_the_path_and_the_next_run_completes(small: Path, reference: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    run = running(small, tmp_path / 'work', tmp_path, preexec_fn=limit)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 1
    assert re.search(
        r'RequestError: cannot write \S+_0_0\.array_record \(\d+ bytes .*: File too large; free space', err
    )
    assert not list((tmp_path / 'work').rglob('*.array_record*'))
    assert content(prepare(KALUNGA, small, tmp_path / 'work')) == content(reference)


def test_a_folder_that_cannot_be_written_is_named(small: Path, tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(RequestError, match=r'cannot write .*file/prepared/Kalunga2016Online/.*Not a directory'):
        prepare(KALUNGA, small, tmp_path / 'file')
    tmp_path.chmod(0o755)
    work = tmp_path / 'work'
    work.mkdir(mode=0o555)
    code = f"""
    import os, sys
    from pathlib import Path
    from jbench.data import cache
    from jbench import plan
    task, dataset = plan.tasks()['ssvep'][-1], plan.datasets()['SimulatedSsvep']
    folder, refs = cache.locate(task, dataset, None, Path({str(work)!r}))
    if os.getuid() == 0:
        os.setuid(65534)
    for p in [Path({str(work)!r}), *Path({str(work)!r}).parents]:
        if not os.access(p, os.X_OK):
            sys.exit('skip')
    cache.prepare(task, dataset, folder, refs, print)
    """
    run = python(code)
    _, err = run.communicate(timeout=60)
    if err.strip() != 'skip':
        assert re.search(r'cannot write \S+ \(0 bytes needed\): Permission denied; give this user', err), err


@pytest.fixture
def damaged(reference: Path, tmp_path: Path) -> Path:
    """A copy of the prepared set to break."""
    goal = tmp_path / 'prepared' / KALUNGA / reference.name
    return Path(shutil.copytree(reference, goal))


def test_a_flipped_byte_in_any_file_is_found(damaged: Path) -> None:
    cache.verify(damaged)
    rng = random.Random(3)
    for path in sorted(damaged.iterdir()):
        whole = path.read_bytes()
        for _ in range(5):
            k = rng.randrange(len(whole))
            path.write_bytes(whole[:k] + bytes([whole[k] ^ 1 << rng.randrange(8)]) + whole[k + 1 :])
            if path.name != 'manifest.json' or path.read_text(errors='replace').split() != whole.decode().split():
                with pytest.raises(RequestError, match=f'{re.escape(str(path))}.*damaged.*remove'):
                    cache.verify(damaged)
        path.write_bytes(whole)
    cache.verify(damaged)


def test_missing_swapped_and_cut_files_are_found(damaged: Path) -> None:
    shards = sorted(damaged.glob('*.array_record*'))
    a, b = shards[0].read_bytes(), shards[1].read_bytes()
    shards[0].write_bytes(b)
    shards[1].write_bytes(a)
    with pytest.raises(RequestError, match=f'{shards[0].name}: damaged'):
        cache.verify(damaged)
    shards[0].write_bytes(a)
    shards[1].write_bytes(b[:-1])
    assert not cache.is_ready(damaged)
    with pytest.raises(RequestError, match=f'{shards[1].name}: damaged'):
        cache.verify(damaged)
    shards[1].unlink()
    with pytest.raises(RequestError, match=f'{shards[1].name}: missing; remove the folder'):
        cache.verify(damaged)
    (damaged / 'manifest.json').unlink()
    with pytest.raises(RequestError, match=r'not a prepared set \(it has no manifest'):
        cache.verify(damaged)


def test_a_set_that_lacks_a_file_is_made_anew(damaged: Path, small: Path, reference: Path, tmp_path: Path) -> None:
    (damaged / 'index.npz').unlink()
    with pytest.raises(RequestError, match=r'index\.npz missing or damaged, and no recordings of Kalunga'):
        cache.prepare(task_of(KALUNGA), plan.datasets()[KALUNGA], damaged, [], lambda *facts: None)
    said: Said = []
    assert prepare(KALUNGA, small, tmp_path, lambda *f: said.append(f)) == damaged
    assert said[0][0] == f'prepare {KALUNGA} again (index.npz missing or damaged)'
    assert content(damaged) == content(reference)
    os.truncate(damaged / 'manifest.json', 100)
    prepare(KALUNGA, small, tmp_path)
    assert content(damaged) == content(reference)
    said.clear()
    prepare(KALUNGA, small, tmp_path, lambda *f: said.append(f))
    assert not said, 'nothing is done where all is there'


def test_without_recordings_the_prepared_set_serves(damaged: Path, tmp_path: Path) -> None:
    dataset = plan.datasets()[KALUNGA]
    assert cache.locate(task_of(KALUNGA), dataset, None, tmp_path) == (damaged, [])
    assert cache.locate(task_of(KALUNGA), dataset, tmp_path, tmp_path / 'none') == (None, [])
