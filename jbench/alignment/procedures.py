"""What is done with a model and a recording, a function for each `Benchmark.procedure`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jbench.alignment import ceilings, gratings, rows
from jbench.alignment import over_time as course
from jbench.alignment import stimuli as sets
from jbench.alignment.data.geirhos import scored
from jbench.alignment.metrics import choices, consistency, distribution, ost, regression, similarity, spantime
from jbench.alignment.metrics.measured import Measured
from jbench.alignment.screen import place_on_screen
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


def neural(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Responses of neuroids, predicted from the model's: on stimuli left out, in splits."""
    single = kept(benchmark, data.assembly)
    target = rows.average_repetitions(single)
    source = recorded(model, benchmark, data.stimuli, target)
    labels = target[benchmark.stratify].values if benchmark.stratify else None
    x, y = source.values, target.values
    arrays: dict[str, np.ndarray] = {}
    if benchmark.metric.startswith(OVER_TIME):
        each = spantime.spantime_cv(benchmark.metric.removeprefix(OVER_TIME), x, y, labels=labels, dtype=EXACT)
        measured, arrays = _mean_over_time(each), _course(target, each)
    elif benchmark.metric == 'ost':
        thresholds = (target['i1'].values, target['ost'].values)
        starts = target['time_bin_start'].values
        measured = ost.ost_correlation(x, target['object_name'].values, thresholds, starts=starts)
    elif benchmark.metric in SIMILARITIES:
        measured = SIMILARITIES[benchmark.metric](x, y, labels=labels, dtype=EXACT)
    else:
        measured = regression.regress_cv(benchmark.metric, x, y, labels=labels, dtype=EXACT)
    return Compared(measured, _ceiling(benchmark, rows.trials, single), digest(x), arrays)


def train_test(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """As `neural`, on stimuli that the recording itself divides."""
    if train is None:
        raise RequestError(f'benchmark {benchmark.identifier}: names no train_data')
    single = kept(benchmark, data.assembly)
    test, fitted = rows.average_repetitions(single), rows.average_repetitions(kept(benchmark, train.assembly))
    x_train = recorded(model, benchmark, train.stimuli, fitted).values
    x_test = recorded(model, benchmark, data.stimuli, test).values
    groups = test[benchmark.per].values if benchmark.per else None
    measured = regression.regress_split(
        benchmark.metric, x_train, fitted.values, x_test, test.values, groups=groups, dtype=EXACT
    )
    return Compared(measured, _ceiling(benchmark, rows.trials, single), digest(np.concatenate([x_train, x_test])))


def rsa(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Dissimilarities of stimuli: the correlation with each subject's, averaged; of ranks (`rdm`) or values (`rsm`)."""
    target, theirs = _dissimilarities(benchmark, kept(benchmark, data.assembly))
    source = recorded(model, benchmark, data.stimuli, target)
    mine = similarity.rdm(source.values, dtype=EXACT)
    arrays = {'rdm_model': mine.astype(np.float32), 'rdm_recording': theirs.mean(0).astype(np.float32)}
    measured = ceilings.against_subjects(mine, theirs, rank=benchmark.metric == 'rdm')
    if len(theirs) == 1:
        measured = measured._replace(error=float('nan'), notes=(*measured.notes, 'one subject: no error'))
    return Compared(measured, _ceiling(benchmark, np.asarray, theirs), digest(source.values), arrays)


def labels(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Answers of a model, which label it gives each image, beside those of people."""
    trials = scored(data.assembly)
    right = trials.values.astype(str) == trials['truth'].values.astype(str)
    people = consistency.answers(right, trials['subject'].values, trials['stimulus_id'].values)
    ids = people.images.tolist()
    _, first = np.unique(trials['stimulus_id'].values, return_index=True)
    truth, condition = (trials[name].values[first].astype(str) for name in ('truth', 'condition'))
    model.start_task('label', benchmark.labels)
    found = rows.in_order(model.look_at(_shown(model, benchmark, data.stimuli, ids)), ids)
    choice = found.values.astype(str)
    arrays = {'choice': choice, 'truth': truth, 'stimulus_id': np.array(ids)}
    if benchmark.metric == 'top1':
        measured = consistency.accuracy(choice, truth)
        measured = measured._replace(error=measured.error / len(choice) ** 0.5)  # of the share, not of one answer
        return Compared(measured, None, digest(choice), arrays)
    measured = consistency.error_consistency((choice == truth).astype(float), people.right, condition)
    ceiling = consistency.error_consistency_ceiling(people.right, condition)
    return Compared(measured, ceiling, digest(choice), arrays)


def properties(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """How a property is distributed over units, beside its distribution over neurons."""
    from jbench.alignment import properties as v1

    study, name = v1.BENCHMARKS[benchmark.identifier.partition('_')[2]]
    recording = rows.with_value(data.assembly, 'property', name).values[:, 0]
    edges = np.asarray(data.assembly.attrs[f'{name}_bins'])
    model.start_recording(benchmark.region, benchmark.time_bins)

    def record(stimuli: str, units: np.ndarray | None) -> Iterator[np.ndarray]:
        for some in _gratings(stimuli):
            shown = place_on_screen(some, model.visual_degrees())
            values = rows.in_order(model.look_at(shown, benchmark.number_of_trials), some.ids).values
            yield values if units is None else values[:, units]

    found = v1.model_properties(study, record)
    units = np.asarray(found.properties.values.get(name, np.empty(0)), float)
    measured = distribution.property_similarity(units, recording, edges)
    measured = measured._replace(notes=(*measured.notes, *found.notes))
    return Compared(measured, distribution.property_ceiling(recording, edges), digest(units), {'property': units})


def choice_patterns(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Which objects a model takes for which, beside people's choices of two."""
    if train is None or train.stimuli is None:
        raise RequestError(f'benchmark {benchmark.identifier}: names no train_data with stimuli')
    model.start_task('probabilities', _on_screen(model, benchmark, train.stimuli))
    trials = data.assembly
    ids = list(dict.fromkeys(trials['stimulus_id'].values.tolist()))
    found = rows.in_order(model.look_at(_shown(model, benchmark, data.stimuli, ids)), ids)
    objects = found['choice'].values.astype(str).tolist()
    named = {
        'image': trials['stimulus_id'].values,
        'choice': trials.values,
        'target': trials['sample_obj'].values,
        'distractor': trials['dist_obj'].values,
    }
    shown = choices.trials_of_names(named, images=ids, objects=objects)
    truth = np.zeros(len(ids), int)
    truth[shown.image] = shown.target
    measured = choices.choice_score(benchmark.metric, found.values, shown, truth)
    ceiling = choices.choice_ceiling(benchmark.metric, shown, truth=truth, n_objects=len(objects))
    return Compared(measured, ceiling, digest(found.values))


def odd_one_out(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Which of three a model finds odd: the share of triplets in which people did."""
    trials = data.assembly
    model.start_task('odd_one_out', None)
    ids = trials['stimulus_id'].values.tolist()
    answers = model.look_at(_shown(model, benchmark, data.stimuli, ids)).values.astype(str)
    return Compared(consistency.accuracy(answers, trials.values.astype(str)[::3]), None, digest(answers))


def over_time(model: BrainModel, benchmark: Benchmark, data: Recorded, train: Recorded | None) -> Compared:
    """Dissimilarities of stimuli in each bin of time, beside the model's; the score is the greatest over bins."""
    target = rows.average_repetitions(kept(benchmark, data.assembly))
    source = recorded(model, benchmark, data.stimuli, target)
    mine = similarity.rdm(source.values, dtype=EXACT)
    measured = course.rsa(mine, target.values)
    bins = np.stack([target['time_bin_start'].values, target['time_bin_end'].values], 1)
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


def _upper(rdms: np.ndarray) -> Measured:
    """Each subject with the mean of all; the lower bound, with the mean of the others, is noted."""
    found = ceilings.rsa_ceiling(rdms)
    return Measured(found.upper, float('nan'), found.uppers, (f'the upper bound; the lower is {found.lower:.4f}',))


CEILINGS: dict[str, Callable[[np.ndarray], Measured]] = {
    'internal_consistency': ceilings.internal_consistency,
    'internal_consistency_temporal': lambda trials: _mean_over_time(ceilings.internal_consistency_temporal(trials)),
    'rsa_ceiling': _upper,
    'leave_one_out': lambda rdms: ceilings.leave_one_out(rdms, rank=True),
    'leave_one_out_pearson': lambda rsms: ceilings.leave_one_out(rsms, rank=False),
}


def _ceiling(benchmark: Benchmark, of: Callable[[Any], np.ndarray], recording: Any) -> Measured | None:
    """The ceiling that a benchmark names, of what `of` makes of the recording; None: it names none."""
    return CEILINGS[benchmark.ceiling](of(recording)) if benchmark.ceiling else None


def _dissimilarities(benchmark: Benchmark, target: DataArray) -> tuple[DataArray, np.ndarray]:
    """Stimuli, a row each, and [subject or repetition, stimulus, stimulus]: as recorded, or of the responses of each
    value of `Benchmark.per`."""
    if 'paired' in target.dims:
        return target.isel(paired=0, drop=True), target.values
    each = []
    for value in np.unique(target[benchmark.per].values):
        part = rows.with_value(target, benchmark.per, value).drop_vars(benchmark.per)
        each.append(rows.average_repetitions(part))
    return each[0], np.stack([similarity.rdm(one.values, dtype=EXACT) for one in each])


def _mean_over_time(each: Sequence[Measured]) -> Measured:
    """The mean over bins of time."""
    values = np.array([m.value for m in each])
    error = float(np.sqrt(np.sum(np.square([m.error for m in each]))) / len(each))
    notes = tuple(dict.fromkeys(note for m in each for note in m.notes))
    return Measured(float(values.mean()), error, values, (*notes, f'the mean over {len(each)} bins of time'))


def _course(target: DataArray, each: Sequence[Measured]) -> dict[str, np.ndarray]:
    """Scores over time, for a figure."""
    bins = np.stack([target['time_bin_start'].values, target['time_bin_end'].values], 1)
    errors = np.array([m.error for m in each])
    return {'bins': bins, 'over_time': np.array([m.value for m in each]), 'over_time_error': errors}


def kept(benchmark: Benchmark, assembly: DataArray) -> DataArray:
    """What a benchmark keeps of a recording. Raises: RequestError where that is nothing."""
    for coordinate, value in benchmark.where:
        assembly = rows.with_value(assembly, coordinate, value)
    return assembly if benchmark.reliability is None else rows.reliable(assembly, benchmark.reliability)


def recorded(model: BrainModel, benchmark: Benchmark, stimuli: StimulusSet | None, target: DataArray) -> DataArray:
    """The model's responses to the stimuli of a recording, row by row as these."""
    ids = target['stimulus_id'].values.tolist()
    model.start_recording(benchmark.region, benchmark.time_bins)
    return rows.in_order(model.look_at(_shown(model, benchmark, stimuli, ids), benchmark.number_of_trials), ids)


def _shown(model: BrainModel, benchmark: Benchmark, stimuli: StimulusSet | None, ids: list[str]) -> StimulusSet:
    """The stimuli of a recording, each once, at the size at which the model sees."""
    if stimuli is None:
        raise RequestError(f'benchmark {benchmark.identifier}: its stimuli are not here, only responses to them')
    once = list(dict.fromkeys(ids))
    return _on_screen(model, benchmark, sets.choose(stimuli, once, stimuli.identifier))


def _on_screen(model: BrainModel, benchmark: Benchmark, stimuli: StimulusSet) -> StimulusSet:
    if not benchmark.visual_degrees:  # texts
        return stimuli
    own = 'degrees' in stimuli.table.columns  # each has its own size
    return place_on_screen(stimuli, model.visual_degrees(), None if own else benchmark.visual_degrees)


def digest(values: np.ndarray) -> str:
    """SHA-256 of an array: of its shape and bytes."""
    plain = np.ascontiguousarray(values)
    return hashlib.sha256(f'{plain.dtype} {plain.shape} '.encode() + plain.tobytes()).hexdigest()
