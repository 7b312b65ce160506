"""Losses and the pure steps: one training step, one prediction. They know a mapped axis, but no device."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from jbench.models.layers import rows
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.recipe import TOGETHER
from jbench.spec.task import Recipe
from jbench.train import losses, trainable
from jbench.train.losses import AXIS

ROTATION = 1 << 20  # of the key of a step: dropout takes others
LEAST = 1e-12  # weight of a batch of which no row counts
State = dict[str, Any]  # {'params', 'batch_stats', 'opt', 'step', 'key', 'loss_weights'}


def train_step(
    state: State,
    batch: dict[str, jax.Array],
    *,
    model: Model,
    tx: optax.GradientTransformation,
    recipe: Recipe,
) -> tuple[State, dict[str, jax.Array]]:
    """One step of gradient descent on this device's rows of a batch.

    The loss is recipe.loss_scale times the weighted mean over the rows of ALL devices whose mask is True: each
    device differentiates its share of the sum, and gradients are summed. Call it with the axis `AXIS` bound
    (parallel.py does). Parameters that `recipe.trainable` freezes are constants: nothing is differentiated to them.

    Returns: the next state, and {'loss', 'grad_norm'} of the whole batch, the norm over what is trained.
    """
    chex.assert_rank(batch['x'], 3)
    key = jax.random.fold_in(state['key'], state['step'])
    trained, frozen = trainable.divide(state['params'], recipe.trainable)
    if recipe.rotation:
        batch = {**batch, 'x': rotated(batch['x'], recipe.rotation, key)}

    def share(params: Any) -> tuple[jax.Array, Any]:
        variables = {'params': trainable.join(params, frozen), 'batch_stats': state['batch_stats']}
        answer = model.apply(variables, batch, train=True, key=key)
        values, weight = losses.of(recipe)(answer.outputs, batch, state['loss_weights'])
        total = jax.lax.psum(jnp.sum(jnp.where(batch['mask'], weight, 0)), AXIS)
        total = jnp.maximum(total, LEAST)
        return recipe.loss_scale * jnp.sum(jnp.where(batch['mask'], values, 0)) / total, answer.batch_stats

    n = n_parts(model, recipe, len(batch['x']))
    if n > 1:
        value, new, grads = _accumulated(trained, frozen, state, batch, key, n, model=model, recipe=recipe)
    else:
        (value, new), grads = jax.value_and_grad(share, has_aux=True)(trained)
    grads, value = jax.lax.psum((grads, value), AXIS)
    updates, opt = tx.update(grads, state['opt'], trained)
    params = trainable.join(optax.apply_updates(trained, updates), frozen)
    new_state = state | {'params': params, 'batch_stats': new, 'opt': opt, 'step': state['step'] + 1}
    return new_state, {'loss': value, 'grad_norm': optax.tree.norm(grads)}


def n_parts(model: Model, recipe: Recipe, n_rows: int) -> int:
    """In how many parts a training step computes this device's rows of a batch: those of `recipe.microbatch`, else of
    `own_parts`, if rows need not know of each other."""
    if recipe.microbatch:
        return recipe.batch_size // recipe.microbatch
    return 1 if recipe.loss in TOGETHER else own_parts(model, n_rows)


def own_parts(model: Model, n_rows: int) -> int:
    """In how many equal parts, one after the other, a network computes so many rows unasked.

    More than one on a processor alone, where some windows at once take less time each than many, as their values fit
    its caches, and less memory (docs/speed.md).
    """
    if not model.at_once or jax.default_backend() != 'cpu':
        return 1
    return next(n for n in range(1, n_rows + 1) if n_rows % n == 0 and n_rows // n <= model.at_once)


def _divided(batch: dict[str, jax.Array], n: int) -> dict[str, jax.Array]:
    """A batch [B, ...] in parts [n, B / n, ...]."""
    return jax.tree.map(lambda a: a.reshape(n, -1, *a.shape[1:]), batch)


def rotated(x: jax.Array, most: int, key: jax.Array) -> jax.Array:
    """Windows x [B, C, T] with their channels turned by a number of places from -most to most, the same for all rows: a
    wristband that sits otherwise (emg2pose; braindecode 1.8.1 `BandRotation` with one band draws one a batch, too).
    Channel k of the answer is channel k - places."""
    places = jax.random.randint(jax.random.fold_in(key, ROTATION), (), -most, most + 1)
    return jnp.roll(x, places, axis=1)


def _accumulated(
    trained: Any,
    frozen: Any,
    state: State,
    batch: dict[str, jax.Array],
    key: jax.Array,
    n: int,
    *,
    model: Model,
    recipe: Recipe,
) -> tuple[jax.Array, Any, Any]:
    """The same share of the loss and its gradient, in n parts, one after the other: memory holds what one needs.

    It is the same step, dropout included where `blocks` draws it (`rows`). Rows of one batch must not know of each
    other (`n_parts`, `check_microbatch`).

    Raises: RequestError where training changes batch statistics; numbers that it hands on as they are may stand there.
    """

    def lost(params: Any, windows: dict[str, jax.Array], which: jax.Array) -> tuple[jax.Array, jax.Array]:
        variables = {'params': trainable.join(params, frozen), 'batch_stats': state['batch_stats']}
        with rows.part(n, which):
            outputs, stats, _ = model.apply(variables, windows, train=True, key=key)
        if _ids(stats) != _ids(state['batch_stats']):
            raise RequestError(
                'recipe.microbatch: this network has batch statistics, and those of a part of a batch are others than '
                'those of the whole. Leave out recipe.microbatch'
            )
        values, weight = losses.of(recipe)(outputs, windows, state['loss_weights'])
        return jnp.sum(jnp.where(windows['mask'], values, 0)), jnp.sum(jnp.where(windows['mask'], weight, 0))

    def add(sums: Any, given: Any) -> tuple[Any, None]:
        (value, weight), grads = jax.value_and_grad(lost, has_aux=True)(trained, *given)
        return jax.tree.map(jnp.add, sums, (value, weight, grads)), None

    zeros = jnp.zeros(()), jnp.zeros(()), jax.tree.map(jnp.zeros_like, trained)
    (value, weight, grads), _ = jax.lax.scan(add, zeros, (_divided(batch, n), jnp.arange(n)))
    factor = recipe.loss_scale / jnp.maximum(jax.lax.psum(weight, AXIS), LEAST)
    return factor * value, state['batch_stats'], jax.tree.map(lambda g: factor * g, grads)


def _ids(tree: Any) -> list[int]:
    """Which arrays a tree holds; two of the same numbers are two."""
    return [id(leaf) for leaf in jax.tree.leaves(tree)]


def check_microbatch(recipe: Recipe, n_devices: int) -> None:
    """Refuse a microbatch that would be another step of any network. Raises: RequestError."""
    size = recipe.microbatch
    if size in (0, recipe.batch_size):
        return
    if recipe.batch_size % size or (recipe.batch_size // n_devices) % (recipe.batch_size // size):
        raise RequestError(
            f'recipe.microbatch: {size} does not divide recipe.batch_size={recipe.batch_size}'
            + (f' on {n_devices} devices' if n_devices > 1 else '')
        )
    if recipe.loss in TOGETHER:
        raise RequestError(
            f'recipe.microbatch: in the loss {recipe.loss!r} the rows of a batch are answers of each other'
        )


def predict_step(
    variables: dict[str, Any], batch: dict[str, jax.Array], *, model: Model, feature: str = ''
) -> jax.Array:
    """Outputs [B, K], or [B, frames, K], of a batch in evaluation mode; or a feature of it, flattened [B, d]."""

    def outputs(batch: dict[str, jax.Array]) -> jax.Array:
        answer = model.apply(variables, batch, train=False, key=None)
        found: jax.Array = answer.features[feature].reshape(len(batch['x']), -1) if feature else answer.outputs
        return found

    n = own_parts(model, len(batch['x']))
    if n == 1:
        return outputs(batch)
    found = jax.lax.map(outputs, _divided(batch, n))
    return found.reshape(-1, *found.shape[2:])
