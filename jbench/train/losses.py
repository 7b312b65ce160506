"""Losses: one number a row of a batch, and its weight. They know a mapped axis, but no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jbench.spec.recipe import TEMPERED, Recipe

AXIS = 'data'  # the mapped axis over which batches are split
NEVER = -1e9  # logit of what is no candidate
Batch = Mapping[str, jax.Array]  # {'x' [B, C, T], 'y' [B, ...], 'mask' bool[B], ...}
Row = tuple[tuple[int, ...], Any]  # shape and type of the target of one window
PerRow = tuple[jax.Array, jax.Array]  # loss [B], weight [B]: the mean over rows is sum(loss) / sum(weight)


def cross_entropy(logits: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Weighted cross-entropy with label smoothing, PyTorch's definition.

    logits [B, K], y int [B], weights [K]. Smoothing spreads over all classes, each with its own weight.
    """
    logp, y = jax.nn.log_softmax(logits), batch['y']
    weight = weights[y]
    nll = -jnp.take_along_axis(logp, y[:, None], axis=1)[:, 0] * weight
    smooth = -(logp * weights).mean(1)
    return (1 - smoothing) * nll + smoothing * smooth, weight


def binary_cross_entropy(logits: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Binary cross-entropy of several labels y [B, K] with positive weights [K], the mean over labels."""
    y = batch['y']
    loss = -(weights * y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits))
    return loss.mean(1), jnp.ones(len(y), logits.dtype)


def squared_error(outputs: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Squared error of values y [B, K], the mean over values."""
    return jnp.square(outputs - batch['y']).mean(1), jnp.ones(len(outputs), outputs.dtype)


def absolute_error(outputs: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Absolute error of values y [B, K], the mean over values; outputs of fewer steps are held for their shares."""
    y = batch['y']
    return jnp.abs(_held(outputs, y.shape[1]) - y).mean(1), jnp.ones(len(outputs), outputs.dtype)


def _held(outputs: jax.Array, width: int) -> jax.Array:
    """As `jbench.targets.angles.held`."""
    n = outputs.shape[1]
    if n == width:
        return outputs
    return jnp.repeat(outputs, width // n, 1) if width % n == 0 else outputs[:, np.arange(width) * n // width]


def clip(outputs: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Which row's target belongs to an output? Cross-entropy of logits x_i . y_j / (||y_j|| + 1e-15) to j = i.

    outputs and y [B, D]. Candidates are the rows of the batch on ALL devices; those of padding are none. Equal targets
    count as different ones (as published). After Radford et al. (2021), with one side normalised and no temperature.
    """
    return _clip(outputs, batch, distinct=False)


def clip_distinct(outputs: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """As `clip`, and another row with the same target is no candidate: what was shown twice is no wrong answer."""
    return _clip(outputs, batch, distinct=True)


def _clip(outputs: jax.Array, batch: Batch, distinct: bool) -> PerRow:
    y, mask = (jax.lax.all_gather(batch[name], AXIS, tiled=True) for name in ('y', 'mask'))
    unit = y / (jnp.linalg.norm(y, axis=1, keepdims=True) + 1e-15)
    logits = jnp.where(mask, jnp.matmul(outputs, unit.T, precision=jax.lax.Precision.HIGHEST), -jnp.inf)
    own = jax.lax.axis_index(AXIS) * len(outputs) + jnp.arange(len(outputs))
    if distinct:
        twin = (batch['y'][:, None] == y).all(-1) & (own[:, None] != jnp.arange(len(y)))
        logits = jnp.where(twin, -jnp.inf, logits)
    logits = jnp.where(batch['mask'][:, None], logits, 0)  # of rows that do not count: no inf, so no nan
    logp = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logp, own[:, None], axis=1)[:, 0], jnp.ones(len(outputs), outputs.dtype)


def ctc(logits: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Connectionist temporal classification (Graves et al. 2006), the last output being the blank.

    logits [B, frames, K], y int [B, length], padded with -1. As torch's mean: a row's loss is divided by its number
    of keys (1 for none); a row whose keys do not fit its frames costs 0 (zero_infinity).
    """
    y = batch['y']
    padding = y < 0
    loss = optax.ctc_loss(
        logits,
        jnp.zeros(logits.shape[:2]),
        jnp.maximum(y, 0),
        padding.astype(jnp.float32),
        blank_id=logits.shape[-1] - 1,
    )
    n = (~padding).sum(1)
    twice = ((y[:, 1:] == y[:, :-1]) & ~padding[:, 1:]).sum(1)  # a blank must stand between equal keys
    loss = jnp.where(n + twice <= logits.shape[1], loss, 0) / jnp.maximum(n, 1)
    return loss, jnp.ones(len(y), logits.dtype)


def info_nce(outputs: jax.Array, batch: Batch, weights: jax.Array, temperature: float) -> PerRow:
    """Who else saw the same moment? InfoNCE (van den Oord et al. 2018) with several right answers.

    outputs [B, D], y int [B, 2]: moment and viewer. Similarities are cosines over the temperature. Rows of ALL devices
    are candidates. Right ones are the same moment of other viewers; wrong ones all other moments, of the same recording
    too; each right one is told from all wrong ones, and a row costs the mean over its right ones. Rows without one do
    not count.
    """
    every, y, mask = (jax.lax.all_gather(a, AXIS, tiled=True) for a in (_unit(outputs), batch['y'], batch['mask']))
    logits = _similarities(_unit(outputs), every, temperature)
    same, own = (batch['y'][:, None, k] == y[:, k] for k in range(2))
    right, wrong = same & ~own & mask, ~same & mask
    against = jax.nn.logsumexp(jnp.where(wrong, logits, NEVER), axis=1)
    each = jnp.logaddexp(logits, against[:, None]) - logits
    n = right.sum(1)
    return jnp.where(right, each, 0).sum(1) / jnp.maximum(n, 1), (n > 0).astype(outputs.dtype)


def next_window(outputs: jax.Array, batch: Batch, weights: jax.Array, temperature: float) -> PerRow:
    """Which window comes next in the recording? Cross-entropy among all other rows of the batch.

    outputs [B, 2 D]: what comes next, and what this one is; y int [B, 2]: recording and place in it. Similarities are
    cosines over the temperature. Rows of ALL devices are candidates; rows without a next one do not count.
    """
    says, holds = jnp.split(outputs, 2, axis=1)
    every, y, mask = (jax.lax.all_gather(a, AXIS, tiled=True) for a in (_unit(holds), batch['y'], batch['mask']))
    logits = _similarities(_unit(says), every, temperature)
    own = jax.lax.axis_index(AXIS) * len(outputs) + jnp.arange(len(outputs))
    other = mask & (own[:, None] != jnp.arange(len(y)))
    right = other & (batch['y'][:, None] + jnp.array([0, 1]) == y).all(-1)
    total = jax.nn.logsumexp(jnp.where(other, logits, NEVER), axis=1)
    n = right.sum(1)
    return jnp.where(right, total[:, None] - logits, 0).sum(1) / jnp.maximum(n, 1), (n > 0).astype(outputs.dtype)


def reconstruction(sums: jax.Array, batch: Batch, weights: jax.Array, smoothing: float) -> PerRow:
    """Squared error of what was put in the place of hidden samples, the mean over them; sums [B, 6] as hiding.py has
    them."""
    n, _, _, xx, rr, xr = sums.T
    return (xx - 2 * xr + rr) / n, jnp.ones(len(sums), sums.dtype)


def _unit(rows: jax.Array) -> jax.Array:
    return rows * jax.lax.rsqrt(jnp.square(rows).sum(1, keepdims=True) + 1e-12)


def _similarities(a: jax.Array, b: jax.Array, temperature: float) -> jax.Array:
    return jnp.matmul(a, b.T, precision=jax.lax.Precision.HIGHEST) / temperature


LOSSES = {
    'cross_entropy': cross_entropy,
    'binary_cross_entropy': binary_cross_entropy,
    'squared_error': squared_error,
    'absolute_error': absolute_error,
    'clip': clip,
    'clip_distinct': clip_distinct,
    'ctc': ctc,
    'info_nce': info_nce,
    'next_window': next_window,
    'reconstruction': reconstruction,
}


def of(recipe: Recipe) -> Callable[[jax.Array, Batch, jax.Array], PerRow]:
    """The loss of a recipe: (outputs, batch, weights of classes) -> loss and weight of each row."""
    how = recipe.temperature if recipe.loss in TEMPERED else recipe.label_smoothing
    return lambda outputs, batch, weights: LOSSES[recipe.loss](outputs, batch, weights, how)


def _class(n_out: int, length: int) -> Row:
    return (), jnp.int32


def _vector(n_out: int, length: int) -> Row:
    return (n_out,), jnp.float32


def _path(n_out: int, length: int) -> Row:
    return (length or n_out,), jnp.float32


def _keys(n_out: int, length: int) -> Row:
    return (length,), jnp.int32


def _pair(n_out: int, length: int) -> Row:
    return (2,), jnp.int32


def _number(n_out: int, length: int) -> Row:
    return (1,), jnp.int32


TAUGHT = {  # the shape and type of a row of y, so that programs compile before there are data
    'cross_entropy': _class,
    'binary_cross_entropy': _vector,
    'squared_error': _vector,
    'absolute_error': _path,
    'clip': _vector,
    'clip_distinct': _vector,
    'ctc': _keys,
    'info_nce': _pair,
    'next_window': _pair,
    'reconstruction': _number,
}
