"""The signal chain against MNE and scikit-learn called directly, in the order of the published protocol."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import mne
import numpy as np
import pytest
from sklearn.preprocessing import RobustScaler, StandardScaler

from jbench.data import recording
from jbench.data.prepare import check_recording, signal
from jbench.data.recording import Recording
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import SignalSpec


def made(sfreq: float, seconds: float = 40.0, kinds: tuple[str, ...] = ('eeg',) * 3, seed: int = 0) -> mne.io.RawArray:
    """Noise with drift, line and a harmonic, microvolts in size."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * sfreq)) / sfreq
    x = rng.normal(0, 10e-6, (len(kinds), len(t))).cumsum(1) * 0.1 + rng.normal(0, 5e-6, (len(kinds), len(t)))
    x += 8e-6 * np.sin(2 * np.pi * 50 * t) + 3e-6 * np.sin(2 * np.pi * 120 * t)
    names = [f'{kind}{k}' for k, kind in enumerate(kinds)]
    return mne.io.RawArray(x, mne.create_info(names, sfreq, list(kinds)), verbose='ERROR')


def expected(raw: mne.io.BaseRaw, lines: list[float], low_pass: float | None) -> np.ndarray:
    """The published chain, written out with arrays: notch, band-pass, FFT resampling to 120 Hz, robust scaling."""
    x, sfreq = raw.get_data('eeg'), raw.info['sfreq']
    if lines:
        x = mne.filter.notch_filter(
            x,
            sfreq,
            np.array(lines),
            fir_design='firwin',
            phase='zero',
            fir_window='hamming',
            trans_bandwidth=1.0,
            pad='reflect_limited',
            verbose='ERROR',
        )
    x = mne.filter.filter_data(
        x,
        sfreq,
        0.1,
        low_pass,
        l_trans_bandwidth=0.1,
        h_trans_bandwidth=min(18.75, sfreq / 2 - 75) if low_pass else 'auto',
        phase='zero',
        fir_window='hamming',
        fir_design='firwin',
        pad='reflect_limited',
        verbose='ERROR',
    )
    if sfreq != 120:
        x = mne.filter.resample(
            x, 120 / sfreq, 1, npad='auto', window='boxcar', method='fft', pad='reflect_limited', verbose='ERROR'
        )
    return RobustScaler().fit_transform(x.T).T.astype(np.float32)


@pytest.mark.parametrize(
    ('sfreq', 'lines', 'low_pass'),
    [
        (250.0, [50, 100, 60, 120], 75.0),
        (256.0, [50, 100, 60, 120], 75.0),
        (160.0, [50, 60], 75.0),
        (125.0, [50, 60], None),
        (120.0, [50], None),
        (100.0, [], None),
        (1000.0, [50, 100, 150, 200, 250, 300, 60, 120, 180, 240, 300], 75.0),
    ],
)
def test_chain_is_the_published_one(sfreq: float, lines: list[float], low_pass: float | None) -> None:
    """Above 602 Hz, 300 Hz comes twice; a low-pass at or above Nyquist is dropped; at 100 Hz nothing is notched."""
    raw = made(sfreq, kinds=('eeg', 'eeg', 'ecg', 'eeg'))
    want = expected(raw, lines, low_pass)
    got, names = signal.process(raw, SignalSpec())
    assert names == ('eeg0', 'eeg1', 'eeg3') and got.dtype == np.float32
    assert got.shape == (3, 4800)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_a_real_recording_gives_the_published_signal(data_dir: Path) -> None:
    path = str(data_dir / 'Schalk2004Bci2000' / 'S001R04.edf')
    want = expected(mne.io.read_raw_edf(path, preload=True, verbose='ERROR'), [50, 60], 75.0)
    got, _ = signal.process(mne.io.read_raw_edf(path, preload=True, verbose='ERROR'), SignalSpec())
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ('sfreq', 'lines'),
    [
        (100.0, []),
        (100.1, [50.0]),
        (120.0, [50.0]),
        (120.1, [50.0, 60.0]),
        (256.0, [50.0, 100.0, 60.0, 120.0]),
        (602.0, [50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 60.0, 120.0, 180.0, 240.0, 300.0]),
        (5000.0, [50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 60.0, 120.0, 180.0, 240.0, 300.0]),
    ],
)
def test_notched_are_all_harmonics_strictly_below_nyquist_and_301_hz(sfreq: float, lines: list[float]) -> None:
    assert signal.notch_frequencies((50.0, 60.0), sfreq) == lines


def test_scalers_are_those_of_scikit_learn() -> None:
    x = np.random.default_rng(1).lognormal(0, 2, (5, 1001)) * 1e-6
    x[1], x[2] = 3e-6, np.where(np.arange(1001) < 900, 1e-6, x[2])  # constant; more than three quarters constant
    np.testing.assert_allclose(signal.scale(x, 'robust'), RobustScaler().fit_transform(x.T).T, rtol=1e-12, atol=1e-12)
    rows = [0, 2, 3, 4]  # scikit-learn divides a constant channel by its rounding error
    want = StandardScaler().fit_transform(x[rows].T).T
    np.testing.assert_allclose(signal.scale(x[rows], 'standard'), want, rtol=1e-9)
    assert np.all(np.abs(signal.scale(x, 'standard')[1]) < 1e-12)
    assert signal.scale(x, 'none') is x and signal.scale(x, 'train') is x
    with pytest.raises(RequestError, match=r"signal\.scaler: 'max' is not one of"):
        signal.scale(x, 'max')


def test_without_scaler_the_signal_stays_in_volts_and_is_not_clamped() -> None:
    raw = made(120.0)
    x = raw.get_data()
    x[0, 100] = 1.0
    raw = mne.io.RawArray(x, raw.info, verbose='ERROR')
    got, _ = signal.process(raw, SignalSpec(scaler='none', band=None, notch=()))
    np.testing.assert_array_equal(got, x.astype(np.float32))
    raw = mne.io.RawArray(x, raw.info, verbose='ERROR')
    scaled, _ = signal.process(raw, SignalSpec(band=None, notch=(), clamp=20.0))
    assert scaled.max() > 1000


def test_named_channels_come_in_the_order_asked_for() -> None:
    spec = SignalSpec(picks=('eeg2', 'eeg0'), band=None, notch=(), scaler='none')
    raw = made(120.0)
    want = raw.get_data()[[2, 0]].astype(np.float32)
    got, names = signal.process(raw, spec)
    assert names == ('eeg2', 'eeg0')
    np.testing.assert_array_equal(got, want)


def test_bad_channels_are_kept() -> None:
    raw = made(120.0)
    raw.info['bads'] = ['eeg1']
    assert signal.process(raw, SignalSpec())[1] == ('eeg0', 'eeg1', 'eeg2')


@pytest.mark.parametrize('picks', [('mag',), ('eeg0', 'Cz'), ('Cz',)])
def test_absent_channels_are_refused(picks: tuple[str, ...]) -> None:
    with pytest.raises(RequestError, match=f'no channel {picks[-1]} in the recording, which has types eeg; names eeg0'):
        signal.process(made(120.0), SignalSpec(picks=picks))


MEG = {'kit/test.sqd': (157, 157), 'fif/test_ctf_comp_raw.fif': (274, 303)}  # magnetometers, and with references
MEG_SET = Dataset(
    name='Meg',
    title='',
    source=None,
    device='meg',
    n_subjects=1,
    n_recordings=1,
    n_chans=1,
    sfreq=(1000.0,),
    amplitude=(5e-15, 5e-10),
    licence='',
    citation='',
    host='',
    layout='',
)


def meg(data_dir: Path, name: str) -> mne.io.BaseRaw:
    """A recording of real magnetometers, T, not preloaded."""
    return mne.io.read_raw(data_dir / 'MNE_formats' / name, verbose='ERROR')


@pytest.mark.slow
@pytest.mark.parametrize('name', MEG)
def test_real_meg_passes_the_chain(name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KIT and CTF: scaled as scikit-learn does, whole or in blocks, each word for its channels, MNE's choice of them.

    As in NeuralBench, 'meg' takes the reference sensors of a compensated file too (THINGS-MEG has 300 channels so).
    """
    n_mag, n_meg = MEG[name]
    for picks, n in ((('meg',), n_meg), (('mag',), n_mag), (('mag', 'grad'), n_mag)):
        spec, found = SignalSpec(picks=picks, band=(1.0, 40.0)), []
        for size in (1 << 40, 50 * 8 * 241):
            monkeypatch.setattr(recording, 'BLOCK', size)
            found.append(signal.process(meg(data_dir, name), spec))
        (got, names), (blockwise, _) = found
        assert got.shape == (n, round(meg(data_dir, name).n_times * 120 / meg(data_dir, name).info['sfreq']))
        np.testing.assert_array_equal(got, blockwise)
        low, middle, high = np.percentile(got, [25, 50, 75], axis=1)
        np.testing.assert_allclose(middle, 0, atol=1e-5)
        np.testing.assert_allclose(high - low, 1, atol=1e-5)
        assert len(names) == n and set(names) <= set(meg(data_dir, name).ch_names)
    with pytest.raises(RequestError, match='no channel grad in the recording, which has types mag, meg, misc'):
        signal.process(meg(data_dir, name), SignalSpec(picks=('grad',)))
    plain, _ = signal.process(meg(data_dir, name), SignalSpec(picks=('mag',), band=None, notch=(), scaler='none'))
    assert 1e-14 < np.median(plain.std(1)) < 1e-11  # T, kept by float32


def test_of_both_kinds_of_meg_sensors_each_is_scaled_by_itself() -> None:
    raw = made(250.0, kinds=('mag', 'grad', 'eeg', 'grad'))
    raw.apply_function(lambda x: x * 1e-7)
    got, names = signal.process(raw, SignalSpec(picks=('meg',)))
    assert names == ('mag0', 'grad1', 'grad3')
    np.testing.assert_allclose(np.subtract(*np.percentile(got, [75, 25], axis=1)), 1, atol=1e-5)


@pytest.mark.parametrize('name', MEG)
def test_the_unit_of_meg_is_checked(name: str, data_dir: Path) -> None:
    raw = meg(data_dir, name).load_data()
    events = {'onset': np.zeros(1), 'duration': np.ones(1), 'type': np.array(['Stimulus'])}
    assert len(recording.data_channels(raw, MEG_SET)) == MEG[name][1]
    for factor, n in ((1.0, 0), (1e15, 1), (1e6, 1)):
        scaled = raw.copy().apply_function(lambda x, f=factor: x * f, picks='meg')
        if raw.n_times < raw.info['sfreq']:  # the CTF file lasts half a second
            scaled = mne.concatenate_raws([scaled, scaled.copy(), scaled.copy()], verbose='ERROR')
        found = [f for f in check_recording.check(Recording(scaled, events), MEG_SET, 'x') if f.level == 'fatal']
        assert len(found) == n
        if found:
            assert 'the unit must be tesla (of gradiometers tesla per metre)' in str(found[0])
            assert '5.0e-15 to 5.0e-10 T' in str(found[0])


def test_of_several_types_one_is_enough() -> None:
    got, names = signal.process(made(120.0, kinds=('mag', 'eeg')), SignalSpec(picks=('mag', 'grad')))
    assert names == ('mag0',) and got.shape == (1, 4800)


@pytest.mark.slow
@pytest.mark.parametrize('scaler', ['robust', 'standard', 'none'])
def test_blocks_of_channels_give_the_same_bits(
    scaler: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preloaded or read block by block, from EDF, FIF or memory, with a stretch that the filters skip."""
    edf = str(data_dir / 'Schalk2004Bci2000' / 'S001R01.edf')
    noise = made(256.0, kinds=('eeg', 'eeg', 'ecg', 'eeg', 'eeg'))
    noise.set_annotations(mne.Annotations([10.0], [5.0], ['BAD_ACQ_SKIP']))
    noise.save(fif := tmp_path / 'noise_raw.fif', verbose='ERROR')
    spec = SignalSpec(scaler=scaler)
    for whole, lazy in (
        (mne.io.read_raw_edf(edf, preload=True, verbose='ERROR'), mne.io.read_raw_edf(edf, verbose='ERROR')),
        (mne.io.read_raw_fif(fif, preload=True, verbose='ERROR'), mne.io.read_raw_fif(fif, verbose='ERROR')),
        (noise.copy(), noise),
    ):
        monkeypatch.setattr(recording, 'BLOCK', 1 << 40)
        n = whole.n_times
        assert len(list(recording.blocks(whole, range(len(whole.ch_names))))) == 1
        digest = recording.digest(Recording(whole, {}))
        want, names = signal.process(whole, spec)
        monkeypatch.setattr(recording, 'BLOCK', 3 * 8 * n)
        assert len(list(recording.blocks(lazy, range(len(lazy.ch_names))))) == -(-len(lazy.ch_names) // 3)
        assert recording.digest(Recording(lazy, {})) == digest
        got, same = signal.process(lazy, spec)
        assert names == same and got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.slow
def test_memory_is_that_of_a_block_and_of_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_chans, n = 24, 240 * 512
    noise = made(512.0, 240.0, ('eeg',) * n_chans)
    noise.save(fif := tmp_path / 'noise_raw.fif', verbose='ERROR')
    size = n_chans * n * 8
    spec = SignalSpec(band=(1.0, 75.0))  # a short filter
    signal.process(noise, spec)  # what is imported on the way does not count
    del noise
    monkeypatch.setattr(recording, 'BLOCK', 2 * 8 * n)
    tracemalloc.start()
    raw = mne.io.read_raw_fif(fif, verbose='ERROR')
    recording.digest(Recording(raw, {}))
    out, _ = signal.process(raw, spec)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - out.nbytes < size / 2  # 1.6 times the size if all channels are one block
