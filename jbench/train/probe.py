"""Train a head on the features of an encoder that stays as it is, each of which is computed once (frozen.py)."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from jbench import targets
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.data.load.loader import Loader
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.prepare.workers import free_memory
from jbench.models.foundation import probes
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.spec.model import Signal
from jbench.spec.recipe import DEFAULT, Recipe
from jbench.train import adaptation, fit, frozen, parallel, ridge
from jbench.train.programs import Compiler, asked_signal, build
from jbench.train.seeds import Final, Learner, begin_from, train_network

# fields that say nothing to a head
OF_ENCODER = ('adaptation', 'layer', 'aggregation', 'head', 'precision', 'rotation')
ROOM = 4  # float64 tables [d, d] that a ridge takes: sums, their part, eigenvectors, and room to work
BLOCK = 4096  # windows that are summed at once


def train_probe(
    cell: Cell,
    data: PreparedSet,
    seeds: list[int],
    compiler: Compiler,
    context: Context,
    *,
    final: Final | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (seed, outcome) of each seed of a cell whose recipe asks for a probe; `final`: as of `train_network`.

    The outcome is that of the encoder with its head, as one network. What weights do not say of an encoder is drawn by
    the seed, and then features are those of one seed.

    Raises: RequestError for a network that is no encoder; as `frozen.ready`.
    """
    recipe, signal = cell.task.recipe, asked_signal(cell.model, data.signal)
    encoder = encoder_of(cell, signal, data.n_out)
    attached = adaptation.adapted(encoder, signal, data.n_out, recipe, parallel.AXIS)
    unread = {name.removeprefix('encoder.') for name in attached.unread}
    draw, begin = parallel.draw_program(encoder), begin_from(cell, encoder, context)
    shape, own = (signal, data.n_out, data.length), _of_encoder(recipe)
    program = functools.cache(lambda: parallel.compile_predict(encoder, own, *shape, feature=probes.FEATURE))
    for seed in seeds:
        began = time.monotonic()
        drawn = begin(draw(np.uint32(seed)))
        whole = parallel.copy({name: drawn[name] for name in ('params', 'batch_stats')})
        bare = probes.without_head(encoder, whole, unread)
        features = frozen.ready(data, _encoder(cell, (bare, whole), program), context)
        seconds = time.monotonic() - began
        train = _closed_form if recipe.adaptation == 'ridge_probe' else partial(_by_steps, final=final)
        outcome = train(cell, features, seed, compiler, context)
        yield seed, _joined(outcome, attached, (encoder, whole), seconds)


def encoder_of(cell: Cell, signal: Signal, n_out: int) -> Model:
    """The encoder of a probe alone, whose feature `penultimate` is what the head reads."""
    recipe = cell.task.recipe
    return probes.tapped(build(cell.model, signal, n_out, _of_encoder(recipe), recipe.frames), recipe)


def _of_encoder(recipe: Recipe) -> Recipe:
    return dataclasses.replace(learnt_by(recipe), precision=recipe.precision)


def learnt_by(recipe: Recipe) -> Recipe:
    """The recipe of a head alone, which is small: it computes in float32 what an encoder may not."""
    return dataclasses.replace(recipe, **{name: getattr(DEFAULT, name) for name in OF_ENCODER})


def _encoder(
    cell: Cell, variables: tuple[Variables, Variables], program: Callable[[], Callable[..., Any]]
) -> frozen.Encoder:
    return frozen.Encoder(
        cell.title,
        cell.model.full_name,
        cell.model.version,
        *variables,
        program,
        cell.task.recipe.batch_size,
        'channel_mask' in cell.model.asks,
        cell.task.recipe.precision,
        _feature(cell.task.recipe),
        cell.model.places_digest,
    )


def _feature(recipe: Recipe) -> str:
    """What a head reads of an encoder: 'penultimate', 'tokens mean'."""
    how = recipe.aggregation
    return recipe.layer + (f' {how}' if how != DEFAULT.aggregation else '')


def _by_steps(
    cell: Cell, features: PreparedSet, seed: int, compiler: Compiler, context: Context, *, final: Final | None
) -> dict[str, Any]:
    """The outcome of a head that is trained as networks are."""
    recipe = cell.task.recipe
    learner = Learner(probes.head_of(recipe), learnt_by(recipe))
    ((_, outcome),) = train_network(cell, features, [seed], compiler, context, learner=learner, final=final)
    return outcome


def _closed_form(cell: Cell, features: PreparedSet, seed: int, compiler: Compiler, context: Context) -> dict[str, Any]:
    """The outcome of a head that is computed, not trained; of every seed the same."""
    recipe, began = cell.task.recipe, time.monotonic()
    rows = features.rows('train')
    y, weights = _taught(features, rows)
    _check_room(features.signal.n_chans)

    def blocks() -> Iterator[ridge.Block]:
        for first in range(0, len(rows), BLOCK):
            context.guard_all()
            part = slice(first, first + BLOCK)
            yield prepared_set.read(features, rows[part], None)[..., 0], y[part], weights[part]

    found = ridge.lines(ridge.sums(blocks()))
    valid, test = (Loader(features, (s,), recipe.batch_size) for s in ('valid', 'test'))
    x, metric = prepared_set.read(features, valid.rows, None)[..., 0], fit.monitor_of(cell.task)
    sign = 1.0 if METRICS[metric].better == 'higher' else -1.0

    def score(line: ridge.Line) -> float | None:
        value = fit.monitor(valid, features.unscaled(x @ line.weight.T + line.bias), metric)
        return None if value is None else sign * value

    place = ridge.best(found, score)
    if place < 0:
        return {'failed': f'{metric} on the validation part was never defined'}
    context.progress.say(f'{cell.title}: the penalty of the ridge probe is {ridge.PENALTIES[place]:g}')
    out = {name: np.asarray(a, np.float32) for name, a in found[place]._asdict().items()}
    variables: Variables = {'params': {'out': out}, 'batch_stats': {}}
    fitted = time.monotonic()
    x = prepared_set.read(features, test.rows, None)[..., 0]
    outputs = features.unscaled(np.asarray(x @ out['weight'].T + out['bias'], np.float32))
    tested, size = time.monotonic(), sum(a.size for a in out.values())
    return {
        'predictions': features.predictions(test.rows, outputs),
        'variables': variables,
        'n_parameters': {'total': size, 'trainable': size},
        'timings': {'compile': 0.0, 'fit': fitted - began, 'test': tested - fitted, 'total': tested - began},
    }


def _check_room(width: int) -> None:
    """Refuse features whose products do not fit in memory. Raises: RequestError."""
    n_bytes, free = ROOM * 8 * width**2, free_memory()
    if n_bytes > free:
        raise RequestError(
            f'recipe.adaptation=ridge_probe: {width} features take {n_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB of '
            'memory are free; take fewer, as with --set recipe.aggregation=mean, or recipe.adaptation=probe'
        )


def _taught(features: PreparedSet, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a line is fitted to, [N, K], and the weights of windows [N]."""
    kind, n_out = targets.of(features.kind), features.n_out
    y = kind.answered(features.y[rows], n_out)
    if kind.single:
        return np.eye(n_out)[y], ridge.class_weights(y, n_out)
    return features.learnt(y).astype(np.float64), np.ones(len(rows))


def _joined(
    outcome: dict[str, Any], attached: Model, encoder: tuple[Model, Variables], seconds: float
) -> dict[str, Any]:
    """The outcome of encoder and head as one network; `seconds`: what the features took, 0 where they were there."""
    if 'failed' in outcome:
        return outcome
    variables = probes.joined(*encoder, outcome['variables'])
    size = sum(a.size for a in jax.tree.leaves(variables['params']['encoder']))
    counted, timings = outcome['n_parameters'], outcome['timings']
    return outcome | {
        'network': attached,
        'variables': variables,
        'n_parameters': {'total': size + counted['total'], 'trainable': counted['trainable']},
        'timings': timings | {'fit': timings['fit'] + seconds, 'total': timings['total'] + seconds},
    }
