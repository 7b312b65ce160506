"""A layer of a transformer that normalises before each of its two branches: what vision transformers consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.layers.deep import with_mean
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.torch_weights import Tensor

EPS = 1e-6  # of the norms
Draw = Callable[..., jax.Array]


class Draws(NamedTuple):
    """Initialisers of the weights; biases start at zero."""

    joined: Draw  # query, key and value
    out: Draw  # projection of what attention mixed
    wide: Draw
    narrow: Draw


class PreNorm(nn.Module):
    """x + attention(LN x), then x + W2 GELU(W1 LN x), over x [r, l, width]; W1 widens fourfold.

    `drop_path`: rate at which a row does without a branch.
    """

    width: int
    heads: int
    draws: Draws
    drop_path: float = 0.0
    axis_name: str | None = None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None, last: int = 0, mean_from: int | None = None) -> Any:
        """With `last` only so many tokens at the end come out (0: all); of the others only keys and values are read.
        With `mean_from` the mean of tokens [r, width] from this one on comes out behind them."""
        first, second = blocks.split(key, 2)
        zeros = nn.initializers.zeros
        h = self._attention(blocks.LayerNorm(self.width, EPS, name='norm_1')(x), last)
        x = x[:, -last:] + blocks.drop_path(h, self.drop_path, first, self.axis_name)
        wide = blocks.Linear(self.width, 4 * self.width, self.draws.wide, zeros, name='wide')
        narrow = blocks.Linear(4 * self.width, self.width, self.draws.narrow, zeros, name='narrow')
        h = blocks.gelu(wide(blocks.LayerNorm(self.width, EPS, name='norm_2')(x)))

        def branch(h: jax.Array) -> jax.Array:
            return blocks.drop_path(narrow(h), self.drop_path, second, self.axis_name)

        return x + branch(h) if mean_from is None else with_mean(branch, x, h, mean_from)

    def _attention(self, x: jax.Array, last: int) -> jax.Array:
        rows, length, d = x.shape
        weight = self.param('in_weight', self.draws.joined, (3, d, d)).reshape(3 * d, d)
        bias = self.param('in_bias', nn.initializers.zeros, (3, d)).reshape(3 * d)
        joined = jnp.matmul(x.reshape(-1, d), weight.T, precision=blocks.PRECISION) + bias
        q, k, v = joined.reshape(rows, length, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)  # each [r, h, l, size]
        mixed = attend_wide(q[:, :, -last:], k, v).transpose(0, 2, 1, 3).reshape(rows, -1, d)
        return blocks.Linear(d, d, self.draws.out, nn.initializers.zeros, name='out')(mixed)


class Names(NamedTuple):
    """What the parts of a layer are called in the reference."""

    norm_1: str
    joined: tuple[str, ...]  # one for query, key and value packed, or one each, in the reference's order ...
    rows: tuple[int, ...]  # ... and which of the three they are
    out: str
    norm_2: str
    wide: str
    narrow: str


def prenorm_tensors(names: Names, ours: str, width: int) -> list[Tensor]:
    """The entries of the reference for a `PreNorm` called `ours`."""
    norm, linear = torch_weights.layer_norm_tensors, torch_weights.linear_tensors
    out = norm(names.norm_1, (ours, 'norm_1'), width)
    weight, bias = ('params', ours, 'in_weight'), ('params', ours, 'in_bias')
    if not names.rows:
        (name,) = names.joined
        out += [Tensor(f'{name}.weight', (3 * width, width), weight), Tensor(f'{name}.bias', (3 * width,), bias)]
    for name, row in zip(names.joined, names.rows, strict=False):
        out += [Tensor(f'{name}.weight', (width, width), weight, row), Tensor(f'{name}.bias', (width,), bias, row)]
    return [
        *out,
        *linear(names.out, (ours, 'out'), width, width),
        *norm(names.norm_2, (ours, 'norm_2'), width),
        *linear(names.wide, (ours, 'wide'), width, 4 * width),
        *linear(names.narrow, (ours, 'narrow'), 4 * width, width),
    ]
