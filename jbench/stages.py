"""The stages of a cell: prepare its windows, train its seeds, write its results. Data move left to right only."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jbench
from jbench import checkpoint, fit, optim, parallel, provenance, results
from jbench.compiler import Compiler
from jbench.data import fs, loader, prepared_set
from jbench.fit import Interrupted
from jbench.models import factory
from jbench.models.baselines import Part, Training
from jbench.progress import Progress, StopSignal
from jbench.spec import Cell, RequestError

DEBUG_WINDOWS = 256  # of each split, with --debug


class Context(NamedTuple):
    """What every stage needs to know of this run."""

    workdir: Path
    data_dir: Path | None
    progress: Progress
    stop: StopSignal
    if_exists: str  # 'skip' | 'resume' | 'overwrite' | 'fail'

    def guard(self) -> None:
        """Raises Interrupted if a signal asked this process to stop."""
        if self.stop():
            raise Interrupted

    def asked(self) -> bool:
        """Whether a signal asked any of the processes to stop; while they train, all ask at the same moment."""
        return parallel.anywhere(self.stop())

    def guard_all(self) -> None:
        """As `guard`, for all processes together."""
        if self.asked():
            raise Interrupted


def prepare(cell: Cell, context: Context) -> tuple[Path, float]:
    """The folder of the prepared set of a cell, made if it is not there, and the seconds that took.

    Raises: RequestError for bad data; Interrupted.
    """
    began = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        context.guard()
        context.progress.update(what, done, total)

    where = (context.data_dir, context.workdir)
    folder = prepared_set.ready(cell.task, cell.dataset, *where, report, context.progress.say)
    return folder, time.monotonic() - began


def train(
    cell: Cell, prepared: tuple[Path, float], seeds: list[int], compiler: Compiler, context: Context
) -> list[dict[str, Any]]:
    """All seeds of a cell; finished ones are skipped. Returns their results.

    One run works on a cell, others wait for it and find its results.

    Raises: RequestError, Interrupted.
    """
    home = results.result_dir(context.workdir, cell)
    with parallel.locked(home / '.lock', context.guard_all):
        return _train(cell, prepared, seeds, compiler, context)


def _train(
    cell: Cell, prepared: tuple[Path, float], seeds: list[int], compiler: Compiler, context: Context
) -> list[dict[str, Any]]:
    folder, prepare_seconds = prepared
    home = results.result_dir(context.workdir, cell)
    digest = prepared_set.digest(folder)
    done, refused = {}, ''
    if parallel.first():  # others could read files that it is about to write
        try:
            done = _finished(home, seeds, digest, context)
        except RequestError as error:
            refused = str(error)
        for seed in seeds if context.if_exists in ('skip', 'overwrite') else ():
            checkpoint.remove(_checkpoints(cell, seed, context))
    if parallel.anywhere(bool(refused)):
        raise RequestError(refused or 'the first process refuses, and says why')
    todo = [s for s, again in zip(seeds, parallel.agreed(np.isin(seeds, [*done], invert=True)), strict=True) if again]
    if not todo:
        context.progress.say(f'{cell.title}: finished before, nothing to compute')
    if todo:
        data = prepared_set.open_set(folder, cell.task)
        if cell.debug:
            data = _few(data)
        if cell.spec.kind == 'network':
            outcomes = _train_network(cell, data, todo, compiler, context)
        else:
            outcomes = _fit_estimator(cell, data, todo, context) if parallel.first() else iter(())
        for seed, outcome in _together(outcomes, context):
            result = provenance.describe(cell, data, seed, digest, outcome)
            result['timings']['prepare'] = prepare_seconds
            done[seed] = result
            if parallel.first():
                done[seed] = results.write(home, result, outcome.get('predictions'))
                checkpoint.remove(_checkpoints(cell, seed, context))
    return [done[s] for s in seeds if s in done]


def _together(outcomes: Iterator[Any], context: Context) -> Iterator[Any]:
    """The same; a stop that only some processes met (an estimator is fitted by the first one alone) stops all."""
    with contextlib.suppress(Interrupted):
        yield from outcomes
    context.guard_all()


def _finished(home: Path, seeds: list[int], digest: str, context: Context) -> dict[int, dict[str, Any]]:
    """Results that need not be computed again. Raises RequestError with --if_exists=fail."""
    done = {}
    for seed in seeds if context.if_exists != 'overwrite' else ():
        found, reason = results.finished(home, seed, digest)
        if reason:
            context.progress.say(reason)
        if found is not None:
            if context.if_exists == 'fail':
                raise RequestError(f'{home}/seed{seed}.json exists (--if_exists=fail)')
            done[seed] = found
    return done


def failure(error: Exception, cell: Cell, context: Context) -> str:
    """One line on a cell that broke, its traceback in a file. A smaller microbatch is never taken by itself: the
    statistics of the batches would be others, and so would the score."""
    reason = f'{type(error).__name__}: {error}'
    if isinstance(error, MemoryError) or 'RESOURCE_EXHAUSTED' in reason:
        size = cell.task.recipe.batch_size
        reason = f'memory ran out; a smaller batch needs less: --set recipe.batch_size=N, below {size}'
    try:
        log = fs.write_atomic(context.workdir / 'errors' / f'{cell.key}.log', traceback.format_exc().encode())
        where = f'the details are in {log}'
    except RequestError as full:
        where = str(full)
    return f'failed: {cell.title}: {reason}; {where}'


def needs_training(cell: Cell, seeds: list[int], context: Context) -> bool:
    """False if a result file of every seed is there (whether it counts is looked at later)."""
    home = results.result_dir(context.workdir, cell)
    return context.if_exists == 'overwrite' or not all((home / f'seed{s}.json').exists() for s in seeds)


def stored(cell: Cell, seeds: list[int], context: Context) -> list[dict[str, Any]]:
    """Whole results of a cell that are there, for a report without training; says which are missing or damaged.

    Raises: RequestError if none is whole and one is damaged.
    """
    found, damaged, missing = [], [], []
    for seed in seeds:
        try:
            found.append(results.read(results.result_dir(context.workdir, cell) / f'seed{seed}.json'))
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


def _few(data: prepared_set.PreparedSet) -> prepared_set.PreparedSet:
    """Some windows of each split, for --debug: drawn, since every n-th one may always be of the same class."""
    split = np.full_like(data.split, '')
    for name in ('train', 'valid', 'test'):
        split[np.random.default_rng(0).permutation(data.rows(name))[:DEBUG_WINDOWS]] = name
    return dataclasses.replace(data, split=split)


def _checkpoints(cell: Cell, seed: int, context: Context) -> Path:
    return context.workdir / 'checkpoints' / cell.key / f'seed{seed}'


def _train_network(
    cell: Cell, data: prepared_set.PreparedSet, seeds: list[int], compiler: Compiler, context: Context
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (seed, outcome) of each trained seed."""
    recipe, name = cell.task.recipe, cell.title
    valid, test = (loader.Loader(data, (s,), recipe.batch_size) for s in ('valid', 'test'))
    train = loader.Loader(data, ('train',), recipe.batch_size, weigh=fit.SAMPLERS[recipe.sampler])
    began = time.monotonic()
    programs = compiler.get(cell.spec, data.signal, data.n_out, recipe, data.length)
    compiled = time.monotonic() - began
    steps = loader.n_batches(len(train), recipe.batch_size) * recipe.max_epochs
    tx = optim.adamw(recipe, steps)
    for seed in seeds:
        start = parallel.new_state(programs.draw(np.uint32(seed)), tx, fit.loss_weights(recipe, train))
        watch = _watch(cell, data, seed, name, context)
        began = time.monotonic()
        try:
            if cell.spec.trained:
                fitted = fit.fit(programs, start, train, valid, recipe, fit.monitor_of(cell.task), watch)
            else:
                fitted = fit.Fitted(fit.touch(programs, start, train), [], -1, time.monotonic() - began, 0)
        except fit.NonFinite as error:
            yield seed, {'failed': str(error)}
            continue
        context.progress.finish(
            f'{name} seed {seed}',
            f'stopped after {len(fitted.history)} epochs, the best was {fitted.best_epoch + 1}',
        )
        tested = time.monotonic()
        outputs = parallel.predict(programs, fitted.variables, test, context.guard_all)
        if not np.isfinite(outputs).all():
            yield seed, {'failed': 'outputs on the test part are not finite'}
            continue
        total = sum(a.size for a in jax.tree.leaves(start['params']))
        yield (
            seed,
            {
                'predictions': provenance.predictions(data, test.rows, outputs) | {'y': test.y},
                'history': fitted.history,
                'resumes': fitted.resumes,
                'n_parameters': {'total': total, 'trainable': total},
                'timings': {
                    'compile': compiled,
                    'fit': fitted.seconds,
                    'test': time.monotonic() - tested,
                    'total': compiled + fitted.seconds + time.monotonic() - tested,
                },
            },
        )
        compiled = 0.0


def _watch(cell: Cell, data: prepared_set.PreparedSet, seed: int, name: str, context: Context) -> fit.Watch:
    """Progress, stop signal and checkpoints of one seed."""
    metric, total = fit.monitor_of(cell.task), cell.task.recipe.max_epochs

    def progress(facts: dict[str, Any]) -> None:
        context.progress.update(
            f'{name} seed {seed}',
            int(facts['epoch']) + 1,
            total,
            f'loss {facts["train_loss"]:.3f} valid {metric} {facts["monitor"]:.3f} (best {facts["best"]:.3f})',
        )

    versions = {'jax': jax.__version__, 'jbench': jbench.__version__}
    machine = provenance.devices() | {'prepared': data.folder.name} | versions
    return fit.Watch(progress, context.progress.say, context.asked, _checkpoints(cell, seed, context), machine)


def _fit_estimator(
    cell: Cell, data: prepared_set.PreparedSet, seeds: list[int], context: Context
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (seed, outcome) of an estimator: fitted once, the same for every seed."""
    rows = {'train': data.rows('train'), 'valid': data.rows('valid'), 'both': data.rows('train', 'valid')}
    test_rows = data.rows('test')
    given = Training(
        **{k: Part(prepared_set.View(data, r), data.y[r], data.about(r)) for k, r in rows.items()},
        kind=data.kind,
        n_out=data.n_out,
        signal=data.signal,
        metric=cell.task.metric,
        published=cell.task.recipe.published,
        classes=tuple(prepared_set.class_names(cell.dataset, data)),
    )
    what = cell.title
    context.progress.update(what, 0, 1)
    began = time.monotonic()
    predict = factory(cell.spec)(given)
    fitted = time.monotonic()
    context.guard()
    outputs, shape = np.asarray(predict(prepared_set.View(data, test_rows))), (len(test_rows), data.n_out)
    if data.kind == 'keystrokes' and outputs.ndim == 2:  # a path of any number of frames
        shape = (len(test_rows), outputs.shape[1])
    if outputs.shape != shape or outputs.dtype.kind not in 'biuf' or not np.isfinite(outputs).all():
        raise RequestError(
            f'model {cell.model}: expected finite numbers {list(shape)} ([windows, n_out]) as its outputs on the test '
            f'part, got {outputs.dtype} {list(outputs.shape)}' + ', not all finite' * (outputs.shape == shape)
        )
    tested = time.monotonic()
    context.progress.update(what, 1, 1)
    predictions = provenance.predictions(data, test_rows, outputs)
    for seed in seeds:
        context.guard()
        yield (
            seed,
            {
                'predictions': predictions,
                'timings': {'compile': 0.0, 'fit': fitted - began, 'test': tested - fitted, 'total': tested - began},
            },
        )
        began = fitted = tested  # the other seeds took no time
