"""Layers shared by the networks.

They work on any float type, so the tests can run them in float64. Axis letters: b batch, c channel, f feature, t time,
k tap.

Devices: where `axis_name` is given, batch statistics are sums and counts added over that mapped axis, so that N devices
compute what one device computes on the whole batch. The transpose of `psum` is `psum`: the gradient is right when every
device returns its share of one global loss (local losses ADD up to it) and the gradients are added, not averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models.layers import rows

# Statistics of long signals lose too much in the shortened products that GPU and TPU use by default; free on CPU.
PRECISION = lax.Precision.HIGHEST

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of threefry2x32, in bits


class Moments(NamedTuple):
    """What one batch says about each feature."""

    mean: jax.Array  # [f]
    var: jax.Array  # [f], biased
    n: jax.Array  # scalar: values per feature, over all devices


def add_devices(value: Any, axis_name: str | None) -> Any:
    """Sum of a pytree over the mapped axis; the pytree itself where there is none."""
    return value if axis_name is None else lax.psum(value, axis_name)


def split(key: jax.Array | None, n: int) -> Sequence[jax.Array | None]:
    """n keys of one; n times None of None (no dropout)."""
    return [None] * n if key is None else list(jax.random.split(key, n))


def dropout(
    x: jax.Array,
    rate: float,
    key: jax.Array | None,
    axis_name: str | None = None,
    *,
    batch_axis: int = 1,
    channels: bool = False,
) -> jax.Array:
    """Zeroes each value of x [f, b, ...] with probability `rate` and scales the others by 1/(1-rate).

    The mask is drawn for the whole batch, and each piece of it takes its own rows (`rows`), so it is the same however
    they are split. Key None leaves x alone. `batch_axis` says where b is; with `channels` the last axis lives or dies
    as one (torch's Dropout1d and Dropout2d).
    """
    if key is None or rate == 0:
        return x
    shape = x.shape[:-1] + (1,) if channels else x.shape
    return jnp.where(kept(key, rate, shape, axis_name, batch_axis), x / (1 - rate), 0)


def drop_path(x: jax.Array, rate: float, key: jax.Array | None, axis_name: str | None = None) -> jax.Array:
    """Zeroes each row x [b, ...] as a whole with probability `rate` and scales the others by 1/(1-rate): a branch that
    some windows do without (Huang et al. 2016). Drawn as in `dropout`."""
    if key is None or rate == 0:
        return x
    whole = (len(x),) + (1,) * (x.ndim - 1)
    return jnp.where(kept(key, rate, whole, axis_name, 0), x / (1 - rate), 0)


def kept(key: jax.Array, rate: float, shape: tuple[int, ...], axis_name: str | None, batch_axis: int) -> jax.Array:
    """What a dropout of x [shape] keeps: each value is true with probability 1 - rate; see `dropout`."""
    (n, here), b = rows.piece(axis_name), shape[batch_axis]
    every = _bernoulli(key, rate, (*shape[:batch_axis], n * b, *shape[batch_axis + 1 :]))
    return every if n == 1 else lax.dynamic_slice_in_dim(every, here * b, b, axis=batch_axis)


def _bernoulli(key: jax.Array, rate: float, shape: tuple[int, ...]) -> jax.Array:
    """True with probability 1 - rate. Random bits are dear: rates of 1/2, 1/4, ... take as few as they need, all others
    16, to within 2^-17 of the rate."""
    needed = next((k for k in (1, 2, 4, 8) if (rate * 2**k).is_integer()), 16)
    n, each = math.prod(shape), 32 // needed
    words = random_words(key, -(-n // each))
    numbers = words >> needed * jnp.arange(each, dtype=jnp.uint32)[:, None] & 2**needed - 1
    return (numbers.reshape(-1)[:n] >= round(rate * 2**needed)).reshape(shape)


def random_words(key: jax.Array, n: int) -> jax.Array:
    """What `jax.random.bits` gives for n below 2^32, u32 [n], of a key of threefry2x32: its rounds in one pass.

    Threefry with 20 rounds (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3) of the places 0..n-1.
    jax loops over the rounds on a CPU, and writes all words to memory in each of five turns: five times as slow there.
    """
    first, second = jax.random.key_data(key)
    keys = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    place = jnp.arange(n, dtype=jnp.uint32)
    a, b = jnp.zeros_like(place) + keys[0], place + keys[1]
    for turn in range(5):
        for left in ROTATIONS[turn % 2]:
            a = a + b
            b = a ^ (b << np.uint32(left) | b >> np.uint32(32 - left))
        a, b = a + keys[(turn + 1) % 3], b + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return a ^ b


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


def xavier(fan_in: int, fan_out: int) -> Callable[..., jax.Array]:
    """Initialiser of Glorot & Bengio (2010): uniform with variance 2 / (fan_in + fan_out)."""
    return uniform(math.sqrt(6 / (fan_in + fan_out)))


def average_pool(x: jax.Array, width: int, stride: int | None = None, *, axis: int = -1) -> jax.Array:
    """Means of `width` neighbouring samples every `stride` along `axis` (None: side by side; else a divisor of width).

    Samples at the end that fill no window are dropped. Overlapping windows share the sums of their blocks.
    """
    axis, overlap = axis % x.ndim, width // (stride or width)
    sums = _cut(x, stride or width, axis).sum(axis + 1)
    last = sums.shape[axis] - overlap + 1
    parts = [lax.slice_in_dim(sums, i, last + i, axis=axis) for i in range(overlap)]
    return reduce(jnp.add, parts) / width


def max_pool(x: jax.Array, width: int, *, axis: int = -1) -> jax.Array:
    """Largest of neighbouring `width` samples along `axis`, t -> t // width; the rest at the end is dropped.

    The gradient goes to the first of equal samples, as in torch (that of `max` would be shared among them).
    """
    axis %= x.ndim
    cut = _cut(x, width, axis)
    parts = [lax.index_in_dim(cut, i, axis + 1, keepdims=False) for i in range(width)]
    return reduce(lambda a, b: jnp.where(b > a, b, a), parts)


def _cut(x: jax.Array, width: int, axis: int) -> jax.Array:
    """x with an axis in blocks, [..., t, ...] -> [..., t // width, width, ...]; the rest at the end is dropped."""
    n = x.shape[axis] // width
    x = lax.slice_in_dim(x, 0, n * width, axis=axis)
    return x.reshape(*x.shape[:axis], n, width, *x.shape[axis + 1 :])


def batch_moments(x: jax.Array, mask: jax.Array, axis_name: str | None = None, *, last: bool = False) -> Moments:
    """Mean and biased variance of x [f, b, t] over the rows b where mask [b] is true (and over all devices).

    With `last` x is [b, t, f].
    """
    time, letters = (1, 'bf,b->f') if last else (2, 'fb,b->f')
    valid = mask.astype(x.dtype)

    def total(value: jax.Array) -> jax.Array:  # over times first: a factor for each value would be written out
        return add_devices(jnp.einsum(letters, value.sum(time), valid, precision=PRECISION), axis_name)

    n = add_devices(valid.sum(), axis_name) * x.shape[time]
    mean = total(x) / jnp.maximum(n, 1)
    # Centred second pass. The variance does not change to first order with the centre, so no gradient is lost here.
    centre = jnp.expand_dims(lax.stop_gradient(mean), (0, 1) if last else (1, 2))
    return Moments(mean, total((x - centre) ** 2) / jnp.maximum(n, 1), n)


class BatchNorm(nn.Module):
    """Batch normalisation over axes (b, t) with the conventions of `torch.nn.BatchNorm`.

    running <- (1 - momentum) * running + momentum * batch, where the running variance takes the unbiased batch variance
    and the normalisation the biased one. A batch without a single valid row leaves the running values alone.
    """

    features: int
    momentum: float = 0.1
    eps: float = 1e-5
    axis_name: str | None = None
    last: bool = False  # features are the last axis of what is normalised: [b, t, f]

    def setup(self) -> None:
        self.scale = self.param('scale', nn.initializers.ones, (self.features,))
        self.bias = self.param('bias', nn.initializers.zeros, (self.features,))
        self.mean = self.variable('batch_stats', 'mean', jnp.zeros, (self.features,))
        self.var = self.variable('batch_stats', 'var', jnp.ones, (self.features,))

    def fold(self, moments: Moments | None) -> tuple[jax.Array, jax.Array]:
        """Gain and offset [f] such that the normalised value is gain * x + offset; moments None: evaluation."""
        mean, gain = self._centre_and_gain(moments)
        return gain, self.bias - mean * gain

    def __call__(self, x: jax.Array, mask: jax.Array, *, train: bool, bias: jax.Array | None = None) -> jax.Array:
        """Normalised x [f, b, t]; in training by the statistics of the rows where mask [b] is true.

        A `bias` [f] of the layer before, not added to x yet, costs no pass over x, and does nothing in training but
        move the running mean.
        """
        bias = jnp.zeros(self.features, x.dtype) if bias is None else bias
        moments = batch_moments(x, mask, self.axis_name, last=self.last) if train else None
        mean, gain = self._centre_and_gain(moments and moments._replace(mean=moments.mean + bias))
        centre = mean - bias if moments is None else moments.mean
        shape = (1, 1, -1) if self.last else (-1, 1, 1)
        return (x - centre.reshape(shape)) * gain.reshape(shape) + self.bias.reshape(shape)

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


def gelu(x: jax.Array) -> jax.Array:
    """x times the normal distribution function of x (`jax.nn.gelu` goes by erfc, at twice the time)."""
    return x * (0.5 + 0.5 * lax.erf(x / math.sqrt(2)))


class Linear(nn.Module):
    """x [..., n_in] @ weight.T + bias, weight [n_out, n_in] as torch keeps and, unless told otherwise, draws it."""

    n_in: int
    n_out: int
    draw: Callable[..., jax.Array] | None = None  # initialiser of the weight; None: torch's
    draw_bias: Callable[..., jax.Array] | None = None

    def setup(self) -> None:
        bound = uniform(1 / math.sqrt(self.n_in))
        self.weight = self.param('weight', self.draw or bound, (self.n_out, self.n_in))
        self.bias = self.param('bias', self.draw_bias or bound, (self.n_out,))

    def __call__(self, x: jax.Array) -> jax.Array:
        # One product for all rows: XLA's products over several axes are slower on CPUs.
        flat = jnp.matmul(x.reshape(-1, self.n_in), self.weight.T, precision=PRECISION) + self.bias
        return flat.reshape(*x.shape[:-1], self.n_out)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def normalised(x: jax.Array, eps: float) -> jax.Array:
    """Each row of x [..., d] minus its mean, divided by its deviation (biased, eps under the root).

    The gradient keeps x and two numbers a row: a third of the time of what jax derives.
    """
    return _normalised(x, eps)[0]


def _normalised(x: jax.Array, eps: float) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    mean = x.mean(-1, keepdims=True)
    gain = lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)
    if jax.default_backend() == 'cpu':  # else XLA writes a row's gain once for every feature
        gain = lax.optimization_barrier(gain)
    return (x - mean) * gain, (x, mean, gain)


def _normalised_gradient(eps: float, saved: tuple[jax.Array, ...], grad: jax.Array) -> tuple[jax.Array]:
    x, mean, gain = saved
    unit = (x - mean) * gain
    along = (grad * unit).mean(-1, keepdims=True)
    return ((grad - grad.mean(-1, keepdims=True) - unit * along) * gain,)


normalised.defvjp(_normalised, _normalised_gradient)


class LayerNorm(nn.Module):
    """Normalisation of each row of x [..., d] by its own mean and biased variance, then gain and offset."""

    features: int
    eps: float = 1e-5

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        scale = self.param('scale', nn.initializers.ones, (self.features,))
        bias = self.param('bias', nn.initializers.zeros, (self.features,))
        return normalised(x, self.eps) * scale + bias
