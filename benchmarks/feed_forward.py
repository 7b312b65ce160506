"""How long the two linear layers of a transformer's second branch take, with their gradient and without, laid out row
by row and feature by feature.

    python benchmarks/feed_forward.py [--shapes=4928x200x800,1232x512x2048] [--calls=20]

Shapes: rows x features x hidden values. In turns in one process, on a processor; the least of so many calls.
"""

from __future__ import annotations

import os

os.environ['JAX_PLATFORMS'] = 'cpu'  # elsewhere both ways are one

from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import ways

from jbench.models.layers import feed_forward
from jbench.models.layers.blocks import Linear

CALLS = 20
SHAPES = '4928x200x800,1232x200x800,77x200x800,4312x200x512,1232x512x2048'
WAYS = {'rows': 0, 'features': 1 << 30}  # what `WIDEST` is for it


class _Branch(nn.Module):
    n: int
    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return feed_forward.feed_forward(Linear(self.n, self.hidden), Linear(self.hidden, self.n), x)


def compiled(widest: int, gradient: bool, rows: int, n: int, hidden: int) -> Callable[[], jax.Array]:
    """A call of the layers, or of the gradient of the sum of its squares."""
    feed_forward.WIDEST = widest
    branch, x = _Branch(n, hidden), jnp.asarray(np.random.default_rng(0).normal(size=(rows, n)), jnp.float32)
    weights = branch.init(jax.random.key(0), x)
    whole = jax.grad(lambda w, x: (branch.apply(w, x) ** 2).sum(), (0, 1)) if gradient else branch.apply
    program = jax.jit(whole).lower(weights, x).compile()
    return partial(program, weights, x)


def calls(rows: int, n: int, hidden: int) -> ways.Calls:
    """Of each way."""
    return {(name, grad): compiled(w, grad, rows, n, hidden) for name, w in WAYS.items() for grad in (True, False)}


if __name__ == '__main__':
    ways.main(__doc__, 'rows x features x hidden values', SHAPES, CALLS, calls)
