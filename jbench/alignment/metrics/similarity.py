"""How alike two representations of the same stimuli are: CKA, and dissimilarities of pairs of stimuli (RDM).

Both need the products of stimuli with each other alone. Features come as arrays or by blocks of units; the products
are made for as many rows at a time as the memory asked for holds, which takes a pass over the features each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

from .correlation import flat, over_splits, pearson, ranks
from .features import Blocks, Features, blocks, gram, passed, refuse_nan
from .measured import Measured
from .products import add_upper, checked
from .splits import SIMILARITY, Splits, splits

BUDGET = 1 << 30  # bytes for products of stimuli
LEAST = 4  # stimuli: the unbiased estimate divides by n (n - 1)(n - 2)(n - 3)


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
    sums, totals = np.zeros((3, 2)), np.zeros((2, left.n))
    for start, stop in _row_blocks(left.n, budget, 4):
        _add(sums, totals, [gram(side, start, stop, dtype=dtype) for side in (left, right)], start)
    return _biased(sums[:, 1]) if biased else _unbiased(sums[:, 0], totals)


def _add(sums: np.ndarray, totals: np.ndarray, pair: Sequence[np.ndarray], start: int) -> None:
    """Add some rows of both products, from their diagonal on, to the sums that CKA needs.

    Args:
        sums: [kl, kk, ll; without and with the diagonal].
        totals: row sums of k and of l without the diagonal, [2, n].
        pair: k and l, [rows, n - start].
        start: the first of the rows.
    """
    rows = len(pair[0])
    inner = [m[:, :rows] for m in pair]
    own = [np.diag(m) for m in inner]
    for which, (a, b) in enumerate(((0, 1), (0, 0), (1, 1))):
        both = 2 * np.vdot(pair[a], pair[b]) - np.einsum('ij,ij->', inner[a], inner[b])
        sums[which] += both - own[a] @ own[b], both
    for which, m in enumerate(pair):
        totals[which, start : start + rows] += m.sum(axis=1) - own[which]
        totals[which, start + rows :] += m[:, rows:].sum(axis=0)


def _unbiased(products: np.ndarray, totals: np.ndarray) -> float:
    """CKA from sums of products without their diagonals."""
    n = totals.shape[1]

    def hsic(together: float, a: np.ndarray, b: np.ndarray) -> float:
        rest = a.sum() * b.sum() / ((n - 1) * (n - 2)) - 2 * (a @ b) / (n - 2)
        return float(together + rest) / (n * (n - 3))

    first, second = totals
    own = hsic(products[1], first, first) * hsic(products[2], second, second)
    return 0.0 if own <= 0 else hsic(products[0], first, second) / (float(np.sqrt(own)) + 1e-12)


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
        [n, n] of `dtype`; the diagonal is 0.
    """
    x = blocks(x)
    sums, n_units = np.zeros(x.n), 0
    for block in passed(x, checked(dtype)):
        sums += block.sum(axis=1)
        refuse_nan(block, sums)
        n_units += block.shape[1]
    means, out = (sums / n_units)[:, None], np.zeros((x.n, x.n), dtype)
    for block in passed(x, dtype):
        add_upper(out, block - means.astype(dtype), dtype)
    norms = np.sqrt(np.diag(out))
    rounding = 4 * np.finfo(dtype).eps * np.sqrt(n_units) * np.abs(means[:, 0])
    norms[norms <= rounding] = np.nan
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


# ---- RSM of selected units ----


def selected_rsm(x: np.ndarray, above: float = 3.1) -> tuple[np.ndarray, int]:
    """Correlations of conditions over the units that respond most (Coggan et al.), and how many units those are.

    Kept are units that vary and whose mean response is further from 0 than `above` times the spread of the means;
    each is z-scored over conditions.

    Args:
        x: [condition, unit].
        above: of the standard deviation of the units' means.

    Raises:
        RequestError: if fewer than two units are kept.
    """
    x = np.asarray(x, float)
    refuse_nan(x, x.sum(axis=0))
    x = x[:, ~flat(x)]
    means = x.mean(axis=0)
    x = x[:, np.abs(means) > above * means.std()]
    if x.shape[1] < 2:
        raise RequestError(
            f'{x.shape[1]} units respond by more than {above} standard deviations of all; a correlation over units '
            'needs two: a lower threshold, or another layer'
        )
    return np.corrcoef((x - x.mean(axis=0)) / x.std(axis=0)), x.shape[1]
