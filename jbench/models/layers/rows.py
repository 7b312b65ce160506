"""Which rows of a batch a network is given: each device has some, and may compute its own in parts, one by one.

What is drawn for rows is drawn for those of the whole batch, of which each piece takes its own: it is the same however
they are split. The part is known while a network is traced: a function within it that has a `jax.jit` of its own, and
so a trace of its own, must not ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
from jax import lax

_PART: ContextVar[tuple[int, jax.Array | int]] = ContextVar('part', default=(1, 0))


@contextmanager
def part(n: int, which: jax.Array | int) -> Iterator[None]:
    """While it lasts, what is traced computes part number `which` of n of a device's rows."""
    before = _PART.set((n, which))
    try:
        yield
    finally:
        _PART.reset(before)


def piece(axis_name: str | None) -> tuple[int, jax.Array | int]:
    """In how many pieces a batch is computed, over the devices of a mapped axis and in their parts, and the number of
    the one here; each has as many rows, side by side, in the order of the numbers."""
    n, which = _PART.get()
    return (n, which) if axis_name is None else (lax.axis_size(axis_name) * n, lax.axis_index(axis_name) * n + which)
