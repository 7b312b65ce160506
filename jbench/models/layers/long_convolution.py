"""Long convolutions along a row of tokens, as CodeBrain's: sparse taps at all lags (Li et al. 2022, SGConv).

A filter has taps forwards and backwards: ten pieces of two numbers each, stretched by linear interpolation to 2, 2, 4,
8, ... 512 taps, 1024 in all, each piece `decay` times as strong as the next, divided by `size`. Both are no parameters:
`decay` is 2, `size` the norm of the 1024 taps at the initial weights. They are kept and read with the weights, and
training leaves them alone.

The products go by the Fourier transform of the next length that has only small factors, never in less than float32;
pieces that begin behind the row are not made.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.layers.blocks import PRECISION
from jbench.models.torch_weights import Tensor

FILTERS, PIECES = 4, 10  # of each value, either way; of the taps of one
TAPS = 2**PIECES


class LongConvolution(nn.Module):
    """x [b, l, width] -> [b, l, width]: four convolutions of each value, GELU, whole rows dropped, a linear layer."""

    width: int
    dropout: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        normal, (b, length, f) = nn.initializers.normal(1.0), x.shape
        pieces = self.param('pieces', normal, (PIECES, 2 * FILTERS, f, 2))
        skip = self.param('skip', normal, (FILTERS, f))
        decay = self.variable('batch_stats', 'decay', lambda: jnp.full((f,), 2.0)).value
        size = self.variable('batch_stats', 'size', lambda: _size(pieces, decay)).value
        kernels = taps(pieces, decay, length) / size[..., None]
        x = x.transpose(0, 2, 1)[:, None]  # [b, 1, f, l]
        h = along(x, kernels[:FILTERS], kernels[FILTERS:]) + x * skip[..., None]
        h = blocks.gelu(h).reshape(b, FILTERS * f, length)
        h = blocks.dropout(h, self.dropout, key, self.axis_name, batch_axis=0, channels=True)
        return blocks.Linear(FILTERS * f, f, name='out')(h.transpose(0, 2, 1))


def along(x: jax.Array, forward: jax.Array, backward: jax.Array) -> jax.Array:
    """Sums of forward[j] x[t - j], j >= 0, and of backward[j] x[t + 1 + j], over the last axis, zeros around.

    x [..., l] and either taps [..., l] are multiplied by the rules of NumPy.
    """
    from scipy.fft import next_fast_len  # takes its time

    length = x.shape[-1]
    n = next_fast_len(2 * length - 1, real=True)
    wide = jnp.promote_types(x.dtype, jnp.float32)
    gap = jnp.zeros((*forward.shape[:-1], n - 2 * length + 1), wide)
    ring = jnp.concatenate([forward.astype(wide), gap, backward[..., : length - 1][..., ::-1].astype(wide)], -1)
    product = jnp.fft.rfft(x.astype(wide), n) * jnp.fft.rfft(ring)
    return jnp.fft.irfft(product, n)[..., :length].astype(x.dtype)


def _size(pieces: jax.Array, decay: jax.Array) -> jax.Array:
    return jnp.sqrt((taps(pieces, decay, TAPS) ** 2).sum(2))


def stretched(n: int) -> np.ndarray:
    """The first n taps [pieces that begin before n, 2, n]: how much each number of each piece is in them."""
    out, begin = [], 0
    for i in range(PIECES):
        factor = 2 ** max(0, i - 1)
        places = np.arange(n) - begin
        inside = (places >= 0) & (places < 2 * factor)
        second = np.clip((places + 0.5) / factor - 0.5, 0, 1)
        out.append(np.where(inside, [1 - second, second], 0))
        begin += 2 * factor
    return np.array([piece for piece in out if piece.any()])


def taps(pieces: jax.Array, decay: jax.Array, n: int) -> jax.Array:
    """The first n taps [r, f, n] of pieces [10, r, f, 2]; decay [f]: from a piece to the next, the last has 1."""
    shares = stretched(n)
    strength = decay ** np.arange(PIECES - 1, -1, -1)[: len(shares), None]
    scaled = (pieces[: len(shares)] * strength[:, None, :, None]).transpose(1, 2, 0, 3)
    joined = scaled.reshape(*scaled.shape[:2], -1)
    return jnp.matmul(joined, jnp.asarray(shares.reshape(-1, n), joined.dtype), precision=PRECISION)


def long_tensors(name: str, path: tuple[str, ...], width: int) -> list[Tensor]:
    """The entries of the reference's `_GConv` called `name`, for a `LongConvolution` at `path`."""
    weights, fixed, rows = ('params', *path), ('batch_stats', *path), 2 * FILTERS
    return [
        Tensor(f'{name}.skip_weight', (FILTERS, width), (*weights, 'skip')),
        Tensor(f'{name}.multiplier', (1, width, 1), (*fixed, 'decay')),
        Tensor(f'{name}.kernel_norm', (rows, width, 1), (*fixed, 'size')),
        Tensor(f'{name}.kernel_norm_initialized', (), (), constant=1),
        *(Tensor(f'{name}.kernel_list.{i}', (rows, width, 2), (*weights, 'pieces'), i) for i in range(PIECES)),
        *torch_weights.linear_tensors(f'{name}.output_linear', (*path, 'out'), FILTERS * width, width),
    ]
