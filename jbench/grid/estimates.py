"""What a job will take: seconds and memory, from results at hand, else from parameters and steps.

Without a result the figures are right to a factor of ten or so: they say which job is begun first, and how many fit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.data.prepare import build_set
from jbench.data.prepare.workers import n_workers
from jbench.data.recording import RecordingRef
from jbench.data.windows import n_samples
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError

START, BASE = 6.0, 700 << 20  # s and bytes of a process before it computes: Python, jax, a program (docs/speed.md)
COMPILE = 10.0  # s
RATE = 5e10  # operations a second: half of what two cores sustain (docs/speed.md)
FILTERS = 1000  # operations of a network of filters for a value of a window
TOKEN = 200  # samples of a channel that an encoder takes for one token
ACTIVATIONS = 64  # floats that a network keeps for a value of a window while it trains
STATE = 5  # floats for a parameter: itself, its gradient, two moments, the best one
ESTIMATOR = 1e-7  # s for a value of a window
READ = 25e6  # bytes of recordings prepared in a second (docs/speed.md)
PROCESSORS = 4  # of a job that jbench.launch writes down (--cpus)
TRAINED = 0.6  # share of windows
MARGIN = 1.3  # of memory, over what results took: the next run of a cell may take more
FEW = 3  # results of other seeds or recipes that are read


class Cost(NamedTuple):
    """What a job is expected to take."""

    seconds: float
    memory: int  # bytes


class Windows(NamedTuple):
    """Size of a prepared set."""

    n_windows: int
    n_chans: int
    n_times: int


def of_cell(cell: Cell, n_seeds: int, windows: Windows, workdir: Path) -> Cost:
    """What some seeds of a cell take, from the start of their process on; their data are prepared."""
    seen = [r for r in _results(cell, workdir) if _tells(r, cell)]
    if not seen:
        return _by_steps(cell, n_seeds, windows)
    each = sum(r['timings']['fit'] + r['timings']['test'] for r in seen) / len(seen)
    compiled = max(r['timings']['compile'] for r in seen)
    peak = max(r['memory']['peak_rss_mb'] for r in seen)
    return Cost(START + compiled + n_seeds * each, int(MARGIN * peak * (1 << 20)))


def of_set(cell: Cell, refs: Sequence[RecordingRef], *, elsewhere: bool = False) -> Cost:
    """What preparing the recordings of a cell takes: its process, and those that it starts, as many as this machine has
    room for; `elsewhere`: as many as a job of PROCESSORS starts that has the memory that is said here."""
    data, there, each = cell.dataset, max(1, len(refs)), build_set.needed(refs)
    seconds = data.seconds or (data.n_events or 60) * cell.task.window.duration
    n_bytes = 4 * len(refs) * data.n_chans * seconds * max(data.sfreq, default=cell.task.signal.sfreq)
    n = min(there, PROCESSORS) if elsewhere else n_workers(there, each)
    return Cost(START + n_bytes / READ, BASE + n * each)


def windows(cell: Cell, folder: Path | None, n_recordings: int) -> Windows:
    """How many windows of which size a cell has: of a prepared set as its manifest says, else as declared."""
    cut, n_times = cell.task.window, n_samples(cell.task.window.duration, cell.task.signal.sfreq)
    try:
        manifest = files.read_json(folder / 'manifest.json') if folder is not None else {}
        return Windows(manifest['n_windows'], len(manifest['ch_names']), n_times)
    except (FileNotFoundError, NotADirectoryError, RequestError, KeyError, TypeError):
        pass
    data = cell.dataset
    each = data.n_events or 60
    if cut.stride and data.seconds:
        each = int(data.seconds / cut.stride)
    return Windows(max(1, n_recordings or data.n_recordings) * each, data.n_chans, n_times)


def _by_steps(cell: Cell, n_seeds: int, windows: Windows) -> Cost:
    """From what a step computes, and how many there are at most."""
    n, n_chans, n_times = windows
    values, model, recipe = n_chans * n_times, cell.model, cell.task.recipe
    held = min(4 * n * values, os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 4)  # more is streamed
    if model.kind != 'network':
        return Cost(START + n_seeds * n * values * ESTIMATOR, BASE + 3 * held)
    parameters = model.n_parameters or 0
    batch = recipe.batch_size
    steps = max(recipe.least_steps, recipe.max_epochs * math.ceil(TRAINED * n / batch)) if model.trained else 1
    steps = min(steps, 20) if cell.debug else steps
    tokens = n_chans * math.ceil(n_times / TOKEN) if model.family == 'foundation' else 1
    work = 3 * batch * (FILTERS * values + 2 * parameters * tokens)
    activations = 4 * (recipe.microbatch or batch) * values * ACTIVATIONS
    memory = BASE + held + activations + 4 * STATE * parameters
    return Cost(START + COMPILE + n_seeds * steps * work / RATE, int(memory))


def _results(cell: Cell, workdir: Path) -> list[dict[str, Any]]:
    """A few results of the cell itself; where there is none, of the same model on the same data."""
    home = result_file.result_dir(workdir, cell)
    return _read(sorted(home.glob('seed*.json'))) or _read(sorted(home.parent.glob('*/seed*.json')))


def _read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    found = []
    for path in list(paths)[:FEW]:
        try:
            found.append(files.read_json(path))
        except (FileNotFoundError, RequestError):
            continue
    return found


def _tells(result: Any, cell: Cell) -> bool:
    """Whether a file is a result that says what a seed of a cell takes."""
    try:
        numbers: Sequence[Any] = [
            *(result['timings'][name] for name in ('compile', 'fit', 'test')),
            result['memory']['peak_rss_mb'],
        ]
        return (result['status'] == 'debug') == cell.debug and all(
            isinstance(n, int | float) and n >= 0 for n in numbers
        )
    except (KeyError, TypeError):
        return False
