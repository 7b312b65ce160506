"""The seeds of cells whose tasks one encoder learns together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jbench.context import Context
from jbench.data.load.loader import n_batches
from jbench.data.load.prepared_set import PreparedSet
from jbench.spec.cell import Cell
from jbench.train import adaptation, fit, optim, parallel
from jbench.train.programs import asked_signal, build
from jbench.train.seeds import Learner, Loaders, answering, begin_from, loaders, outcome, watch_of
from jbench.train.step import State
from jbench.train.together import Part, fit_together, length

Outcomes = list[dict[str, Any]]  # of each cell


@dataclasses.dataclass(frozen=True)
class _Task:
    """One of the tasks: what it learns with, ready to start."""

    part: Part
    learner: Learner  # its recipe resolved
    read: Loaders
    begin: Callable[[Any], Any]  # (what is drawn) -> the same, from pretrained weights where there are some
    testing: parallel.Programs

    def start(self, seed: int, n_epochs: int, n_steps: int) -> State:
        """The state before the first of so many epochs, each of so many steps."""
        tx = optim.make(dataclasses.replace(self.learner.recipe, max_epochs=n_epochs), n_epochs * n_steps)
        weights = fit.loss_weights(self.learner.recipe, self.read.train)
        return parallel.new_state(self.begin(self.part.programs.draw(np.uint32(seed))), tx, weights)

    def outcome(self, fitted: fit.Fitted, compiled: float, context: Context) -> dict[str, Any]:
        """What came of it."""
        return outcome(self.learner, self.part.network, fitted, self.testing, self.read, compiled, context)


def train_together(
    cells: Sequence[Cell], sets: Sequence[PreparedSet], seeds: Sequence[int], context: Context
) -> Iterator[tuple[int, Outcomes]]:
    """Yield (seed, outcomes of the cells) of each seed; where one task fails, all have.

    Args:
        cells: of one model, in an order that does not depend on how they were asked for.
        sets: their data.

    Raises: RequestError for encoders that differ, and weights that do not fit; Interrupted.
    """
    learners = [Learner(c.model, c.task.recipe) for c in cells]
    read = [loaders(data, *learner) for data, learner in zip(sets, learners, strict=True)]
    batches = [n_batches(len(r.train), m.recipe.batch_size) for r, m in zip(read, learners, strict=True)]
    most, n_steps = length([(m.recipe, n) for m, n in zip(learners, batches, strict=True)])
    began, tasks = time.monotonic(), list[_Task]()
    for cell, data, learner, ways in zip(cells, sets, learners, read, strict=True):
        context.progress.update(f'compiling {cell.title}', 0, 1)
        tasks.append(_task(cell, data, learner, ways, context))
        context.guard_all()
    compiled = time.monotonic() - began
    title = f'{cells[0].model.full_name}: {" + ".join(c.task.full_name for c in cells)}'
    context.progress.finish(f'compiling {title}', f'took {compiled:.0f} s')
    for seed in seeds:
        watches = [watch_of(c, data, seed, most, context) for c, data in zip(cells, sets, strict=True)]
        parts = [t.part._replace(progress=w.progress) for t, w in zip(tasks, watches, strict=True)]
        states = [t.start(seed, most, n_steps) for t in tasks]
        machine = watches[0].machine | {'prepared': [w.machine['prepared'] for w in watches]}
        watch = dataclasses.replace(watches[0], machine=machine)
        try:
            found = fit_together(parts, states, watch, cells[0].task.recipe.task_temperature)
        except fit.NonFinite as error:
            yield seed, [{'failed': str(error)} for _ in cells]
            continue
        best = ', '.join(str(f.best_epoch + 1) for f in found)
        context.progress.finish(f'{title} seed {seed}', f'stopped after {len(found[0].history)} epochs, best: {best}')
        counted = {'steps_per_epoch': n_steps}  # of the encoder
        outcomes = [t.outcome(f, compiled / len(cells), context) | counted for t, f in zip(tasks, found, strict=True)]
        compiled = 0.0
        yield seed, outcomes


def _task(cell: Cell, data: PreparedSet, learner: Learner, read: Loaders, context: Context) -> _Task:
    model, recipe = learner
    signal = asked_signal(model, data.signal)
    network = build(model, signal, data.n_out, recipe, recipe.frames)
    begin = begin_from(cell, network, context)
    resolved = adaptation.resolved(recipe, network)
    tx = optim.make(resolved, 1)
    programs = parallel.compile_programs(network, tx, resolved, signal, data.n_out, data.length, single=True)
    part = Part(
        cell.title, network, resolved, programs, read.train, read.valid, fit.monitor_of(cell.task), lambda facts: None
    )
    testing = answering(programs, network, data, model, recipe)
    return _Task(part, Learner(model, resolved), read, begin, testing)
