"""Patches on the grid of channels and time: what CBraMod, CodeBrain and EEG-DINO begin with.

A token is what convolutions make of its patch, plus a linear map of the patch's amplitude spectrum, plus what a
depthwise convolution over neighbouring channels (in their order) and patches makes of these sums.
"""

from __future__ import annotations

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.layers.blocks import PRECISION
from jbench.models.layers.patches import Front, Patches, patch_tensors
from jbench.models.torch_weights import Tensor


class GridPatches(nn.Module):
    """Tokens [b, c, p, front.width] of windows x [b, c, p, front.samples]."""

    front: Front
    kernel: tuple[int, int]  # of the convolution over the grid: channels x patches, odd
    rate: float  # of the dropout of the spectrum's part
    axis_name: str | None = None
    draw: Callable[..., jax.Array] | None = None  # initialiser of the spectrum's map; None: as a linear layer

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None, more: jax.Array | float = 0.0) -> jax.Array:
        """`more`: added to the sums before the convolution over the grid, of any shape that fits them."""
        b, c, p, samples = x.shape
        width = self.front.width
        rows = x.reshape(b, c * p, samples)
        spectral = blocks.Linear(samples // 2 + 1, width, self.draw, name='spectral')(amplitudes(rows))
        spectral = blocks.dropout(spectral, self.rate, key, self.axis_name, batch_axis=0)
        h = (Patches(self.front, name='patches')(rows) + spectral).reshape(b, c, p, width) + more
        bound = blocks.uniform((self.kernel[0] * self.kernel[1]) ** -0.5)
        taps = self.param('position', bound, (width, *self.kernel))
        bias = self.param('position_bias', bound, (width,))
        return h + neighbours(h, taps) + bias


def amplitudes(x: jax.Array) -> jax.Array:
    """Magnitudes of the Fourier coefficients of x [..., n], divided by n: [..., n // 2 + 1].

    Where a coefficient is zero its gradient is zero.
    """
    spectrum = jnp.fft.rfft(x.astype(jnp.promote_types(x.dtype, jnp.float32)), norm='forward')
    power = spectrum.real**2 + spectrum.imag**2
    positive = power > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, power, 1)), 0).astype(x.dtype)


def neighbours(x: jax.Array, taps: jax.Array) -> jax.Array:
    """Depthwise convolution of x [b, c, p, f] by taps [f, channels, patches], zeros around: the same shape.

    Over patches it is a sum of shifts; over channels, for each feature, a product with the matrix [c, c] that holds the
    taps in their places. With its gradient on one core that takes 87 ms instead of 1178 of XLA's own (16 windows, 64
    channels, 4 patches, 200 features, 19 x 7 taps), or 70 instead of 264 (4 windows, 10 patches).
    """
    (b, c, p, f), (_, high, wide) = x.shape, taps.shape
    half = wide // 2
    shifts = range(max(0, half + 1 - p), min(wide, half + p))  # the others see only zeros
    padded = jnp.pad(x, ((0, 0), (0, 0), (half, half), (0, 0)))
    if high == 1:
        return sum((padded[:, :, j : j + p] * taps[:, 0, j] for j in shifts), start=jnp.zeros_like(x))
    offset = np.arange(c) - np.arange(c)[:, None] + high // 2
    placed = jnp.asarray(offset == np.arange(high)[:, None, None], x.dtype)  # [tap, channel out, channel in]
    matrix = jnp.einsum('fij,ivu->fvju', taps[:, :, shifts.start : shifts.stop], placed, precision=PRECISION)
    padded = padded.transpose(3, 1, 0, 2)
    columns = jnp.stack([padded[..., j : j + p] for j in shifts], 1).reshape(f, -1, b * p)
    out = jnp.matmul(matrix.reshape(f, c, -1), columns, precision=PRECISION)
    return out.reshape(f, c, b, p).transpose(2, 1, 3, 0)


def grid_tensors(
    front: Front, kernel: tuple[int, int], name: str, *, path: tuple[str, ...], position: str = 'positional_encoding'
) -> list[Tensor]:
    """The entries of the reference's patch embedding called `name`, for a `GridPatches` at `path`; `position`: what its
    convolution over the grid is called."""
    place = ('params', *path)
    pairs = [(f'{name}.proj_in.{i}', f'{name}.proj_in.{i + 1}') for i in (0, 3, 6)]
    return [
        Tensor(f'{name}.{position}.0.weight', (front.width, 1, *kernel), (*place, 'position')),
        Tensor(f'{name}.{position}.0.bias', (front.width,), (*place, 'position_bias')),
        *patch_tensors(front, (*path, 'patches'), pairs),
        *torch_weights.linear_tensors(
            f'{name}.spectral_proj.0', (*path, 'spectral'), front.samples // 2 + 1, front.width
        ),
    ]
