"""Train the seeds of a cell, or of each of its folds, and write their results."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jbench import processes
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.sources.mixture import JOINED
from jbench.progress import Interrupted
from jbench.results import pool, record, result_file, weights
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.recipe import PROBES
from jbench.spec.task import ByGroup
from jbench.stores import checkpoints, mirror, results, sets
from jbench.train import checkpoint
from jbench.train.probe import train_probe
from jbench.train.programs import Compiler
from jbench.train.seeds import checkpoint_folder, few_windows, fit_estimator, train_network

AFRESH = ('skip', 'overwrite')  # of --if_exists: no seed goes on from a checkpoint
Results = dict[int, dict[str, Any]]  # by seed
Refused = list[RequestError]  # what a store said


def train(
    cell: Cell, prepared: tuple[Path, float], seeds: list[int], compiler: Compiler, context: Context
) -> list[dict[str, Any]]:
    """All seeds of a cell; finished ones are skipped. Returns their results.

    One run works on a cell, others wait for it and find its results. With `split.folds`, each fold is trained as a cell
    of its own (its results lie in the folder `folds`), and all of them make one result a seed.

    Raises: RequestError, Interrupted.
    """
    home = result_file.result_dir(context.workdir, cell)
    refused: Refused = []  # by the store; the other seeds are trained first
    with processes.locked(home / '.lock', context.guard_all):
        results.bring(context.workdir, [home])
        done, todo = _to_do(cell, home, prepared[0], seeds, context)
        if todo:
            work = _over_folds if isinstance(cell.task.split, ByGroup) and cell.task.split.folds else _seeds
            with sets.here(context.workdir, prepared[0], context.report):
                done |= work(cell, home, prepared, todo, compiler, context, refused)
        _to_store(home, seeds, context, refused)
        results.told(refused)
        if processes.first() and mirror.of(context.workdir) is not None:  # that of another machine may have come first
            done = {s: result_file.read(home / f'seed{s}.json') for s in done}
        return [done[s] for s in seeds if s in done]


def _to_do(cell: Cell, home: Path, folder: Path, seeds: list[int], context: Context) -> tuple[Results, list[int]]:
    """Results that count, and the seeds that have none. Raises: RequestError with --if_exists=fail."""
    done, refused = {}, ''
    if processes.first():  # others could read files that it is about to write
        try:
            done = _finished(home, seeds, prepared_set.digest(folder), context)
        except RequestError as error:
            refused = str(error)
        for seed in seeds if context.if_exists in AFRESH else ():
            checkpoint.remove(checkpoint_folder(cell, seed, context))
    if processes.anywhere(bool(refused)):
        raise RequestError(refused or 'the first process refuses, and says why')
    todo = [s for s, again in zip(seeds, processes.agreed(np.isin(seeds, [*done], invert=True)), strict=True) if again]
    if not todo:
        context.progress.say(f'{cell.title}: finished before, nothing to compute')
    return done, todo


def _seeds(
    cell: Cell,
    home: Path,
    prepared: tuple[Path, float],
    seeds: list[int],
    compiler: Compiler,
    context: Context,
    refused: Refused,
) -> Results:
    """Train seeds, and write their results to `home`."""
    folder, prepare_seconds = prepared
    data = prepared_set.open_set(folder, cell.task)
    if cell.debug:
        data = few_windows(data)
    if cell.model.kind == 'network':
        by = train_probe if cell.task.recipe.adaptation in PROBES else train_network
        outcomes = by(cell, data, seeds, compiler, context)
    else:
        outcomes = fit_estimator(cell, data, seeds, context) if processes.first() else iter(())
    done = {}
    with checkpoints.shared(context.workdir, cell.key, fresh=context.if_exists in AFRESH):
        for seed, outcome in _together(outcomes, context):
            result = record.describe(cell, data, seed, prepared_set.digest(folder), outcome)
            result['timings']['prepare'] = prepare_seconds
            done[seed] = result
            if processes.first():
                kept = _weights(cell, data, seed, outcome, context)
                done[seed] = result_file.write(home, result, outcome.get('predictions'), kept)
                _to_store(home, [seed], context, refused)
                checkpoint.remove(checkpoint_folder(cell, seed, context))
    return done


def _to_store(home: Path, seeds: list[int], context: Context, refused: Refused) -> None:
    """Put results where the work folder is the copy of a store; its errors, as where another one is there, are added to
    `refused`."""
    if processes.first():
        try:
            results.take(context.workdir, home, seeds, again=context.if_exists == 'overwrite')
        except RequestError as error:
            refused.append(error)


def _over_folds(
    cell: Cell,
    home: Path,
    prepared: tuple[Path, float],
    seeds: list[int],
    compiler: Compiler,
    context: Context,
    refused: Refused,
) -> Results:
    """Train every fold, and make one result of them for each seed: every group is tested once."""
    folder, split = prepared[0], cell.task.split
    assert isinstance(split, ByGroup)
    parts: list[PreparedSet] = []
    places: list[Path] = []
    for name in prepared_set.fold_names(folder, cell.task):
        one = dataclasses.replace(split, folds='', fold=name)
        fold = dataclasses.replace(cell, task=dataclasses.replace(cell.task, split=one))
        places.append(home / 'folds' / name.replace('/', '_of_').replace(':', '_'))
        _, todo = _to_do(fold, places[-1], folder, seeds, context)
        if todo:
            _seeds(fold, places[-1], prepared, todo, compiler, context, refused)
        data = prepared_set.open_set(folder, fold.task)
        parts.append(few_windows(data) if cell.debug else data)
    return {
        seed: pool.write(cell, home, parts, [place / f'seed{seed}.json' for place in places])
        for seed in (seeds if processes.first() else ())
    }


def _weights(cell: Cell, data: PreparedSet, seed: int, outcome: dict[str, Any], context: Context) -> bytes | None:
    """What is kept of a tested network; None for an estimator, a failed seed and --keep_weights=no."""
    if not context.keep_weights or 'variables' not in outcome:
        return None
    learnt_on = {
        'task': f'{cell.task.full_name}@{cell.task.version}',
        'datasets': list(dict.fromkeys((*cell.model.pretraining, *cell.dataset.name.split(JOINED)))),
        'subjects': sorted({*data.subjects[data.rows('train', 'valid')].tolist()}),
        'model': cell.model.with_options,
        'seed': seed,
    }
    return weights.to_bytes(outcome['network'], outcome['variables'], learnt_on)


def _together(outcomes: Iterator[Any], context: Context) -> Iterator[Any]:
    """The same; a stop that only some processes met (an estimator is fitted by the first one alone) stops all."""
    with contextlib.suppress(Interrupted):
        yield from outcomes
    context.guard_all()


def _finished(home: Path, seeds: list[int], digest: str, context: Context) -> dict[int, dict[str, Any]]:
    """Results that need not be computed again. Raises RequestError with --if_exists=fail."""
    done = {}
    for seed in seeds if context.if_exists != 'overwrite' else ():
        found, reason = result_file.finished(home, seed, digest)
        if reason:
            context.progress.say(reason)
        if found is not None:
            if context.if_exists == 'fail':
                raise RequestError(f'{home}/seed{seed}.json exists (--if_exists=fail)')
            done[seed] = found
    return done
