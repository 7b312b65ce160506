"""Simulations of the tasks beyond brain-computer interfaces: what the tasks ask is there, and where it should be."""

from __future__ import annotations

import functools

import mne
import numpy as np
import pytest
from families import often
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jbench.data.electrodes import montage
from jbench.data.prepare import angles, check_recording
from jbench.data.recording import event_table
from jbench.data.simulation import PARADIGMS
from jbench.data.simulation.emg import KEYS
from jbench.data.simulation.fmri import haemodynamic
from jbench.data.simulation.paradigm import RHYTHMS, stream
from jbench.data.simulation.simulate import _gain, simulate
from jbench.data.simulation.stimuli import latent
from jbench.data.simulation.traits import release
from jbench.data.sources import (
    simulated,
    simulated_challenges,
    simulated_films,
    simulated_ieeg,
    simulated_listening,
)
from jbench.data.windows import chosen, starts, triggers
from jbench.models.baselines.classical import _band_powers
from jbench.plan import cells, select
from jbench.spec.dataset import Dataset
from jbench.spec.task import Angles, Task
from jbench.targets import collect, encode

TASKS = [t for versions in select.tasks().values() for t in versions if t.simulated]
OTHERS = (*simulated_ieeg.DATASETS, *simulated_listening.DATASETS, *simulated_films.DATASETS)
BY_NAME = {d.name: d for d in (*simulated.DATASETS, *simulated_challenges.DATASETS, *OTHERS)}
CLASSES = {  # of the windows of four recordings
    'sleep_stage': ('N1', 'N2', 'N3', 'R', 'W'),
    'seizure': ('seiz', '(none)'),
    'sleep_arousal': ('arousal', '(none)'),
    'clinical_event': ('artf', 'bckg', 'eyem', 'gped', 'pled', 'spsw'),
    'artifact': ('chew', 'elpp', 'eyem', 'musc', 'shiv'),
    'pathology': ('abnormal', 'normal'),
    'dementia_diagnosis': ('alzheimers', 'dementia', 'healthy'),
    'parkinsons_diagnosis': ('Control', 'PD'),
    'mental_workload': ('MATBdiff', 'MATBeasy', 'MATBmed'),
    'n170': ('NonTarget', 'Target'),
}


@functools.lru_cache(80)
def read(name: str, number: int) -> tuple:
    """A recording of a simulated set, its table of events, and its reference."""
    ref = simulated.recordings(BY_NAME[name], None)[number]
    # the last is as simulated.read, and tells angles apart
    found = (simulated_ieeg if 'Ieeg' in name else simulated_challenges).read(ref)
    return found, event_table(found, ref, BY_NAME[name]), ref


# ------------------------------------------------------------------------------------------------- what the tasks ask


def test_every_task_has_its_simulation() -> None:
    every = [t for versions in select.tasks().values() for t in versions if t.category != 'open_sets']
    assert {t.full_name for t in every} == {t.full_name for t in TASKS}
    assert {t.simulated for t in TASKS} == set(BY_NAME)
    assert {simulated.paradigm(name) for name in BY_NAME} == set(PARADIGMS)


@pytest.mark.parametrize('task', TASKS, ids=lambda t: f'{t.full_name}@{t.version}')
def test_its_windows_and_targets_are_there(task: Task) -> None:
    """Windows and targets of the first recordings; conditions are fulfilled; channels that are named exist."""
    task = cells.apply(task, BY_NAME[task.simulated], ())
    raws = []
    for number in range(4 if task.full_name in CLASSES else 2):
        (raw, _), table, _ = read(task.simulated, number)
        table = {**table, 'duration': table['duration'].copy()}
        kept = chosen(table, task.window)
        rows = [
            (i, t)
            for i in triggers(kept, task.window, task.target)
            for t in starts(float(kept['onset'][i]), float(kept['duration'][i]), task.window)
        ]
        assert len(rows) >= 8
        assert max(t for _, t in rows) < raw.times[-1]
        if isinstance(task.target, Angles):
            raws += angles.known(raw, task.target, rows, task.window.duration)[1]
        else:
            raws += [collect(task.target, kept, i, t, task.window.duration) for i, t in rows]
        assert {p for p in task.signal.picks if p not in ('eeg', 'meg', 'misc', 'emg', 'seeg', 'ecog')} <= set(
            raw.ch_names
        )
    encoded = encode(task.target, raws)
    if task.target.kind in ('classes', 'state'):
        assert len(set(encoded.y.tolist())) > 1 or task.level != 'window' or 'Eeg' in task.window.trigger
    if task.full_name in CLASSES:
        assert encoded.classes == CLASSES[task.full_name]
    if task.target.kind == 'value':
        assert np.isfinite(encoded.y).all()


@pytest.mark.parametrize('task', TASKS, ids=lambda t: f'{t.full_name}@{t.version}')
def test_no_part_of_its_split_is_empty(task: Task) -> None:
    """What a split asks of recordings or events is there: some are tested, some not."""
    split = cells.apply(task, BY_NAME[task.simulated], ()).split
    if split.kind != 'predefined':
        return
    dataset = BY_NAME[task.simulated]
    values = [dict(ref.fields).get(split.field, ref.session) for ref in simulated.recordings(dataset, None)]
    if split.field == 'sequence_id':
        values = read(task.simulated, 0)[1]['sequence_id'].tolist()
    assert 0.1 < np.mean(np.isin([v for v in values if v], split.test)) < 0.6


@pytest.mark.parametrize('dataset', (*simulated.DATASETS, *OTHERS), ids=lambda d: d.name)
def test_recordings_meet_the_contract(dataset: Dataset) -> None:
    found, _, ref = read(dataset.name, 1)
    assert check_recording.check(found, dataset, ref.name) == []
    assert {len(column) for column in found.events.values()} == {len(found.events['onset'])}
    assert found.raw.times[-1] < 1000


def test_sleep_begins_with_the_first_n2() -> None:
    for number in range(3):
        table = read('SimulatedSleepOnset', number)[1]
        n2 = table['onset'][table['stage'] == 'N2'][0]
        start, row = max(0.0, n2 - 1200), np.flatnonzero(table['type'] == 'SleepOnset')
        assert len(row) == 1
        assert table['onset'][row[0]] == start
        assert start + table['duration'][row[0]] == pytest.approx(n2)
        assert float(table['n2_onset'][row[0]]) == pytest.approx(n2)


def test_subjects_of_a_release_are_of_all_kinds() -> None:
    """Neither sex nor age tells the release."""
    refs = [dict(r.fields) for r in simulated.recordings(BY_NAME['SimulatedSex'], None)]
    tested = [r['sex'] for r in refs if r['release'] == 'R5']
    assert 0.3 < np.mean([s == 'F' for s in tested]) < 0.7
    ages = [dict(r.fields) for r in simulated.recordings(BY_NAME['SimulatedAge'], None)]
    tested = [float(r['age']) for r in ages if r['release'] == 'R5']
    assert min(tested) < 9
    assert max(tested) > 17
    assert release(4) == 'R5'


# --------------------------------------------------------------------------------------------------------- signatures


def signature(paradigm: str, subject: int = 0) -> tuple[np.ndarray, dict]:
    """What a paradigm adds: uV [C, T]; and the events."""
    one, events = simulate(paradigm, subject, 1)
    none, _ = simulate(paradigm, subject, 1, effect=0.0)
    return (one.get_data() - none.get_data()) * 1e6, events


# a minus b, at s after the event (how far off at most), where it is largest, and its sign
RESPONSES = {
    'n170': ('Target', 'NonTarget', 0.17, 0.02, ('P8', 'PO8', 'P7'), -1),
    'mismatch_negativity': ('Target', 'NonTarget', 0.15, 0.03, ('FCz', 'Fz', 'Cz'), -1),
    'n400': ('Target', 'NonTarget', 0.4, 0.06, ('CPz', 'Cz', 'Pz'), -1),
    'n2pc': ('Target', 'NonTarget', 0.25, 0.04, ('PO8', 'P8', 'PO7', 'P7', 'O2', 'O1'), 0),
    'ern': ('Target', 'NonTarget', 0.05, 0.02, ('FCz', 'Fz', 'Cz'), -1),
    'lrp': ('Target', 'NonTarget', -0.05, 0.03, ('C3', 'C4'), 0),
    'audiovisual_stimulus': ('left_visual', 'right_visual', 0.13, 0.05, ('O1', 'O2', 'PO7', 'PO8'), 0),
}


@pytest.mark.parametrize('paradigm', RESPONSES)
def test_a_response_is_where_and_when_it_should_be(paradigm: str) -> None:
    a, b, at, off, where, sign = RESPONSES[paradigm]
    p = PARADIGMS[paradigm]
    contrast = np.zeros(())
    for subject in range(3):
        x, events = signature(paradigm, subject)
        first = np.round((events['onset'] + p.window[0]) * p.sfreq).astype(int)
        pieces = np.stack([x[:, i : i + round(p.window[1] * p.sfreq)] for i in first])
        contrast = contrast + pieces[events['label'] == a].mean(0) - pieces[events['label'] == b].mean(0)
    k, i = np.unravel_index(np.abs(contrast).argmax(), contrast.shape)
    assert p.chans[k] in where
    assert abs(i / p.sfreq + p.window[0] - at) <= off
    assert sign in (0, np.sign(contrast[k, i]))


def power(paradigm: str, channel: str, low: float, high: float, session: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Power of a band at a channel over time, mean over nothing: [T], and the time axis."""
    p = PARADIGMS[paradigm]
    raw, _ = simulate(paradigm, 2, 1, session=session)
    x = mne.filter.filter_data(raw.get_data([channel])[0] * 1e6, p.sfreq, low, high, verbose='ERROR')
    return x**2, raw.times


@pytest.mark.slow
def test_stages_of_sleep_have_their_waves() -> None:
    _, table, _ = read('SimulatedSleepStage', 2)
    runs = [(s, t, t + d) for s, t, d in zip(table['stage'], table['onset'], table['duration'], strict=True) if s]

    def level(stage: str, channel: str, low: float, high: float) -> float:
        x, t = power('sleep_stage', channel, low, high)
        return float(np.mean(np.concatenate([x[(t >= a) & (t < b)] for s, a, b in runs if s == stage])))

    slow = {s: level(s, 'Cz', 0.5, 2.5) for s in ('W', 'N1', 'N2', 'N3', 'R')}
    assert max(slow, key=slow.get) == 'N3'
    assert slow['N3'] > 2 * slow['N2'] > 2 * slow['N1']
    assert level('N2', 'Cz', 12, 15) > 1.5 * level('R', 'Cz', 12, 15)
    assert level('W', 'Oz', 8, 12) > 3 * level('N1', 'Oz', 8, 12)


def test_calculation_raises_frontal_theta_and_lowers_alpha() -> None:
    (theta, _), (alpha, _) = power('mental_arithmetic', 'Fz', 5, 7), power('mental_arithmetic', 'Pz', 8, 12)
    (rest, _), (resting, _) = power('mental_arithmetic', 'Fz', 5, 7, 1), power('mental_arithmetic', 'Pz', 8, 12, 1)
    assert theta.mean() > 1.5 * rest.mean()
    assert alpha.mean() < 0.7 * resting.mean()


def test_seizures_are_where_the_events_say() -> None:
    for number in range(2):
        x, events = signature('seizure', number)
        t = np.arange(x.shape[1]) / PARADIGMS['seizure'].sfreq
        inside = np.zeros(len(t), bool)
        for onset, lasts in zip(events['onset'], events['duration'], strict=True):
            inside |= (t >= onset - 0.3) & (t <= onset + lasts + 0.6)
        assert np.abs(x[:, ~inside]).max() < 1e-3
        assert x[:, inside].std() > 5


@pytest.mark.parametrize(
    ('label', 'where'), [('eyem', {'Fp1', 'Fp2', 'F7', 'F8'}), ('elpp', {'P4'}), ('musc', {'O1', 'O2', 'P3', 'P4'})]
)
def test_artefacts_are_strongest_where_they_arise(label: str, where: set[str]) -> None:
    x, events = signature('artifact')
    p = PARADIGMS['artifact']
    row = np.flatnonzero(events['state'] == label)[0]
    i, j = (round(v * p.sfreq) for v in (events['onset'][row], events['onset'][row] + events['duration'][row]))
    assert p.chans[x[:, i:j].std(1).argmax()] in where


def test_slow_reactions_have_more_alpha() -> None:
    slopes = []
    for subject in range(4):
        raw, events = simulate('reaction_time', subject, 1)
        x = mne.filter.filter_data(raw.get_data(['Pz', 'O1'])[:] * 1e6, 128.0, 8, 12, verbose='ERROR')
        pressed = events['type'] == 'Keystroke'
        first = ((events['onset'][pressed] + 0.5) * 128).astype(int)
        level = [np.log((x[:, i : i + 256] ** 2).mean()) for i in first]
        slopes.append(np.corrcoef(level, events['reaction_time'][pressed])[0, 1])
    assert np.mean(slopes) > 0.4


@pytest.mark.slow
def test_traits_change_nothing_without_effect_and_alpha_with_it() -> None:
    """Alpha is slower with dementia; at effect 0 only the subject's own peak remains."""

    def peak(subject: int, effect: float) -> float:
        raw, _ = simulate('dementia_diagnosis', subject, 1, effect=effect)
        spectrum = raw.compute_psd(picks=['O1', 'O2', 'Pz'], fmin=6, fmax=13, n_fft=512, verbose='ERROR')
        return float(
            (spectrum.get_data().mean(0) ** 2 * spectrum.freqs).sum() / (spectrum.get_data().mean(0) ** 2).sum()
        )

    ill, healthy = range(0, 12, 3), range(2, 12, 3)
    assert np.mean([peak(s, 1.0) - peak(s, 0.0) for s in ill]) < -0.7
    assert abs(np.mean([peak(s, 1.0) - peak(s, 0.0) for s in healthy]) - 0.3) < 0.3


# ------------------------------------------------------------------------------------------------------------ stimuli


def test_embeddings_are_those_of_names() -> None:
    names = [np.str_('river'), 'stone', 'images/a/0.jpg', 'audio/story.wav@3.000+3.000', 'videos/c/1.mp4@0.000+2.000']
    first, again = simulated.vectors(names, 1536), simulated.vectors([str(n) for n in names[::-1]], 1536)[::-1]
    assert first.shape == (5, 1536)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, again)
    assert np.abs(np.corrcoef(first)[np.triu_indices(5, 1)]).max() < 0.75
    clips = simulated.vectors([f'videos/c/{k}.mp4@0.000+2.000' for k in range(40)], 64)
    others = simulated.vectors([f'videos/{k}/0.mp4@0.000+2.000' for k in range(40)], 64)
    assert np.corrcoef(clips).mean() > np.corrcoef(others).mean() + 0.1  # those of one concept are alike


def test_parts_of_a_story_that_overlap_are_alike() -> None:
    near, far = (
        simulated.vectors([f'audio/story.wav@{t:.3f}+3.000' for t in (10.0, 10.0 + d)], 4096) for d in (0.2, 30)
    )
    assert np.corrcoef(near)[0, 1] > 0.6
    assert abs(np.corrcoef(far)[0, 1]) < 0.6


def test_the_brain_answers_a_stimulus_by_a_linear_image_of_it() -> None:
    """Answers of two subjects to the same pictures are alike, and linear in the latent."""
    answers = []
    for subject in (0, 1):
        x, events = signature('image', subject)
        at = {f: round((t + 0.14) * 128) for f, t in zip(events['filepath'], events['onset'], strict=True)}
        answers.append(np.stack([x[:, at[f] - 2 : at[f] + 3].mean(1) for f in sorted(at)]))
        z = np.stack([latent(f) for f in sorted(at)])
        fitted = z @ np.linalg.lstsq(z, answers[-1], rcond=None)[0]
        assert 1 - (answers[-1] - fitted).var() / answers[-1].var() > 0.5
    assert np.corrcoef(answers[0].ravel(), answers[1].ravel())[0, 1] > 0.4


# ------------------------------------------------------------------------------------------------------ other devices


def test_a_helmet_reads_fields_of_dipoles_along_the_scalp() -> None:
    """Magnetometers in T, gradiometers in T/m; the field of one dipole changes sign, its gradient is largest above."""
    raw, _ = simulate('meg_image', 0, 1)
    kinds, x = np.array(raw.get_channel_types()), raw.get_data()
    sd = (x[:, 1:] - x[:, :-1]).std(1)  # without what is slow
    assert (kinds.tolist().count('mag'), kinds.tolist().count('grad')) == (24, 48)
    assert 20e-15 < np.median(sd[kinds == 'mag']) < 500e-15
    assert 0.5e-12 < np.median(sd[kinds == 'grad']) < 20e-12
    p = PARADIGMS['meg_image']
    gain, _ = _gain(p, stream('meg_image', 0, 1, 'anatomy'))
    alpha = gain[:, list(RHYTHMS).index('alpha_l')]
    assert alpha[kinds == 'mag'].min() < -0.2 and alpha[kinds == 'mag'].max() > 0.2
    where = np.array([c['loc'][:3] for c in raw.info['chs']])
    above = where[kinds == 'grad'][np.abs(alpha[kinds == 'grad']).argmax()]
    strongest = where[kinds == 'mag'][np.abs(alpha[kinds == 'mag']).argmax()]
    source = montage().get_positions()['ch_pos']['PO3']
    assert np.linalg.norm(above - source) < np.linalg.norm(strongest - source) + 0.02
    assert above[1] < 0.02  # at the back


def test_blood_answers_late_and_only_where_it_is_seen() -> None:
    """A picture is answered some 5 s later by a linear image of its latent; the last parcels do not see."""
    t = np.arange(0, 30, 0.1)
    flow = haemodynamic(t)
    assert flow[0] == 0 and abs(t[flow.argmax()] - 5) < 0.2 and abs(flow.max() - 1) < 0.02
    assert flow[t > 10].min() < -0.05 and abs(t[flow.argmin()] - 15) < 1.5
    x, events = signature('fmri_image')
    assert np.abs(x[:80]).max() > 1e6 and np.abs(x[80:]).max() < 1e-3  # in millionths of a unit
    z = np.stack([latent(name) for name in events['filepath']])
    flow = haemodynamic(np.arange(x.shape[1]) * 2.0 - events['onset'][:, None])
    model = flow.T @ z
    fitted = model @ np.linalg.lstsq(model, x[:80].T, rcond=None)[0]
    assert 1 - (x[:80].T - fitted).var() / x[:80].var() > 0.9


def test_keys_are_bursts_of_the_muscles_of_their_hand() -> None:
    """Before each press, at the electrodes of its muscle, between 20 and 450 Hz."""
    x, events = signature('emg_typing')
    rows = {key: np.flatnonzero(events['label'] == key) for key in KEYS}
    level = {}
    for key, found in rows.items():
        first = ((events['onset'][found] - 0.09) * 2000).astype(int)
        level[key] = np.mean([(x[:, i : i + 160] ** 2).mean(1) for i in first], 0) ** 0.5
        hand, place = KEYS[key]
        own = level[key][:16] if hand == 'left' else level[key][16:]
        assert own.max() > 50 and abs(own.argmax() - place) <= 2
    assert level['a'][:16].max() > 3 * level['a'][16:].max()
    quiet = np.ones(x.shape[1], bool)
    for onset in events['onset']:
        quiet[int((onset - 0.25) * 2000) : int((onset + 0.15) * 2000)] = False
    assert np.abs(x[:, quiet]).max(initial=0) < 1e-3
    spectrum = np.abs(np.fft.rfft(x[2])) ** 2
    inside = slice(*(np.array([15, 455]) * x.shape[1] // 2000))
    assert spectrum[inside].sum() > 0.98 * spectrum.sum()


# ----------------------------------------------------------------------------------------------------------- decoders


def band_powers(paradigm: str, subjects: range, effect: float) -> tuple[np.ndarray, np.ndarray]:
    """Band powers of windows of 5 s, and which label or session they are of."""
    p = PARADIGMS[paradigm]
    x, y = [], []
    for subject in subjects:
        for session in range(len(p.counts)):
            raw, _ = simulate(paradigm, subject, 1, session=session, effect=effect)
            n = int(5 * p.sfreq)
            data = raw.get_data() / np.std(raw.get_data(), axis=1, keepdims=True)
            pieces = data[:, : data.shape[1] // n * n].reshape(len(data), -1, n).swapaxes(0, 1)
            x.append(_band_powers(pieces, p.sfreq))
            y += [session if len(p.counts) > 1 else subject % len(p.labels)] * len(pieces)
    return np.concatenate(x), np.array(y)


@pytest.mark.slow
@pytest.mark.parametrize('paradigm', ['mental_arithmetic', 'schizophrenia_diagnosis'])
def test_states_and_traits_are_decoded_and_effect_zero_is_not(paradigm: str) -> None:
    train, test = (range(8), range(8, 12)) if paradigm == 'mental_arithmetic' else (range(24), range(24, 40))
    chance = 1 / len(PARADIGMS[paradigm].labels)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    score = {e: model.fit(*band_powers(paradigm, train, e)).score(*band_powers(paradigm, test, e)) for e in (0.0, 1.0)}
    assert score[1.0] > chance + 0.2
    assert abs(score[0.0] - chance) < 0.2  # 12 and 16 subjects


RATIOS = {d.name: d for d in (*simulated.DATASETS, *simulated_films.DATASETS)}
SOME = ('SimulatedP3', 'SimulatedMotorImagery', 'SimulatedSsvep', 'SimulatedSleepStage', 'SimulatedFilm')


@pytest.mark.parametrize('name', often(RATIOS, SOME))
def test_the_stated_ratio_of_signal_to_noise(name: str) -> None:
    """Mean of the ratio over the first six subjects; see the head of the source module."""
    dataset = RATIOS[name]
    p = PARADIGMS[simulated.paradigm(dataset.name)]
    ratios = []
    for subject in range(6):
        session = subject % len(p.counts)
        x, events = simulate(p.name, subject, 1, session=session)
        rest = simulate(p.name, subject, 1, session=session, effect=0.0)[0].get_data()
        inside = windows_of(p.window, events['onset'], x.times)
        parts = (x.get_data() - rest, rest)
        if dataset.device != 'fmri':
            band = (20, 450) if dataset.device == 'emg' else (1, min(40, 0.45 * p.sfreq))
            parts = (mne.filter.filter_data(v, p.sfreq, *band, verbose='ERROR') for v in parts)
        signal, noise = (v[:, inside].var(1) for v in parts)
        ratios.append((signal / noise).max())
    stated = float(dataset.title.split('SNR ')[1].split()[0])
    assert 10 * np.log10(np.mean(ratios)) == pytest.approx(stated, abs=0.1)


def windows_of(window: tuple[float, float], onset: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Which samples lie in the window of an event; all of them where there is none, or windows tile the recording."""
    onset = np.sort(onset)
    if len(onset) < 15:
        return np.ones(len(times), bool)
    after = np.searchsorted(onset + window[0], times, side='right') - 1
    return (after >= 0) & (times - onset[after] - window[0] < window[1])


@pytest.mark.slow
def test_a_film_does_the_same_to_all_and_each_answers_in_its_own_way() -> None:
    """What two people share is the film's: their rhythms and answers are pulled alike, all else is their own."""
    alone = [simulate('film', k, 1)[0].get_data() - simulate('film', k, 1, effect=0.0)[0].get_data() for k in (0, 1)]
    rest = [simulate('film', k, 1, effect=0.0)[0].get_data() for k in (0, 1)]

    def alike(pair: list[np.ndarray]) -> float:
        slow = [mne.filter.filter_data(x, 128.0, 1.0, 10.0, verbose='ERROR') for x in pair]
        return max(np.corrcoef(a, b)[0, 1] for a, b in zip(*slow, strict=True))

    assert alike(alone) > 0.3 > 0.1 > alike(rest)
    _, events = simulate('film', 2, 1)
    assert (events['type'].tolist(), events['filepath'].tolist()) == (['Film'], ['films/street.mp4'])
