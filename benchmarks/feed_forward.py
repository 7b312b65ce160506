"""How long the two linear layers of a transformer's second branch take, with their gradient and without, laid out row
by row and feature by feature.

    python benchmarks/feed_forward.py [--shapes=4928x200x800,1232x512x2048] [--calls=20]

Shapes: rows x features x hidden values. In turns in one process, on all cores; the median of so many calls.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.layers import feed_forward
from jbench.models.layers.blocks import Linear
from jbench.train import kept_memory

CALLS = 20
SHAPES = '4928x200x800,1232x200x800,77x200x800,1232x200x512,1232x512x2048'
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
    return lambda: jax.block_until_ready(program(weights, x))


def measure(shape: str, calls: int = CALLS) -> None:
    """Print a line for each way."""
    numbers = tuple(map(int, shape.split('x')))
    functions = {(name, grad): compiled(w, grad, *numbers) for name, w in WAYS.items() for grad in (True, False)}
    times: dict[tuple[str, bool], list[float]] = {which: [] for which in functions}
    for _ in range(calls):
        for which, call in functions.items():
            began = time.perf_counter()
            call()
            times[which].append(1e3 * (time.perf_counter() - began))
    for name in WAYS:
        with_gradient, without = (np.median(times[name, grad]) for grad in (True, False))
        print(f'{shape} {name}: {with_gradient:.1f} ms with the gradient, {without:.1f} ms without', flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--shapes', default=SHAPES, help=f'[{SHAPES}]')
    parser.add_argument('--calls', type=int, default=CALLS, help=f'[{CALLS}]')
    args = parser.parse_args(argv)
    for shape in args.shapes.split(','):
        if not re.fullmatch(r'[1-9]\d*(x[1-9]\d*){2}', shape):
            parser.error(f'--shapes: {shape}: expected rows x features x hidden values, as 4928x200x800')
    kept_memory.keep()
    for shape in args.shapes.split(','):
        measure(shape, args.calls)


if __name__ == '__main__':
    main()
