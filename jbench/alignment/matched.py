"""A recording and what a model answers to its stimuli, row by row."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment import rows
from jbench.alignment import stimuli as sets
from jbench.alignment.assembly import title
from jbench.alignment.screen import place_on_screen
from jbench.spec.benchmark import Benchmark
from jbench.spec.errors import RequestError, unknown

if TYPE_CHECKING:
    from xarray import DataArray

    from jbench.alignment.brain_model import BrainModel
    from jbench.alignment.stimuli import StimulusSet


def kept(benchmark: Benchmark, assembly: DataArray) -> DataArray:
    """What a benchmark keeps of a recording. Raises: RequestError where that is nothing."""
    for coordinate, value in benchmark.where:
        assembly = rows.with_value(assembly, coordinate, value)
    return assembly if benchmark.reliability is None else rows.reliable(assembly, benchmark.reliability)


def by_stimulus(assembly: DataArray) -> DataArray:
    """A recording whose presentations differ by stimulus and repetition alone: what else varies from trial to trial
    (session, run, trial) goes, and the repetitions of each stimulus are counted anew. So no stimulus can come in two
    rows of an average, and stand in training and test at once."""
    ids = assembly['stimulus_id'].values
    _, first, index = np.unique(ids, return_index=True, return_inverse=True)
    names = [str(k) for k, c in assembly.coords.items() if c.dims == ('presentation',) and k != 'repetition']
    varying = [k for k in names if (assembly[k].values[first][index] != assembly[k].values).any()]
    if len(first) == len(ids):
        return assembly
    order = np.argsort(index, kind='stable')
    starts = np.flatnonzero(np.r_[True, np.diff(index[order]) > 0])
    number = np.empty(len(ids), int)
    number[order] = np.arange(len(ids)) - np.repeat(starts, np.diff(np.r_[starts, len(ids)]))
    if not varying and 'repetition' in assembly.coords:
        return assembly
    return assembly.drop_vars([*varying, 'repetition'], errors='ignore').assign_coords(
        repetition=('presentation', number)
    )


def averaged(assembly: DataArray) -> DataArray:
    """The mean over repetitions: one row a stimulus."""
    return rows.average_repetitions(by_stimulus(assembly))


def same_neuroids(benchmark: Benchmark, train: DataArray, test: DataArray) -> DataArray:
    """Responses of training, their neuroids in the order of those of test. Raises: RequestError for other neuroids."""
    ids = test['neuroid_id'].values.tolist()
    where = {name: k for k, name in enumerate(train['neuroid_id'].values.tolist())}
    if other := sorted({*ids} ^ {*where}, key=str):
        reliable = '' if benchmark.reliability is None else f' above reliability {benchmark.reliability}'
        raise RequestError(
            f'benchmark {benchmark.identifier}: neuroid {other[0]!r} and {len(other) - 1} more are in one of '
            f'{benchmark.train_data} and {benchmark.data} alone; give both the same neuroid_id{reliable}'
        )
    return train.isel(neuroid=[where[name] for name in ids])


def recorded(model: BrainModel, benchmark: Benchmark, stimuli: StimulusSet | None, target: DataArray) -> DataArray:
    """The model's responses to the stimuli of a recording, row by row as these; the mean over its trials."""
    ids = target['stimulus_id'].values.tolist()
    model.start_recording(benchmark.region, benchmark.time_bins)
    return rows.in_order(
        averaged(model.look_at(shown(model, benchmark, stimuli, ids), benchmark.number_of_trials)), ids
    )


def shown(model: BrainModel, benchmark: Benchmark, stimuli: StimulusSet | None, ids: list[str]) -> StimulusSet:
    """The stimuli of a recording, each once, at the size at which the model sees."""
    if stimuli is None:
        raise RequestError(f'benchmark {benchmark.identifier}: its stimuli are not here, only responses to them')
    return on_screen(model, benchmark, sets.choose(stimuli, list(dict.fromkeys(ids)), stimuli.identifier))


def on_screen(model: BrainModel, benchmark: Benchmark, stimuli: StimulusSet) -> StimulusSet:
    """Stimuli as large as the model's field of view shows them; texts as they are."""
    if not benchmark.visual_degrees:  # texts
        return stimuli
    own = 'degrees' in stimuli.table.columns  # each has its own size
    return place_on_screen(stimuli, model.visual_degrees(), None if own else benchmark.visual_degrees)


def column(assembly: DataArray, name: str, benchmark: Benchmark) -> np.ndarray:
    """A coordinate that a benchmark needs. Raises: RequestError with those that there are."""
    if name not in assembly.coords:
        there = [str(k) for k in assembly.coords]
        raise unknown(f'coordinate of {title(assembly)}, which {benchmark.identifier} needs', name, there)
    values: np.ndarray = assembly[name].values
    return values


def digest(values: Any) -> str:
    """SHA-256 of an array: of its shape and bytes."""
    plain = np.ascontiguousarray(values)
    return hashlib.sha256(f'{plain.dtype} {plain.shape} '.encode() + plain.tobytes()).hexdigest()
