"""Heads on the features of an encoder that stays as it is, and an encoder with such a head as one network.

A head is a network of its own, over windows of d features (channels) and one sample, so that it is trained like any
other; `attached` puts it behind its encoder.

    linear: W x + b
    mlp: W2 dropout(ELU(W1 x + b1)) + b2, W1 d -> 256, dropout .5: the head mlp of OpenEEGBench 0.6.0 (braindecode)

A feature is `penultimate`, what the encoder's own head reads, flattened. The encoder answers in evaluation: no dropout,
its batch statistics as they are. Everything before its head belongs to it, and stays as it starts: also a mixture of
channels or a spatial filter that no checkpoint has (BENDR, BIOT, Signal-JEPA), which is then a random one.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import getitem
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.model import Answer, Batch, Model, network
from jbench.models.torch_weights import Tensor, Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import ModelSpec, Signal

FEATURE = 'penultimate'  # of an encoder
HIDDEN, DROPOUT = 256, 0.5  # of `mlp`


def _spec(name: str, title: str, factory: str) -> ModelSpec:
    return ModelSpec(name=name, title=title, family='foundation', target=f'{__name__}:{factory}')


# heads by recipe.adaptation; no models of the table, since they read no windows
HEADS = {
    'probe': _spec('linear_probe', 'Linear probe', 'linear'),
    'ridge_probe': _spec('linear_probe', 'Linear probe', 'linear'),
    'mlp_probe': _spec('mlp_probe', 'Probe with a hidden layer', 'mlp'),
}


class _Linear(nn.Module):
    n_in: int
    n_out: int

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        return blocks.Linear(self.n_in, self.n_out, name='out')(batch['x'][..., 0])


class _Mlp(nn.Module):
    n_in: int
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        h = jax.nn.elu(blocks.Linear(self.n_in, HIDDEN, name='hidden')(batch['x'][..., 0]))
        h = blocks.dropout(h, DROPOUT, key, self.axis_name, batch_axis=0)
        return blocks.Linear(HIDDEN, self.n_out, name='out')(h)


def features(width: int) -> Signal:
    """The signal of features: `width` channels of one sample."""
    return Signal(n_chans=width, n_times=1, sfreq=1.0)


def linear(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """A linear layer over the channels of `signal`, which has one sample."""
    tensors = torch_weights.linear_tensors('0', ('out',), signal.n_chans, n_out)
    return network(_Linear(signal.n_chans, n_out), signal, tensors)


def mlp(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """A layer of 256 hidden units over the channels of `signal`, which has one sample, and a linear one."""
    tensors = torch_weights.linear_tensors('0', ('hidden',), signal.n_chans, HIDDEN)
    tensors += torch_weights.linear_tensors('3', ('out',), HIDDEN, n_out)
    return network(_Mlp(signal.n_chans, n_out, axis_name), signal, tensors)


def own_head(encoder: Model) -> list[Tensor]:
    """The tensors of an encoder's own head. Raises: RequestError for a network without one."""
    found = [tensor for tensor in encoder.tensors if tensor.name.startswith('head.')]
    if not found:
        raise RequestError('recipe.adaptation: this network is no encoder with a head; leave it as full')
    return found


def width(encoder: Model, signal: Signal) -> int:
    """Number of features of a window of `signal`. Raises: RequestError for a network that has none."""
    own_head(encoder)
    batch = {'x': jnp.zeros((1, signal.n_chans, signal.n_times)), 'mask': jnp.ones(1, bool)}
    if signal.channel_mask:
        batch['channel_mask'] = jnp.ones((1, signal.n_chans), bool)
    like = jax.eval_shape(encoder.init, jax.random.key(0))

    def look(variables: Variables) -> dict[str, jax.Array]:
        return encoder.apply(variables, batch, train=False, key=None).features

    return math.prod(jax.eval_shape(look, like)[FEATURE].shape[1:])


def without_head(encoder: Model, variables: Variables) -> Variables:
    """Variables of an encoder less those of its own head."""
    gone = {tensor.path for tensor in own_head(encoder)}

    def kept(tree: Any, path: tuple[str, ...]) -> Any:
        if not isinstance(tree, dict):
            return tree
        parts = {k: kept(v, (*path, k)) for k, v in tree.items() if (*path, k) not in gone}
        return {k: v for k, v in parts.items() if not isinstance(v, dict) or v}

    return {name: kept(tree, (name,)) for name, tree in variables.items()}


def _with_head(encoder: Model, variables: Variables) -> Variables:
    """The inverse of `without_head`; the head is of zeros, and nobody reads what it answers."""
    like = jax.eval_shape(encoder.init, jax.random.key(0))
    out = _copy(variables)
    for tensor in own_head(encoder):
        shape, inner = reduce(getitem, tensor.path, like), out
        for part in tensor.path[:-1]:
            inner = inner.setdefault(part, {})
        inner[tensor.path[-1]] = jnp.zeros(shape.shape, shape.dtype)
    return out


def _copy(tree: Any) -> Any:
    return {k: _copy(v) for k, v in tree.items()} if isinstance(tree, dict) else tree


def joined(encoder: Model, variables: Variables, head: Variables) -> Variables:
    """Variables of `attached(encoder, ...)` from those of the two; the encoder's own head is left out."""
    bare = without_head(encoder, variables)
    return {name: _there({'encoder': bare[name], 'head': head[name]}) for name in ('params', 'batch_stats')}


def _there(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts that hold something: files of weights know no others."""
    return {name: part for name, part in parts.items() if part}


def attached(encoder: Model, head: Model) -> Model:
    """An encoder that stays as it is, and a head on its features, as one network.

    Its tensors are called 'encoder.*' and 'head.*'. Nothing but a head is ever trained of it (train/probe.py).
    """

    def init(key: jax.Array) -> Variables:
        return joined(encoder, encoder.init(key), head.init(key))

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        inner, outer = (
            {name: variables[name].get(part, {}) for name in ('params', 'batch_stats')} for part in ('encoder', 'head')
        )
        found = encoder.apply(_with_head(encoder, inner), batch, train=False, key=None).features
        x = found[FEATURE].reshape(len(batch['x']), -1, 1)
        answer = head.apply(outer, {'x': x, 'mask': batch['mask']}, train=train, key=key)
        stats = _there({'encoder': inner['batch_stats'], 'head': answer.batch_stats})
        return Answer(answer.outputs, stats, found)

    own = set(own_head(encoder))
    tensors = [_moved(t, 'encoder') for t in encoder.tensors if t not in own]
    return Model(init, apply, [*tensors, *(_moved(t, 'head') for t in head.tensors)], channels=encoder.channels)


def _moved(tensor: Tensor, part: str) -> Tensor:
    path = (tensor.path[0], part, *tensor.path[1:]) if tensor.path else ()
    return tensor._replace(name=f'{part}.{tensor.name}', path=path)
