"""The parts of LUNA; see `luna.py`. Axis letters: r windows and patches, c channels, q queries, d their width."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.layers.attention import PackedAttention, packed_tensors
from jbench.models.layers.blocks import PRECISION
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.torch_weights import Tensor

HEADS = 2  # over channels and over queries
EPS = 1e-5  # of layer norms
ZEROS = nn.initializers.zeros


def _drawn(n_in: int, n_out: int, shrunk: float = 1.0) -> nn.initializers.Initializer:
    """Glorot & Bengio (2010), normal; divided by `shrunk`."""
    return nn.initializers.normal(math.sqrt(2 / (n_in + n_out)) / shrunk)


def _linear(n_in: int, n_out: int, name: str, shrunk: float = 1.0) -> blocks.Linear:
    return blocks.Linear(n_in, n_out, _drawn(n_in, n_out, shrunk), ZEROS, name=name)


# arctan(a) / a for a from 0 to 1, in powers of a^2, the constant last: within 2e-8 (Chebyshev)
ARCTAN = (
    np.polynomial.Chebyshev.interpolate(lambda square: np.arctan(square**0.5) / square**0.5, 8, domain=(0, 1))
    .convert(kind=np.polynomial.Polynomial)
    .coef[::-1]
)


@jax.custom_jvp
def phase(y: jax.Array, x: jax.Array) -> jax.Array:
    """The angle of x + iy, finite and not both 0, from -pi to pi, which of a negative x and a y of 0 is pi.

    In float32 within 4e-7 of `jnp.arctan2`, which a processor computes value by value; in other types, that itself.
    """
    if x.dtype != jnp.float32:
        return jnp.arctan2(y, x)
    a, b = jnp.abs(x), jnp.abs(y)
    ratio = jnp.minimum(a, b) / jnp.maximum(a, b)
    angle = ratio * jnp.polyval(jnp.asarray(ARCTAN, x.dtype), ratio**2)
    angle = jnp.where(b > a, math.pi / 2 - angle, angle)
    angle = jnp.where(x < 0, math.pi - angle, angle)
    return jnp.where(y < 0, -angle, angle)


@phase.defjvp
def _(at: tuple[jax.Array, jax.Array], change: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    (y, x), (dy, dx) = at, change
    return phase(y, x), (x * dy - y * dx) / (x**2 + y**2)


def spectrum(x: jax.Array) -> jax.Array:
    """Amplitudes, then phases, of the Fourier coefficients of patches x [..., n], n even: [..., 2 (n // 2 + 1)].

    Parts of a coefficient that are nothing but rounding are 0, and the phase of 0 is 0.
    """
    n = x.shape[-1]
    angle = 2 * math.pi / n * (np.outer(np.arange(n), np.arange(n // 2 + 1)) % n)
    waves = jnp.asarray(np.concatenate([np.cos(angle), -np.sin(angle)[:, 1:-1]], 1), x.dtype)
    flat = jnp.matmul(x.reshape(-1, n), waves, precision=PRECISION).reshape(*x.shape[:-1], -1)
    rounding = 4 * jnp.finfo(x.dtype).eps * jnp.abs(x).sum(-1, keepdims=True)
    flat = jnp.where(jnp.abs(flat) > rounding, flat, 0)
    ends = [(0, 0)] * (x.ndim - 1) + [(1, 1)]
    real, imaginary = flat[..., : n // 2 + 1], jnp.pad(flat[..., n // 2 + 1 :], ends)  # the ends are real
    power = real**2 + imaginary**2
    some = power > 0  # elsewhere no derivative either
    phases = phase(imaginary, jnp.where(some, real, 1))
    return jnp.concatenate([jnp.where(some, jnp.sqrt(jnp.where(some, power, 1)), 0), phases], -1)


class Spectrum(nn.Module):
    """What is added to a token for the spectrum of its patch x [..., samples]."""

    width: int
    samples: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        n = 2 * (self.samples // 2 + 1)
        h = blocks.gelu(_linear(n, 4 * n, 'wide')(spectrum(x)))
        return _linear(4 * n, self.width, 'narrow')(h)


class Code(nn.Module):
    """What is added to the tokens of a channel for its place [c, d]."""

    width: int
    norm: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        h = blocks.gelu(_linear(self.width, 2 * self.width, 'wide')(x))
        h = blocks.LayerNorm(2 * self.width, name='norm')(h) if self.norm else h
        return _linear(2 * self.width, self.width, 'narrow')(h)


def _of_one_length(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """A random direction: `torch.nn.init.orthogonal_` of one row."""
    drawn = jax.random.normal(key, shape)
    return drawn / jnp.sqrt((drawn**2).sum())


class Unify(nn.Module):
    """Learnt queries look at the tokens of all channels x [r, c, d]: [r, q, d].

    A key is a linear map of a token without its bias, which no query tells apart; the sum over channels and the map to
    values change places. So both layer norms need one normalisation, and their gains go into the maps.
    """

    queries: int
    width: int
    norm: bool
    rate: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        d, h, q = self.width, HEADS, self.queries
        keys = blocks.split(key, 3)
        asked = self.param('queries', _of_one_length, (q, d))
        weight = self.param('in_weight', blocks.xavier(d, 3 * d), (3 * d, d))
        bias = self.param('in_bias', ZEROS, (3 * d,))
        gains = {name: self.param(f'{name}_scale', nn.initializers.ones, (d,)) for name in ('keys', 'values')}
        offsets = {name: self.param(f'{name}_bias', ZEROS, (d,)) for name in ('keys', 'values')}

        asked = blocks.LayerNorm(d, name='queries_norm')(asked)
        asked = jnp.matmul(asked, weight[:d].T, precision=PRECISION) + bias[:d]
        asked = asked.reshape(q, h, -1) / math.sqrt(d // h)
        looked = jnp.einsum('qhe,hed->hqd', asked, weight[d : 2 * d].reshape(h, -1, d), precision=PRECISION)
        looked = (looked * gains['keys']).reshape(h * q, d)

        unit = blocks.normalised(x, EPS)
        scores = jnp.matmul(unit.reshape(-1, d), looked.T, precision=PRECISION).reshape(*x.shape[:2], h * q)
        shares = jax.nn.softmax(scores, axis=1)
        dropped = blocks.dropout(shares, self.rate, keys[0], self.axis_name, batch_axis=0)
        found = jnp.einsum('rck,rcd->rkd', dropped, unit, precision=PRECISION) * gains['values']
        total = dropped.sum(1)[..., None]  # 1 without dropout
        found = (found + offsets['values'] * total).reshape(-1, h, q, d)
        values = jnp.einsum('rhqd,hed->rqhe', found, weight[2 * d :].reshape(h, -1, d), precision=PRECISION)
        values = values + bias[2 * d :].reshape(h, -1) * total.reshape(-1, h, q, 1).swapaxes(1, 2)
        return self._widened(_linear(d, d, 'out')(values.reshape(-1, q, d)), keys[1:])

    def _widened(self, y: jax.Array, keys: Sequence[jax.Array | None]) -> jax.Array:
        hidden = 4 * self.width

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.rate, keys[which], self.axis_name, batch_axis=0)

        h = drop(blocks.gelu(_linear(self.width, hidden, 'wide')(y)), 0)
        h = blocks.LayerNorm(hidden, name='norm')(h) if self.norm else h
        return y + drop(_linear(hidden, self.width, 'narrow')(h), 1)


class QueryLayer(nn.Module):
    """A pre-norm layer over the queries of one patch, x [r, q, d]."""

    width: int
    rate: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        d, keys = self.width, blocks.split(key, 4)

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.rate, keys[which], self.axis_name, batch_axis=0)

        attention = PackedAttention(d, HEADS, self.rate, self.axis_name, _drawn(d, d), name='attention')
        x = x + drop(attention(blocks.LayerNorm(d, name='norm_1')(x), keys[0]), 1)
        h = drop(blocks.gelu(_linear(d, 4 * d, 'wide')(blocks.LayerNorm(d, name='norm_2')(x))), 2)
        return x + drop(_linear(4 * d, d, 'narrow')(h), 3)


def rotated(x: jax.Array) -> jax.Array:
    """Pairs of neighbouring features of x [b, l, h, size] turned by their place, as two halves (Su et al. 2021)."""
    length, half = x.shape[1], x.shape[-1] // 2
    angle = np.arange(length)[:, None, None] * 10000.0 ** (-np.arange(half) / half)
    cos, sin = jnp.asarray(np.cos(angle), x.dtype), jnp.asarray(np.sin(angle), x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nn.Module):
    """Block `which`, from 0, over the patches, x [b, s, width]."""

    heads: int
    width: int
    which: int
    drop_path: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        first, second = blocks.split(key, 2)
        d, shrunk = self.width, math.sqrt(2 * (self.which + 1))
        joined = _linear(d, 3 * d, 'joined')(blocks.LayerNorm(d, name='norm_1')(x))
        q, k, v = (joined.reshape(*x.shape[:2], 3, self.heads, -1)[:, :, i] for i in range(3))
        q, k, v = (a.transpose(0, 2, 1, 3) for a in (rotated(q), rotated(k), v))
        h = _linear(d, d, 'out', shrunk)(attend_wide(q, k, v).transpose(0, 2, 1, 3).reshape(x.shape))
        x = x + blocks.drop_path(h, self.drop_path, first, self.axis_name)
        h = blocks.gelu(_linear(d, 4 * d, 'wide')(blocks.LayerNorm(d, name='norm_2')(x)))
        h = _linear(4 * d, d, 'narrow', shrunk)(blocks.LayerNorm(4 * d, name='norm_3')(h))
        return x + blocks.drop_path(h, self.drop_path, second, self.axis_name)


def unify_tensors(queries: int, d: int, mlp_norm: bool, n_layers: int) -> list[Tensor]:
    """The entries of the reference's `cross_attn`, without `temperature`: `Unify`, then each `QueryLayer`."""
    linear, norm = torch_weights.linear_tensors, torch_weights.layer_norm_tensors
    name, ours = 'cross_attn', ('params', 'unify')
    out = [
        Tensor(f'{name}.query_embed', (1, queries, d), (*ours, 'queries')),
        *packed_tensors(f'{name}.cross_attention', ('unify',), d),
        *linear(f'{name}.ffn.fc1', ('unify', 'wide'), d, 4 * d),
        *linear(f'{name}.ffn.fc2', ('unify', 'narrow'), 4 * d, d),
        *(norm(f'{name}.ffn.norm', ('unify', 'norm'), 4 * d) if mlp_norm else ()),
    ]
    for part in ('keys', 'values'):
        out.append(Tensor(f'{name}.{part}_norm.weight', (d,), (*ours, f'{part}_scale')))
        out.append(Tensor(f'{name}.{part}_norm.bias', (d,), (*ours, f'{part}_bias')))
    out += norm(f'{name}.queries_norm', ('unify', 'queries_norm'), d)
    for i in range(n_layers):
        theirs, layer = f'{name}.query_self_attn.layers.{i}', f'query_layer_{i}'
        out += packed_tensors(f'{theirs}.self_attn', (layer, 'attention'), d)
        out += linear(f'{theirs}.linear1', (layer, 'wide'), d, 4 * d)
        out += linear(f'{theirs}.linear2', (layer, 'narrow'), 4 * d, d)
        out += norm(f'{theirs}.norm1', (layer, 'norm_1'), d) + norm(f'{theirs}.norm2', (layer, 'norm_2'), d)
    return out


def block_tensors(theirs: str, ours: str, d: int) -> list[Tensor]:
    """The entries of a block of the reference, but for its rotary frequencies, for a `Block`."""
    linear, norm = torch_weights.linear_tensors, torch_weights.layer_norm_tensors
    return [
        *norm(f'{theirs}.norm1', (ours, 'norm_1'), d),
        *linear(f'{theirs}.attn.qkv_proj', (ours, 'joined'), d, 3 * d),
        *linear(f'{theirs}.attn.proj', (ours, 'out'), d, d),
        *norm(f'{theirs}.norm2', (ours, 'norm_2'), d),
        *linear(f'{theirs}.mlp.fc1', (ours, 'wide'), d, 4 * d),
        *linear(f'{theirs}.mlp.fc2', (ours, 'narrow'), 4 * d, d),
        *norm(f'{theirs}.mlp.norm', (ours, 'norm_3'), 4 * d),
    ]
