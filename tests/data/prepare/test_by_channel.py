"""Long recordings pass in bounded memory, and give the bytes that they give when they are held whole."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal as signals
from pathlib import Path

import mne
import numpy as np
import pytest
import small_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from preparing import SCHALK, content, python, task_of

from jbench.data import recording
from jbench.data.electrodes import montage
from jbench.data.prepare import build_set, by_channel, check_recording, convert, rows, signal
from jbench.data.recording import Recording
from jbench.plan import select
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override
from jbench.spec.task import Crop, SignalSpec

NAMES = ['Fp1', 'Fp2', 'Cz', 'C3', 'C4', 'O1', 'O2']
EVENTS = {'onset': np.array([3.0]), 'duration': np.ones(1), 'type': np.array(['Stimulus'])}


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every recording that is not in memory is long, every signal large, and three channels fill the disk."""
    monkeypatch.setattr(by_channel, 'LARGE', 0)
    monkeypatch.setattr(by_channel, 'LEAST', 700)
    monkeypatch.setattr(recording, 'BLOCK', 1)
    monkeypatch.setattr(rows, 'HELD', 0)
    monkeypatch.setattr(rows, 'STRETCH', 5000)
    monkeypatch.setattr(by_channel, 'SCRATCH', 3 * 8 * 20_000)
    return monkeypatch


def fif(path: Path, dated: bool = True) -> Path:
    """A recording that does not begin at its first sample, in two files, with a stretch that was never recorded."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 2e-5, (len(NAMES), 80 * 256))
    raw = mne.io.RawArray(x, mne.create_info(NAMES, 256.0, 'eeg', verbose='ERROR'), 2560, verbose='ERROR')
    if dated:
        raw.set_meas_date(1_600_000_000)
    raw.set_annotations(mne.Annotations([30.0], [5.0], ['BAD_ACQ_SKIP']))
    raw.save(path, verbose='ERROR', split_size='2MB', fmt='double')
    return path


def edf(path: Path) -> Path:
    small_files.edf(path, NAMES, 256.0, 80.0)
    return path


def pair(path: Path) -> tuple[mne.io.BaseRaw, mne.io.BaseRaw]:
    """One recording twice, in memory and on disk."""
    return mne.io.read_raw(path, preload=True, verbose='ERROR'), mne.io.read_raw(path, verbose='ERROR')


@pytest.mark.parametrize('kind', [pytest.param('edf', marks=pytest.mark.slow), 'fif', 'undated'])
def test_every_step_gives_the_same_bits(kind: str, tmp_path: Path, tight: pytest.MonkeyPatch) -> None:
    path = edf(tmp_path / 'S01.edf') if kind == 'edf' else fif(tmp_path / 'S01_raw.fif', kind == 'fif')
    dataset, spec = select.datasets()[SCHALK], SignalSpec(picks=('O2', 'Cz', 'Fp1', 'C4'), band=(1.0, 40.0))
    for crop in (None, Crop(start=2.0, skip=5.0, longest=60.0)):
        whole, lazy = pair(path)
        long = by_channel.laid_out(lazy, tmp_path)
        assert by_channel.is_laid_out(long) and not by_channel.is_laid_out(whole)
        assert by_channel.laid_out(whole, tmp_path) is whole
        looks = [check_recording.examine(Recording(r, EVENTS), dataset, 'x') for r in (whole, long)]
        assert looks[0] == looks[1]
        assert recording.digest(Recording(whole, {})) == recording.digest(Recording(long, {}))
        if crop:
            table = {k: v.copy() for k, v in EVENTS.items()}
            found = [recording.crop(r, table, crop) for r in (whole, long)]
            assert found[0]['onset'] == found[1]['onset'] and whole.n_times == long.n_times < 80 * 256
        want, names = signal.process(whole, spec)
        got, same = signal.process(long, spec, tmp_path)
        assert isinstance(got, rows.Rows) and names == same and got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_array_equal(got[:, :], want)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in path.parent.glob('S01*'))


@pytest.mark.slow
def test_a_part_is_the_same_file(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a baseline, which is read a little behind each window; a real recording."""
    task, dataset = override(task_of(SCHALK), 'signal.baseline', (-0.2, 0.1)), select.datasets()[SCHALK]
    refs = [r for r in build_set.locate(task, dataset, data_dir, tmp_path)[1] if r.run == 'R04']
    parts = []
    for k in range(2):
        (folder := tmp_path / str(k)).mkdir()
        parts.append((convert.make(task, dataset, refs[0], folder), content(folder)))
        for module, name in ((by_channel, 'LARGE'), (recording, 'BLOCK'), (rows, 'HELD'), (rows, 'STRETCH')):
            monkeypatch.setattr(module, name, 1)
    assert parts[0] == parts[1] and parts[0][0]['n_windows'] > 5


def test_processes_share_the_disk(tmp_path: Path, tight: pytest.MonkeyPatch) -> None:
    path = edf(tmp_path / 'S01.edf')
    channel = 8 * pair(path)[1].n_times
    tight.setattr(by_channel.shutil, 'disk_usage', lambda folder: shutil._ntuple_diskusage(0, 0, 6 * channel))
    tight.setattr(by_channel, 'SCRATCH', 1 << 40)
    held = []
    for beside in (1, 3):
        raw = by_channel.laid_out(pair(path)[1], tmp_path, beside)
        held.append(len(raw._raw_extras[0]['channels'].rows))
    assert held == [3, 1]


def test_what_depends_on_the_stretch_that_is_read_is_not_read_in_pieces(
    tmp_path: Path, tight: pytest.MonkeyPatch
) -> None:
    """MNE resamples channels of a lower rate over what is asked for, and mixes channels by a matrix."""
    from edfio import Edf, EdfSignal

    noise = np.random.default_rng(0).normal(0, 20, 2560)
    Edf([EdfSignal(noise, 256, label='Cz'), EdfSignal(noise[::2], 128, label='EMG')]).write(tmp_path / 'S01.edf')
    mixed = mne.io.read_raw_edf(tmp_path / 'S01.edf', verbose='ERROR')
    assert by_channel.laid_out(mixed, tmp_path) is mixed
    alike = mne.io.read_raw_edf(tmp_path / 'S01.edf', verbose='ERROR').pick(['Cz'])
    assert by_channel.is_laid_out(by_channel.laid_out(alike, tmp_path))
    raw = mne.io.read_raw(fif(tmp_path / 'x_raw.fif'), verbose='ERROR')
    raw.set_eeg_reference(projection=True, verbose='ERROR').apply_proj(verbose='ERROR')
    assert by_channel.laid_out(raw, tmp_path) is raw


@pytest.mark.parametrize('how', ['drop', 'interpolate'])
def test_bad_channels(how: str, tmp_path: Path, tight: pytest.MonkeyPatch) -> None:
    found = []
    for k, raw in enumerate(pair(edf(tmp_path / 'S01.edf'))):
        raw.set_montage(montage(), verbose='ERROR')
        raw.info['bads'] = ['C3', 'O1']
        long = by_channel.laid_out(raw, tmp_path)
        spec = SignalSpec(band=None, notch=(), scaler='none', sfreq=256.0, bads=how)
        data, names = signal.process(long, spec, tmp_path)
        assert isinstance(data, rows.Rows) and by_channel.is_laid_out(long) == (k == 1)
        found.append((names, data[:, :]))
    assert found[0][0] == found[1][0] and len(found[0][0]) == (5 if how == 'drop' else 7)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=2e-7, atol=1e-12 * np.abs(found[0][1]).max())


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=9), st.integers(1, 600))
def test_rows_are_an_array(asked: list[tuple[int, int]], stretch: int) -> None:
    x = np.random.default_rng(0).normal(size=(3, 60)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, 'STRETCH', stretch)
        table = rows.Rows(Path('/tmp'), (3, 60), np.float32)
        table[[2, 0]] = x[[2, 0]].astype(np.float64)
        table.write(1, 0, x[1, :20])
        table.write(1, 20, x[1, 20:])
        for start, stop in asked:
            np.testing.assert_array_equal(table[:, start:stop], x[:, start:stop])


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    limits, before = resource.getrlimit(resource.RLIMIT_FSIZE), signals.signal(signals.SIGXFSZ, signals.SIG_IGN)
    table = rows.Rows(tmp_path, (2, 1 << 20), np.float64)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(RequestError, match=rf'cannot write {tmp_path} \({1 << 24} bytes needed\): File too large'):
            table.write(1, 0, np.zeros(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signals.signal(signals.SIGXFSZ, before)


LONG = """
import json, re, sys
from pathlib import Path
import dataclasses
from jbench.data import recording
from jbench.data.prepare import by_channel, convert, rows
from jbench.data.recording import RecordingRef
from jbench.data.sources.physionet import CONDITIONS
from jbench.plan import cells, select
recording.BLOCK, by_channel.LARGE, rows.HELD, rows.STRETCH = map(int, sys.argv[2:])
task, dataset = select.tasks()['mental_arithmetic'][0], select.datasets()['Zyma2019Electroencephalograms']
task = cells.apply(task, dataset, (('signal.notch', ()), ('signal.band', (1.0, 40.0)), ('signal.sfreq', 100.0)))
dataset = dataclasses.replace(dataset, n_chans=64, sfreq=(128.0,))
peaks = []
for name in ('short', 'long'):
    folder = Path(sys.argv[1])
    ref = RecordingRef('Z', name, '0', '1', (str(folder / f'{name}_1.edf'),), (('task', CONDITIONS['1']),))
    part = convert.make(task, dataset, ref, folder)
    status = Path('/proc/self/status').read_text()  # ru_maxrss would begin at what pytest held when it forked
    peaks.append(int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1]) << 10)
print(json.dumps({'peaks': peaks, 'windows': part['n_windows'], 'sha256': part['sha256']}))
"""
BUDGET = 128 << 20  # 102 MiB were measured; in memory 476


def noise_edf(path: Path, hours: float, n_chans: int = 64, sfreq: int = 128) -> None:
    """Noise, written a minute at a time."""
    n = round(hours * 3600)
    labels = [f'EEG E{k + 1}' for k in range(n_chans)]
    each = [labels, *([v] * n_chans for v in ('', 'uV', -500, 500, -32768, 32767, '', sfreq, ''))]
    head = [('0', 8), ('X X X X', 80), ('Startdate 01-JAN-2020 X X X', 80), ('01.01.20', 8), ('00.00.00', 8)]
    head += [(256 * (n_chans + 1), 8), ('', 44), (n, 8), (1, 8), (n_chans, 4)]
    head += [(v, w) for values, w in zip(each, (16, 80, 8, 8, 8, 8, 8, 80, 8, 32), strict=True) for v in values]
    rng = np.random.default_rng(n)
    with open(path, 'wb') as file:
        file.write(''.join(str(v).ljust(w) for v, w in head).encode())
        for k in range(0, n, 60):
            file.write(rng.integers(-3000, 3000, (min(60, n - k), n_chans, sfreq), np.int16).tobytes())


@pytest.mark.long
def test_two_hours_of_64_channels_take_little_memory(tmp_path: Path) -> None:
    """472 MB as MNE reads them, and 184 MB of signal; the same windows as from memory."""
    noise_edf(tmp_path / 'short_1.edf', 1 / 60)
    noise_edf(tmp_path / 'long_1.edf', 2.0)
    found = []
    for sizes in ((1 << 20, 1 << 20, 1 << 20, 8 << 20), (1 << 26, 1 << 40, 1 << 40, 1 << 26)):  # bounded; in memory
        run = python(LONG, tmp_path, *sizes, env={**os.environ, 'OMP_NUM_THREADS': '1'})
        out, err = run.communicate(timeout=600)
        assert run.returncode == 0, err
        found.append(json.loads(out))
    bounded, plain = found
    assert bounded['sha256'] == plain['sha256'] and bounded['windows'] == plain['windows'] > 100
    more = [f['peaks'][1] - f['peaks'][0] for f in found]
    assert more[0] < BUDGET < 2 * BUDGET < more[1], [m >> 20 for m in more]
    assert not list(tmp_path.glob('tmp*'))
