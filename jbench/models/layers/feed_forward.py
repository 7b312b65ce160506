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
    if drop is not None or jax.default_backend() != 'cpu' or wide.n_in > WIDEST:
        h = gelu(wide(x))
        return narrow(h if drop is None else drop(h))
    rows = x.reshape(-1, wide.n_in)
    hidden = gelu(jnp.einsum('hd,rd->hr', wide.weight, rows, precision=PRECISION) + wide.bias[:, None])
    found = jnp.einsum('hr,dh->rd', hidden, narrow.weight, precision=PRECISION) + narrow.bias
    return found.reshape(*x.shape[:-1], narrow.n_out)
