"""The stages of a cell: prepare its windows, train its seeds, write its results. Data move left to right only."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jbench import files
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.data.source import vectors_of
from jbench.data.stimuli import embed
from jbench.progress import Interrupted
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.train import channels
from jbench.train.programs import Compiler
from jbench.training import train

Value = TypeVar('Value')


class Outcome(NamedTuple):
    """What the stages of some cells gave."""

    status: int  # 0: all done; 1: some cells failed; 2: none could run, the request or its data are wrong
    results: list[dict[str, Any]]
    facts: list[dict[str, Any]]  # about the data, of stage check


def run(
    cells: Sequence[Cell],
    wanted: Collection[str],
    seeds: list[int],
    *,
    context: Context,
    compiler: Compiler,
    distributed: bool = False,
) -> Outcome:
    """Prepare every set, then train every cell; a cell whose data are wrong does not keep the others from running.

    Args:
        cells: in the order in which they run.
        wanted: stages, of 'prepare', 'train', 'report' (results that are there, where nothing is trained), 'check'.
        seeds: of the models.
        context: folders, progress, signals, and what becomes of results that are there.
        compiler: of the networks; the caller closes it.
        distributed: whether this process is one of several, which do all things together.

    Raises: RequestError where no result can be reported, or another process would wait; Interrupted.
    """
    n_cells = len(cells)
    prepared: dict[str, tuple[Path, float] | None] = {}
    refused: list[Cell] = []
    broken: list[Cell] = []
    found: list[dict[str, Any]] = []
    if 'train' in wanted:
        compiler.foresee([c for c in cells if needs_training(c, seeds, context)])

    def attempt(cell: Cell, work: Callable[[], Value]) -> Value | None:
        try:
            return work()
        except RequestError as error:
            if distributed:  # the others may not have met it, and would wait for this process
                raise
            context.progress.say(f'jbench: {error}')
            refused.append(cell)
        except Interrupted:
            raise
        except Exception as error:  # ours, or a library's: the other cells still run
            context.progress.say(failure(error, cell, context))
            broken.append(cell)
            if distributed:  # as above
                raise RequestError('stopped: the other processes may not have met this') from error
        return None

    if {'prepare', 'train'} & {*wanted}:
        cells = [c for c in cells if attempt(c, partial(_placed, c, context))]
    for c in cells if {*wanted} != {'report'} else ():
        if c.source not in prepared:
            prepared[c.source] = attempt(c, partial(prepare, c, context, embedded={*wanted} != {'check'}))
        elif prepared[c.source] is None:
            refused.append(c)
    ready = [(c, at) for c in cells if (at := prepared.get(c.source)) is not None]
    facts = [attempt(c, partial(_facts, c, at[0], context)) for c, at in ready] if 'check' in wanted else []
    for (c, _), seen in zip(ready, facts, strict=False):
        if seen and seen['refused']:
            context.progress.say(f'jbench: {seen["refused"]}')
            refused.append(c)
    if 'train' in wanted:
        for c, at in ready:
            found += attempt(c, partial(train, c, at, seeds, compiler, context)) or []
    elif 'report' in wanted:
        for c in cells:
            found += attempt(c, partial(stored, c, seeds, context)) or []
        if not (found or refused or broken):
            raise RequestError(f'no results of these cells under {context.workdir}/results; run without --stage first')
    failed = [r for r in found if r['status'] == 'failed']
    for r in failed:
        context.progress.say(f'failed: {r["task"]}/{r["dataset"]} {r["model"]} seed {r["seed"]}: {r["warnings"][-1]}')
    for c in refused[: 0 if n_cells == 1 else None]:
        context.progress.say(f'not run: {c.title}')
    status = 2 if len(refused) == n_cells else 1 if failed or refused or broken else 0
    return Outcome(status, found, [f for f in facts if f is not None])


def _placed(cell: Cell, context: Context) -> bool:
    """True, once nothing speaks against the channels of a cell. Raises: RequestError."""
    channels.check(cell, context.data_dir, context.workdir)
    return True


def _facts(cell: Cell, folder: Path, context: Context) -> dict[str, Any]:
    """What the data of a cell hold; a page of it is written. Raises: RequestError."""
    from jbench.report.dataset import facts

    return facts.look(cell, folder, context.data_dir, context.workdir)


def prepare(cell: Cell, context: Context, *, embedded: bool = True) -> tuple[Path, float]:
    """The folder of the prepared set of a cell, made if it is not there, and the seconds that took. Where its stimuli
    need not be `embedded` (to look at recordings), only a source that needs no encoder gives their vectors.

    Raises: RequestError for bad data; Interrupted.
    """
    began = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        context.guard()
        context.progress.update(what, done, total)

    where = (context.data_dir, context.workdir)
    folder = prepared_set.ready(cell.task, cell.dataset, *where, report, context.progress.say)
    if embedded or vectors_of(cell.dataset):
        embed.provide(cell.task, cell.dataset, folder, *where, report)
    return folder, time.monotonic() - began


def failure(error: Exception, cell: Cell, context: Context) -> str:
    """One line on a cell that broke, its traceback in a file. A smaller microbatch is never taken by itself: the
    statistics of the batches would be others, and so would the score."""
    reason = f'{type(error).__name__}: {error}'
    if isinstance(error, MemoryError) or 'RESOURCE_EXHAUSTED' in reason:
        size = cell.task.recipe.batch_size
        reason = f'memory ran out; a smaller batch needs less: --set recipe.batch_size=N, below {size}'
    try:
        log = files.write_atomic(context.workdir / 'errors' / f'{cell.key}.log', traceback.format_exc().encode())
        where = f'the details are in {log}'
    except RequestError as full:
        where = str(full)
    return f'failed: {cell.title}: {reason}; {where}'


def needs_training(cell: Cell, seeds: list[int], context: Context) -> bool:
    """False if a result file of every seed is there (whether it counts is looked at later)."""
    home = result_file.result_dir(context.workdir, cell)
    return context.if_exists == 'overwrite' or not all((home / f'seed{s}.json').exists() for s in seeds)


def stored(cell: Cell, seeds: list[int], context: Context) -> list[dict[str, Any]]:
    """Whole results of a cell that are there, for a report without training; says which are missing or damaged.

    Raises: RequestError if none is whole and one is damaged.
    """
    found, damaged, missing = [], [], []
    for seed in seeds:
        try:
            found.append(result_file.read(result_file.result_dir(context.workdir, cell) / f'seed{seed}.json'))
        except FileNotFoundError:
            missing.append(str(seed))
        except RequestError as error:
            damaged.append(f'{error} (without --stage)')
    if damaged and not found:
        raise RequestError('\n'.join(damaged))
    for text in damaged:
        context.progress.say(f'jbench: {text}')
    if missing:
        context.progress.say(f'{cell.title}: no result of seed {", ".join(missing)}; without --stage it is computed')
    return found
