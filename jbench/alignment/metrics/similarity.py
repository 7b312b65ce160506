"""How alike two representations of the same stimuli are: CKA, and dissimilarities of pairs of stimuli (RDM).

Both need the products of stimuli with each other alone. Features come as arrays or by blocks of units; the products
are made for as many rows at a time as the memory asked for holds, which takes a pass over the features each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

from .correlation import over_splits, pearson, ranks
from .features import Blocks, Features, blocks, passed
from .measured import Measured
from .products import checked, product
from .splits import SIMILARITY, Splits, splits

BUDGET = 1 << 30  # bytes for products of stimuli
LEAST = 4  # stimuli: the unbiased estimate divides by n (n - 1)(n - 2)(n - 3)


# ---- products ----


def gram(x: Features, start: int = 0, stop: int | None = None, *, dtype: str = 'float32') -> np.ndarray:
    """Products of stimuli start:stop with all, units centred: float64[rows, n].

    Args:
        x: [stimulus, unit], or blocks.
        start, stop: which rows; all by default.
        dtype: of the products of one block; they are added up in float64.
    """
    x = blocks(x)
    stop = x.n if stop is None else stop
    out: np.ndarray | None = None
    for block in passed(x, checked(dtype)):
        centred = block - block.mean(axis=0, dtype=float).astype(block.dtype)
        centred[:, np.all(block == block[0], axis=0)] = 0  # rather than rounding
        made = product(centred[start:stop], centred.T, dtype)
        out = made if out is None else np.add(out, made, out=out)
    if out is None:
        raise RequestError('features: no block; one unit at least')
    return out


def _row_blocks(n: int, budget: int, held: int) -> Iterator[tuple[int, int]]:
    """Rows that can be held `held` times, in float64, at once."""
    size = max(1, min(n, budget // (8 * n * held)))
    return ((k, min(k + size, n)) for k in range(0, n, size))


def _same(x: Features, y: Features, least: int) -> tuple[Blocks, Blocks]:
    """Both as blocks, of the same and enough stimuli."""
    left, right = blocks(x), blocks(y)
    if left.n != right.n or left.n < least:
        raise RequestError(f'{left.n} and {right.n} stimuli; both need the same, and {least} at least')
    return left, right


# ---- CKA ----


def cka(x: Features, y: Features, *, biased: bool = False, dtype: str = 'float32', budget: int = BUDGET) -> float:
    """Linear centred kernel alignment, unbiased (Song et al.) unless asked for otherwise; 0 where it is not defined.

    Args:
        x, y: [stimulus, unit] of the same stimuli, arrays or blocks.
        biased: the older estimate, near 1 for any two sets of many units.
        dtype: of large products, 'float32' or 'float64'.
        budget: bytes for products; fewer bytes, more passes over the features.

    Raises:
        RequestError: with fewer than four stimuli, or others in x than in y.
    """
    left, right = _same(x, y, LEAST)
    sums = np.zeros((3, 2))  # of kl, kk, ll: the products, without and with the diagonal
    totals = np.zeros((2, left.n))  # row sums of k and l without the diagonal
    for start, stop in _row_blocks(left.n, budget, 4):
        pair = [gram(side, start, stop, dtype=dtype) for side in (left, right)]
        _add(sums, totals, pair, start)
    return _biased(sums[:, 1]) if biased else _unbiased(sums[:, 0], totals)


def _add(sums: np.ndarray, totals: np.ndarray, pair: Sequence[np.ndarray], start: int) -> None:
    """Add some rows of both products to the sums that CKA needs; `pair` is used up."""
    k, l = pair
    diagonal = np.arange(len(k)), start + np.arange(len(k))
    for way in (1, 0):
        if way == 0:
            k[diagonal] = l[diagonal] = 0
        sums[:, way] += np.vdot(k, l), np.vdot(k, k), np.vdot(l, l)
    totals[0, start : start + len(k)], totals[1, start : start + len(k)] = k.sum(axis=1), l.sum(axis=1)


def _unbiased(products: np.ndarray, totals: np.ndarray) -> float:
    """CKA from sums of products without their diagonals."""
    n = totals.shape[1]
    k, l = totals

    def hsic(together: float, a: np.ndarray, b: np.ndarray) -> float:
        rest = a.sum() * b.sum() / ((n - 1) * (n - 2)) - 2 * (a @ b) / (n - 2)
        return float(together + rest) / (n * (n - 3))

    own = hsic(products[1], k, k) * hsic(products[2], l, l)
    return 0.0 if own <= 0 else hsic(products[0], k, l) / (float(np.sqrt(own)) + 1e-12)


def _biased(products: np.ndarray) -> float:
    """CKA from sums of products of centred features."""
    own = products[1] * products[2]
    return 0.0 if own <= 0 else float(products[0] / np.sqrt(own))


def cka_cv(
    x: Features,
    y: Features,
    *,
    how: Splits = SIMILARITY,
    labels: Sequence[Any] | np.ndarray | None = None,
    biased: bool = False,
    dtype: str = 'float32',
) -> Measured:
    """Mean of CKA over parts of the stimuli, and its standard error.

    The ten parts of 90 % overlap almost entirely: their spread says little of other stimuli.

    Args:
        x, y: [stimulus, unit] of the same stimuli, arrays or blocks.
        how: the splits; what is called test is what is measured.
        labels: class of each stimulus, for splits of equal classes.
        biased: the older estimate.
        dtype: of large products, 'float32' or 'float64'.

    Raises:
        RequestError: if stimuli differ, or are too few.
    """
    left, right = _same(x, y, LEAST)
    whole = [gram(side, dtype=dtype) for side in (left, right)]

    def one(rows: np.ndarray) -> float:
        if len(rows) < LEAST:
            raise RequestError(f'{len(rows)} stimuli in a part; CKA needs {LEAST} at least')
        pair = [_centred(k[np.ix_(rows, rows)]) for k in whole]
        sums, totals = np.zeros((3, 2)), np.zeros((2, len(rows)))
        _add(sums, totals, pair, 0)
        return _biased(sums[:, 1]) if biased else _unbiased(sums[:, 0], totals)

    return _over_parts(one, left.n, how, labels)


def _centred(k: np.ndarray) -> np.ndarray:
    """Products of features whose mean over these rows is taken off."""
    means = k.mean(axis=0)
    return k - means - means[:, None] + means.mean()


def _over_parts(
    one: Callable[[np.ndarray], float], n: int, how: Splits, labels: Sequence[Any] | np.ndarray | None
) -> Measured:
    """The value of each part, with their mean and standard error."""
    return over_splits(np.array([one(np.sort(rows)) for _, rows in splits(n, how, labels)]))


# ---- RDM ----


def rdm(x: Features, *, dtype: str = 'float32') -> np.ndarray:
    """1 less Pearson's r over units, between all pairs of stimuli; nan for a stimulus with the same response in all.

    Args:
        x: [stimulus, unit], array or blocks.
        dtype: of large products, 'float32' or 'float64'.

    Returns:
        float64[n, n]; the diagonal is 0.
    """
    x = blocks(x)
    sums, n_units, high, low = np.zeros(x.n), 0, np.full(x.n, -np.inf), np.full(x.n, np.inf)
    for block in passed(x, checked(dtype)):
        sums += block.sum(axis=1, dtype=float)
        n_units += block.shape[1]
        high, low = np.maximum(high, block.max(axis=1)), np.minimum(low, block.min(axis=1))
    if not n_units:
        raise RequestError('features: no block; one unit at least')
    means, out = (sums / n_units)[:, None], np.zeros((x.n, x.n))
    for block in passed(x, dtype):
        centred = block - means.astype(block.dtype)
        out += product(centred, centred.T, dtype)
    norms = np.sqrt(np.diag(out))
    norms = np.where(high == low, np.nan, norms)
    out /= norms
    out /= norms[:, None]
    np.clip(out, -1, 1, out=out)
    np.subtract(1, out, out=out)
    np.fill_diagonal(out, 0)
    return out


def upper(matrix: np.ndarray) -> np.ndarray:
    """The pairs of a matrix [n, n], row by row above the diagonal."""
    n = len(matrix)
    out = np.empty(n * (n - 1) // 2, matrix.dtype)
    at = 0
    for k in range(n - 1):
        out[at : at + n - 1 - k] = matrix[k, k + 1 :]
        at += n - 1 - k
    return out


def compare(left: np.ndarray, right: np.ndarray) -> float:
    """Spearman's rho of the pairs of two RDMs; pairs that one of them lacks (nan) are left out of both.

    Args:
        left, right: [n, n] of the same stimuli.

    Raises:
        RequestError: if they are not of the same three or more stimuli.
    """
    if left.shape != right.shape or left.ndim != 2 or left.shape[0] != left.shape[1] or len(left) < 3:
        raise RequestError(f'RDMs of shapes {left.shape} and {right.shape}; both [n, n] of the same three or more')
    a, b = upper(left), upper(right)
    there = ~(np.isnan(a) | np.isnan(b))
    if not there.all():
        a, b = a[there], b[there]
    if len(a) < 3:
        return float('nan')
    a = ranks(a)
    return pearson(a, ranks(b))


def rdm_similarity(x: Features, y: Features, *, dtype: str = 'float32') -> Measured:
    """Spearman's rho between the RDMs of two representations.

    Args:
        x, y: [stimulus, unit] of the same stimuli, arrays or blocks.
        dtype: of large products, 'float32' or 'float64'.

    Raises:
        RequestError: if stimuli differ, or are fewer than three.
    """
    left, right = _same(x, y, 3)
    first, second = rdm(left, dtype=dtype), rdm(right, dtype=dtype)
    value = compare(first, second)
    return Measured(value, float('nan'), np.array([value]), _flat_stimuli(first, second))


def _flat_stimuli(*rdms: np.ndarray) -> tuple[str, ...]:
    """A note of the stimuli whose pairs are left out."""
    flat = np.zeros(len(rdms[0]), bool)
    for matrix in rdms:
        flat |= np.isnan(matrix).sum(axis=1) >= len(matrix) - 1
    return (f'{flat.sum()} of {len(flat)} stimuli have one response in all units: left out',) if flat.any() else ()


def rdm_cv(
    x: Features,
    y: Features,
    *,
    how: Splits = SIMILARITY,
    labels: Sequence[Any] | np.ndarray | None = None,
    dtype: str = 'float32',
) -> Measured:
    """Mean of `rdm_similarity` over parts of the stimuli, and its standard error.

    The ten parts of 90 % overlap almost entirely: their spread says little of other stimuli.

    Args:
        x, y: [stimulus, unit] of the same stimuli, arrays or blocks.
        how: the splits; what is called test is what is measured.
        labels: class of each stimulus, for splits of equal classes.
        dtype: of large products, 'float32' or 'float64'.

    Raises:
        RequestError: if stimuli differ, or are too few.
    """
    left, right = _same(x, y, 3)
    first, second = rdm(left, dtype=dtype), rdm(right, dtype=dtype)

    def one(rows: np.ndarray) -> float:
        part = np.ix_(rows, rows)
        return compare(first[part], second[part])

    measured = _over_parts(one, left.n, how, labels)
    return measured._replace(notes=(*_flat_stimuli(first, second), *measured.notes))
