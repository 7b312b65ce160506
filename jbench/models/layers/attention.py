"""Multi-head self-attention, with a gradient that keeps to few passes over memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models.layers.blocks import PRECISION, Linear, kept, xavier
from jbench.models.torch_weights import Tensor, linear_tensors


class Cut(NamedTuple):
    """How `attend_wide` cuts scores."""

    at_once: int  # bytes up to which it makes all at once ...
    piece: int  # ... or else so many at a time, about
    at_once_without_gradient: int  # bytes up to which it makes all at once where nothing is differentiated


ON_PROCESSOR = Cut(32 << 20, 2 << 20, 128 << 20)
ON_ACCELERATOR = Cut(512 << 20, 128 << 20, 512 << 20)  # where cuts save memory alone
MOST_PIECES = 64  # where rows cannot be divided better than one by one


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
    out = jnp.einsum('bhsk,bhkq->bhsq', v, _dropped(powers, kept, rate), precision=PRECISION) * scale
    return out, (q, k, v, kept, powers, scale, out)


def _attend_gradient(rate: float, saved: tuple[Any, ...], grad: jax.Array) -> tuple[jax.Array | None, ...]:
    q, k, v, kept, powers, scale, out = saved
    inner = (grad * out).sum(2, keepdims=True) * scale
    grad = grad * scale
    of_scores = powers * (_dropped(_outer(v, grad), kept, rate) - inner)
    of_q = jnp.einsum('bhkq,bhsk->bhsq', of_scores, k, precision=PRECISION) / math.sqrt(q.shape[2])
    of_k = jnp.einsum('bhkq,bhsq->bhsk', of_scores, q, precision=PRECISION)
    of_v = jnp.einsum('bhkq,bhsq->bhsk', _dropped(powers, kept, rate), grad, precision=PRECISION)
    return of_q, of_k, of_v, None


attend.defvjp(_attend, _attend_gradient)


def _outer(a: jax.Array, b: jax.Array) -> jax.Array:
    """Sum over s of a [b, h, s, k] times b [b, h, s, q]: [b, h, k, q]. Few terms, so one pass beats many products."""
    return reduce(jnp.add, (a[:, :, i, :, None] * b[:, :, i, None, :] for i in range(a.shape[2])))


def _dropped(x: jax.Array, kept: jax.Array | None, rate: float) -> jax.Array:
    return x if kept is None else jnp.where(kept, x / (1 - rate), 0)


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


def attend_wide(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    kept: jax.Array | None = None,
    rate: float = 0,
    *,
    seen: np.ndarray | None = None,
) -> jax.Array:
    """softmax(q k' / sqrt(size)) v, with dropout: q, k, v and the result [b, h, l, size].

    `kept` [b, h, l of q, l of k] says which probabilities are kept, None all of them; those are scaled by 1/(1-rate).
    `seen` [l of q, l of k] says which keys a query compares, at least one; None all of them.

    For heads of some 20 features or more, where `attend` adds up too many products one by one. Against
    `jax.nn.dot_product_attention` a step of the gradient takes on one core 13 ms instead of 36 (four windows, 257
    tokens, ten heads of 20), 5 instead of 9 (64, 64 tokens, four heads of 25), and 7 instead of 5 for four tokens: the
    largest score is not differentiated, and the sum divides the result. Long rows are cut (`n_pieces`).
    """
    b, heads, length, _ = q.shape
    pieces = n_pieces(b * heads, q.itemsize * length * k.shape[2])
    if pieces == 1:
        return _attend_wide(q, k, v, kept, rate=rate, seen=seen)
    return _by_pieces(q, k, v, kept, seen, rate, pieces)


def n_pieces(rows: int, row_bytes: int) -> int:
    """In how many equal pieces `attend_wide` makes the scores of rows, each a head of a window, that take so many bytes
    each; 1: all at once, because they are few or cannot be cut. Pieces save memory, and on a processor time where rows
    are long and heads narrow (`benchmarks/attention.py`)."""
    cut = _cut()
    if rows * row_bytes <= cut.at_once:
        return 1
    needed = rows * row_bytes / cut.piece
    found = next((n for n in range(math.ceil(needed), rows + 1) if rows % n == 0), rows)
    return found if found <= 4 * needed or found == rows <= MOST_PIECES else 1


def _cut() -> Cut:
    return ON_PROCESSOR if jax.default_backend() == 'cpu' else ON_ACCELERATOR


@partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def _by_pieces(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float, n: int
) -> jax.Array:
    """`_attend_wide` in n pieces, one after the other; all at once where nothing is differentiated and scores are not
    that many.

    The gradient makes scores anew, for which it needs the logarithms of their sums alone (Dao et al. 2022,
    FlashAttention, appendix B).
    """
    b, heads, length, _ = q.shape
    if b * heads * length * k.shape[2] * q.itemsize <= _cut().at_once_without_gradient:
        return _attend_wide(q, k, v, kept, rate=rate, seen=seen)
    return _pieces(q, k, v, kept, seen, rate, n)[0]


def _divided(a: jax.Array, n: int) -> jax.Array:
    """a [b, h, l, size] in pieces [n, r, size, l]: so laid out, no product goes through scores column by column."""
    return a.swapaxes(2, 3).reshape(n, -1, a.shape[3], a.shape[2])


def _united(a: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Of pieces [n, r, size, l] the array [b, h, l, size] of this shape."""
    return a.reshape(*shape[:2], shape[3], shape[2]).swapaxes(2, 3)


def _pieces(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float, n: int
) -> tuple[jax.Array, tuple[Any, ...]]:
    shape = (*q.shape[:3], v.shape[3])
    q, k, v = (_divided(a, n) for a in (q, k, v))
    kept = None if kept is None else kept.reshape(n, -1, *kept.shape[2:])

    def piece(_: None, rows: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, jax.Array]]:
        q, k, v, kept = rows
        scores = _seen(_product('rsq,rsk->rqk', _scaled(q, 1), k), seen)
        largest = scores.max(-1, keepdims=True)
        powers = jnp.exp(scores - largest)
        total = powers.sum(-1, keepdims=True)
        mixed = _product('rsk,rqk->rsq', v, _dropped(powers, kept, rate)) / total.swapaxes(1, 2)
        return None, (mixed, _exact(largest) + jnp.log(_exact(total)))

    mixed, logs = lax.scan(piece, None, (q, k, v, kept))[1]
    return _united(mixed, shape), (q, k, v, kept, seen, mixed, logs)


def _pieces_gradient(rate: float, n: int, saved: tuple[Any, ...], grad: jax.Array) -> tuple[jax.Array | None, ...]:
    q, k, v, kept, seen, mixed, logs = saved
    begin, grad = grad.shape[:2], _divided(grad, n)

    def piece(_: None, rows: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, ...]]:
        q, k, v, kept, grad, inner, logs = rows
        scaled = _scaled(q, 1)
        scores = _seen(_product('rsq,rsk->rqk', scaled, k), seen)
        weights = jnp.exp(_exact(scores) - logs).astype(q.dtype)
        of_v = _product('rsq,rqk->rsk', grad, _dropped(weights, kept, rate))
        of_scores = weights * (_dropped(_product('rsq,rsk->rqk', grad, v), kept, rate) - inner)
        of_q = _scaled(_product('rsk,rqk->rsq', k, of_scores), 1)
        return None, (of_q, _product('rsq,rqk->rsk', scaled, of_scores), of_v)

    inner = (grad * mixed).sum(2, keepdims=True).swapaxes(2, 3)
    found = lax.scan(piece, None, (q, k, v, kept, grad, inner, logs))[1]
    of_q, of_k, of_v = (_united(a, (*begin, a.shape[3], a.shape[2])) for a in found)
    return of_q, of_k, of_v, None, None


_by_pieces.defvjp(_pieces, _pieces_gradient)


def _attend_wide(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, *, rate: float, seen: np.ndarray | None
) -> jax.Array:
    scores = _seen(_product('bhqs,bhks->bhqk', _scaled(q, 3), k), seen)
    powers = jnp.exp(scores - lax.stop_gradient(scores.max(-1, keepdims=True)))
    return _product('bhqk,bhks->bhqs', _dropped(powers, kept, rate), v) / powers.sum(-1, keepdims=True)


def _product(axes: str, a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.einsum(axes, a, b, precision=PRECISION)


def _scaled(q: jax.Array, axis: int) -> jax.Array:
    """Queries over the root of the number of their features, which lie along `axis`."""
    return q / math.sqrt(q.shape[axis])


def _seen(scores: jax.Array, seen: np.ndarray | None) -> jax.Array:
    """Scores, minus infinity for what is not seen."""
    return scores if seen is None else jnp.where(seen, scores, -jnp.inf)


def _exact(x: jax.Array) -> jax.Array:
    """In float32 at least."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))
