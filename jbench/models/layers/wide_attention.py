"""Attention by matrix products, the scores of long rows in pieces."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models.layers.blocks import PRECISION


class Cut(NamedTuple):
    """How `attend_wide` cuts scores."""

    at_once: int  # bytes up to which it makes all at once ...
    piece: int  # ... or else so many at a time, about
    at_once_without_gradient: int  # bytes up to which it makes all at once where nothing is differentiated


ON_PROCESSOR = Cut(32 << 20, 4 << 20, 128 << 20)
ON_ACCELERATOR = Cut(512 << 20, 128 << 20, 512 << 20)  # where cuts save memory alone
NARROW = 32  # features of a head up to which `_narrow` is faster
MOST_PIECES = 64  # where rows cannot be divided better than one by one


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

    By products, where `attention.attend` adds up the features of a head one by one. Against
    `jax.nn.dot_product_attention` a step of the gradient takes on one core 13 ms instead of 36 (four windows, 257
    tokens, ten heads of 20), 5 instead of 9 (64, 64 tokens, four heads of 25), and 7 instead of 5 for four tokens: the
    largest score is not differentiated, and the sum divides the result. Long rows are cut (`n_pieces`).
    """
    b, heads, length, _ = q.shape
    pieces = n_pieces(b * heads, q.itemsize * length * k.shape[2])
    if pieces == 1:
        narrow = q.shape[3] <= NARROW and jax.default_backend() == 'cpu'
        return (_narrow if narrow else _attend_wide)(q, k, v, kept, seen, rate)
    return _by_pieces(q, k, v, kept, seen, rate, pieces)


def n_pieces(rows: int, row_bytes: int) -> int:
    """In how many equal pieces `attend_wide`, where it is differentiated, makes the scores of rows, each a head of a
    window, that take so many bytes each; 1: all at once, because they are few or cannot be cut. Pieces save memory, and
    on a processor time where rows are long and heads narrow (`benchmarks/attention.py`)."""
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
    """`_attend_wide` in n pieces, one after the other; all at once where nothing is differentiated and scores take no
    more than `at_once_without_gradient`.

    The gradient makes scores anew, for which it needs the logarithms of their sums alone (Dao et al. 2022,
    FlashAttention, appendix B).
    """
    b, heads, length, _ = q.shape
    if b * heads * length * k.shape[2] * q.itemsize <= _cut().at_once_without_gradient:
        return _attend_wide(q, k, v, kept, seen, rate)
    return _pieces(q, k, v, kept, seen, rate, n)[0]


def _divided(a: jax.Array, n: int) -> jax.Array:
    """a [b, h, l, size] in pieces [n, r, size, l]. So laid out, with queries' results [n, r, l, size], no product goes
    through scores column by column."""
    return a.swapaxes(2, 3).reshape(n, -1, a.shape[3], a.shape[2])


def _united(a: jax.Array, rows: tuple[int, ...]) -> jax.Array:
    """Pieces [n, r, ...] as one array [b, h, ...], for rows = (b, h)."""
    return a.reshape(*rows, *a.shape[2:])


def _pieces(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float, n: int
) -> tuple[jax.Array, tuple[Any, ...]]:
    b_and_h = q.shape[:2]
    q, k, v = (_divided(a, n) for a in (q, k, v))
    kept = None if kept is None else kept.reshape(n, -1, *kept.shape[2:])

    def piece(_: None, rows: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, jax.Array]]:
        q, k, v, kept = rows
        scores = _seen(_product('rsq,rsk->rqk', _scaled(q, 1), k), seen)
        largest = scores.max(-1, keepdims=True)
        powers = jnp.exp(scores - largest)
        total = powers.sum(-1, keepdims=True)
        mixed = _product('rqk,rsk->rqs', dropped(powers, kept, rate), v) / total
        return None, (mixed, _exact(largest) + jnp.log(_exact(total)))

    mixed, logs = lax.scan(piece, None, (q, k, v, kept))[1]
    mixed = _united(mixed, b_and_h)
    return mixed, (q, k, v, kept, seen, mixed, logs)


def _pieces_gradient(rate: float, n: int, saved: tuple[Any, ...], grad: jax.Array) -> tuple[jax.Array | None, ...]:
    q, k, v, kept, seen, mixed, logs = saved
    b_and_h, inner = grad.shape[:2], (grad * mixed).sum(-1).reshape(logs.shape)

    def piece(_: None, rows: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, ...]]:
        q, k, v, kept, grad, inner, logs = rows
        scaled = _scaled(q, 1)
        scores = _seen(_product('rsq,rsk->rqk', scaled, k), seen)
        weights = jnp.exp(_exact(scores) - logs).astype(q.dtype)
        of_v = _product('rsq,rqk->rsk', grad, dropped(weights, kept, rate))
        of_scores = weights * (dropped(_product('rsq,rsk->rqk', grad, v), kept, rate) - inner)
        of_q = _scaled(_product('rqk,rsk->rqs', of_scores, k), 2)
        return None, (of_q, _product('rsq,rqk->rsk', scaled, of_scores), of_v)

    found = lax.scan(piece, None, (q, k, v, kept, _divided(grad, n), inner, logs))[1]
    of_q, of_k, of_v = (_united(a, b_and_h) for a in found)
    return of_q, of_k.swapaxes(2, 3), of_v.swapaxes(2, 3), None, None


_by_pieces.defvjp(_pieces, _pieces_gradient)


def _attend_wide(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float
) -> jax.Array:
    return _mixed(q, k, v, kept, seen, rate)[0]


@partial(jax.custom_vjp, nondiff_argnums=(5,))
def _narrow(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float
) -> jax.Array:
    """`_attend_wide` with a gradient in which no product goes through scores column by column: on a processor with
    heads of few features three quarters of the time."""
    return _attend_wide(q, k, v, kept, seen, rate)


def _mixed(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float
) -> tuple[jax.Array, tuple[Any, ...]]:
    scaled = _scaled(q, 3)
    scores = _seen(_product('bhqs,bhks->bhqk', scaled, k), seen)
    powers = jnp.exp(scores - lax.stop_gradient(scores.max(-1, keepdims=True)))
    total = powers.sum(-1, keepdims=True)
    mixed = _product('bhqk,bhks->bhqs', dropped(powers, kept, rate), v) / total
    return mixed, (scaled, k, v, kept, powers, total, mixed)


def _narrow_gradient(rate: float, saved: tuple[Any, ...], grad: jax.Array) -> tuple[jax.Array | None, ...]:
    scaled, k, v, kept, powers, total, mixed = saved
    grad = grad / total
    inner = (grad * mixed).sum(-1, keepdims=True)
    of_scores = powers * (dropped(_product('bhqs,bhks->bhqk', grad, v), kept, rate) - inner)
    of_q = _scaled(_product('bhqk,bhks->bhqs', of_scores, k), 3)
    of_k, of_v = _over_queries(scaled, of_scores), _over_queries(grad, dropped(powers, kept, rate))
    return of_q, of_k, of_v, None, None


_narrow.defvjp(_mixed, _narrow_gradient)


def _over_queries(a: jax.Array, scores: jax.Array) -> jax.Array:
    """Sum over q of a [b, h, q, size] times scores [b, h, q, k]: [b, h, k, size]. Transposed is `a`, which is small;
    left to itself, XLA takes scores column by column."""
    rows = lax.optimization_barrier(a.swapaxes(2, 3))
    return lax.optimization_barrier(_product('bhsq,bhqk->bhsk', rows, scores)).swapaxes(2, 3)


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


def dropped(x: jax.Array, kept: jax.Array | None, rate: float) -> jax.Array:
    """x where it is kept, over the share of what is kept, and zero elsewhere; None: all is kept."""
    return x if kept is None else jnp.where(kept, x / (1 - rate), 0)
