"""For scripts that time the ways to compute one thing, with its gradient and without, for some shapes."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

import jax

from jbench.train import kept_memory

Calls = dict[tuple[str, bool], Callable[[], object]]  # of a way, with its gradient or without


def main(doc: str | None, axes: str, shapes: str, n_calls: int, calls: Callable[..., Calls]) -> None:
    """Take turns, and print for each way the least time.

    Args:
        doc: of the script.
        axes: of a shape, as 'rows x features'.
        shapes: by default, as '16x20,64x20'.
        n_calls: of each way, by default.
        calls: what to call, of the numbers of a shape.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--shapes', default=shapes, help=f'[{shapes}]')
    parser.add_argument('--calls', type=int, default=n_calls, help=f'[{n_calls}]')
    args = parser.parse_args()
    if args.calls < 1:
        parser.error(f'--calls={args.calls}: expected a positive number')
    for shape in args.shapes.split(','):
        if not re.fullmatch(rf'[1-9]\d*(x[1-9]\d*){{{axes.count(" x ")}}}', shape):
            parser.error(f'--shapes: {shape}: expected {axes}, as {shapes.partition(",")[0]}')
    kept_memory.keep()
    for shape in args.shapes.split(','):
        _measure(shape, calls(*map(int, shape.split('x'))), args.calls)


def _measure(shape: str, calls: Calls, n_calls: int) -> None:
    least = dict.fromkeys(calls, float('inf'))
    for _ in range(n_calls):
        for which, call in calls.items():
            began = time.perf_counter()
            jax.block_until_ready(call())
            least[which] = min(least[which], time.perf_counter() - began)
    for name in dict.fromkeys(name for name, _ in calls):
        with_gradient, without = (1e3 * least[name, grad] for grad in (True, False))
        print(f'{shape} {name}: {with_gradient:.1f} ms with the gradient, {without:.1f} ms without', flush=True)
