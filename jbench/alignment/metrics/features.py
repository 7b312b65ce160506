"""Features by blocks of units, for layers that do not fit in memory, and the products of their stimuli."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jbench.spec.errors import RequestError

from .products import add_upper, checked

BLOCK = 1 << 27  # bytes of one block of an array


class Blocks(NamedTuple):
    """Features that are read by blocks of units, as often as needed."""

    n: int  # stimuli
    read: Callable[[], Iterator[np.ndarray]]  # blocks [n, some units], all units together in every pass


Features = np.ndarray | Blocks


def blocks(x: Features) -> Blocks:
    """An array (a memory map too) as blocks of 128 MiB; blocks as they are.

    Args:
        x: [stimulus, unit], or blocks.

    Raises:
        RequestError: if it is not two-dimensional, or empty.
    """
    if isinstance(x, Blocks):
        return x
    if x.ndim != 2 or 0 in x.shape:
        raise RequestError(f'features of shape {x.shape}; [stimulus, unit] with one of each at least')
    n, p = x.shape
    size = max(1, BLOCK // (n * x.itemsize))
    return Blocks(n, lambda: (x[:, k : k + size] for k in range(0, p, size)))


def passed(x: Blocks, dtype: str) -> Iterator[np.ndarray]:
    """The blocks once, in `dtype`.

    Args:
        x: the features.
        dtype: 'float32' or 'float64'.

    Raises:
        RequestError: if there is no block, or one has other stimuli.
    """
    empty = True
    for block in x.read():
        block, empty = np.asarray(block, dtype), False
        if block.ndim != 2 or len(block) != x.n:
            raise RequestError(f'a block of features of shape {block.shape}; it has {x.n} stimuli')
        yield block
    if empty:
        raise RequestError('features: no block; one unit at least')


def refuse_nan(x: np.ndarray, sums: np.ndarray) -> None:
    """Raises RequestError if x has a value that is not finite, which its sums tell without another pass."""
    if not np.isfinite(sums).all() and not np.isfinite(x).all():
        bad = ~np.isfinite(x)
        raise RequestError(f'features: {bad.sum()} values of {bad.any(axis=0).sum()} units are not finite')


def centred(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x[stimulus, unit] less the mean of each unit, and the means; a constant unit is 0, not rounding.

    Raises:
        RequestError: if a value is not finite.
    """
    with np.errstate(over='ignore', invalid='ignore'):
        mean = np.ones(len(x), x.dtype) @ x / x.dtype.type(len(x))
        refuse_nan(x, mean)
        out = x - mean
    alike = np.flatnonzero((x[0] == x[-1]) & (x[0] != 0))
    still = alike[np.all(x[:, alike] == x[0, alike], axis=0)]
    out[:, still], mean[still] = 0, x[0, still]
    return out, mean


def gram(x: Features, start: int = 0, stop: int | None = None, *, dtype: str = 'float32') -> np.ndarray:
    """Products of stimuli start:stop with those from start on, units centred: float64[stop - start, n - start].

    Args:
        x: [stimulus, unit], or blocks.
        start, stop: which rows; all by default.
        dtype: of the products of one block; they are added up in float64.

    Raises:
        RequestError: if a value is not finite.
    """
    x = blocks(x)
    stop = x.n if stop is None else stop
    out = np.zeros((stop - start, x.n - start))
    for block in passed(x, checked(dtype)):
        add_upper(out, centred(block)[0][start:], dtype)
    return out
