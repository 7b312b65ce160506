"""How long attention over long rows takes, with its gradient and without, in the ways in which it can be computed.

    python benchmarks/attention.py [--shapes=16x10x641x20,16x8x704x64] [--calls=8]

Shapes: windows x heads x tokens x features of a head. In turns in one process, on all cores: `attend_wide`, its
scores all at once, and `jax.nn.dot_product_attention`; the least of so many calls.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.layers import wide_attention
from jbench.train import kept_memory

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


def measure(shape: str, calls: int = CALLS) -> None:
    """Print a line for each way."""
    windows, heads, tokens, size = map(int, shape.split('x'))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(windows, tokens, 3, heads, size)), jnp.float32)
    functions = {(name, grad): function(way, grad) for name, way in WAYS.items() for grad in (True, False)}
    least = dict.fromkeys(functions, float('inf'))
    for _ in range(calls):
        for which, compiled in functions.items():
            began = time.perf_counter()
            jax.block_until_ready(compiled(x))
            least[which] = min(least[which], time.perf_counter() - began)
    for name in WAYS:
        with_gradient, without = (1e3 * least[name, grad] for grad in (True, False))
        print(f'{shape} {name}: {with_gradient:.1f} ms with the gradient, {without:.1f} ms without', flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--shapes', default=SHAPES, help=f'[{SHAPES}]')
    parser.add_argument('--calls', type=int, default=CALLS, help=f'[{CALLS}]')
    args = parser.parse_args(argv)
    for shape in args.shapes.split(','):
        if not re.fullmatch(r'[1-9]\d*(x[1-9]\d*){3}', shape):
            parser.error(f'--shapes: {shape}: expected windows x heads x tokens x features, as 16x10x641x20')
    kept_memory.keep()
    for shape in args.shapes.split(','):
        measure(shape, args.calls)


if __name__ == '__main__':
    main()
