"""Losses and the pure steps: one training step, one prediction. They know a mapped axis, but no device."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from jbench.models.blocks import Model

AXIS = 'data'  # the mapped axis over which batches are split
State = dict[str, Any]  # {'params', 'state', 'opt', 'step', 'key'}


def cross_entropy(logits: jax.Array, y: jax.Array, weights: jax.Array, smoothing: float) -> tuple[jax.Array, jax.Array]:
    """Weighted cross-entropy with label smoothing, PyTorch's definition: (loss [B], weight [B]).

    logits [B, K], y int [B], weights [K]. The mean is sum(loss) / sum(weight); smoothing spreads over all classes,
    each with its own weight.
    """
    logp = jax.nn.log_softmax(logits)
    weight = weights[y]
    nll = -jnp.take_along_axis(logp, y[:, None], axis=1)[:, 0] * weight
    smooth = -(logp * weights).mean(1)
    return (1 - smoothing) * nll + smoothing * smooth, weight


def binary_cross_entropy(
    logits: jax.Array, y: jax.Array, weights: jax.Array, smoothing: float
) -> tuple[jax.Array, jax.Array]:
    """Binary cross-entropy of several labels with positive weights [K]: (loss [B], 1 [B]), the mean over labels."""
    loss = -(weights * y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits))
    return loss.mean(1), jnp.ones(len(y), logits.dtype)


def squared_error(
    outputs: jax.Array, y: jax.Array, weights: jax.Array, smoothing: float
) -> tuple[jax.Array, jax.Array]:
    """Squared error of values [B, K]: (loss [B], 1 [B]), the mean over values."""
    return jnp.square(outputs - y).mean(1), jnp.ones(len(y), outputs.dtype)


LOSSES = {'cross_entropy': cross_entropy, 'binary_cross_entropy': binary_cross_entropy, 'squared_error': squared_error}


def train_step(
    state: State,
    batch: dict[str, jax.Array],
    *,
    model: Model,
    tx: optax.GradientTransformation,
    loss: str,
    smoothing: float,
) -> tuple[State, dict[str, jax.Array]]:
    """One step of gradient descent on this device's rows of a batch.

    The loss is the weighted mean over the rows of ALL devices whose mask is True: each device differentiates its share
    of the sum, and gradients are summed. Call it with the axis `AXIS` bound (parallel.py does).

    Returns: the next state, and {'loss', 'grad_norm'} of the whole batch.
    """
    chex.assert_rank(batch['x'], 3)
    key = jax.random.fold_in(state['key'], state['step'])

    def share(params: Any) -> tuple[jax.Array, Any]:
        logits, new = model.apply({'params': params, 'state': state['state']}, batch, train=True, key=key)
        values, weight = LOSSES[loss](logits, batch['y'], state['loss_weights'], smoothing)
        total = jax.lax.psum(jnp.sum(jnp.where(batch['mask'], weight, 0)), AXIS)
        return jnp.sum(jnp.where(batch['mask'], values, 0)) / total, new

    (value, new), grads = jax.value_and_grad(share, has_aux=True)(state['params'])
    grads, value = jax.lax.psum((grads, value), AXIS)
    updates, opt = tx.update(grads, state['opt'], state['params'])
    params = optax.apply_updates(state['params'], updates)
    new_state = state | {'params': params, 'state': new, 'opt': opt, 'step': state['step'] + 1}
    return new_state, {'loss': value, 'grad_norm': optax.tree.norm(grads)}


def predict_step(variables: dict[str, Any], batch: dict[str, jax.Array], *, model: Model) -> jax.Array:
    """Outputs [B, K] of a batch in evaluation mode."""
    logits, _ = model.apply(variables, batch, train=False, key=None)
    return logits
