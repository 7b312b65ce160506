"""What is done with a model and a recording, a function for each `Benchmark.procedure`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jbench.alignment import ceilings, gratings, rows
from jbench.alignment import over_time as course
from jbench.alignment import stimuli as sets
from jbench.alignment.data.geirhos import scored
from jbench.alignment.matched import (
    averaged,
    by_stimulus,
    column,
    digest,
    kept,
    on_screen,
    recorded,
    same_neuroids,
    shown,
)
from jbench.alignment.metrics import choices, consistency, distribution, ost, regression, similarity, spantime
from jbench.alignment.metrics.measured import Measured
from jbench.spec.benchmark import Benchmark
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

    from jbench.alignment.brain_model import BrainModel
    from jbench.alignment.data import Recorded
    from jbench.alignment.stimuli import StimulusSet

EXACT = 'float64'  # of benchmarks: two machines agree to 1e-6
OVER_TIME = 'spantime_'
AT_ONCE = 256  # gratings that a model looks at
SIMILARITIES = {'cka': similarity.cka_cv, 'rdm': similarity.rdm_cv}


class Compared(NamedTuple):
    """What a procedure found."""

    measured: Measured
    ceiling: Measured | None
    features: str  # SHA-256 of what the model answered
    arrays: Mapping[str, np.ndarray] = {}  # more of it, for figures
    groups: np.ndarray | None = None  # whose each neuroid is, where each has a score of its own (`Benchmark.per`)


def neural(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Responses of neuroids, predicted from the model's: on stimuli left out, in splits."""
    single = by_stimulus(kept(benchmark, data.assembly))
    target = averaged(single)
    source = recorded(model, benchmark, data.stimuli, target)
    labels = column(target, benchmark.stratify, benchmark) if benchmark.stratify else None
    x, y = source.values, target.values
    arrays: dict[str, np.ndarray] = {}
    if benchmark.metric.startswith(OVER_TIME):
        each = spantime.spantime_cv(benchmark.metric.removeprefix(OVER_TIME), x, y, labels=labels, dtype=EXACT)
        measured, arrays = _mean_over_time(each), _course(target, each)
    elif benchmark.metric == 'ost':
        i1, times, objects = (column(target, name, benchmark) for name in ('i1', 'ost', 'object_name'))
        starts = column(target, 'time_bin_start', benchmark)
        measured = ost.ost_correlation(x, objects, (i1, times), starts=starts)
    elif benchmark.metric in SIMILARITIES:
        measured = SIMILARITIES[benchmark.metric](x, y, labels=labels, dtype=EXACT)
    else:
        measured = regression.regress_cv(benchmark.metric, x, y, labels=labels, dtype=EXACT)
    return Compared(measured, _ceiling(benchmark, single), digest(x), arrays)


def train_test(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """As `neural`, on stimuli that the recording itself divides."""
    if train is None:
        raise RequestError(f'benchmark {benchmark.identifier}: train_data is empty; name the recording to be fitted on')
    single = by_stimulus(kept(benchmark, data.assembly))
    test = averaged(single)
    fitted = same_neuroids(benchmark, averaged(kept(benchmark, train.assembly)), test)
    x_train = recorded(model, benchmark, train.stimuli, fitted).values
    x_test = recorded(model, benchmark, data.stimuli, test).values
    groups = column(test, benchmark.per, benchmark).astype(str) if benchmark.per else None
    measured = regression.regress_split(
        benchmark.metric, x_train, fitted.values, x_test, test.values, groups=groups, dtype=EXACT
    )
    features = digest(np.concatenate([x_train, x_test]))
    return Compared(measured, _ceiling(benchmark, single), features, groups=groups)


def rsa(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """How alike stimuli are: Spearman's correlation with each subject's dissimilarities (`rdm`), or Pearson's with each
    subject's similarities, over the units that respond most (`rsm`, Coggan et al.), averaged."""
    target, theirs = _dissimilarities(benchmark, kept(benchmark, data.assembly))
    source = recorded(model, benchmark, data.stimuli, target)
    notes: tuple[str, ...] = ()
    if benchmark.metric == 'rdm':
        mine = similarity.rdm(source.values, dtype=EXACT)
    else:
        mine, n_units = similarity.selected_rsm(source.values)
        notes = (f'{n_units} of {source.shape[1]} units respond enough to be compared',)
    arrays = {'rdm_model': mine.astype(np.float32), 'rdm_recording': theirs.mean(0).astype(np.float32)}
    measured = ceilings.against_subjects(mine, theirs, rank=benchmark.metric == 'rdm')
    measured = measured._replace(notes=(*measured.notes, *notes))
    if len(theirs) == 1:
        measured = measured._replace(error=float('nan'), notes=(*measured.notes, 'one subject: no error'))
    ceiling = RDM_CEILINGS[benchmark.ceiling](theirs) if benchmark.ceiling else None
    return Compared(measured, ceiling, digest(source.values), arrays)


def labels(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Answers of a model, which label it gives each image, beside those of people."""
    trials = kept(benchmark, data.assembly)
    trials = scored(trials) if benchmark.data.startswith('Geirhos2021.') else trials
    right = trials.values.astype(str) == column(trials, 'truth', benchmark).astype(str)
    people = consistency.answers(right, column(trials, 'subject', benchmark), trials['stimulus_id'].values)
    ids = people.images.tolist()
    _, first = np.unique(trials['stimulus_id'].values, return_index=True)
    truth, condition = (column(trials, name, benchmark)[first].astype(str) for name in ('truth', 'condition'))
    model.start_task('label', benchmark.labels)
    found = rows.in_order(model.look_at(shown(model, benchmark, data.stimuli, ids), benchmark.number_of_trials), ids)
    choice = found.values.astype(str)
    arrays = {'choice': choice, 'truth': truth, 'stimulus_id': np.array(ids)}
    if benchmark.metric == 'top1':
        return Compared(_share(choice, truth), None, digest(choice), arrays)
    measured = consistency.error_consistency((choice == truth).astype(float), people.right, condition)
    ceiling = consistency.error_consistency_ceiling(people.right, condition)
    return Compared(measured, ceiling, digest(choice), arrays)


def properties(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """How a property is distributed over units, beside its distribution over neurons."""
    from jbench.alignment import properties as v1

    study, name = v1.BENCHMARKS.get(benchmark.identifier.partition('_')[2], ('', ''))
    if not study:
        raise RequestError(
            f'benchmark {benchmark.identifier}: properties are those of Marques2020_STUDY-PROPERTY alone'
        )
    recording = rows.with_value(data.assembly, 'property', name).values[:, 0]
    edges = np.asarray(data.assembly.attrs[f'{name}_bins'])
    model.start_recording(benchmark.region, benchmark.time_bins)

    def record(stimuli: str, units: np.ndarray | None) -> Iterator[np.ndarray]:
        for some in _gratings(stimuli):
            seen = on_screen(model, benchmark, some)
            values = rows.in_order(averaged(model.look_at(seen, benchmark.number_of_trials)), some.ids).values
            yield values if units is None else values[:, units]

    found = v1.model_properties(study, record)
    units = np.asarray(found.properties.values.get(name, np.empty(0)), float)
    measured = distribution.property_similarity(units, recording, edges)
    measured = measured._replace(notes=(*measured.notes, *found.notes))
    return Compared(measured, distribution.property_ceiling(recording, edges), digest(units), {'property': units})


def choice_patterns(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Which objects a model takes for which, beside people's choices of two."""
    if train is None or train.stimuli is None:
        raise RequestError(f'benchmark {benchmark.identifier}: names no train_data whose stimuli have an image_label')
    model.start_task('probabilities', on_screen(model, benchmark, train.stimuli))
    trials = kept(benchmark, data.assembly)
    ids = list(dict.fromkeys(trials['stimulus_id'].values.tolist()))
    found = rows.in_order(model.look_at(shown(model, benchmark, data.stimuli, ids), benchmark.number_of_trials), ids)
    objects = found['choice'].values.astype(str).tolist()
    named = {
        'image': trials['stimulus_id'].values,
        'choice': trials.values,
        'target': column(trials, 'sample_obj', benchmark),
        'distractor': column(trials, 'dist_obj', benchmark),
    }
    chosen = choices.trials_of_names(named, images=ids, objects=objects)
    truth = np.zeros(len(ids), int)
    truth[chosen.image] = chosen.target
    measured = choices.choice_score(benchmark.metric, found.values, chosen, truth)
    ceiling = choices.choice_ceiling(benchmark.metric, chosen, truth=truth, n_objects=len(objects))
    return Compared(measured, ceiling, digest(found.values))


def odd_one_out(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Which of three a model finds odd: the share of triplets in which people did."""
    trials = kept(benchmark, data.assembly)
    ids = trials['stimulus_id'].values.tolist()
    if len(ids) % 3:
        raise RequestError(f'benchmark {benchmark.identifier}: {len(ids)} rows; three for each triplet')
    model.start_task('odd_one_out', [ids[k : k + 3] for k in range(0, len(ids), 3)])
    found = model.look_at(shown(model, benchmark, data.stimuli, ids), benchmark.number_of_trials)
    answers = found.values.astype(str)
    return Compared(_share(answers, trials.values.astype(str)[::3]), None, digest(answers))


def over_time(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Dissimilarities of stimuli in each bin of time, beside the model's; the score is the greatest over bins."""
    target = averaged(kept(benchmark, data.assembly))
    source = recorded(model, benchmark, data.stimuli, target)
    mine = similarity.rdm(source.values, dtype=EXACT)
    measured = course.rsa(mine, target.values)
    bins = np.stack([target['time_bin_start'].values, target['time_bin_end'].values], 1)
    note = 'no bin of time has a value'
    if not np.isnan(measured.values).all():
        best = int(np.nanargmax(measured.values))
        note = f'the best of {len(bins)} bins of time, {bins[best, 0]:g} to {bins[best, 1]:g} ms'
    errors = np.full(len(bins), np.nan)
    arrays = {'bins': bins, 'over_time': measured.values, 'over_time_error': errors, 'rdm_model': mine}
    found = measured._replace(values=np.empty(0), notes=(*measured.notes, note))
    return Compared(found, None, digest(source.values), arrays)


PROCEDURES: dict[str, Callable[[BrainModel, Benchmark, Recorded, Recorded | None], Compared]] = {
    'neural': neural,
    'train_test': train_test,
    'rsa': rsa,
    'over_time': over_time,
    'labels': labels,
    'properties': properties,
    'choices': choice_patterns,
    'odd_one_out': odd_one_out,
}


def _gratings(name: str) -> Iterator[StimulusSet]:
    """A set of gratings, some at a time. Raises: RequestError for textures, which cannot be drawn."""
    if name not in gratings.SWEEPS:
        raise RequestError(f'data missing: the images of {name}; they lie in the object store of Brain-Score alone')
    every = gratings.stimulus_set(name)
    for k in range(0, len(every), AT_ONCE):
        yield sets.choose(every, every.ids[k : k + AT_ONCE], f'{name}.{k}')


def _share(answers: np.ndarray, truth: np.ndarray) -> Measured:
    """Share of right answers and its standard error."""
    measured = consistency.accuracy(answers, truth)
    return measured._replace(error=measured.error / len(answers) ** 0.5)  # of the share, not of one answer


def _upper(rdms: np.ndarray) -> Measured:
    """Each subject with the mean of all; the lower bound, with the mean of the others, is noted."""
    found = ceilings.rsa_ceiling(rdms)
    return Measured(found.upper, float('nan'), found.uppers, (f'the upper bound; the lower is {found.lower:.4f}',))


RDM_CEILINGS: dict[str, Callable[[np.ndarray], Measured]] = {
    'rsa_ceiling': _upper,
    'leave_one_out': lambda rdms: ceilings.leave_one_out(rdms, rank=True),
    'leave_one_out_pearson': lambda rsms: ceilings.leave_one_out(rsms, rank=False),
}


def _ceiling(benchmark: Benchmark, single: DataArray) -> Measured | None:
    """The ceiling of responses that a benchmark names, from their single presentations; None: it names none."""
    if benchmark.ceiling == 'cross_subject':
        mean = averaged(single)
        subjects = column(mean, 'subject', benchmark).astype(str)
        responses = {str(name): mean.values[:, subjects == name] for name in np.unique(subjects)}
        return ceilings.cross_subject(responses, name=benchmark.metric, dtype=EXACT)
    if benchmark.ceiling == 'internal_consistency_temporal':
        return _mean_over_time(ceilings.internal_consistency_temporal(rows.trials(single)))
    return ceilings.internal_consistency(rows.trials(single)) if benchmark.ceiling else None


def _dissimilarities(benchmark: Benchmark, target: DataArray) -> tuple[DataArray, np.ndarray]:
    """Stimuli, a row each, and [subject or repetition, stimulus, stimulus]: as recorded, or of the responses of each
    value of `Benchmark.per`; of `rsm` similarities."""
    if 'paired' in target.dims:
        return target.isel(paired=0, drop=True), target.values
    if not benchmark.per:
        raise RequestError(
            f'benchmark {benchmark.identifier}: responses, no dissimilarities; say per= which coordinate tells '
            'subjects or repetitions apart'
        )
    values = np.unique(column(target, benchmark.per, benchmark)).tolist()
    each = [averaged(rows.with_value(target, benchmark.per, v).drop_vars(benchmark.per)) for v in values]
    ids = each[0]['stimulus_id'].values.tolist()
    if strange := [v for v, one in zip(values, each, strict=True) if {*one['stimulus_id'].values.tolist()} != {*ids}]:
        raise RequestError(f'benchmark {benchmark.identifier}: {benchmark.per} {strange[0]!r} saw other stimuli')
    found = np.stack([similarity.rdm(rows.in_order(one, ids).values, dtype=EXACT) for one in each])
    return each[0], 1 - found if benchmark.metric == 'rsm' else found


def _mean_over_time(each: Sequence[Measured]) -> Measured:
    """The mean over bins of time."""
    values = np.array([m.value for m in each])
    there = ~np.isnan(values)
    n = max(int(there.sum()), 1)
    error = float(np.sqrt(np.nansum(np.square([m.error for m in each]))) / n)
    notes = tuple(dict.fromkeys(note for m in each for note in m.notes))
    mean = float(values[there].mean()) if there.any() else float('nan')
    return Measured(mean, error, values, (*notes, f'the mean over {n} of {len(each)} bins of time'))


def _course(target: DataArray, each: Sequence[Measured]) -> dict[str, np.ndarray]:
    """Scores over time, for a figure."""
    bins = np.stack([target['time_bin_start'].values, target['time_bin_end'].values], 1)
    errors = np.array([m.error for m in each])
    return {'bins': bins, 'over_time': np.array([m.value for m in each]), 'over_time_error': errors}
