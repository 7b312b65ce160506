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
    at_once_narrow: int  # ... of narrow heads
    piece: int  # or else so many at a time, about


ON_PROCESSOR = Cut(32 << 20, 16 << 20, 4 << 20)
ON_ACCELERATOR = Cut(512 << 20, 512 << 20, 128 << 20)  # where cuts save memory alone
SHORT = 256 << 10  # bytes of scores up to which a row is short: XLA's one program keeps them in a processor's caches
NARROW = 32  # features of a head up to which it is narrow: `_narrow` is faster
MOST_ANSWERED = 128 << 20  # bytes of scores that are made at once where nothing is differentiated: see `_by_pieces`
MOST_PIECES = 64  # where rows cannot be divided better than one by one
MOST_BLOCKS = 16  # of the queries of a row


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
    largest score is not differentiated, and the sum divides the result. Many scores are cut (`n_pieces`, `n_blocks`).
    """
    b, heads, length, size = q.shape
    pieces = n_pieces(b * heads, q.itemsize * length * k.shape[2], size)
    if pieces == 1:
        return (_narrow if size <= NARROW and _on_processor() else _attend_wide)(q, k, v, kept, seen, rate)
    return _by_pieces(q, k, v, kept, seen, rate, pieces)


def n_pieces(rows: int, row_bytes: int, size: int) -> int:
    """In how many equal pieces `attend_wide`, where it is differentiated, makes the scores of rows, each a head of a
    window with `size` features, that take so many bytes each; 1: all at once, because they are few or cannot be cut.
    Pieces save memory, and on a processor time where rows are long, the sooner the narrower heads are
    (`benchmarks/attention.py`)."""
    cut = _cut()
    if rows * row_bytes <= (cut.at_once_narrow if size <= NARROW else cut.at_once):
        return 1
    needed = rows * row_bytes / cut.piece
    found = next((n for n in range(math.ceil(needed), rows + 1) if rows % n == 0), rows)
    return found if found <= 4 * needed or found == rows <= MOST_PIECES else 1


def n_blocks(length: int, row_bytes: int) -> int:
    """In how many equal blocks of its queries a row is made, if it is longer than a piece, and so a piece of its own:
    such that a block comes nearest to the size of a piece."""
    found = (m for m in range(1, MOST_BLOCKS + 1) if length % m == 0)
    return min(found, key=lambda m: abs(math.log(row_bytes / m / _cut().piece)))


def _on_processor() -> bool:
    return jax.default_backend() == 'cpu'


def _cut() -> Cut:
    return ON_PROCESSOR if _on_processor() else ON_ACCELERATOR


@partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def _by_pieces(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float, n: int
) -> jax.Array:
    """`_attend_wide` in n pieces, one after the other, each in blocks of its queries. Where nothing is differentiated,
    a processor has faster ways, of up to `MOST_ANSWERED` bytes of scores at once.

    The gradient makes scores anew, for which it needs the logarithms of their sums alone (Dao et al. 2022,
    FlashAttention, appendix B).
    """
    b, heads, length, size = q.shape
    row_bytes = q.itemsize * length * k.shape[2]
    in_pieces = size > NARROW and row_bytes > SHORT
    if not _on_processor() or row_bytes * (1 if in_pieces else b * heads) > MOST_ANSWERED:
        return _pieces(q, k, v, kept, seen, rate, n)[0]
    return _whole_pieces(q, k, v, kept, seen, rate, n) if in_pieces else _answers(q, k, v, kept, seen, rate)


def _whole_pieces(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float, n: int
) -> jax.Array:
    """`_attend_wide` in n pieces where nothing is differentiated, laid out as they come and without blocks."""

    def piece(rows: tuple[Any, ...]) -> jax.Array:
        q, k, v, kept = rows
        return _attend_wide(q, k, v, kept, seen, rate)

    rows = jax.tree.map(lambda a: a.reshape(n, 1, -1, *a.shape[2:]), (q, k, v, kept))
    return lax.map(piece, rows).reshape(*q.shape[:3], v.shape[3])


def _divided(a: jax.Array, n: int) -> jax.Array:
    """a [b, h, l, size] in pieces [n, r, size, l]. So laid out, with queries' results [r, l, size], no product goes
    through scores column by column."""
    return a.swapaxes(2, 3).reshape(n, -1, a.shape[3], a.shape[2])


def _in_blocks(a: jax.Array, n: int, m: int) -> jax.Array:
    """a [b, h, l, k], of queries, in pieces of blocks [n, m, r, l / m, k]."""
    return a.reshape(n, -1, m, a.shape[2] // m, a.shape[3]).swapaxes(1, 2)


def _united(a: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Pieces of blocks as one array of `shape`, [b, h, l, k]."""
    return a.swapaxes(1, 2).reshape(shape)


def _pieces(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float, n: int
) -> tuple[jax.Array, tuple[Any, ...]]:
    shape, m = (*q.shape[:3], v.shape[3]), n_blocks(q.shape[2], q.itemsize * q.shape[2] * k.shape[2])
    q, k, v = _in_blocks(q, n, m).swapaxes(3, 4), _divided(k, n), _divided(v, n)
    kept = None if kept is None else _in_blocks(kept, n, m)
    seen = None if seen is None else seen.reshape(m, -1, seen.shape[1])

    def piece(_: None, rows: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, jax.Array]]:
        q, k, v, kept = rows

        def block(_: None, queries: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, jax.Array]]:
            q, kept, seen = queries
            scores = _seen(_product('rsq,rsk->rqk', _scaled(q, 1), k), seen)
            largest = scores.max(-1, keepdims=True)
            powers = jnp.exp(scores - largest)
            total = powers.sum(-1, keepdims=True)
            mixed = _product('rqk,rsk->rqs', dropped(powers, kept, rate), v) / total
            return None, (mixed, _exact(largest) + jnp.log(_exact(total)))

        return None, lax.scan(block, None, (q, kept, seen))[1]

    mixed, logs = lax.scan(piece, None, (q, k, v, kept))[1]
    mixed = _united(mixed, shape)
    return mixed, (q, k, v, kept, seen, mixed, logs)


def _pieces_gradient(rate: float, n: int, saved: tuple[Any, ...], grad: jax.Array) -> tuple[jax.Array | None, ...]:
    q, k, v, kept, seen, mixed, logs = saved
    (b, heads, length, _), m = grad.shape, q.shape[1]
    inner = _in_blocks((grad * mixed).sum(-1, keepdims=True), n, m)

    def piece(_: None, rows: tuple[Any, ...]) -> tuple[None, tuple[jax.Array, ...]]:
        k, v, *of_queries = rows

        def block(sums: tuple[jax.Array, ...], queries: tuple[Any, ...]) -> tuple[tuple[jax.Array, ...], jax.Array]:
            q, kept, grad, inner, logs, seen = queries
            scaled = _scaled(q, 1)
            scores = _seen(_product('rsq,rsk->rqk', scaled, k), seen)
            weights = jnp.exp(_exact(scores) - logs).astype(q.dtype)
            of_v = _product('rsq,rqk->rsk', grad, dropped(weights, kept, rate))
            of_scores = weights * (dropped(_product('rsq,rsk->rqk', grad, v), kept, rate) - inner)
            of_q = _scaled(_product('rqk,rsk->rqs', of_scores, k), 2)
            return (sums[0] + _product('rsq,rqk->rsk', scaled, of_scores), sums[1] + of_v), of_q

        zeros = tuple(jnp.zeros(a.shape, jnp.promote_types(a.dtype, jnp.float32)) for a in (k, v))
        (of_k, of_v), of_q = lax.scan(block, zeros, (*of_queries, seen))
        return None, (of_q, of_k.astype(k.dtype), of_v.astype(v.dtype))

    blocks = q, kept, _in_blocks(grad, n, m).swapaxes(3, 4), inner, logs
    of_q, of_k, of_v = lax.scan(piece, None, (k, v, *blocks))[1]
    of_k, of_v = (a.reshape(b, heads, *a.shape[2:]).swapaxes(2, 3) for a in (of_k, of_v))
    return _united(of_q, (b, heads, length, -1)), of_k, of_v, None, None


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
    return _answers(q, k, v, kept, seen, rate)


def _answers(
    q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, seen: np.ndarray | None, rate: float
) -> jax.Array:
    """`_attend_wide` of short rows or narrow heads where nothing is differentiated, for some queries at a time, so that
    the scores of a row take some `SHORT` bytes, in `MOST_BLOCKS` turns at most."""
    length = q.shape[2]
    n = math.ceil(length / min(math.ceil(q.itemsize * length * k.shape[2] / SHORT), MOST_BLOCKS))
    found = [
        _attend_wide(
            q[:, :, i : i + n],
            k,
            v,
            None if kept is None else kept[:, :, i : i + n],
            None if seen is None else seen[i : i + n],
            rate,
        )
        for i in range(0, length, n)
    ]
    return jnp.concatenate(found, 2)


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
