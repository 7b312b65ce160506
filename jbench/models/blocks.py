"""Building blocks shared by the networks, and the contract that every network fulfils.

A network is three kinds of pure function: `init` draws its variables, `apply` computes logits, `to_torch`/`from_torch`
translate the variables to and from the names of the reference implementation. Blocks work on any float type, so the
tests can run them in float64. Axis letters: b batch, c channel, f feature, t time, k tap.

Devices: where `axis_name` is given, batch statistics are sums and counts added over that mapped axis, so that N devices
compute what one device computes on the whole batch. The transpose of `psum` is `psum`: the gradient is right when every
device returns its share of one global loss (local losses ADD up to it) and the gradients are added, not averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Variables = dict[str, Any]  # {'params': pytree, 'state': pytree (batch statistics)}
Batch = Mapping[str, jax.Array]  # {'x': f32[B, C, T], 'mask': bool[B], ...}

# Statistics of long signals lose too much in the shortened products that GPU and TPU use by default; free on CPU.
PRECISION = lax.Precision.HIGHEST


class Model(NamedTuple):
    """A network as pure functions, built for one `Signal` and one number of outputs."""

    init: Callable[[jax.Array], Variables]  # init(key)
    apply: Callable[..., tuple[jax.Array, Any]]  # apply(variables, batch, *, train, key) -> (logits [B, n], new state)
    to_torch: Callable[[Variables], dict[str, np.ndarray]]
    from_torch: Callable[[Mapping[str, np.ndarray]], Variables]
    # precompute(x [B, C, T]) -> arrays [B, ...]: what training needs of each window alone. Computed once where windows
    # stay in memory, and carried in the batch; a batch without them computes them.
    precompute: Callable[[jax.Array], dict[str, jax.Array]] = lambda x: {}


class Moments(NamedTuple):
    """What one batch says about each feature."""

    mean: jax.Array  # [f]
    var: jax.Array  # [f], biased
    n: jax.Array  # scalar: values per feature, over all devices


def add_devices(value: Any, axis_name: str | None) -> Any:
    """Sum of a pytree over the mapped axis; the pytree itself where there is none."""
    return value if axis_name is None else lax.psum(value, axis_name)


def dropout(x: jax.Array, rate: float, key: jax.Array | None, axis_name: str | None = None) -> jax.Array:
    """Zeroes each value of x [f, b, ...] with probability `rate` and scales the others by 1/(1-rate).

    The mask is drawn for the rows of all devices and each takes its own, so it is the same however they are split. Key
    None leaves x alone.
    """
    if key is None or rate == 0:
        return x
    n, here = (1, 0) if axis_name is None else (lax.axis_size(axis_name), lax.axis_index(axis_name))
    f, b, *rest = x.shape
    keep = jax.random.bernoulli(key, 1 - rate, (f, n * b, *rest))
    keep = keep if n == 1 else lax.dynamic_slice_in_dim(keep, here * b, b, axis=1)
    return jnp.where(keep, x / (1 - rate), 0)


def max_norm(weight: jax.Array, limit: float) -> jax.Array:
    """Weight [f, ...] with every slice along axis 0 of L2 norm > limit scaled by limit/(norm + 1e-7).

    This is `torch.renorm` as a parametrisation: the raw weight stays unconstrained, the scaling is part of every
    forward pass, and the gradient flows through it (so a slice beyond the limit feels no pull along its direction).
    """
    squares = jnp.sum(weight**2, axis=tuple(range(1, weight.ndim)), keepdims=True)
    active = squares > limit**2
    norm = jnp.sqrt(jnp.where(active, squares, limit**2))  # a zero slice must not put 1/0 in the gradient
    return weight * jnp.where(active, limit / (norm + 1e-7), 1.0)


def uniform(bound: float) -> Callable[..., jax.Array]:
    """Initialiser U(-bound, bound), of the form flax expects: init(key, shape)."""

    def init(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.uniform(key, shape, jnp.float32, -bound, bound)

    return init


def average_pool(x: jax.Array, width: int) -> jax.Array:
    """Means of neighbouring `width` samples, [..., t] -> [..., t // width]; the rest at the end is dropped."""
    n = x.shape[-1] // width
    return x[..., : n * width].reshape(*x.shape[:-1], n, width).mean(-1)


def batch_moments(x: jax.Array, mask: jax.Array, axis_name: str | None = None) -> Moments:
    """Mean and biased variance of x [f, b, t] over the rows b where mask [b] is true (and over all devices)."""
    weight = mask.astype(x.dtype)[None, :, None]
    total, rows = add_devices(((x * weight).sum((1, 2)), weight.sum()), axis_name)
    count = rows * x.shape[2]
    mean = total / jnp.maximum(count, 1)
    # Centred second pass. The variance does not change to first order with the centre, so no gradient is lost here.
    deviation = x - lax.stop_gradient(mean)[:, None, None]
    squares = add_devices((deviation**2 * weight).sum((1, 2)), axis_name)
    return Moments(mean, squares / jnp.maximum(count, 1), count)


class BatchNorm(nn.Module):
    """Batch normalisation over axes (b, t) with the conventions of `torch.nn.BatchNorm`.

    running <- (1 - momentum) * running + momentum * batch, where the running variance takes the unbiased batch variance
    and the normalisation the biased one. A batch without a single valid row leaves the running values alone.
    """

    features: int
    momentum: float = 0.1
    eps: float = 1e-5
    axis_name: str | None = None

    def setup(self) -> None:
        self.scale = self.param('scale', nn.initializers.ones, (self.features,))
        self.bias = self.param('bias', nn.initializers.zeros, (self.features,))
        self.mean = self.variable('state', 'mean', jnp.zeros, (self.features,))
        self.var = self.variable('state', 'var', jnp.ones, (self.features,))

    def fold(self, moments: Moments | None) -> tuple[jax.Array, jax.Array]:
        """Gain and offset [f] such that the normalised value is gain * x + offset; moments None: evaluation."""
        mean, gain = self._centre_and_gain(moments)
        return gain, self.bias - mean * gain

    def __call__(self, x: jax.Array, mask: jax.Array, *, train: bool) -> jax.Array:
        """Normalised x [f, b, t]; in training by the statistics of the rows where mask [b] is true."""
        mean, gain = self._centre_and_gain(batch_moments(x, mask, self.axis_name) if train else None)
        return (x - mean[:, None, None]) * gain[:, None, None] + self.bias[:, None, None]

    def _centre_and_gain(self, moments: Moments | None) -> tuple[jax.Array, jax.Array]:
        if moments is None:
            return self.mean.value, self.scale * lax.rsqrt(self.var.value + self.eps)
        if not self.is_initializing():
            step = jnp.where(moments.n > 0, self.momentum, 0.0)
            unbiased = moments.var * (moments.n / jnp.maximum(moments.n - 1, 1))
            # Running values are for evaluation: nothing is differentiated through them.
            mean, unbiased = lax.stop_gradient((moments.mean, unbiased))
            self.mean.value = (self.mean.value * (1 - step) + mean * step).astype(self.mean.value.dtype)
            self.var.value = (self.var.value * (1 - step) + unbiased * step).astype(self.var.value.dtype)
        return moments.mean, self.scale * lax.rsqrt(moments.var + self.eps)


def toeplitz(taps: jax.Array, block: int) -> jax.Array:
    """Banded matrices [f, block, block + k] whose row j holds taps [f, k] from column j on.

    Written as tile and reshape: rows of length block + k + 1 read with a stride of block + k shift by one each. A
    gather would do, but its gradient is a scatter, which is slow everywhere.
    """
    n, k = taps.shape
    width = block + k
    row = jnp.pad(taps, ((0, 0), (0, width + 1 - k)))
    tiled = jnp.broadcast_to(row[:, None], (n, block, width + 1)).reshape(n, -1)
    return tiled[:, : block * width].reshape(n, block, width)


def fir(x: jax.Array, taps: jax.Array, pad: int, block: int = 64) -> jax.Array:
    """Cross-correlation of the rows x [f, r, t] with taps [f, k], zero-padded by `pad` samples on both sides.

    out[f, r, s] = sum_k taps[f, k] * x_padded[f, r, s + k], s = 0 .. t + 2*pad - k. Each row is cut into blocks; a
    block of outputs is its block of inputs and the next ones (k - 1 samples more) times one banded matrix, hence a
    GEMM: XLA's gradient of a grouped convolution costs some 40 times as much on CPU (16 groups, 480 samples).
    """
    n, rows, t = x.shape
    k = taps.shape[1]
    n_out = t + 2 * pad - k + 1
    n_blocks = -(-n_out // block)
    n_spans = -(-(block + k - 1) // block)  # blocks of input that one block of output sees
    length = (n_blocks + n_spans - 1) * block
    kept = min(t, length - pad)  # x's last samples touch no output when the taps are longer than the padding
    cut = jnp.pad(x[..., :kept], ((0, 0), (0, 0), (pad, length - pad - kept))).reshape(n, rows, -1, block)
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


def lag_sums(x: jax.Array, n_taps: int, pad: int) -> dict[str, jax.Array]:
    """What `lag_moments` needs of windows x [b, c, t]; it depends on each window alone, so it is computed once.

    With z = x - centre (one number a window), and z_padded its rows with `pad` zeros on both sides:

    Returns: lag_centre [b]; lag_trace [b, t], the sum of z over channels; lag_products [b, k (k + 1) / 2], the sums
    over channels and outputs s of z_padded[s + i] * z_padded[s + j] for the taps i <= j.

    The products come without the shifted signals, which would be k times the data. Summed over ALL shifts they depend
    on the lag j - i alone (one FFT); the shifts that are no outputs touch only the first and the last k - 1 samples of
    the padded row, and are subtracted along the diagonals of two small Gram matrices.
    """
    t = x.shape[-1]
    n_out = t + 2 * pad - n_taps + 1
    centre = x.mean((1, 2))
    z = x - centre[:, None, None]
    length = fast_length(t + n_taps)  # room for lags < n_taps without wrap-around
    spectrum = jnp.fft.rfft(z, length)
    every = jnp.fft.irfft((spectrum.real**2 + spectrum.imag**2).sum(1), length)[:, :n_taps]
    padded = jnp.pad(z, ((0, 0), (0, 0), (pad, pad)))
    edges = padded[..., : n_taps - 1], padded[..., n_out:]
    first, last = (jnp.einsum('bci,bcj->bij', e, e, precision=PRECISION) for e in edges)
    tap, lag = np.arange(n_taps)[:, None], np.arange(n_taps)[None, :]

    def diagonals(gram: jax.Array) -> jax.Array:
        return jnp.pad(gram, ((0, 0), (0, 1), (0, n_taps + 1)))[:, tap, tap + lag]  # [i, lag] = gram[i, i + lag], or 0

    before, after = diagonals(first), diagonals(last)
    before = jnp.cumsum(before, axis=1) - before  # samples before tap i: never the left factor of that tap
    after = jnp.cumsum(after[:, ::-1], axis=1)[:, ::-1]  # samples beyond the last output of tap i
    i, j = np.triu_indices(n_taps)
    return {
        'lag_centre': centre,
        'lag_trace': z.sum(1),
        'lag_products': (every[:, None] - before - after)[:, i, j - i],
    }


def lag_moments(
    sums: Batch, mask: jax.Array, n_chans: int, n_taps: int, pad: int, axis_name: str | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean [k] and biased covariance [k, k] of the k samples that a padded convolution sees at once; their number.

    Over all channels and outputs of the rows where mask [b] is true. A filter w [k] applied to all of them has mean
    w.mean and variance w' covariance w, without being applied. Both depend on the data alone (`lag_sums`), so no
    gradient flows into them. Offsets: a padded row is c * inside + z_padded, where c is the mean of all data and
    `inside` is 1 on its samples and 0 on the padding; the three parts of the covariance are added, so that no large
    numbers cancel.
    """
    centres, traces, products = (
        jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), lax.stop_gradient(a), 0)
        for a in (sums['lag_centre'], sums['lag_trace'], sums['lag_products'])
    )
    t = traces.shape[1]
    n_out = t + 2 * pad - n_taps + 1
    centre, n = add_devices((centres.sum(), mask.sum().astype(centres.dtype)), axis_name)
    at_least_one = jnp.maximum(n, 1)
    centre = centre / at_least_one
    shift = jnp.where(mask, centres - centre, 0)  # z of the whole batch is z of a window plus its shift
    parts = traces.sum(0), shift @ traces, products.sum(0), shift.sum(), (shift**2).sum()
    trace, shifted, product, shift_1, shift_2 = add_devices(parts, axis_name)

    window = np.arange(n_taps)[:, None] + np.arange(n_out)[None, :]  # [k, s] -> sample of the padded row
    ones = np.pad(np.ones(t), pad)[window]
    inside, both = (jnp.asarray(a, trace.dtype) for a in (ones, ones @ ones.T))
    i, j = np.triu_indices(n_taps)
    place = np.zeros((n_taps, n_taps), int)
    place[i, j] = place[j, i] = np.arange(len(i))

    def cross(row: jax.Array, weights: jax.Array) -> jax.Array:
        """weights [k, s] times the shifts of a padded row [t], plus the transpose."""
        found = jnp.matmul(weights, jnp.pad(row, pad)[window].T, precision=PRECISION)
        return found + found.T

    rows = at_least_one * n_chans
    product = product[place] + cross(shifted, inside) + n_chans * shift_2 * both
    varying = (trace + n_chans * shift_1) / rows
    mean_inside, mean_varying = jnp.asarray(ones.mean(1), trace.dtype), jnp.pad(varying, pad)[window].mean(1)
    covariance = product / (rows * n_out) - jnp.outer(mean_varying, mean_varying)
    covariance += centre * cross(varying, (inside - mean_inside[:, None]) / n_out)
    covariance += centre**2 * jnp.asarray(np.cov(ones, bias=True), trace.dtype)
    return centre * mean_inside + mean_varying, covariance, n * n_chans * n_out
