"""The contract that every network fulfils, and a network from a flax module.

A network is two pure functions: `init` draws its variables, `apply` computes logits; a list of tensors tells what the
variables are called in the reference implementation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.torch_weights import Tensor, Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

Batch = Mapping[str, jax.Array]  # {'x': f32[B, C, T], 'mask': bool[B], ...}


class Model(NamedTuple):
    """A network as pure functions, built for one `Signal` and one number of outputs."""

    init: Callable[[jax.Array], Variables]  # init(key)
    apply: Callable[..., tuple[jax.Array, Any]]  # apply(variables, batch, *, train, key) -> (logits [B, n], new state)
    tensors: Sequence[Tensor] = ()  # state_dict of the PyTorch reference; none: each array by its own path
    # precompute(x [B, C, T]) -> arrays [B, ...]: what training needs of each window alone. Computed once where windows
    # stay in memory, and carried in the batch; a batch without them computes them.
    precompute: Callable[[jax.Array], dict[str, jax.Array]] = lambda x: {}

    def to_torch(self, variables: Variables) -> dict[str, np.ndarray]:
        """Variables (or gradients, in their place) as a state_dict."""
        return torch_weights.export(self.tensors or torch_weights.plain_tensors(variables), variables)

    def from_torch(self, found: Mapping[str, np.ndarray]) -> Variables:
        """Variables from a state_dict. Raises RequestError that names every tensor that does not fit."""
        like = jax.eval_shape(self.init, jax.random.key(0))
        return torch_weights.restore(self.tensors or torch_weights.plain_tensors(like), found, like)


def load(model: Model, path: str | Path) -> Variables:
    """Variables of `model` from a safetensors file of its PyTorch reference.

    Raises: RequestError where the file is absent, damaged, or does not hold exactly the tensors of the network.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not Path(path).is_file():
        raise RequestError(f'no weights at {path}: expected a safetensors file')
    try:
        found = load_file(path)
    except SafetensorError as error:
        raise RequestError(f'{path} is not a complete safetensors file: {error}') from error
    try:
        return model.from_torch(found)
    except RequestError as error:
        raise RequestError(f'{path}: {error}') from error


def save(model: Model, variables: Variables, path: str | Path) -> None:
    """Writes the variables as a safetensors file under PyTorch names; the file appears complete or not at all."""
    from safetensors.numpy import save_file

    path = Path(path)
    partial = path.with_name(path.name + '.partial')
    save_file(model.to_torch(variables), partial, metadata={'format': 'pt'})
    os.replace(partial, path)


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
        module: called as module(batch, train=..., key=...) -> logits [B, n]; collections 'params' and 'batch_stats'.
        tensors, precompute: see `Model`.
        start: what becomes of the variables that the module draws (other initial values).
    """
    window = (signal.n_chans, signal.n_times)

    @jax.jit  # compiled, the forward pass of flax's initialisation is dropped
    def init(key: jax.Array) -> Variables:
        batch = {'x': jnp.zeros((1, *window)), 'mask': jnp.ones(1, bool)}
        return start({'batch_stats': {}, **module.init(key, batch, train=False, key=None)})

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> tuple[jax.Array, Any]:
        x, mask = batch['x'], batch['mask']
        chex.assert_shape(x, (None, *window))
        chex.assert_shape(mask, (x.shape[0],))
        if not train:
            return jnp.asarray(module.apply(variables, batch, train=False, key=None)), variables['batch_stats']
        logits, changed = module.apply(variables, batch, train=True, key=key, mutable=['batch_stats'])
        return logits, changed.get('batch_stats', {})

    return Model(init, apply, tensors, precompute)
