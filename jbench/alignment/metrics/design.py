"""Features made ready for regressions: of several splits, each takes its rows of one Gram matrix.

With fewer stimuli than twice the units (the rule for layers of a network) a regression needs only the products of
stimuli with each other, n x n. They are made once for all splits: rows of a split are selected and centred there.
Products are float64, as a regression asks for directions of little variance, which the square of float32 does not hold;
the features themselves may be float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench.spec.errors import RequestError

from .features import blocks, centred
from .products import add_upper, checked

WIDE = 2  # up to so many stimuli a unit, n x n products are taken rather than p x p


class Design(NamedTuple):
    """Features of all stimuli."""

    x: np.ndarray  # [n, p], less the mean of all rows, which keeps products exact
    mean: np.ndarray  # [p]
    gram: np.ndarray | None  # [n, n] of x, float64; None where p x p is the smaller
    dtype: str


class Fold(NamedTuple):
    """One split of a design: n rows of training, m of test."""

    made: Design
    train: np.ndarray
    test: np.ndarray
    gram: np.ndarray | None  # [n, n], centred by the rows of training
    gram_test: np.ndarray | None  # [m, n]


def design(x: np.ndarray, dtype: str = 'float32', *, dual: bool | None = None) -> Design:
    """Features ready for `fold`.

    Args:
        x: [stimulus, unit], finite.
        dtype: of the features in memory, 'float32' or 'float64'; products are float64.
        dual: n x n products or not; None: by shape.

    Raises:
        RequestError: if a value is not finite, or there is no unit.
    """
    x = np.asarray(x)
    if x.ndim != 2 or 0 in x.shape:
        raise RequestError(f'features of shape {x.shape}; [stimulus, unit] with one of each at least')
    inner, mean = centred(x.astype(checked(dtype), copy=False))
    n, p = x.shape
    dual = n <= WIDE * p if dual is None else dual
    products = np.zeros((n, n)) if dual else None
    if products is not None:
        for part in blocks(inner).read():
            add_upper(products, part, 'float64')
    return Design(inner, mean.astype(float), products, dtype)


def fold(made: Design, train: np.ndarray, test: np.ndarray) -> Fold:
    """One split, its products centred by the rows of training.

    Args:
        made: all stimuli.
        train, test: rows.
    """
    if made.gram is None:
        return Fold(made, train, test, None, None)
    inner, outer = made.gram[np.ix_(train, train)], made.gram[np.ix_(test, train)]
    means = inner.mean(axis=0)
    outer = outer - outer.mean(axis=1)[:, None] - means + means.mean()
    return Fold(made, train, test, inner - means - means[:, None] + means.mean(), outer)


def rows(one: Fold) -> tuple[np.ndarray, np.ndarray]:
    """Features of training [n, p] and of test [m, p], centred by those of training."""
    x = one.made.x[one.train]
    shift = x.mean(axis=0, dtype=float).astype(x.dtype)
    return x - shift, one.made.x[one.test] - shift
