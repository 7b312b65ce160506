"""The two linear layers of a transformer's second branch."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jbench.models.layers.blocks import PRECISION, Linear, gelu

WIDEST = 200  # features up to which a processor lays hidden values out feature by feature


def feed_forward(
    wide: Linear, narrow: Linear, x: jax.Array, drop: Callable[[jax.Array], jax.Array] | None = None
) -> jax.Array:
    """narrow(drop(gelu(wide(x)))) of x [..., n_in]; `drop` is of values [..., n_hidden], None: all are kept.

    Without it, on a processor, what lies between the two is [n_hidden, rows], not [rows, n_hidden]: XLA's products of
    200 features and thousands of rows take four fifths of the time so, those of 512 longer
    (`benchmarks/feed_forward.py`). A dropout draws what it keeps row by row, and would have to be turned.
    """
    if drop is not None or not _by_features(wide):
        h = gelu(wide(x))
        return narrow(h if drop is None else drop(h))
    found = jnp.einsum('hr,dh->rd', _hidden_by_features(wide, x), narrow.weight, precision=PRECISION) + narrow.bias
    return found.reshape(*x.shape[:-1], narrow.n_out)


def mean_of_feed_forward(wide: Linear, narrow: Linear, x: jax.Array, mean_from: int = 0) -> jax.Array:
    """The mean [b, n_out] of `feed_forward` over the tokens of a window from number `mean_from` on, for x [b, l, n_in].

    The mean of what is projected is the projection of the mean: behind the hidden values one product a window.
    """
    if not _by_features(wide):
        return narrow(gelu(wide(x))[:, mean_from:].mean(1))
    return narrow(_hidden_by_features(wide, x).reshape(wide.n_out, *x.shape[:2])[..., mean_from:].mean(2).T)


def _by_features(wide: Linear) -> bool:
    return jax.default_backend() == 'cpu' and wide.n_in <= WIDEST


def _hidden_by_features(wide: Linear, x: jax.Array) -> jax.Array:
    """gelu(wide(x)), as [n_hidden, rows]."""
    rows = x.reshape(-1, wide.n_in)
    return gelu(jnp.einsum('hd,rd->hr', wide.weight, rows, precision=PRECISION) + wide.bias[:, None])
