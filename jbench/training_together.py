"""Train the seeds of cells that one encoder learns together, and write their results."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jbench import processes
from jbench.context import Context
from jbench.data.load import prepared_set, protocols
from jbench.data.sources.mixture import JOINED
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.pretraining import alike, of_companion
from jbench.spec.recipe import seeds_draw
from jbench.stores import checkpoints, results, sets
from jbench.train.seeds import few_windows
from jbench.train.seeds_together import train_together
from jbench.training import (
    Others,
    Refused,
    forget,
    learnt_from,
    nothing_to_do,
    stopped_together,
    to_do,
    to_store,
    told_running,
    written,
)


def train_group(
    group: Sequence[tuple[Cell, tuple[Path, float]]], seeds: list[int], context: Context
) -> list[dict[str, Any]]:
    """All seeds of cells that are learnt together, a seed that all have finished is skipped. Returns their results.

    Args:
        group: cells in the order of their names, each with its prepared set and the seconds that took.

    Raises: RequestError, Interrupted.
    """
    cells, prepared = [c for c, _ in group], [at for _, at in group]
    homes = [result_file.result_dir(context.workdir, c) for c in cells]
    folders = [folder for folder, _ in prepared]
    refused: Refused = []  # by the store; the other seeds are trained first
    with contextlib.ExitStack() as held:
        for home in sorted(homes):
            held.enter_context(processes.locked(home / '.lock', context.guard_all))
        results.bring(context.workdir, homes)
        found = [to_do(*one, seeds, context) for one in zip(cells, homes, folders, strict=True)]
        if todo := [s for s in seeds if any(s in left for _, left in found)]:
            for cell in cells:
                held.enter_context(told_running(cell, context))
            for folder in dict.fromkeys(folders):
                held.enter_context(sets.here(context.workdir, folder, context.report))
            _train(cells, homes, prepared, todo, found, context, refused)
        else:
            for cell in cells:
                nothing_to_do(cell, context)
        for home in homes:
            to_store(home, seeds, context, refused)
        results.told(refused)
        return [done[s] for done, _ in found for s in seeds if s in done]


def _train(
    cells: Sequence[Cell],
    homes: Sequence[Path],
    prepared: Sequence[tuple[Path, float]],
    seeds: list[int],
    found: Sequence[tuple[dict[int, dict[str, Any]], list[int]]],
    context: Context,
    refused: Refused,
) -> None:
    """Train seeds, and add to what was `found` the results of the cells that lacked one."""
    if any(seeds_draw(c.task.recipe) for c in cells) and len(seeds) > 1:  # each has training windows of its own
        for seed in seeds:
            _train(cells, homes, prepared, [seed], found, context, refused)
        return
    tasks = [protocols.of_seed(c.task, seeds[0]) for c in cells]
    read = [prepared_set.open_set(folder, t) for t, (folder, _) in zip(tasks, prepared, strict=True)]
    data = [few_windows(d) if c.debug else d for c, d in zip(cells, read, strict=True)]
    with checkpoints.shared(context.workdir, cells[0].key, fresh=context.if_exists == 'skip'):
        for seed, outcomes in stopped_together(train_together(cells, data, seeds, context), context):
            for k, outcome in enumerate(outcomes):
                done, todo = found[k]
                if seed in todo:
                    others = [(cells[i], data[i]) for i in range(len(cells)) if i != k]
                    said = _said(cells[k], data[k], others)
                    done[seed] = written(
                        cells[k], homes[k], data[k], prepared[k], seed, outcome, said, context, refused, others
                    )
            forget(cells[0], seed, context)


def _said(cell: Cell, data: prepared_set.PreparedSet, others: Others) -> Mapping[str, Any]:
    """What a result says of the others: which they are, and whether they learnt from people of its test."""
    text = f'together: one encoder learnt this task and {", ".join(c.name for c, _ in others)}'
    same = alike({*cell.dataset.name.split(JOINED), *cell.dataset.aliases})
    tested = {*data.subjects[data.rows('test')].tolist()}
    for other, learnt in others:
        if other.dataset.name == cell.dataset.name and not learnt_from(learnt) & tested:
            continue
        if same & {name.lower() for name in other.dataset.name.split(JOINED)}:
            return {'overlap': 'overlap', 'warnings': [text, of_companion(other.name)]}
    return {'warnings': [text]}
