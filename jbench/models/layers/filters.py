"""Filters along time, and the moments of what they see, in forms that are fast on CPUs too.

XLA's dense one-dimensional convolutions run at the speed of matrix products on CPUs; its grouped ones, and those of a
single input channel over an image, cost tens to hundreds of times as much, above all their gradients. So networks here
write a dense convolution as `conv`, one filter per channel as `fir`, and never build a tensor [b, f, c, t].
Axis letters: b batch, c channel, f and g features, t time, k tap.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.linen.dtypes import promote_dtype
from jax import lax

from jbench.models.layers.blocks import PRECISION

FEW = 16  # outputs per window up to which a convolution is faster as one product of matrices on CPUs
MANY = 1000  # channels times taps from which on a convolution of windows is faster by frequencies on CPUs


def conv(
    x: jax.Array, taps: jax.Array, pad: tuple[int, int] = (0, 0), dilation: int = 1, *, last: bool = False
) -> jax.Array:
    """Cross-correlation of x [f, b, t] with taps [g, f, k], zero-padded by `pad` samples before and after.

    out[g, b, s] = sum_fk taps[g, f, k] * x_padded[f, b, s + k * dilation]. With `last` x is [b, t, f], out [b, s, g].
    """
    if not last:
        return conv(x.transpose(1, 2, 0), taps, pad, dilation, last=True).transpose(2, 0, 1)
    x, taps = promote_dtype(x, taps)
    k = taps.shape[2]
    n_out = x.shape[1] + sum(pad) - (k - 1) * dilation
    if n_out > FEW or jax.default_backend() != 'cpu':
        return _conv(x, taps, pad, dilation)
    x = jnp.pad(x, ((0, 0), pad, (0, 0)))
    seen = jnp.concatenate([x[:, i * dilation : i * dilation + n_out] for i in range(k)], axis=2)
    return jnp.matmul(seen, taps.transpose(0, 2, 1).reshape(len(taps), -1).T, precision=PRECISION)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _conv(x: jax.Array, taps: jax.Array, pad: tuple[int, int], dilation: int) -> jax.Array:
    """`conv` with `last`, all of whose convolutions, those of the gradient too, have axes in one order.

    XLA's fast convolution on CPUs takes that order alone. Others it puts into that order first, but not inside of a
    loop, as the steps of an epoch are: there they take 10 to 25 times as long.
    """
    return _in_order(x, taps.transpose(2, 1, 0), pad, dilation)


def _conv_forward(x: jax.Array, taps: jax.Array, pad: tuple[int, int], dilation: int) -> tuple[jax.Array, Any]:
    return _conv(x, taps, pad, dilation), (x, taps)


def _conv_backward(pad: tuple[int, int], dilation: int, kept: Any, grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, taps = kept
    reach = (taps.shape[2] - 1) * dilation
    of_x = _in_order(grad, taps.transpose(2, 0, 1)[::-1], (reach - pad[0], reach - pad[1]), dilation)
    of_taps = _in_order(x.transpose(2, 1, 0), grad.transpose(1, 0, 2), pad, stride=dilation)  # windows as features
    return of_x, of_taps.transpose(2, 0, 1)


_conv.defvjp(_conv_forward, _conv_backward)


def _in_order(x: jax.Array, taps: jax.Array, pad: tuple[int, int], dilation: int = 1, *, stride: int = 1) -> jax.Array:
    """XLA's cross-correlation of x [b, t, f] with taps [k, f, g]."""
    order = ('NWC', 'WIO', 'NWC')
    return lax.conv_general_dilated(
        x, taps, (stride,), [pad], rhs_dilation=(dilation,), dimension_numbers=order, precision=PRECISION
    )


def spatiotemporal(x: jax.Array, temporal: jax.Array, spatial: jax.Array) -> jax.Array:
    """A temporal filter, then a spatial one, of windows x [b, c, t] as one dense convolution: [b, t - k + 1, g].

    temporal [f, k], spatial [g, f, c]: out[.., g] = sum_fck spatial[g, f, c] temporal[f, k] x[:, c, s + k]. No tensor
    [b, f, c, t] is built; windows are data, so only the filters have a gradient.
    """
    x, merged = promote_dtype(x, jnp.einsum('gfc,fk->gck', spatial, temporal, precision=PRECISION))
    c, k = merged.shape[1:]
    if c * k < MANY or jax.default_backend() != 'cpu':
        return conv(x.transpose(0, 2, 1), merged, last=True)
    # Written once: else XLA would exchange the axes anew in each pass that reads the result.
    return lax.optimization_barrier(by_fft(x, merged).transpose(0, 2, 1))


def by_fft(x: jax.Array, taps: jax.Array) -> jax.Array:
    """Cross-correlation of windows x [b, c, t] with taps [g, c, k], without padding: [b, g, t - k + 1].

    A product of matrices for each frequency, instead of one for each tap.
    """
    t, k, kind = x.shape[2], taps.shape[2], x.dtype
    x, taps = (a.astype(jnp.promote_types(a.dtype, jnp.float32)) for a in (x, taps))  # what there are transforms of
    length = fast_length(t)  # what wraps around falls on the last k - 1 values, which are cut
    angles = 2 * np.pi / length * np.outer(np.arange(length // 2 + 1), np.arange(k))
    waves = (jnp.asarray(a, taps.dtype) for a in (np.cos(angles), np.sin(angles)))
    wanted = lax.complex(*(jnp.einsum('wk,gck->wgc', a, taps, precision=PRECISION) for a in waves))
    found = jnp.einsum('wgc,bcw->bgw', wanted, jnp.fft.rfft(x, length), precision=PRECISION)
    return jnp.fft.irfft(found, length)[..., : t - k + 1].astype(kind)


def spatiotemporal_bias(temporal_bias: jax.Array, spatial: jax.Array) -> jax.Array:
    """What a bias [f] of the temporal filters adds to the output of `spatiotemporal`: [g]."""
    return jnp.matmul(spatial.sum(2), temporal_bias, precision=PRECISION)


def shifted(rows: jax.Array) -> jax.Array:
    """Rows [f, r, k] with row j moved by j columns: [f, r, r + k], zero elsewhere.

    Written as a reshape: rows of length r + k + 1 read with a stride of r + k shift by one each. A gather would do, but
    its gradient is a scatter, which is slow everywhere.
    """
    f, r, k = rows.shape
    longer = jnp.pad(rows, ((0, 0), (0, 0), (0, r + 1))).reshape(f, -1)
    return longer[:, : r * (r + k)].reshape(f, r, r + k)


def toeplitz(taps: jax.Array, block: int) -> jax.Array:
    """Banded matrices [f, block, block + k] whose row j holds taps [f, k] from column j on."""
    return shifted(jnp.broadcast_to(taps[:, None], (len(taps), block, taps.shape[1])))


def fir(x: jax.Array, taps: jax.Array, pad: tuple[int, int], block: int = 64) -> jax.Array:
    """Cross-correlation of the rows x [f, r, t] with taps [f, k], zero-padded by `pad` samples before and after.

    out[f, r, s] = sum_k taps[f, k] * x_padded[f, r, s + k], s = 0 .. t + sum(pad) - k. Each row is cut into blocks; a
    block of outputs is its block of inputs and the next ones (k - 1 samples more) times one banded matrix, hence a
    GEMM: XLA's gradient of a grouped convolution costs some 40 times as much on CPU (16 groups, 480 samples).
    """
    n, rows, t = x.shape
    k = taps.shape[1]
    n_out = t + sum(pad) - k + 1
    n_blocks = -(-n_out // block)
    n_spans = -(-(block + k - 1) // block)  # blocks of input that one block of output sees
    length = (n_blocks + n_spans - 1) * block
    kept = min(t, length - pad[0])  # x's last samples touch no output when the taps are longer than the padding
    cut = jnp.pad(x[..., :kept], ((0, 0), (0, 0), (pad[0], length - pad[0] - kept))).reshape(n, rows, -1, block)
    spans = jnp.concatenate([cut[:, :, i : i + n_blocks] for i in range(n_spans)], axis=-1)
    bands = toeplitz(taps, block)[..., : n_spans * block]
    bands = jnp.pad(bands, ((0, 0), (0, 0), (0, n_spans * block - bands.shape[-1])))
    out = jnp.einsum('frw,fjw->frj', spans.reshape(n, rows * n_blocks, -1), bands, precision=PRECISION)
    return out.reshape(n, rows, -1)[..., :n_out]


def fast_length(n: int) -> int:
    """Smallest number >= n with no prime factor beyond 5: FFTs of such lengths are fast everywhere."""
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


@jax.custom_jvp
def elu(x: jax.Array) -> jax.Array:
    """x, or exp(x) - 1 below 0. The same exponential is the derivative; `nn.elu` takes a dearer one and a choice."""
    return jnp.maximum(x, 0) + (jnp.exp(jnp.minimum(x, 0)) - 1)


@elu.defjvp
def _elu_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    slope = jnp.exp(jnp.minimum(primals[0], 0))
    return jnp.maximum(primals[0], 0) + (slope - 1), slope * tangents[0]


def elu_mean(x: jax.Array, width: int) -> jax.Array:
    """Means of neighbouring `width` samples of ELU(x), [f, b, t] -> [f, b, t // width]; the rest at the end is dropped.

    As a product with a small matrix of several means: the gradient of a sum over groups of a few samples keeps XLA from
    vectorising what is fused with it, which doubles the time of a norm, an ELU and a mean on a CPU.
    """
    f, b, t = x.shape
    n = t // width
    several = max(d for d in range(1, 17) if n % d == 0)
    means = jnp.asarray(np.repeat(np.eye(several), width, axis=0) / width, x.dtype)
    cut = elu(x[..., : n * width]).reshape(-1, several * width)
    return jnp.matmul(cut, means, precision=PRECISION).reshape(f, b, n)
