"""How long attention over long rows takes, with its gradient and without, in the ways in which it can be computed.

    python benchmarks/attention.py [--shapes=16x10x641x20,16x8x704x64] [--calls=8]

Shapes: windows x heads x tokens x features of a head. In turns in one process, on all cores: `attend_wide`, its
scores all at once, and `jax.nn.dot_product_attention`; the least of so many calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import ways

from jbench.models.layers import wide_attention

CALLS = 8
SHAPES = '16x10x641x20,16x8x704x64,64x8x190x64'
Function = Callable[[jax.Array], jax.Array]


def at_once(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return wide_attention._attend_wide(q, k, v, None, None, 0)


def of_jax(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.dot_product_attention(*(a.transpose(0, 2, 1, 3) for a in (q, k, v))).transpose(0, 2, 1, 3)


WAYS = {'attend_wide': wide_attention.attend_wide, 'at once': at_once, 'jax.nn': of_jax}


def function(way: Callable[..., jax.Array], gradient: bool) -> Function:
    """Of x [windows, tokens, 3, heads, features], compiled: the result, or the gradient of the sum of its squares."""

    def whole(x: jax.Array) -> jax.Array:
        return way(*x.transpose(2, 0, 3, 1, 4)).transpose(0, 2, 1, 3)

    return jax.jit(jax.grad(lambda x: (whole(x) ** 2).sum()) if gradient else whole)


def calls(windows: int, heads: int, tokens: int, size: int) -> ways.Calls:
    """Of each way."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(windows, tokens, 3, heads, size)), jnp.float32)
    return {(name, grad): partial(function(way, grad), x) for name, way in WAYS.items() for grad in (True, False)}


if __name__ == '__main__':
    ways.main(__doc__, 'windows x heads x tokens x features', SHAPES, CALLS, calls)
