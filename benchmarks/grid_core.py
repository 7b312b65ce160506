"""What the Core suite takes on one device: steps of its runs times what a step takes there. Nothing is trained.

A run is a task of eeg-core-1.0 on its first dataset, with one of NeuralBench's fourteen networks and one seed: 1,512 of
them. Steps are the most that its recipe allows (early stopping would end sooner). A step takes what
benchmarks/accelerator.py measured of the network in float32, on that device, times how many values more or fewer a
batch has. Testing, preparing, compiling and starting are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import accelerator_tables

from jbench.data.windows import n_samples
from jbench.grid import estimates
from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.spec.cell import Cell
from jbench.tasks.suites import SUITES

GOAL = 200.0  # GPU-hours


class Step(NamedTuple):
    """What was measured of a network."""

    ms: float
    values: int  # of a batch


def runs(names: Sequence[str]) -> list[tuple[str, Cell | None]]:
    """Networks on the tasks of the Core suite, by name; None where one does not fit a task."""
    models, datasets, found = [select.Pick(MODELS[name], False) for name in names], select.datasets(), []
    for task, version in SUITES['eeg-core-1.0'].tasks:
        spec = next(t for t in select.tasks()[task] if t.version == version)
        made = cells.make_cells([cells.Choice(spec, datasets[spec.datasets[0]], True)], models, (), False)
        fitting = {cell.model.name: cell for cell in made}
        found += [(name, fitting.get(name)) for name in names]
    return found


def steps(cell: Cell) -> tuple[int, int]:
    """The most steps of a run, and the values of a batch."""
    recipe, n = cell.task.recipe, estimates.windows(cell, None, 0).n_windows
    n_times = n_samples(cell.task.window.duration, cell.task.signal.sfreq)
    most = max(recipe.least_steps, recipe.max_epochs * math.ceil(estimates.TRAINED * n / recipe.batch_size))
    return most if cell.model.trained else 0, recipe.batch_size * cell.dataset.n_chans * n_times


def measured(facts: Mapping[str, Any]) -> dict[str, Step]:
    """Of each network what a step takes in float32."""
    rows = [r for r in facts['rows'] if (r['part'], r['what'], r['seeds']) == ('step', 'float32', 1) and 'ms' in r]
    return {r['model']: Step(r['ms'], r['batch'] * r['n_chans'] * r['n_times']) for r in rows}


def report(path: Path, names: Sequence[str], seeds: int) -> str:
    """GPU-hours of the suite by what was measured at `path`; that there is no figure where nothing was.

    Raises: RequestError where the file is another one.
    """
    found = runs(names)
    asked = [cell for _, cell in found if cell is not None]
    total, fitting = seeds * len(found), seeds * len(asked)
    head = f'{total:,} runs of the Core suite ({fitting:,} of networks that fit their task)'
    if not path.exists():
        return f'{head}: no figure: no accelerator was measured ({path.name} of benchmarks/accelerator.py is not there)'
    facts = accelerator_tables.stored(path)
    if facts['head']['toy'] or facts['head']['backend'] == 'cpu':
        why = 'toy sizes' if facts['head']['toy'] else 'a processor'
        return f'{head}: no figure: no accelerator was measured ({path.name} is of {why})'
    known = measured(facts)
    if lacking := sorted({cell.model.name for cell in asked} - {*known}):
        return f'{head}: no figure: {path.name} has no step of {", ".join(lacking)}'
    hours = 0.0
    for cell in asked:
        n, values = steps(cell)
        hours += seeds * n * known[cell.model.name].ms * values / known[cell.model.name].values / 3.6e6
    return (
        f'SIMULATED: {head}: {hours:.0f} GPU-hours of {facts["head"]["device"]}, if every run takes all its steps; '
        f'the goal is {GOAL:.0f}'
    )
