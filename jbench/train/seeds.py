"""The seeds of a cell: a network trained for each."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jbench import epochs, processes
from jbench.context import Context
from jbench.data.load import loader, prepared_set, sampling
from jbench.models import pretrained
from jbench.models.model import Model
from jbench.spec.cell import Cell
from jbench.spec.checkpoints import CHECKPOINTS
from jbench.spec.errors import RequestError
from jbench.spec.model import SCRATCH, ModelSpec
from jbench.spec.recipe import Recipe
from jbench.train import adaptation, fit, optim, parallel, stream, trainable
from jbench.train.programs import Compiler, asked_signal, build
from jbench.version import __version__

DEBUG_WINDOWS = 256  # of each split, with --debug
LONG = 1.0  # s of compiling that need no word


def few_windows(data: prepared_set.PreparedSet) -> prepared_set.PreparedSet:
    """Some windows of each split, for --debug: drawn, since every n-th one may always be of the same class."""
    split = np.full_like(data.split, '')
    for name in ('train', 'valid', 'test'):
        split[np.random.default_rng(0).permutation(data.rows(name))[:DEBUG_WINDOWS]] = name
    return dataclasses.replace(data, split=split)


def checkpoint_folder(cell: Cell, seed: int, context: Context) -> Path:
    """Where an interrupted seed of a cell goes on."""
    return context.workdir / 'checkpoints' / cell.key / f'seed{seed}'


class Learner(NamedTuple):
    """What is trained of a cell: its own model by its own recipe, or a head on features."""

    model: ModelSpec
    recipe: Recipe


class Final(NamedTuple):
    """How long networks learn that are trained without a validation part (`recipe.final`)."""

    most: int  # epochs of the whole schedule, as it was while validation chose
    epochs: Mapping[int, int]  # by seed, after which training ends


def train_network(
    cell: Cell,
    data: prepared_set.PreparedSet,
    seeds: list[int],
    compiler: Compiler,
    context: Context,
    *,
    learner: Learner | None = None,
    final: Final | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (seed, outcome) of each trained seed; `learner`: in the place of the cell's own model and recipe; `final`:
    nothing is selected, the network after its last epoch is tested."""
    model, recipe = learner or Learner(cell.model, cell.task.recipe)
    if final is not None:
        recipe = dataclasses.replace(recipe, max_epochs=final.most, least_steps=0)
    name, read = cell.title, loaders(data, model, recipe)
    network = build(model, asked_signal(model, data.signal), data.n_out, recipe, recipe.frames)
    begin = begin_from(cell, network, context) if learner is None else lambda drawn: drawn
    began, wait = time.monotonic(), while_compiling(name, context)
    parts = [
        _Part(r, adaptation.resolved(r, network), compiler.get(model, data.signal, data.n_out, r, data.length, wait))
        for r in adaptation.stages(recipe, network)
    ]
    programs = answering(parts[-1].programs, network, data, model, recipe)
    compiled = time.monotonic() - began
    context.progress.finish(f'compiling {name}', f'took {compiled:.0f} s')
    for seed in seeds:
        drawn = begin(parts[-1].programs.draw(np.uint32(seed)))
        began = time.monotonic()
        try:
            if model.trained:
                limit = None if final is None else final.epochs[seed]
                fitted = _fit(cell, drawn, parts, read, seed, context, limit=limit)
            else:
                start = _start(parts[-1], drawn, read.train)
                stats = fit.warm_batch_stats(parts[-1].programs, start, read.train)
                fitted = fit.Fitted(stats, [], -1, time.monotonic() - began, [])
        except fit.NonFinite as error:
            yield seed, {'failed': str(error)}
            continue
        best = f'the best was {fitted.best_epoch + 1}' if final is None else 'as many as validation chose before'
        context.progress.finish(f'{name} seed {seed}', f'stopped after {len(fitted.history)} epochs, {best}')
        learnt = Learner(model, parts[-1].resolved)
        yield seed, outcome(learnt, network, fitted, programs, read, compiled, context)
        compiled = 0.0


class Loaders(NamedTuple):
    """Of the parts of a set."""

    train: loader.Loader
    valid: loader.Loader
    test: loader.Loader


def loaders(data: prepared_set.PreparedSet, model: ModelSpec, recipe: Recipe) -> Loaders:
    """What a network learns from, is selected by and is tested on; windows of a stream are tested alone."""
    masked, sampler = 'channel_mask' in model.asks, sampling.SAMPLERS[recipe.sampler]
    sizes = (('valid', recipe.batch_size), ('test', _tested_by(data, recipe).batch_size))
    valid, test = (loader.Loader(data, (s,), size, channel_mask=masked) for s, size in sizes)
    sampling.require_answers(data.kind, valid.y, data.subjects[valid.rows])
    train = loader.Loader(data, ('train',), recipe.batch_size, sampler=sampler, channel_mask=masked)
    return Loaders(train, valid, test)


def _tested_by(data: prepared_set.PreparedSet, recipe: Recipe) -> Recipe:
    return stream.alone(recipe) if data.places else recipe


def answering(
    programs: parallel.Programs, network: Model, data: prepared_set.PreparedSet, model: ModelSpec, recipe: Recipe
) -> parallel.Programs:
    """The programs, `predict` being that of the test."""
    if not data.places:
        return programs
    signal = asked_signal(model, data.signal)
    alone = parallel.compile_predict(network, _tested_by(data, recipe), signal, data.n_out, data.length)
    return programs._replace(predict=alone)


def outcome(
    learner: Learner,
    network: Model,
    fitted: fit.Fitted,
    programs: parallel.Programs,
    read: Loaders,
    compiled: float,
    context: Context,
) -> dict[str, Any]:
    """What a trained network answers on the test part, and how it came about; `learner.recipe` is the resolved one,
    `compiled` the seconds that compiling took."""
    began = time.monotonic()
    outputs = parallel.predict(programs, fitted.variables, read.test, context.guard_all)
    if not np.isfinite(outputs).all():
        remedy = f'; {fit.LOWER_RATE}' if learner.model.trained else ''
        return {'failed': f'outputs on the test part are not finite{remedy}'}
    params = fitted.variables['params']
    trained = trainable.divide(params, learner.recipe.trainable)[0] if learner.model.trained else {}
    total, learnt = (sum(a.size for a in jax.tree.leaves(tree)) for tree in (params, trained))
    test, predictions = time.monotonic() - began, read.test.prepared.predictions(read.test.rows, outputs)
    if isinstance(predictions['y'], np.ndarray):  # large targets stay where they lie
        predictions['y'] = read.test.y
    return {
        'predictions': predictions,
        'network': network,
        'variables': fitted.variables,  # which were tested
        'history': fitted.history,
        'resumed_at': fitted.resumed_at,
        'best_epoch': fitted.best_epoch,
        'steps_per_epoch': loader.n_batches(len(read.train), learner.recipe.batch_size),
        'n_parameters': {'total': total, 'trainable': learnt},
        'timings': {
            'compile': compiled,
            'fit': fitted.seconds,
            'test': test,
            'total': compiled + fitted.seconds + test,
        },
    }


class _Part(NamedTuple):
    """A part of a training: all of it, or one of two that follow one another."""

    recipe: Recipe
    resolved: Recipe  # what its program was compiled for
    programs: parallel.Programs


def _start(part: _Part, drawn: Any, train: loader.Loader) -> Any:
    """The state before the first step of a part."""
    batches = loader.n_batches(len(train), part.recipe.batch_size)
    tx = optim.make(part.resolved, batches * fit.length(part.recipe, batches).most)
    return parallel.new_state(drawn, tx, fit.loss_weights(part.recipe, train))


def _fit(
    cell: Cell,
    drawn: Any,
    parts: list[_Part],
    read: Loaders,
    seed: int,
    context: Context,
    *,
    limit: int | None,
) -> fit.Fitted:
    """Train in one part, or in two: the second goes on from the best epoch of the first, as one history; with `limit`
    for so many epochs of the schedule, without validation."""
    train, valid, _ = read
    batches = loader.n_batches(len(train), parts[-1].recipe.batch_size)
    most = [fit.length(part.recipe, batches).most for part in parts]
    done: list[fit.Fitted] = []
    for k, part in enumerate(parts):
        before = sum(len(f.history) for f in done)
        watch = watch_of(cell, train.prepared, seed, sum(most), context)
        if len(parts) > 1:
            watch = _of_part(watch, k, before)
        metric = fit.monitor_of(cell.task)
        start = _start(part, drawn if part is parts[-1] else parallel.copy(drawn), train)  # the second needs it, too
        by = part.recipe
        if limit is None:
            fitted = fit.fit(part.programs, start, train, valid, by, metric, watch)
        else:
            by = dataclasses.replace(by, max_epochs=limit)
            fitted = fit.fit(part.programs, start, train, None, by, metric, watch)
        drawn = drawn | fitted.variables
        history = [h | {'epoch': h['epoch'] + before} for h in fitted.history]
        resumed = [e + before for e in fitted.resumed_at if e < len(history) or len(parts) == 1]  # else it was over
        done.append(fitted._replace(history=history, resumed_at=resumed, best_epoch=fitted.best_epoch + before))
    return done[-1]._replace(
        history=[h for f in done for h in f.history],
        resumed_at=[epoch for f in done for epoch in f.resumed_at],
        seconds=sum(f.seconds for f in done),
    )


def _of_part(watch: fit.Watch, k: int, before: int) -> fit.Watch:
    """The same for one part of several: it saves apart, at its end too, and counts the epochs before it."""

    def progress(facts: dict[str, Any]) -> None:
        watch.progress(facts | {'epoch': facts['epoch'] + before})

    folder = None if watch.folder is None else watch.folder / f'part{k}'
    return dataclasses.replace(watch, progress=progress, folder=folder, save_end=k == 0)


def begin_from(cell: Cell, network: Model, context: Context) -> Callable[[Any], Any]:
    """What becomes of a drawn state: its variables are those of the pretrained weights, where there are some.

    Raises: RequestError for weights that are not here, or do not fit the network: at once, before anything compiles.
    """
    digest = cell.model.weights
    if digest == SCRATCH or (not digest and cell.model.name not in CHECKPOINTS):
        return lambda drawn: drawn
    if digest not in context.weights:
        raise RequestError(f'{cell.title}: no weights with SHA-256 {digest} are here; --weights=FILE names them')
    path = context.weights[digest]
    found = pretrained.arrays(path, digest, context.workdir / 'weights')

    def begin(drawn: Any, say: Callable[[str], None] = lambda text: None) -> Any:
        variables = {name: drawn[name] for name in ('params', 'batch_stats')}
        return drawn | pretrained.begin(network, found, variables, f'{cell.model.name} from {path}', say=say)

    empty = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(network.init, jax.random.key(0)))
    begin(empty, context.progress.say_once)
    return begin


def while_compiling(name: str, context: Context) -> Callable[[], None]:
    """Says what takes so long, and looks at signals; several processes stop together, once they train."""

    began = time.monotonic()

    def look() -> None:
        if time.monotonic() - began > LONG:
            context.progress.update(f'compiling {name}', 0, 1)
        if jax.process_count() == 1:
            context.guard()

    return look


def watch_of(cell: Cell, data: prepared_set.PreparedSet, seed: int, n_epochs: int, context: Context) -> fit.Watch:
    """Progress, log of epochs, stop signal and checkpoints of one seed."""
    metric = fit.monitor_of(cell.task)
    log = epochs.log_file(context.workdir, cell.key, seed)
    who = {'task': cell.task.full_name, 'task_version': cell.task.version, 'dataset': cell.dataset.name}
    who |= {'model': cell.model.full_name, 'key': cell.key, 'seed': seed, 'metric': metric}

    def progress(facts: dict[str, Any]) -> None:
        if processes.first():
            epochs.append(log, who | facts)
        context.progress.update(
            f'{cell.title} seed {seed}',
            int(facts['epoch']) + 1,
            n_epochs,
            f'loss {facts["train_loss"]:.3f}'
            + (f' valid {metric} {facts["monitor"]:.3f} (best {facts["best"]:.3f})' if 'monitor' in facts else ''),
        )

    versions = {'jax': jax.__version__, 'jbench': __version__}
    machine = processes.devices() | {'prepared': prepared_set.digest(data.folder)} | versions
    return fit.Watch(progress, context.progress.say, context.asked, checkpoint_folder(cell, seed, context), machine)
