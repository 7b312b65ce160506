"""Patches of a signal as tokens: the convolutions that the encoders of `models/foundation` begin with.

A patch is a row of samples of one channel; rows are channel by channel, and in time within one. Convolutions read each
row alone, but the norms between them take their statistics over all rows of a window: a channel that is left out must
be left out before, zeros in its place would change the tokens of all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models import torch_weights
from jbench.models.layers.blocks import PRECISION, gelu, uniform
from jbench.models.torch_weights import Tensor

EPS = 1e-5  # of the norms


class Front(NamedTuple):
    """Three convolutions over a patch, each with a bias, followed by a group norm and GELU; the second and third have
    three taps and keep the length."""

    samples: int  # of a patch
    widths: tuple[int, int, int]  # features
    groups: int  # of the norms
    taps: int  # of the first convolution
    stride: int
    pad: int
    feature_major: bool  # how a token lists its values: feature by feature, else moment by moment

    @property
    def moments(self) -> int:
        """Moments of a patch after the first convolution."""
        return (self.samples + 2 * self.pad - self.taps) // self.stride + 1

    @property
    def width(self) -> int:
        """Values of a token."""
        return self.moments * self.widths[-1]

    def convolutions(self) -> Iterator[tuple[int, int, int]]:
        """Features in, features out and taps of each."""
        yield from zip((1, *self.widths[:-1]), self.widths, (self.taps, 3, 3), strict=True)


class Patches(nn.Module):
    """Tokens [b, rows, width] of patches x [b, rows, samples].

    Each convolution is one product with a matrix [values in, values out] that holds its taps in their places. Most of
    it is zero where a convolution has few taps, yet it takes about as long on a CPU (CBraMod's first two with their
    gradients, 1216 patches, one core: 2.4 ms, as convolutions 2.0), and values stay in the order of the tokens.
    """

    front: Front

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        front, length = self.front, self.front.samples
        geometry = ((front.stride, front.pad), (1, 1), (1, 1))
        for i, ((n_in, n_out, taps), (stride, pad)) in enumerate(zip(front.convolutions(), geometry, strict=True)):
            bound = uniform((n_in * taps) ** -0.5)
            weight = self.param(f'conv_{i}', bound, (n_out, n_in, taps))
            bias = self.param(f'conv_{i}_bias', bound, (n_out,))
            matrix = spread(weight, length, stride, pad, front.feature_major)
            length = front.moments
            flat = jnp.matmul(x.reshape(-1, x.shape[-1]), matrix, precision=PRECISION)
            each = _each(bias, length, front.feature_major)
            x = GroupNorm(n_out, length, front.groups, front.feature_major, name=f'norm_{i}')(
                flat.reshape(*x.shape[:-1], -1) + each
            )
            x = gelu(x)
        return x


class GroupNorm(nn.Module):
    """`torch.nn.GroupNorm` of x [b, rows, values], `length` moments of `features`: the mean and biased variance of a
    group of features run over the rows and moments of a window."""

    features: int
    length: int
    groups: int
    feature_major: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        scale = self.param('scale', nn.initializers.ones, (self.features,))
        bias = self.param('bias', nn.initializers.zeros, (self.features,))
        group = np.arange(self.features) // (self.features // self.groups)
        group = group.repeat(self.length) if self.feature_major else np.tile(group, self.length)
        share = self.groups / (x.shape[1] * x.shape[2])
        member = jnp.asarray((group[:, None] == group) * share, x.dtype)

        def mean(sums: jax.Array) -> jax.Array:  # of each value's group, [b, 1, values] of sums over rows [b, values]
            return jnp.matmul(sums, member, precision=PRECISION)[:, None]

        centred = x - mean(x.sum(1))
        gain = lax.rsqrt(mean((centred**2).sum(1)) + EPS)
        place = (self.length, self.feature_major)
        return centred * (gain * _each(scale, *place)) + _each(bias, *place)


def spread(weight: jax.Array, samples: int, stride: int, pad: int, feature_major: bool) -> jax.Array:
    """A convolution as a matrix [values in, values out]: weight [out, in, taps] over `samples` moments."""
    n_out, n_in, taps = weight.shape
    moments = (samples + 2 * pad - taps) // stride + 1
    offset = np.arange(samples)[:, None] - stride * np.arange(moments) + pad
    placed = offset == np.arange(taps)[:, None, None]  # [tap, moment in, moment out]
    letters = 'oik,kst->isot' if feature_major else 'oik,kst->sito'
    matrix = jnp.einsum(letters, weight, placed.astype(weight.dtype), precision=PRECISION)
    return matrix.reshape(samples * n_in, moments * n_out)


def _each(values: jax.Array, length: int, feature_major: bool) -> jax.Array:
    """Values of features [f] for each value of a token [length * f]."""
    return values.repeat(length) if feature_major else jnp.tile(values, length)


def patch_tensors(front: Front, path: tuple[str, ...], names: Sequence[tuple[str, str]]) -> list[Tensor]:
    """The entries of the reference: the names of its convolutions and norms in pairs, for a `Patches` at `path`.

    A convolution is two-dimensional there, over rows of height one.
    """
    out = []
    for i, ((conv, norm), (n_in, n_out, taps)) in enumerate(zip(names, front.convolutions(), strict=True)):
        out += [
            Tensor(f'{conv}.weight', (n_out, n_in, 1, taps), ('params', *path, f'conv_{i}')),
            Tensor(f'{conv}.bias', (n_out,), ('params', *path, f'conv_{i}_bias')),
            *torch_weights.layer_norm_tensors(norm, (*path, f'norm_{i}'), n_out),
        ]
    return out
