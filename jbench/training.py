"""Train the seeds of a cell, or of each of its folds, and write their results."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench import processes
from jbench.context import Context
from jbench.data.load import prepared_set, protocols
from jbench.data.load.loader import n_batches
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.sources.mixture import JOINED
from jbench.plan import places
from jbench.plan import weights as pretrained_weights
from jbench.progress import Interrupted
from jbench.results import learnt, place, pool, record, result_file, weights
from jbench.spec.cell import Cell, choosing
from jbench.spec.checkpoints import not_to_share
from jbench.spec.errors import RequestError
from jbench.spec.model import SCRATCH
from jbench.spec.pretraining import UNNAMED
from jbench.spec.recipe import PROBES, seeds_draw
from jbench.spec.task import ByGroup
from jbench.stores import checkpoints, mirror, notes, replaced, results, sets
from jbench.train import checkpoint, fit
from jbench.train.estimators import fit_estimator
from jbench.train.probe import train_probe
from jbench.train.programs import Compiler
from jbench.train.seeds import Final, checkpoint_folder, few_windows, train_network

Results = dict[int, dict[str, Any]]  # by seed
Refused = list[RequestError]  # what a store said
Others = Sequence[tuple[Cell, PreparedSet]]


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
        done, todo = to_do(cell, home, prepared[0], seeds, context)
        if todo:
            work = _over_folds if isinstance(cell.task.split, ByGroup) and cell.task.split.folds else _seeds
            with told_running(cell, context), sets.here(context.workdir, prepared[0], context.report):
                done |= work(cell, home, prepared, todo, compiler, context, refused)
        else:
            nothing_to_do(cell, context)
        to_store(home, seeds, context, refused)
        results.told(refused)
        if processes.first() and mirror.of(context.workdir) is not None:  # that of another machine may have come first
            done = {s: result_file.read(home / f'seed{s}.json') for s in done}
        return [done[s] for s in seeds if s in done]


def to_do(cell: Cell, home: Path, folder: Path, seeds: list[int], context: Context) -> tuple[Results, list[int]]:
    """Results that count, and the seeds that have none. Raises: RequestError with --if_exists=fail."""
    done, refused = {}, ''
    if processes.first():  # others could read files that it is about to write
        try:
            done = _finished(home, seeds, prepared_set.digest(folder), context)
        except RequestError as error:
            refused = str(error)
        for seed in seeds if context.if_exists == 'skip' else ():
            checkpoint.remove(checkpoint_folder(cell, seed, context))
    if processes.anywhere(bool(refused)):
        raise RequestError(refused or 'the first process refuses, and says why')
    todo = [s for s, again in zip(seeds, processes.agreed(np.isin(seeds, [*done], invert=True)), strict=True) if again]
    return done, todo


def told_running(cell: Cell, context: Context) -> contextlib.AbstractContextManager[None]:
    """Inside, the store of the work folder, if there is one, says that a cell runs."""
    return notes.running(context.workdir if processes.first() else None, cell.key)


def nothing_to_do(cell: Cell, context: Context) -> None:
    """Say that the results of a cell are there."""
    context.progress.say(f'{cell.title}: finished before, nothing to compute')


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
    if seeds_draw(cell.task.recipe) and len(seeds) > 1:  # each has training windows of its own
        each = (_seeds(cell, home, prepared, [seed], compiler, context, refused) for seed in seeds)
        return {seed: result for one in each for seed, result in one.items()}
    folder = prepared[0]
    final, chosen = None, dict[int, dict[str, Any]]()
    if cell.task.recipe.final == 'all':
        final, chosen = _chosen(cell, prepared, seeds, compiler, context)
    data = prepared_set.open_set(folder, protocols.of_seed(cell.task, seeds[0]))
    if cell.debug:
        data = few_windows(data)
    outcomes: Iterator[tuple[int, dict[str, Any]]]
    if cell.model.kind == 'network':
        by = train_probe if cell.task.recipe.adaptation in PROBES else train_network
        able = [s for s in seeds if final is None or final.epochs[s]]
        outcomes = itertools.chain(_unable(seeds, able), by(cell, data, able, compiler, context, final=final))
    else:
        outcomes = fit_estimator(cell, data, seeds, context) if processes.first() else iter(())
    done = {}
    with checkpoints.shared(context.workdir, cell.key, fresh=context.if_exists == 'skip'):
        for seed, outcome in stopped_together(outcomes, context):
            more = {'final': chosen[seed], 'warnings': [_without_validation(chosen[seed])]} if seed in chosen else {}
            done[seed] = written(cell, home, data, prepared, seed, outcome, more, context, refused)
            forget(cell, seed, context)
    return done


def forget(cell: Cell, seed: int, context: Context) -> None:
    """Remove the checkpoint of a seed whose results are written."""
    if processes.first():
        checkpoint.remove(checkpoint_folder(cell, seed, context))


def written(
    cell: Cell,
    home: Path,
    data: PreparedSet,
    prepared: tuple[Path, float],
    seed: int,
    outcome: dict[str, Any],
    more: Mapping[str, Any],
    context: Context,
    refused: Refused,
    others: Others = (),
) -> dict[str, Any]:
    """The result of a seed, as its file has it; `more`: what it says beside, its warnings first; `others`: what the
    same encoder learnt from, too."""
    folder, prepare_seconds = prepared
    result = record.describe(cell, data, seed, prepared_set.digest(folder), outcome)
    result['timings']['prepare'] = prepare_seconds
    result |= {**more, 'warnings': [*more.get('warnings', ()), *result['warnings']]}
    if published := pretrained_weights.origin(cell.model, context.data_dir):
        result['checkpoint'] = published
    if processes.first():
        kept = _weights(cell, data, seed, outcome, context, others)
        places.keep(cell.model, context.workdir)
        result = result_file.write(home, result, outcome.get('predictions'), kept)
        to_store(home, [seed], context, refused)
    return result


def _chosen(
    cell: Cell, prepared: tuple[Path, float], seeds: list[int], compiler: Compiler, context: Context
) -> tuple[Final, dict[int, dict[str, Any]]]:
    """How long seeds learn without a validation part, as it chose before: in results that are there, or are made now.

    Returns: the epochs of each seed, 0 where that run failed; and, in the first process, what results say of it.

    Raises: as `train`.
    """
    before, recipe = choosing(cell), cell.task.recipe
    again = context if context.if_exists in ('skip', 'resume') else context._replace(if_exists='resume')
    found = {r['seed']: r for r in train(before, prepared, seeds, compiler, again)}
    monitor = fit.monitor_of(cell.task)
    chosen = {
        seed: {'epochs': best + 1, **{k: r[k] for k in ('key', 'sha256')}}
        for seed, r in found.items()
        if processes.first() and r['status'] != 'failed' and (best := learnt.best_epoch(r, monitor)) is not None
    }
    n_train = {seed: r['n_records']['train'] for seed, r in found.items()}
    rows = [(chosen[s]['epochs'] if s in chosen else 0, n_train.get(s, 0)) for s in seeds]
    epochs, windows = processes.agreed(np.array(rows, np.int64)).T.tolist()
    most = fit.length(recipe, n_batches(windows[0], recipe.batch_size)).most
    return Final(most, dict(zip(seeds, epochs, strict=True))), chosen


def _unable(seeds: list[int], able: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The outcomes of seeds whose epochs nobody could choose."""
    reason = 'recipe.final=all: the run that was to choose the epochs failed'
    return ((seed, {'failed': reason}) for seed in seeds if seed not in able)


def _without_validation(chosen: dict[str, Any]) -> str:
    n = chosen['epochs']
    return (
        f'final: learnt from the training and the validation part for {n} epoch{"s" * (n != 1)}, as many as validation '
        f'chose in the run {chosen["key"]}; it has no validation score'
    )


def to_store(home: Path, seeds: list[int], context: Context, refused: Refused) -> None:
    """Put results into the store of the work folder, and forget what they replaced; its errors go to `refused`."""
    if processes.first():
        replaced.forget(home)
        try:
            results.take(context.workdir, home, seeds)
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
    folder, parts, homes = prepared[0], list[PreparedSet](), list[Path]()
    for name in prepared_set.fold_names(folder, cell.task):
        fold = fold_of(cell, name)
        homes.append(place.fold_folder(home, name))
        _, todo = to_do(fold, homes[-1], folder, seeds, context)
        if todo:
            _seeds(fold, homes[-1], prepared, todo, compiler, context, refused)
        else:
            nothing_to_do(fold, context)
        data = prepared_set.open_set(folder, fold.task)
        parts.append(few_windows(data) if cell.debug else data)
    return {
        seed: pool.write(cell, home, parts, [at / f'seed{seed}.json' for at in homes])
        for seed in (seeds if processes.first() else ())
    }


def fold_of(cell: Cell, name: str) -> Cell:
    """A fold of a cross-validation as a cell of its own, by its name as `split.fold` has it."""
    assert isinstance(cell.task.split, ByGroup)
    split = dataclasses.replace(cell.task.split, folds='', fold=name)
    return dataclasses.replace(cell, task=dataclasses.replace(cell.task, split=split))


def _weights(
    cell: Cell, data: PreparedSet, seed: int, outcome: dict[str, Any], context: Context, others: Others
) -> bytes | None:
    """What is kept of a tested network; None for an estimator, a failed seed and --keep_weights=no."""
    if not context.keep_weights or 'variables' not in outcome:
        return None
    begun = cell.model.weights not in ('', SCRATCH)
    before = cell.model.pretraining or ((UNNAMED,) if begun else ())
    names = [n for c in (*(c for c, _ in others), cell) for n in c.dataset.name.split(JOINED)]
    read = [data, *(d for c, d in others if c.dataset == cell.dataset)]
    learnt_on = {
        'task': f'{cell.task.full_name}@{cell.task.version}',
        'datasets': list(dict.fromkeys((*before, *names))),
        'subjects': sorted({subject for d in read for subject in learnt_from(d)}),
        'model': cell.model.with_options,
        'seed': seed,
        **({'places': cell.model.places_digest} if cell.model.places else {}),
    }
    if terms := not_to_share(cell.model):
        store = mirror.of(context.workdir)
        where = f'; it is put into {store.url}, too' if store else ''
        context.progress.say_once(f'{cell.model.full_name}: {terms}{where}')
        learnt_on['licence'] = terms
    return weights.to_bytes(outcome['network'], outcome['variables'], learnt_on)


def learnt_from(data: PreparedSet) -> set[str]:
    """Subjects of the training and the validation part."""
    return {*data.subjects[data.rows('train', 'valid')].tolist()}


def stopped_together(outcomes: Iterator[Any], context: Context) -> Iterator[Any]:
    """The same; a stop that only some processes met (an estimator is fitted by the first one alone) stops all."""
    with contextlib.suppress(Interrupted):
        yield from outcomes
    context.guard_all()


def _finished(home: Path, seeds: list[int], digest: str, context: Context) -> dict[int, dict[str, Any]]:
    """Results that need not be computed again. Raises RequestError with --if_exists=fail."""
    done = {}
    for seed in seeds:
        found, reason = result_file.finished(home, seed, digest)
        if reason:
            context.progress.say(reason)
        if found is not None:
            if context.if_exists == 'fail':
                raise RequestError(f'{home}/seed{seed}.json exists (--if_exists=fail)')
            done[seed] = found
    return done
