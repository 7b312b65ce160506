"""A network from a flax module: the functions that `blocks.Model` asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.blocks import Batch, Model, Variables
from jbench.models.torch_weights import Tensor
from jbench.spec import RequestError, Signal


def require(name: str, signal: Signal, n_out: int, *, min_chans: int = 1, min_times: int = 1) -> None:
    """Refuse windows that a network is not defined for. Raises RequestError that says what it needs."""
    if signal.n_times < min_times:
        raise RequestError(f'{name}: windows of {signal.n_times} samples are too short, it needs at least {min_times}')
    if signal.n_chans < min_chans or n_out < 1:
        channels = 'one channel' if min_chans == 1 else f'{min_chans} channels'
        raise RequestError(f'{name}: needs at least {channels} and one output, got {signal.n_chans} and {n_out}')


def network(
    module: nn.Module,
    signal: Signal,
    tensors: Sequence[Tensor] = (),
    *,
    precompute: Callable[[jax.Array], dict[str, jax.Array]] = lambda x: {},
    start: Callable[[Variables], Variables] = lambda variables: variables,
) -> Model:
    """The functions of a network for windows of `signal`.

    Args:
        module: called as module(batch, train=..., key=...) -> logits [B, n]; collections 'params' and 'state'.
        tensors, precompute: see `blocks.Model`.
        start: what becomes of the variables that the module draws (other initial values).
    """
    window = (signal.n_chans, signal.n_times)

    @jax.jit  # compiled, the forward pass of flax's initialisation is dropped
    def init(key: jax.Array) -> Variables:
        batch = {'x': jnp.zeros((1, *window)), 'mask': jnp.ones(1, bool)}
        return start({'state': {}, **module.init(key, batch, train=False, key=None)})

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> tuple[jax.Array, Any]:
        x, mask = batch['x'], batch['mask']
        chex.assert_shape(x, (None, *window))
        chex.assert_shape(mask, (x.shape[0],))
        if not train:
            return jnp.asarray(module.apply(variables, batch, train=False, key=None)), variables['state']
        logits, changed = module.apply(variables, batch, train=True, key=key, mutable=['state'])
        return logits, changed.get('state', {})

    return Model(init, apply, tensors, precompute)
