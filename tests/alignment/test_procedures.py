"""Procedures whose recordings are private, on made ones: the whole way from a benchmark's line to a score."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from jbench.alignment import assembly, benchmark, brain_model, data, matched, stimuli, store
from jbench.alignment.candidates.features import recorded_features
from jbench.alignment.extra import need
from jbench.alignment.units import Units
from jbench.spec.benchmark import Benchmark
from jbench.spec.errors import RequestError

N, UNITS = 60, 12
IDS = [f's{k:02d}' for k in range(N)]
OBJECTS = [f'o{k % 4}' for k in range(N)]
LINE = Benchmark(
    identifier='Made.IT-pls',
    parent='',
    title='made',
    procedure='neural',
    data='Made',
    region='IT',
    visual_degrees=8.0,
    metric='pls',
    ceiling='internal_consistency',
    citation='',
)
X = np.random.default_rng(0).normal(size=(N, 30))
MODEL = recorded_features('made', dict(zip(IDS, X, strict=True)))
OTHER = recorded_features('other', dict(zip(IDS, np.random.default_rng(9).normal(size=X.shape), strict=True)))


def shown(ids=IDS, **columns):
    def read(stimulus_id):
        raise AssertionError('features are recorded: nothing is looked at')

    return stimuli.make('made', {'stimulus_id': list(ids), **columns}, read, str)


def trials(responses, ids, repetitions=4, noise=0.3, seed=1, **neuroid):
    """Repetitions of responses [stimulus, unit(, bin)] as an assembly."""
    draws = np.random.default_rng(seed)
    values = np.concatenate([responses + draws.normal(0, noise, responses.shape) for _ in range(repetitions)])
    rows = {
        'stimulus_id': list(ids) * repetitions,
        'object_name': [OBJECTS[IDS.index(i)] for i in ids] * repetitions,
        'repetition': np.repeat(np.arange(repetitions), len(ids)),
    }
    units = {'neuroid_id': [f'n{k}' for k in range(responses.shape[1])], **neuroid}
    bins = [(10.0 * k, 10.0 * k + 10) for k in range(responses.shape[2])] if responses.ndim == 3 else ()
    return assembly.neuroids(values, presentation=rows, neuroid=units, time_bins=bins, stimulus_set='made')


def scored(line, recordings, model=MODEL):
    readers = {name: (lambda folder, r=r: r) for name, r in recordings.items()}
    return benchmark.scored(model, line, benchmark.recordings(line, None, readers))


def weights(seed=2, units=UNITS):
    return np.random.default_rng(seed).normal(size=(30, units)) / 5


@pytest.mark.parametrize('metric', ['pls', 'ridge', 'linear_predictivity', 'cka', 'rdm'])
def test_a_model_that_predicts_is_told_from_one_that_does_not(metric):
    line = dataclasses.replace(LINE, metric=metric, stratify='object_name', ceiled='ratio')
    made = {'Made': (shown(), trials(X @ weights(), IDS))}
    good, bad = scored(line, made).score, scored(line, made, OTHER).score
    assert good.raw > 0.3 > abs(bad.raw) and good.raw > 2 * abs(bad.raw) and 0.8 < good.ceiling < 1


def test_training_and_test_stimuli_and_subjects_of_their_own():
    neuroid = {'subject': ['a'] * 6 + ['b'] * 6, 'reliability': np.repeat([0.9, 0.2], 6)}
    line = dataclasses.replace(
        LINE, procedure='train_test', metric='ridgecv', train_data='Train', per='subject', reliability=0.3
    )
    y = X @ weights()
    made = {
        'Made': (shown(IDS[45:]), trials(y[45:], IDS[45:], **neuroid)),
        'Train': (shown(IDS[:45]), trials(y[:45], IDS[:45], **neuroid)),
    }
    found = scored(line, made).score
    assert found.values.shape[-1] == 6 and found.raw > 0.6  # the unreliable ones are left out
    assert any('alpha of a' in note for note in found.notes) and np.isnan(found.raw_error)


def test_a_neuroid_is_fitted_on_its_own_training_responses():
    neuroid = {'neuroid_id': [f'n{k}' for k in range(UNITS)], 'reliability': np.linspace(0.1, 0.9, UNITS)}
    line = dataclasses.replace(LINE, procedure='train_test', metric='ridge', train_data='Train', reliability=0.3)
    test, train = trials((X @ weights())[45:], IDS[45:], **neuroid), trials((X @ weights())[:45], IDS[:45], **neuroid)
    made = {'Made': (shown(IDS[45:]), test), 'Train': (shown(IDS[:45]), train)}
    turned = made | {'Train': (shown(IDS[:45]), train.isel(neuroid=slice(None, None, -1)))}
    expected, found = scored(line, made).score, scored(line, turned).score
    assert found.raw == pytest.approx(expected.raw) and expected.raw > 0.6
    less = train.assign_coords(reliability=('neuroid', neuroid['reliability'][::-1]))  # as many, but others
    with pytest.raises(RequestError, match=r"neuroid 'n0' and \d more are in one of Train and Made .*reliability 0\.3"):
        scored(line, made | {'Train': (shown(IDS[:45]), less)})


@pytest.mark.parametrize('how', ['explained_variance', 'ratio', 'above_chance'])
def test_a_constant_ceiling_is_that_of_each_subject(how):
    line = dataclasses.replace(LINE, procedure='train_test', metric='ridge', train_data='Train', ceiled=how)
    line = dataclasses.replace(line, per='subject', ceiling='', constant_ceiling=0.8, chance=0.1)
    y, subject = X @ weights(), ['a'] * 8 + ['b'] * 4
    made = {
        'Made': (shown(IDS[45:]), trials(y[45:], IDS[45:], subject=subject)),
        'Train': (shown(IDS[:45]), trials(y[:45], IDS[:45], subject=subject)),
    }
    found = scored(line, made).score
    parts = [np.median(found.values[0, :8]), np.median(found.values[0, 8:])]
    expected = {
        'explained_variance': np.square(parts) / 0.8,
        'ratio': np.divide(parts, 0.8),
        'above_chance': np.subtract(parts, 0.1) / (0.8 - 0.1),
    }
    assert found.ceiling == 0.8 and found.value == pytest.approx(expected[how].mean())


def test_weights_shared_over_time():
    y = np.stack([0 * X @ weights(), X @ weights(), 2 * (X @ weights())], 2)
    line = dataclasses.replace(
        LINE,
        metric='spantime_ridge',
        ceiling='internal_consistency_temporal',
        time_bins=((0.0, 10.0), (10.0, 20.0), (20.0, 30.0)),
    )
    found = scored(line, {'Made': (shown(), trials(y, IDS))})
    course = found.arrays['over_time']
    assert abs(course[0]) < 0.4 < 0.7 < course[1] and found.score.raw == pytest.approx(course.mean())


@pytest.mark.slow
def test_a_static_model_has_no_solution_times():
    draws = np.random.default_rng(0)
    bins = tuple((70.0 + 10 * k, 80.0 + 10 * k) for k in range(4))
    recording = trials(np.stack([X @ weights()] * 4, 2), IDS, 1)
    told = {'i1': ('presentation', draws.uniform(1, 2, N)), 'ost': ('presentation', draws.uniform(70, 110, N))}
    line = dataclasses.replace(
        LINE, metric='ost', ceiling='', constant_ceiling=0.79, ceiled='ratio', time_bins=bins, where=()
    )
    found = scored(line, {'Made': (shown(), recording.assign_coords(told))}).score
    assert np.isnan(found.raw) and found.ceiling == 0.79 and any('without time' in note for note in found.notes)


def test_choices_beside_those_of_people():
    objects = np.array(OBJECTS)
    draws = np.random.default_rng(3)
    rows = {name: [] for name in ('stimulus_id', 'sample_obj', 'dist_obj')}
    values = []
    hard = draws.uniform(0.02, 0.4, (N, 4))
    for k in range(N):
        for other in sorted({*OBJECTS} - {objects[k]}):
            for _ in range(12):
                rows['stimulus_id'].append(IDS[k])
                rows['sample_obj'].append(objects[k])
                rows['dist_obj'].append(other)
                values.append(other if draws.uniform() < hard[k, int(other[1])] else objects[k])
    people = assembly.behaviour(np.array(values), presentation=rows, stimulus_set='made')
    line = dataclasses.replace(
        LINE, procedure='choices', metric='i2n', ceiling='i2n', ceiled='ratio_root', train_data='Fitting'
    )
    fitting = (shown(image_label=OBJECTS), trials(X, IDS, 1))
    found = scored(line, {'Made': (shown(), people), 'Fitting': fitting}).score
    assert 0 < found.ceiling < 1 and abs(found.raw) < 0.5  # the model knows nothing of them


def test_the_odd_one_of_three():
    triplets = np.array([[0, 4, 1], [8, 4, 2], [16, 0, 3]])  # 0 and 4 come twice
    ids = [IDS[k] for k in triplets.ravel()]
    odd = np.repeat([IDS[t[2]] for t in triplets], 3)
    people = assembly.behaviour(odd, presentation={'stimulus_id': ids, 'triplet': np.repeat(np.arange(3), 3)})
    centres = np.random.default_rng(0).normal(size=(4, 30))
    model = recorded_features('objects', {i: centres[int(o[1])] for i, o in zip(IDS, OBJECTS, strict=True)})
    line = dataclasses.replace(
        LINE,
        procedure='odd_one_out',
        metric='accuracy',
        ceiling='',
        constant_ceiling=0.6767,
        chance=1 / 3,
        ceiled='above_chance',
    )
    found = scored(line, {'Made': (shown(), people)}, model).score
    assert found.raw == 1.0 and found.value == pytest.approx((1 - 1 / 3) / (0.6767 - 1 / 3))
    assert any('above its ceiling' in note for note in found.notes)
    other = people.copy(data=np.where(np.arange(9) < 3, ids[0], people.values))  # the first triplet: another answer
    found = scored(line, {'Made': (shown(), other)}, model).score
    assert found.raw == pytest.approx(2 / 3) and found.raw_error == pytest.approx((2 / 9 / 3) ** 0.5)


@pytest.mark.parametrize(('procedure', 'metric'), [('labels', 'top1'), ('choices', 'o1'), ('odd_one_out', 'accuracy')])
def test_a_model_answers_after_as_many_trials_as_the_benchmark_says(procedure, metric):
    asked = []

    def respond(stimuli_, what, n_trials):
        asked.append(n_trials)
        values = np.random.default_rng(0).normal(size=(len(stimuli_), n_trials, 1000))
        return Units(values, {'neuroid_id': np.arange(1000).astype(str)})

    people = assembly.behaviour(
        np.array(['cat', 'dog'] * 6),
        presentation={
            'stimulus_id': IDS[:12] if procedure != 'choices' else [*IDS[:2]] * 6,
            'subject': ['a'] * 12,
            'condition': ['c'] * 12,
            'truth': ['cat', 'dog'] * 6,
            'sample_obj': ['cat', 'dog'] * 6,
            'dist_obj': ['dog', 'cat'] * 6,
        },
    )
    line = dataclasses.replace(LINE, procedure=procedure, metric=metric, labels=('cat', 'dog'), number_of_trials=5)
    fitting = (shown(image_label=['cat', 'dog'] * (N // 2)), trials(X, IDS, 1))
    made = {'Made': (shown(), people), 'Fitting': fitting}
    line = dataclasses.replace(line, ceiling='', ceiled='none', train_data='Fitting')
    scored(line, made, brain_model.CommittedModel('noisy', 8.0, 'noisy', {}, respond, places=False))
    assert asked and {*asked} == {5}


def test_what_varies_from_trial_to_trial_does_not_let_a_stimulus_stand_in_training_and_test():
    noise = np.random.default_rng(4).normal(size=(N, UNITS))
    recording = trials(noise, IDS, 6)
    told = recording.assign_coords(trial=('presentation', np.arange(N * 6)))
    line = dataclasses.replace(LINE, metric='ridge')
    plain, more = (scored(line, {'Made': (shown(), r)}, OTHER).score for r in (recording, told))
    assert abs(more.raw) < 0.25 and more.raw == pytest.approx(plain.raw, abs=1e-6)
    assert more.ceiling == pytest.approx(plain.ceiling, abs=0.02)


def test_subjects_who_saw_the_stimuli_in_other_orders_are_aligned():
    parts = []
    for k, order in enumerate((np.arange(N), np.random.default_rng(1).permutation(N))):
        rows = {'run': np.arange(N), 'stimulus_id': [IDS[i] for i in order], 'subject': [f's{k}'] * N}
        rows['repetition'] = [k] * N
        units = {'neuroid_id': [f'n{j}' for j in range(30)]}
        parts.append(assembly.neuroids(X[order], presentation=rows, neuroid=units, stimulus_set='made'))
    both = need('xarray', 'a test').concat(parts, 'presentation')
    line = dataclasses.replace(
        LINE, procedure='rsa', metric='rdm', per='subject', ceiling='rsa_ceiling', ceiled='ratio', time_bins=()
    )
    found = scored(line, {'Made': (shown(), both.assign_attrs(stimulus_set='made'))}).score
    assert found.raw == pytest.approx(1) and found.ceiling == pytest.approx(1)


def test_similarities_are_compared_with_similarities_of_responses():
    draws = np.random.default_rng(5)
    strong = draws.normal(size=(N, 8))
    strong = (strong - strong.mean(0)) / strong.std(0)
    few = np.concatenate([10 + strong, draws.normal(size=(N, 192)) / 10], 1)  # the units that respond are few
    model = recorded_features('few', dict(zip(IDS, few, strict=True)))
    parts = [
        assembly.neuroids(
            strong,
            presentation={'stimulus_id': IDS, 'subject': [f's{k}'] * N, 'repetition': [k] * N},
            neuroid={'neuroid_id': [f'n{j}' for j in range(8)]},
        )
        for k in range(2)
    ]
    both = need('xarray', 'a test').concat(parts, 'presentation')
    line = dataclasses.replace(LINE, procedure='rsa', metric='rsm', per='subject', ceiled='ratio', time_bins=())
    found = scored(dataclasses.replace(line, ceiling='leave_one_out_pearson'), {'Made': (shown(), both)}, model).score
    assert found.raw == pytest.approx(1) and found.value == pytest.approx(1)


def test_a_stochastic_model_answers_with_its_mean():
    draws = np.random.default_rng(7)

    def respond(stimuli_, what, n_trials):
        index = [IDS.index(i) for i in stimuli_.ids]
        return Units(
            X[index][:, None] + draws.normal(size=(len(index), n_trials, 30)), {'neuroid_id': np.arange(30).astype(str)}
        )

    noisy = brain_model.CommittedModel('noisy', 8.0, 'noisy', {}, respond, places=False)
    made = {'Made': (shown(), trials(X @ weights(), IDS))}
    one, many = (scored(dataclasses.replace(LINE, number_of_trials=n), made, noisy).score.raw for n in (1, 50))
    assert one < many and many > 0.8


def test_subjects_each_beside_their_own_ceiling():
    """Two subjects, one of which hardly repeats: the mean of their scores, not the score of all neuroids together."""
    y = X @ weights()
    noise = np.repeat([0.2, 3.0], [9, 3])
    draws = np.random.default_rng(0)
    values = np.concatenate([y + draws.normal(size=y.shape) * noise for _ in range(6)])
    rows = {'stimulus_id': IDS * 6, 'repetition': np.repeat(np.arange(6), N)}
    neuroid = {'neuroid_id': [f'n{k}' for k in range(UNITS)], 'subject': ['a'] * 9 + ['b'] * 3}
    whole = assembly.neuroids(values, presentation=rows, neuroid=neuroid, stimulus_set='made')

    def part(ids):
        return whole.isel(presentation=np.flatnonzero(np.isin(whole['stimulus_id'].values, ids)))

    line = dataclasses.replace(LINE, procedure='train_test', metric='ridge', train_data='Train', per='subject')
    made = {'Made': (shown(IDS[40:]), part(IDS[40:])), 'Train': (shown(IDS[:40]), part(IDS[:40]))}
    found = scored(line, made).score
    each = [scored(dataclasses.replace(line, per='', where=(('subject', s),)), made).score for s in 'ab']
    assert found.value == pytest.approx(np.mean([one.value for one in each]), rel=0.02)
    assert found.raw == pytest.approx(np.mean([one.raw for one in each]), rel=0.02)


def test_a_recording_without_repetitions_has_no_ceiling_by_halves():
    with pytest.raises(RequestError, match='two repetitions'):
        scored(LINE, {'Made': (shown(), trials(X @ weights(), IDS, 1))})


def test_classes_too_small_for_the_splits_name_the_field_that_asks_for_them():
    recording = trials(X @ weights(), IDS)
    told = recording.assign_coords(kind=('presentation', [f'k{IDS.index(i)}' for i in recording['stimulus_id'].values]))
    with pytest.raises(RequestError, match=r'has 1 stimuli.*leave labels= \(of a benchmark: stratify=\) out'):
        scored(dataclasses.replace(LINE, stratify='kind'), {'Made': (shown(), told)})


def test_a_recording_that_no_reader_has_is_missing_and_the_readers_are_named(monkeypatch):
    monkeypatch.delenv('JBENCH_STORE', raising=False)
    readers = {'Maid': lambda folder: None}
    expected = r'data missing: Made is not in <data_dir>/packaged \(name the folder with --data_dir\): READERS has Maid'
    with pytest.raises(RequestError, match=expected):
        benchmark.recordings(LINE, None, readers)
    assert 'READERS has Maid' in benchmark.state(LINE, 'here', readers)


def test_a_stimulus_without_features_is_named():
    less = recorded_features('less', dict(zip(IDS[1:], X[1:], strict=True)))
    with pytest.raises(RequestError, match="no features for stimulus 's00'"):
        scored(LINE, {'Made': (shown(), trials(X @ weights(), IDS))}, less)


def test_what_is_kept_of_a_recording():
    recording = trials(X @ weights(), IDS, region=['V4'] * 6 + ['IT'] * 6)
    assert matched.kept(dataclasses.replace(LINE, where=(('region', 'V4'),)), recording).shape[1] == 6
    with pytest.raises(RequestError, match="no region 'V1'; there: IT, V4"):
        matched.kept(dataclasses.replace(LINE, where=(('region', 'V1'),)), recording)


def test_the_same_recording_has_the_same_digest_and_another_has_not():
    made = (shown(), trials(X @ weights(), IDS))
    first, again = (benchmark.recordings(LINE, None, {'Made': lambda folder: made}) for _ in range(2))
    other = benchmark.recordings(LINE, None, {'Made': lambda folder: (shown(), trials(X @ weights(), IDS, seed=5))})
    assert first.digest == again.digest != other.digest and first.stimuli_digest == other.stimuli_digest
    assert data.SETS  # the table that names every other recording


@pytest.mark.slow
def test_a_packaged_recording_is_found_under_its_name(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (N, 4, 4, 3), np.uint8)
    seen = stimuli.of_arrays('made', {'stimulus_id': IDS}, list(images))
    recording = trials(X @ weights(), IDS)
    store.package(recording, tmp_path / 'packaged', identifier='Made', stimuli=seen)
    with_store = benchmark.score(MODEL, LINE, data_dir=tmp_path)
    assert with_store.raw == pytest.approx(scored(LINE, {'Made': (seen, recording)}).score.raw)
    with pytest.raises(RequestError, match='data missing: Made is not in'):
        benchmark.score(MODEL, LINE, data_dir=tmp_path / 'elsewhere')
