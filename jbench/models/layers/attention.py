"""Multi-head self-attention, with a gradient that keeps to few passes over memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers.blocks import PRECISION, Linear, kept, xavier
from jbench.models.layers.wide_attention import attend_wide, dropped
from jbench.models.torch_weights import Tensor, linear_tensors


class Attention(nn.Module):
    """Multi-head self-attention over x [b, l, d] with heads of `size`: softmax(q k' / sqrt(size)) v, projected to d.

    Vaswani et al. (2017), section 3.2. `rate`: dropout of the probabilities.
    """

    width: int
    heads: int
    size: int
    rate: float = 0.0
    axis_name: str | None = None

    def setup(self) -> None:
        inner = self.heads * self.size
        self.query, self.key, self.value = (Linear(self.width, inner) for _ in range(3))
        self.projection = Linear(inner, self.width)

    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        b, length, _ = x.shape
        parts = self.query, self.key, self.value
        weight, bias = jnp.concatenate([p.weight for p in parts]), jnp.concatenate([p.bias for p in parts])
        joined = jnp.matmul(x.reshape(-1, self.width), weight.T, precision=PRECISION) + bias  # one product for all
        q, k, v = joined.reshape(b, length, 3, self.heads, self.size).transpose(2, 0, 3, 4, 1)  # each [b, h, size, l]
        shape = (b, self.heads, length, length)
        keep = None if key is None or self.rate == 0 else kept(key, self.rate, shape, self.axis_name, 0)
        mixed = attend(q, k, v, keep, self.rate)
        return self.projection(mixed.transpose(0, 3, 1, 2).reshape(b, length, -1))


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def attend(q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, rate: float) -> jax.Array:
    """softmax(q' k / sqrt(size)), with dropout, times v: q, k, v and the result [b, h, size, l].

    `kept` [b, h, l of k, l of q] says which probabilities are kept, None all of them; those are scaled by 1/(1-rate).

    The products are small, the passes over [b, h, l, l] count: what is divided by the sums of the exponentials is the
    result, not each of them, and the gradient of the softmax takes its inner product from the result too (Dao et al.
    2022, FlashAttention, appendix B).
    """
    return _attend(q, k, v, kept, rate)[0]


def _attend(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, rate: float
) -> tuple[jax.Array, tuple[Any, ...]]:
    q = q / math.sqrt(q.shape[2])
    scores = _outer(k, q)
    powers = jnp.exp(scores - scores.max(2, keepdims=True))
    scale = 1 / powers.sum(2, keepdims=True)
    out = jnp.einsum('bhsk,bhkq->bhsq', v, dropped(powers, kept, rate), precision=PRECISION) * scale
    return out, (q, k, v, kept, powers, scale, out)


def _attend_gradient(rate: float, saved: tuple[Any, ...], grad: jax.Array) -> tuple[jax.Array | None, ...]:
    q, k, v, kept, powers, scale, out = saved
    inner = (grad * out).sum(2, keepdims=True) * scale
    grad = grad * scale
    of_scores = powers * (dropped(_outer(v, grad), kept, rate) - inner)
    of_q = jnp.einsum('bhkq,bhsk->bhsq', of_scores, k, precision=PRECISION) / math.sqrt(q.shape[2])
    of_k = jnp.einsum('bhkq,bhsq->bhsk', of_scores, q, precision=PRECISION)
    of_v = jnp.einsum('bhkq,bhsq->bhsk', dropped(powers, kept, rate), grad, precision=PRECISION)
    return of_q, of_k, of_v, None


attend.defvjp(_attend, _attend_gradient)


def _outer(a: jax.Array, b: jax.Array) -> jax.Array:
    """Sum over s of a [b, h, s, k] times b [b, h, s, q]: [b, h, k, q]. Few terms, so one pass beats many products."""
    return reduce(jnp.add, (a[:, :, i, :, None] * b[:, :, i, None, :] for i in range(a.shape[2])))


class PackedAttention(nn.Module):
    """Multi-head self-attention over x [r, l, d] as `torch.nn.MultiheadAttention` keeps and draws it: query, key and
    value are thirds of one matrix.

    `rate`: dropout of the probabilities; rows r are drawn together on all devices, b of a window lie side by side.
    """

    width: int
    heads: int
    rate: float = 0.0
    axis_name: str | None = None
    draw_out: Callable[..., jax.Array] | None = None  # initialiser of the projection; None: as a linear layer

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        rows, length, width = x.shape
        weight = self.param('in_weight', xavier(self.width, 3 * self.width), (3 * self.width, self.width))
        bias = self.param('in_bias', nn.initializers.zeros, (3 * self.width,))
        joined = jnp.matmul(x.reshape(-1, width), weight.T, precision=PRECISION) + bias
        q, k, v = joined.reshape(rows, length, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)  # each [r, h, l, s]
        shape = (rows, self.heads, length, length)
        keep = None if key is None or self.rate == 0 else kept(key, self.rate, shape, self.axis_name, 0)
        mixed = attend_wide(q, k, v, keep, self.rate).transpose(0, 2, 1, 3).reshape(rows, length, width)
        return Linear(width, width, self.draw_out, nn.initializers.zeros, name='out')(mixed)


def packed_tensors(name: str, path: tuple[str, ...], width: int) -> list[Tensor]:
    """The four entries of a `torch.nn.MultiheadAttention` called `name`, for a `PackedAttention` at `path`."""
    return [
        Tensor(f'{name}.in_proj_weight', (3 * width, width), ('params', *path, 'in_weight')),
        Tensor(f'{name}.in_proj_bias', (3 * width,), ('params', *path, 'in_bias')),
        *linear_tensors(f'{name}.out_proj', (*path, 'out'), width, width),
    ]
