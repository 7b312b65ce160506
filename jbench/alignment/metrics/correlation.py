"""Correlations of columns and of vectors, and averages that say what they leave out."""

from __future__ import annotations

import numpy as np

from .measured import Measured

FLAT = 1e-12  # a spread below this share of the largest value is rounding


def flat(a: np.ndarray) -> np.ndarray:
    """Which columns of a[row, column] do not vary, beyond rounding."""
    if not len(a):
        return np.ones(a.shape[1], bool)
    return np.ptp(a, axis=0) <= FLAT * np.abs(a).max(axis=0)


def pearson_columns(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson r of each column of a[row, column] with the same column of b; nan where one of them does not vary.

    Args:
        a, b: [row, column], without nan.
    """
    left, right = (np.asarray(m, float) - np.mean(m, axis=0, dtype=float) for m in (a, b))
    norm = np.linalg.norm(left, axis=0) * np.linalg.norm(right, axis=0)
    with np.errstate(invalid='ignore', divide='ignore'):
        r = np.einsum('ij,ij->j', left, right) / norm
    return np.where(flat(np.asarray(a)) | flat(np.asarray(b)), np.nan, np.clip(r, -1, 1))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks of a vector from 1, equal values sharing their mean rank: as scipy.stats.rankdata, several times as fast.

    Args:
        values: [n] without nan.
    """
    order = np.argsort(values)
    ordered = values[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    out = np.empty(len(values))
    if len(first) == len(values):  # no value twice
        out[order] = np.arange(1, len(values) + 1)
        return out
    ends = np.append(first[1:], len(values))
    out[order] = np.repeat((first + ends + 1) / 2, ends - first)
    return out


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson r of two vectors; nan where one of them does not vary."""
    return float(pearson_columns(a[:, None], b[:, None])[0])


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman rho of two vectors; nan where one of them does not vary, or either holds a nan."""
    if np.isnan(a).any() or np.isnan(b).any():
        return float('nan')
    return pearson(ranks(a), ranks(b))


def over_splits(values: np.ndarray, notes: tuple[str, ...] = ()) -> Measured:
    """Median over neuroids (nan skipped), mean over splits, and their standard error (ddof 0).

    Args:
        values: [split, neuroid], or [split].
        notes: what is known already.
    """
    values = np.asarray(values, float)
    each = _median(values) if values.ndim == 2 else values
    empty = np.isnan(each)
    if empty.all():
        return Measured(float('nan'), float('nan'), values, (*notes, 'no value: nan in every split'))
    if empty.any():
        notes = (*notes, f'{empty.sum()} of {len(each)} splits have no value: left out of the mean')
    each = each[~empty]
    return Measured(float(each.mean()), float(each.std() / np.sqrt(len(each))), values, notes)


def _median(values: np.ndarray) -> np.ndarray:
    """Median of each row without its nan; nan where there is nothing else."""
    out = np.full(len(values), np.nan)
    for k, row in enumerate(values):
        there = row[~np.isnan(row)]
        if there.size:
            out[k] = np.median(there)
    return out


def listed(what: str, indices: np.ndarray, most: int = 5) -> str:
    """'neuroids 3, 7' for a note; a long list is cut."""
    shown = ', '.join(map(str, indices[:most])) + (f' and {len(indices) - most} more' if len(indices) > most else '')
    return f'{what}{"s" if len(indices) > 1 else ""} {shown}'
