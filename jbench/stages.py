"""The stages of a cell: prepare its windows, train its seeds, write its results. Data move left to right only."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jbench import afresh, processes
from jbench.attempts import Attempts
from jbench.context import Context
from jbench.data import discover
from jbench.data.load import prepared_set, protocols
from jbench.data.prepare import delete_raw
from jbench.data.source import vectors_of
from jbench.data.stimuli import embed
from jbench.plan import together
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Task
from jbench.stores import notes, results, sets
from jbench.train import batch_finder, channels, kept_memory, lr_finder
from jbench.train.programs import Compiler, require_heads
from jbench.train.seeds import few_windows
from jbench.training import train
from jbench.training_together import train_group

Value = TypeVar('Value')
FINDERS = {'find_lr': (lr_finder.find, 'recipe.lr'), 'find_batch': (batch_finder.find, 'recipe.batch_size')}


class Outcome(NamedTuple):
    """What the stages of some cells gave."""

    status: int  # 0: all done; 1: some cells failed; 2: none could run, the request or its data are wrong
    results: list[dict[str, Any]]
    facts: list[dict[str, Any]]  # about the data, of stage check; what finders found


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
        wanted: stages, of 'prepare', 'train', 'report' (results that are there, where nothing is trained), 'check',
            'find_lr', 'find_batch'.
        seeds: of the models; finders take the first.
        context: folders, progress, signals, and what becomes of results that are there.
        compiler: of the networks; the caller closes it.
        distributed: whether this process is one of several, which do all things together.

    Raises: RequestError where no result can be reported, or another process would wait; Interrupted.
    """
    asked, found = cells, list[dict[str, Any]]()
    homes = [result_file.result_dir(context.workdir, c) for c in cells]
    anew = context.if_exists == 'overwrite' and 'train' in wanted  # not stopped before old results are set aside
    results.bring(context.workdir, homes, (lambda done: None) if anew else (lambda done: context.guard()))
    if 'train' in wanted:
        kept_memory.keep()
        left = [c for c in cells if needs_training(c, seeds, context)]
        require_heads(left)
        compiler.foresee([c for c in left if not c.companions])

    attempt = Attempts(context, keep=bool({'prepare', 'train'} & {*wanted}), alone=not distributed)
    if context.delete_raw:
        delete_raw.check((c.dataset for c in cells), context.data_dir)
    finders = [name for name in FINDERS if name in wanted]
    if {'prepare', 'train', *finders} & {*wanted}:
        cells = [c for c in cells if attempt(c, partial(_placed, c, context, finders))]
    if anew:
        context = _anew(cells, seeds, context)
    prepared = _prepare_all(cells, asked, wanted, context, attempt) if {*wanted} != {'report'} else {}
    ready = [(c, at) for c in cells if (at := prepared.get(c.source)) is not None]
    facts = [attempt(c, partial(_facts, c, at[0], context)) for c, at in ready] if 'check' in wanted else []
    for (c, _), seen in zip(ready, facts, strict=False):
        if seen and seen['refused']:
            context.progress.say(f'jbench: {seen["refused"]}')
            attempt.refused.append(c)
    for c, at in ready if finders else ():
        facts += attempt(c, partial(_found, finders, c, at[0], seeds[0], context)) or []
    if 'train' in wanted:
        found += _train_all(cells, dict(prepared), seeds, compiler, context, attempt)
    elif 'report' in wanted:
        for c in cells:
            found += attempt(c, partial(stored, c, seeds, context)) or []
        if not (found or attempt.refused or attempt.broken):
            raise RequestError(f'no results of these cells under {context.workdir}/results; run without --stage first')
    failed = [r for r in found if r['status'] == 'failed']
    for r in failed:
        context.progress.say(f'failed: {r["task"]}/{r["dataset"]} {r["model"]} seed {r["seed"]}: {r["warnings"][-1]}')
    refused = attempt.refused
    for c in refused[: 0 if len(asked) == 1 else None]:
        context.progress.say(f'not run: {c.title}')
    status = 2 if len(refused) == len(asked) else 1 if failed or refused or attempt.broken else 0
    return Outcome(status, found, [f for f in facts if f is not None])


def _prepare_all(
    cells: Sequence[Cell], asked: Sequence[Cell], wanted: Collection[str], context: Context, attempt: Attempts
) -> dict[str, tuple[Path, float] | None]:
    """What `prepare` gives of each source; None where it failed.

    Args:
        cells, asked: those that can run, and all.
        wanted: as `run`.
    """
    prepared: dict[str, tuple[Path, float] | None] = {}
    for c in cells:
        if c.source not in prepared:
            others = [o.task for o in cells if o.dataset == c.dataset and o.source not in (c.source, *prepared)]
            embedded = {*wanted} != {'check'}
            prepared[c.source] = attempt(c, partial(prepare, c, context, embedded=embedded, others=others))
            if prepared[c.source] is not None:
                notes.forget(context.workdir, c.key)
            if context.delete_raw:
                attempt(c, partial(_delete_raw, c.dataset, asked, cells, prepared, context))
        elif prepared[c.source] is None:
            why = attempt.reasons.get(c.source, 'see the first cell of them')
            attempt.refuse(c, f'not run, because its data failed: {why}')
    return prepared


def _train_all(
    cells: Sequence[Cell],
    prepared: Mapping[str, tuple[Path, float] | None],
    seeds: list[int],
    compiler: Compiler,
    context: Context,
    attempt: Attempts,
) -> list[dict[str, Any]]:
    """The results of cells whose data are there; those that are learnt together need the data of all."""
    found: list[dict[str, Any]] = []
    for group in together.groups(cells):
        ready = [(c, at) for c in group if (at := prepared.get(c.source)) is not None]
        for c, _ in ready:
            notes.forget(context.workdir, c.key)
        if len(ready) < len(group[0].companions):
            here = [c for c, _ in ready]
            lacking = next(name for name, _ in group[0].companions if name not in [c.name for c in here])
            attempt.refuse_with(lacking, here)
        elif len(ready) > 1:
            done = attempt(group[0], partial(train_group, ready, seeds, context))
            if done is None:
                attempt.refuse_with(group[0].name, group[1:])
            found += done or []
        elif ready:
            found += attempt(group[0], partial(train, *ready[0], seeds, compiler, context)) or []
    return found


def _anew(cells: Sequence[Cell], seeds: Sequence[int], context: Context) -> Context:
    """How to go on, once the results that are to be replaced are set aside. Raises: as `afresh.begin`."""

    def hold(path: Path) -> contextlib.AbstractContextManager[None]:
        calls = itertools.count()

        def waits() -> None:
            if next(calls):  # a lock that is free is taken though a signal came: see `run`
                if processes.first():
                    context.progress.say_once(afresh.WAITS)
                context.guard_all()

        return processes.locked(path, waits)

    processes.anywhere(False)  # none still brings what goes now
    told, where = context.progress.say, (context.workdir, context.data_dir)
    afresh.begin(cells, seeds, where, hold=hold, say=told, works=processes.first())
    return context._replace(if_exists='resume')


def _placed(cell: Cell, context: Context, finders: Sequence[str]) -> bool:
    """True, once nothing speaks against the channels of a cell, and it has steps for finders. Raises: RequestError."""
    for name in finders:
        lr_finder.require(cell, name)
    channels.placed(cell, context.data_dir, context.workdir)
    return True


def _facts(cell: Cell, folder: Path, context: Context) -> dict[str, Any]:
    """What the data of a cell hold; a page of it is written. Raises: RequestError."""
    from jbench.report.dataset import facts

    discover.fill(cell.dataset, context.data_dir, context.report)
    with sets.here(context.workdir, folder, context.report):
        return facts.look(cell, folder, context.data_dir, context.workdir)


def _found(names: Sequence[str], cell: Cell, folder: Path, seed: int, context: Context) -> list[dict[str, Any]]:
    """What finders found, one after the other."""
    return [_found_by(name, cell, folder, seed, context) for name in names]


def _found_by(name: str, cell: Cell, folder: Path, seed: int, context: Context) -> dict[str, Any]:
    """What a finder found on the prepared set of a cell; its curve lies as PNG, SVG and CSV in the work folder. Nothing
    of a recipe is changed by it. Raises: RequestError, Interrupted."""
    from jbench.report.figures import finders

    look, field = FINDERS[name]
    with sets.here(context.workdir, folder, context.report):
        data = prepared_set.open_set(folder, protocols.of_seed(cell.task, seed))
        found = look(cell, few_windows(data) if cell.debug else data, seed, context)
    home = context.workdir / 'finders' / result_file.result_dir('', cell).relative_to('results')
    what = f'{name}: {cell.title}' + ' (simulated)' * cell.dataset.simulated
    files = finders.write(name, found.curve, home, model=cell.model.full_name, title=what, value=found.value)
    told = {'cell': cell.title, 'simulated': cell.dataset.simulated, 'debug': cell.debug, 'stage': name}
    now = getattr(cell.task.recipe, field.partition('.')[2])
    told |= {'field': field, 'value': found.value, 'now': now, 'rule': found.rule}
    return {**told, 'said': found.told, 'files': [str(path) for path in files]}


def _delete_raw(
    dataset: Dataset, asked: Sequence[Cell], left: Sequence[Cell], prepared: Mapping[str, object], context: Context
) -> None:
    """Delete the recordings of a dataset once the last of its sets is there; where one cannot be made, say so.

    Args:
        asked, left: all cells, and those that can run.
        prepared: by source, what is there; None for what failed.
    """
    if any(c.source not in prepared for c in left if c.dataset == dataset):
        return
    mine = [c for c in asked if c.dataset == dataset]
    if lacking := [c.task.full_name for c in mine if prepared.get(c.source) is None]:
        context.progress.say(f'{dataset.name}: no recording is deleted: task {lacking[0]} still needs them')
        return
    tasks = [*{c.source: c.task for c in mine}.values()]
    delete_raw.after_prepared(dataset, tasks, context.data_dir, context.workdir, context.progress.say)


def prepare(cell: Cell, context: Context, *, embedded: bool = True, others: Sequence[Task] = ()) -> tuple[Path, float]:
    """The folder of the prepared set of a cell, made if it is not there, and the seconds that took. Where its stimuli
    need not be `embedded` (to look at recordings), only a source that needs no encoder gives their vectors. Tasks of
    `others`, whose sets are made later, share what is read where they can.

    Raises: RequestError for bad data; Interrupted.
    """
    began = time.monotonic()
    where, report = (context.data_dir, context.workdir), context.report
    folder = prepared_set.ready(
        cell.task, cell.dataset, *where, report, context.progress.say, others, own_band=cell.own_band
    )
    if embedded or vectors_of(cell.dataset):
        embed.provide(cell.task, cell.dataset, folder, *where, report)
    sets.take(context.workdir, folder, report)
    return folder, time.monotonic() - began


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
