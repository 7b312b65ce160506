"""The simulated sets: same bits for the same key, physiological signals, a signature of the stated size and place.

What the paradigms beyond the six of brain-computer interfaces do is in `test_simulated_tasks.py`.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys

import mne
import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from jbench.data.prepare import check_recording
from jbench.data.simulation import PARADIGMS, bci
from jbench.data.simulation.bci import CODE_BITS, FLICKER_START, SSVEP_HZ, gold_codes
from jbench.data.simulation.simulate import simulate
from jbench.data.sources import simulated
from jbench.spec.dataset import Dataset

EVOKED = ('cvep', 'p3', 'ssvep')
# dB, (least, most) over the first six subjects of populations 0 and 1, rounded outwards
SNR = {
    'cvep': (-12.5, -4),
    'mental_imagery': (-14, -8.5),
    'motor_execution': (-9.5, -6.5),
    'motor_imagery': (-12.5, -7),
    'p3': (-16, -9),
    'ssvep': (-5.5, 1.5),
}
BY_PARADIGM = {simulated.paradigm(d.name): d for d in simulated.DATASETS}
BCI = tuple(p.name for p in bci.PARADIGMS)
# of subject 3, population 1: shape, samples (uV) of two first channels at 0 and 1000 and two last at 5000 and the end,
# and a hash of the events; prepared sets and scores of version 1 were made of these
FIRST_VERSION = {
    'cvep': ((8, 52367), [-0.149, -5.649, -10.667, -2.835], '2dc6a1496c2d77f7'),
    'mental_imagery': ((20, 75069), [0.827, 29.741, -4.194, 16.937], '4a81adcb9a39e984'),
    'motor_execution': ((20, 34441), [13.607, 8.987, -14.274, 4.803], 'ddaabd1de5413388'),
    'motor_imagery': ((20, 52359), [51.304, 3.145, 22.894, -30.213], 'a5f66250de3926af'),
    'p3': ((16, 8757), [-28.017, -18.126, -43.829, 46.496], 'e496eb586cee020b'),
    'ssvep': ((13, 50769), [1.536, 7.403, -8.806, -18.329], '0d0488ba81a78f28'),
}


@functools.lru_cache(40)
def made(paradigm: str, subject: int, seed: int = 1, session: int = 0, effect: float = 1.0) -> tuple:
    raw, events = simulate(paradigm, subject, seed, session=session, effect=effect)
    return raw.get_data() * 1e6, events, raw


def microvolts(paradigm: str, subject: int, **options: float) -> np.ndarray:
    return made(paradigm, subject, **options)[0]


def band(x: np.ndarray, sfreq: float, low: float, high: float) -> np.ndarray:
    return mne.filter.filter_data(x, sfreq, low, high, verbose='ERROR')


def cut(x: np.ndarray, onsets: np.ndarray, sfreq: float, span: tuple[float, float]) -> np.ndarray:
    """Pieces [E, C, T] of x [C, T'] at `span` (s) from each onset."""
    n = round((span[1] - span[0]) * sfreq)
    starts = np.round((onsets + span[0]) * sfreq).astype(int)
    return np.stack([x[:, i : i + n] for i in starts])


# ---------------------------------------------------------------------------------------------------------- same bits


@pytest.mark.parametrize('paradigm', (*BCI, 'n170', 'emotion', 'sleep_stage', 'artifact', 'age', 'word'))
def test_same_key_same_bits_in_any_order(paradigm: str) -> None:
    first = simulate(paradigm, 3, 1)[0].get_data()
    others = [simulate(paradigm, 4, 1), simulate(paradigm, 3, 2)]
    again, events = simulate(paradigm, 3, 1)
    assert first.tobytes() == again.get_data().tobytes()
    for raw, their in others:
        assert not np.allclose(raw.get_data()[:, :500], first[:, :500], atol=1e-7)
        assert paradigm not in BCI or not np.array_equal(their['onset'], events['onset'])


@pytest.mark.parametrize('paradigm', FIRST_VERSION)
def test_the_first_version_is_unchanged(paradigm: str) -> None:
    """Up to the last bits, in which matrix products of other processors differ."""
    x, events, _ = made(paradigm, 3)
    shape, samples, digest = FIRST_VERSION[paradigm]
    assert x.shape == shape
    np.testing.assert_allclose(x[[0, 1, -1, -1], [0, 1000, 5000, -1]], samples, atol=1e-2)
    assert hashlib.sha256(repr([column.tolist() for column in events.values()]).encode()).hexdigest()[:16] == digest


@pytest.mark.slow
def test_another_process_makes_the_same_bits() -> None:
    code = (
        'import hashlib; from jbench.data.simulation.simulate import simulate; '
        "print(hashlib.sha256(simulate('p3', 2, 1)[0].get_data().tobytes()).hexdigest())"
    )
    out = [subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert out[0].stdout == out[1].stdout != ''


@pytest.mark.slow
def test_sessions_share_the_subject_but_not_the_noise() -> None:
    """Channel covariance and alpha peak (anatomy, traits) stay; samples, and another subject's covariance, do not."""
    p = PARADIGMS['mental_imagery']
    one, two = (microvolts('mental_imagery', 0, session=s, effect=0.0) for s in (0, 1))
    other = microvolts('mental_imagery', 1, session=0, effect=0.0)
    n = min(one.shape[1], two.shape[1])
    assert abs(np.corrcoef(one[16, :n], two[16, :n])[0, 1]) < 0.1
    shape = [np.corrcoef(band(x, p.sfreq, 2, 40)).ravel() for x in (one, two, other)]
    assert np.abs(shape[0] - shape[1]).mean() < 0.5 * np.abs(shape[0] - shape[2]).mean()


# ---------------------------------------------------------------------------------------------------------- signature


@pytest.mark.parametrize('paradigm', BCI)
def test_effect_changes_the_signature_alone(paradigm: str) -> None:
    """Before the first event, and where no signature reaches, the samples are those of effect 0."""
    none, one = (microvolts(paradigm, 0, effect=e) for e in (0.0, 1.0))
    quiet = int((made(paradigm, 0)[1]['onset'][0] - 0.3) * PARADIGMS[paradigm].sfreq)
    difference = one - none
    assert np.abs(difference[:, :quiet]).max() < 1e-3
    assert np.abs(difference).max() > 2
    assert difference.std() < none.std()


@pytest.mark.parametrize('paradigm', EVOKED)
def test_evoked_signatures_are_linear_in_the_effect(paradigm: str) -> None:
    none, one, two = (microvolts(paradigm, 0, effect=e) for e in (0.0, 1.0, 2.0))
    np.testing.assert_allclose(two - none, 2 * (one - none), atol=2e-4)


@pytest.mark.parametrize('paradigm', BCI)
def test_signal_to_noise_ratio(paradigm: str) -> None:
    """Variance of the signature over variance of the rest, 1-40 Hz, inside the windows, at the best electrode."""
    p = PARADIGMS[paradigm]
    for subject in (0, 1):
        x, events, _ = made(paradigm, subject)
        rest = microvolts(paradigm, subject, effect=0.0)
        sample = np.arange(x.shape[1]) / p.sfreq
        after = np.searchsorted(events['onset'] + p.window[0], sample, side='right') - 1
        inside = (after >= 0) & (sample - events['onset'][after] - p.window[0] < p.window[1])
        signature, noise = (band(v, p.sfreq, 1, 40)[:, inside] for v in (x - rest, rest))
        db = 10 * np.log10((signature.var(1) / noise.var(1)).max())
        assert SNR[paradigm][0] <= db <= SNR[paradigm][1], (subject, db)
    stated = float(BY_PARADIGM[paradigm].title.split('SNR ')[1].split()[0])
    assert SNR[paradigm][0] < stated < SNR[paradigm][1]


# --------------------------------------------------------------------------------------------------------- physiology


@pytest.mark.parametrize('paradigm', BCI)
def test_background_looks_like_eeg(paradigm: str) -> None:
    """Amplitude of a scalp EEG, more alpha than beta, a falling spectrum, a 50 Hz line."""
    x, _, raw = made(paradigm, 0)
    assert np.isfinite(x).all()
    assert np.abs(x).max() < 1000
    assert 5 < np.median(x.std(1)) < 60
    spectrum = raw.compute_psd(fmin=1, fmax=100, n_fft=1024, verbose='ERROR')
    power, f = spectrum.get_data().mean(0), spectrum.freqs
    mean = {(a, b): power[(f >= a) & (f <= b)].mean() for a, b in ((1, 4), (8, 13), (18, 30), (49.5, 50.5), (52, 58))}
    assert mean[8, 13] > 2 * mean[18, 30]
    assert mean[1, 4] > 2 * mean[18, 30] > 2 * mean[52, 58]
    assert mean[49.5, 50.5] > 5 * mean[52, 58]


def test_ssvep_is_largest_at_oz_while_the_light_flickers() -> None:
    """Power at f over the power there in other trials; nothing during the cue."""
    p = PARADIGMS['ssvep']
    ratios, cue = [], []
    for subject in range(5):
        x, events, _ = made('ssvep', subject)
        label = events['code'] - 1
        for span, out in (((FLICKER_START, FLICKER_START + 4), ratios), ((0.1, 0.5), cue)):
            pieces = cut(x, events['onset'], p.sfreq, span)
            t = np.arange(pieces.shape[-1]) / p.sfreq
            wave = np.exp(-2j * np.pi * np.array(SSVEP_HZ)[:, None] * t) * np.hanning(len(t))
            power = np.abs(pieces @ wave.T) ** 2  # [E, C, F]
            own = power[np.arange(40), :, label]  # [E, C]: one trial a frequency
            out.append(own.mean(0) / power.mean((0, 2)))
    ratio = dict(zip(p.chans, np.mean(ratios, 0), strict=True))
    assert max(ratio, key=ratio.get) == 'Oz'
    assert ratio['Oz'] > 5
    assert ratio['Fz'] < 3
    assert np.mean(cue, 0)[p.chans.index('Oz')] < 2


@pytest.mark.slow
def test_p3_is_parietal_and_late() -> None:
    p = PARADIGMS['p3']
    erp = []
    for subject in range(8):
        x, events, _ = made('p3', subject)
        pieces = cut(band(x, p.sfreq, 0.5, 20), events['onset'], p.sfreq, (-0.2, 0.8))
        pieces -= pieces[..., : int(0.2 * p.sfreq)].mean(-1, keepdims=True)
        erp.append(pieces[events['code'] == 1].mean(0) - pieces[events['code'] == 2].mean(0))
    difference = np.mean(erp, 0)
    k, i = np.unravel_index(difference.argmax(), difference.shape)
    assert p.chans[k] in ('Pz', 'CPz', 'P3', 'P4')
    assert p.chans[difference[:, i].argmax()] == 'Pz'
    assert 0.3 < i / p.sfreq - 0.2 < 0.45
    assert 2 < difference[k, i] < 12


@pytest.mark.slow
def test_hand_imagery_desynchronises_the_other_side() -> None:
    """Log mu power, right minus left hand: lowest at C3 and highest at C4, on average over subjects."""
    p = PARADIGMS['motor_imagery']
    contrast = np.mean([_log_power(s, 9, 13, 'right_hand') - _log_power(s, 9, 13, 'left_hand') for s in range(6)], 0)
    assert p.chans[contrast.argmin()] in ('C3', 'C5', 'CP3')
    assert p.chans[contrast.argmax()] in ('C4', 'C6', 'CP4')
    assert contrast[p.chans.index('C3')] < -0.3
    assert contrast[p.chans.index('C4')] > 0.3


def _log_power(subject: int, low: float, high: float, label: str) -> np.ndarray:
    x, events, _ = made('motor_imagery', subject)
    pieces = cut(band(x, 250.0, low, high), events['onset'][events['label'] == label], 250.0, (1.0, 4.0))
    return np.log(pieces.var(-1)).mean(0)


@pytest.mark.slow
def test_reaches_differ_at_the_contralateral_motor_cortex() -> None:
    p = PARADIGMS['motor_execution']
    contrast = []
    for subject in range(8):
        x, events, _ = made('motor_execution', subject)
        pieces = cut(band(x, p.sfreq, 0.3, 6), events['onset'], p.sfreq, (-0.2, 1.6))
        late = pieces[..., int(1.0 * p.sfreq) :].mean(-1) - pieces[..., : int(0.2 * p.sfreq)].mean(-1)
        way = np.array([label.split('_')[0] for label in events['label']])
        contrast.append(late[way == 'right'].mean(0) - late[way == 'left'].mean(0))
    mean = np.mean(contrast, 0)
    assert p.chans[mean.argmax()] in ('C3', 'C5', 'FC3', 'CP3')


def test_codes_are_distinct_with_short_runs() -> None:
    codes = gold_codes()
    assert codes.shape == (20, CODE_BITS)
    assert len({c.tobytes() for c in codes}) == 20
    z = 2.0 * codes - 1
    worst = max(np.abs(z[i] @ np.roll(z, k, axis=1)[j]) for i in range(20) for j in range(i) for k in range(0, 126, 3))
    assert worst <= 46
    assert all('000' not in text and '111' not in text for text in (''.join(map(str, c)) for c in codes))


def test_targets_are_never_neighbours() -> None:
    for subject in range(3):
        target = made('p3', subject)[1]['label'] == 'Target'
        assert target.sum() == 16
        assert not (target[1:] & target[:-1]).any()
        assert not target[0]


# ----------------------------------------------------------------------------------------------------------- decoders


def _ssvep_by_cca(subject: int) -> tuple[np.ndarray, np.ndarray]:
    """Untrained canonical correlation with three harmonics at the occipital channels; returns (guess, truth)."""
    p = PARADIGMS['ssvep']
    x, events, _ = made('ssvep', subject)
    y = band(x[5:], p.sfreq, 6, 50)
    pieces = cut(y, events['onset'], p.sfreq, (FLICKER_START + 0.2, FLICKER_START + 4))
    t = np.arange(pieces.shape[-1]) / p.sfreq
    waves = [
        np.linalg.qr(np.stack([g(2 * np.pi * h * f * t) for h in (1, 2, 3) for g in (np.sin, np.cos)], 1))[0]
        for f in SSVEP_HZ
    ]
    guess = []
    for piece in pieces:
        q = np.linalg.qr((piece - piece.mean(1, keepdims=True)).T)[0]
        guess.append(int(np.argmax([np.linalg.norm(q.T @ w, 2) for w in waves])))
    return np.array(guess), events['code'] - 1


def test_flicker_is_found_by_cca_and_shuffled_labels_are_not() -> None:
    guess, truth = (np.concatenate(v) for v in zip(*(_ssvep_by_cca(s) for s in (0, 1, 2)), strict=True))
    assert (guess == truth).mean() > 0.8
    assert (guess == np.random.default_rng(0).permutation(truth)).mean() < 0.1


def _band_power(subject: int) -> tuple[np.ndarray, np.ndarray]:
    """Log power of mu and beta in each window, less the subject's mean: [E, 2 C]; codes."""
    x, events, _ = made('motor_imagery', subject)
    logs = []
    for low, high in ((8, 14), (17, 28)):
        logs.append(np.log(cut(band(x, 250.0, low, high), events['onset'], 250.0, (0.5, 4.0)).var(-1)))
    features = np.concatenate(logs, 1)
    return features - features.mean(0), events['code']


@pytest.mark.slow
def test_imagery_is_decoded_across_subjects_and_shuffled_labels_are_not() -> None:
    train, test = ([_band_power(s) for s in subjects] for subjects in (range(8), range(8, 12)))
    (x, y), (u, v) = (tuple(np.concatenate(part) for part in zip(*group, strict=True)) for group in (train, test))
    lda = LinearDiscriminantAnalysis(solver='lsqr', shrinkage='auto')
    assert lda.fit(x, y).score(u, v) > 0.45
    rng = np.random.default_rng(0)
    chance = [lda.fit(x, rng.permutation(y)).score(u, v) for _ in range(5)]
    assert abs(np.mean(chance) - 0.25) < 0.08


# ----------------------------------------------------------------------------------------------------------- contract


@pytest.mark.parametrize('dataset', simulated.DATASETS, ids=lambda d: d.name)
def test_declared_facts_hold(dataset: Dataset) -> None:
    p = PARADIGMS[simulated.paradigm(dataset.name)]
    refs = simulated.recordings(dataset, None)
    assert len(refs) == dataset.n_recordings == len(set(refs))
    assert len({r.subject for r in refs}) == dataset.n_subjects
    assert refs[0].subject == 'S01'
    assert {r.session for r in refs} == {str(k) for k in range(len(p.counts))}
    assert all(r.files == () and r.run == '0' for r in refs)
    assert dataset.n_chans == len(p.chans)
    assert dataset.sfreq == (p.sfreq,)
    if dataset.event_id:
        assert dataset.n_events == min(map(sum, p.counts)) * p.cycles
        assert dataset.event_id == tuple((label, k) for k, label in enumerate(p.labels, p.first_code))
    assert dataset.simulated
    assert dataset.access == 'embedded'
    assert 'imulat' in dataset.title
    if dataset.device in ('eeg', 'meg'):
        assert dict(dataset.recipe)['recipe.lr'] == 1e-2


def test_a_reference_names_the_people_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is read; other people are another content, and so another prepared set."""
    ours, *_ = simulated.recordings(BY_PARADIGM['p3'], None)
    monkeypatch.setattr(simulated, 'SEED', simulated.SEED + 1)
    others, *_ = simulated.recordings(BY_PARADIGM['p3'], None)
    monkeypatch.undo()
    assert ours.fields != others.fields and ours.name == others.name
    first, second, plain = (simulated.read(r).raw.get_data() for r in (ours, others, ours._replace(fields=())))
    assert not np.array_equal(first, second) and np.array_equal(first, plain)


@pytest.mark.parametrize('dataset', [BY_PARADIGM[name] for name in BCI], ids=lambda d: d.name)
def test_recordings_meet_the_contract(dataset: Dataset) -> None:
    p = PARADIGMS[simulated.paradigm(dataset.name)]
    for ref in [r for r in simulated.recordings(dataset, None) if r.subject == 'S02']:
        result = simulated.read(ref)
        assert check_recording.check(result, dataset, ref.name) == []
        raw, events = result
        assert tuple(raw.ch_names) == p.chans
        assert set(raw.get_channel_types()) == {'eeg'}
        assert all(np.isfinite(c['loc'][:3]).all() and np.any(c['loc'][:3]) for c in raw.info['chs'])
        assert {len(column) for column in events.values()} == {sum(p.counts[int(ref.session)]) * p.cycles}
        assert events['code'].dtype == np.int64
        assert set(events['type']) == {'Stimulus'}
        assert [dict(dataset.event_id)[label] for label in events['label']] == events['code'].tolist()
        counts = np.bincount(events['code'] - p.first_code)
        assert tuple(counts) == tuple(c * p.cycles for c in p.counts[int(ref.session)])
        assert (np.diff(events['onset']) > 0).all()
        assert events['onset'][0] + p.window[0] > 0
        assert events['onset'][-1] + sum(p.window) < raw.times[-1]


def test_listing_the_sets_loads_nothing_heavy() -> None:
    code = 'import sys, jbench.data.sources.simulated; print({"numpy", "mne", "scipy", "jax"} & set(sys.modules))'
    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == 'set()'
