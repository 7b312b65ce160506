"""The convolutions of Signal-JEPA's three networks, as products, and their tensors; see `signal_jepa.py`.

Taps that do not overlap are neighbouring vectors side by side; of 32 taps every 8 a row of the product gives four
neighbouring vectors. Axis letters: b batch, c channel, t sample, n vector, d and f features.
"""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers import blocks
from jbench.models.torch_weights import Tensor

FIRST_TAPS, FIRST_STRIDE = 32, 8
WIDTHS = (8, 16, 32, 64, 64)
WIDTH = WIDTHS[-1]
N_FILTERS = 4  # spatial ones, before the convolutions or behind them
MIN_TIMES = 152  # samples that give one vector


def n_vectors(n_times: int) -> int:
    """Vectors that the convolutions make of a channel."""
    return ((n_times - FIRST_TAPS) // FIRST_STRIDE + 1) // 2 ** (len(WIDTHS) - 1)


def overlapping(x: jax.Array, taps: jax.Array) -> jax.Array:
    """Convolution of x [b, c, t] with taps [32, f] every 8 samples: [b, c, n, f].

    A row of the product is 4 outputs, of 32 samples and the 24 behind them: less is copied than for a row each (56
    numbers in place of 128), and products with few columns are slow.
    """
    n, overlap = (x.shape[2] - FIRST_TAPS) // FIRST_STRIDE + 1, FIRST_TAPS - FIRST_STRIDE
    used, rows = FIRST_TAPS + (n - 1) * FIRST_STRIDE, -(-n // (FIRST_TAPS // FIRST_STRIDE))
    padded = jnp.pad(x[..., :used], ((0, 0), (0, 0), (0, (rows + 1) * FIRST_TAPS - used)))
    cut = padded.reshape(*x.shape[:2], -1, FIRST_TAPS)
    seen = jnp.concatenate([cut[:, :, :-1], cut[:, :, 1:, :overlap]], axis=3)
    moved = [jnp.pad(taps, ((i, overlap - i), (0, 0))) for i in range(0, FIRST_TAPS, FIRST_STRIDE)]
    found = jnp.matmul(seen.reshape(-1, seen.shape[3]), jnp.concatenate(moved, axis=1), precision=blocks.PRECISION)
    return found.reshape(*x.shape[:2], -1, taps.shape[1])[:, :, :n]


def side_by_side(h: jax.Array, taps: jax.Array) -> jax.Array:
    """Convolution of h [b, c, n, d] with 2 taps of d features [2 d, f] every 2 vectors: [b, c, n // 2, f]."""
    b, c, n, d = h.shape
    pairs = h[:, :, : n // 2 * 2].reshape(-1, 2 * d)
    return jnp.matmul(pairs, taps, precision=blocks.PRECISION).reshape(b, c, n // 2, -1)


class Convolutions(nn.Module):
    """x [b, c, t] -> [b, c, n_vectors, 64]."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        h, n_in, taps = x, 1, FIRST_TAPS
        for i, width in enumerate(WIDTHS):
            draw = nn.initializers.normal(math.sqrt(2 / (n_in * taps)))
            weight = self.param(f'taps_{i}', draw, (width, n_in, taps))
            flat = weight.transpose(2, 1, 0).reshape(-1, width)
            h = side_by_side(h, flat) if i else self._norm(overlapping(h, flat))
            h = blocks.gelu(h)
            n_in, taps = width, 2
        return h

    def _norm(self, h: jax.Array) -> jax.Array:
        """Each feature of each channel over time."""
        gain = self.param('gain', nn.initializers.ones, (WIDTHS[0],))
        offset = self.param('offset', nn.initializers.zeros, (WIDTHS[0],))
        centred = h - h.mean(2, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(2, keepdims=True) + 1e-5) * gain + offset


def convolution_tensors() -> list[Tensor]:
    """braindecode's names of what `Convolutions` called 'convolutions' holds."""
    sizes = zip((1, *WIDTHS), WIDTHS, (FIRST_TAPS, 2, 2, 2, 2), strict=False)
    out = [
        Tensor(f'feature_encoder.{i + 1}.0.weight', (width, n_in, taps), ('params', 'convolutions', f'taps_{i}'))
        for i, (n_in, width, taps) in enumerate(sizes)
    ]
    name, path = 'feature_encoder.1.2', ('params', 'convolutions')
    norm = Tensor(f'{name}.weight', (8,), (*path, 'gain')), Tensor(f'{name}.bias', (8,), (*path, 'offset'))
    return [out[0], *norm, *out[1:]]
