"""Features by blocks of units, for layers that do not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jbench.spec.errors import RequestError

BLOCK = 4096  # units of an array in one block


class Blocks(NamedTuple):
    """Features that are read by blocks of units, as often as needed."""

    n: int  # stimuli
    read: Callable[[], Iterator[np.ndarray]]  # blocks [n, some units], all units together in every pass


Features = np.ndarray | Blocks


def blocks(x: Features, size: int = BLOCK) -> Blocks:
    """An array (a memory map too) as blocks; blocks as they are.

    Args:
        x: [stimulus, unit], or blocks.
        size: units a block.

    Raises:
        RequestError: if it is not two-dimensional, or empty.
    """
    if isinstance(x, Blocks):
        return x
    if x.ndim != 2 or 0 in x.shape:
        raise RequestError(f'features of shape {x.shape}; [stimulus, unit] with one of each at least')
    p = x.shape[1]
    return Blocks(len(x), lambda: (x[:, k : k + size] for k in range(0, p, size)))


def passed(x: Blocks, dtype: str) -> Iterator[np.ndarray]:
    """The blocks once, in `dtype`, each checked.

    Args:
        x: the features.
        dtype: 'float32' or 'float64'.

    Raises:
        RequestError: if a block has other stimuli, or a value that is not finite.
    """
    for block in x.read():
        block = np.asarray(block, dtype)
        if block.ndim != 2 or len(block) != x.n:
            raise RequestError(f'a block of features of shape {block.shape}; it has {x.n} stimuli')
        if not np.isfinite(block).all():
            raise RequestError(f'features: {(~np.isfinite(block)).sum()} values are not finite')
        yield block
