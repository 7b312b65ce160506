"""Which window belongs to which: scores of representations that were learnt without labels, in float64.

Similarity is the cosine. Rank = (number of greater similarities + number of greater or equal ones - 1) / 2, so that
ties share a rank; a hit in the first k: rank < k (as jbench/metrics/retrieval.py has it).
"""

from __future__ import annotations

import numpy as np

from jbench.metrics import retrieval

Ranks = tuple[np.ndarray, np.ndarray]  # rank float64 [Q] of each query, and its window int [Q]


def moments(outputs: np.ndarray, moment: np.ndarray, viewer: np.ndarray) -> Ranks:
    """Rank of the right moment of each window, among all moments that others saw.

    A moment is what all other viewers answer to it: the mean of their outputs, each of length 1. Windows of moments
    that nobody else saw ask nothing.

    Args:
        outputs: [N, D].
        moment, viewer: int [N].
    """
    unit = _unit(outputs)
    n = int(moment.max()) + 1
    sums, counts = np.zeros((n, outputs.shape[1])), np.bincount(moment, minlength=n)
    np.add.at(sums, moment, unit)
    ranks, asked = [np.zeros(0)], [np.zeros(0, int)]
    for one in np.unique(viewer):
        mine = np.flatnonzero(viewer == one)
        own = np.zeros_like(sums)
        np.add.at(own, moment[mine], unit[mine])
        left = counts - np.bincount(moment[mine], minlength=n)
        there = np.flatnonzero(left)
        number = np.full(n, -1)
        number[there] = np.arange(len(there))
        queries = mine[number[moment[mine]] >= 0]
        if len(queries):
            ranks.append(retrieval.ranks(unit[queries], (sums - own)[there], number[moment[queries]]))
            asked.append(queries)
    return np.concatenate(ranks), np.concatenate(asked)


def following(outputs: np.ndarray, recording: np.ndarray, place: np.ndarray) -> Ranks:
    """Rank of the next window of each window, among all others of its recording.

    The first half of an output says what comes next, the second half what the window is.

    Args:
        outputs: [N, 2 D].
        recording, place: int [N]; the window after place p has place p + 1.
    """
    half = outputs.shape[1] // 2
    says, holds = _unit(outputs[:, :half]), _unit(outputs[:, half:])
    ranks, asked = [np.zeros(0)], [np.zeros(0, int)]
    for one in np.unique(recording):
        rows = np.flatnonzero(recording == one)
        row_of = dict(zip(place[rows].tolist(), range(len(rows)), strict=True))
        for k, p in enumerate(place[rows].tolist()):
            if p + 1 in row_of:
                others = np.delete(rows, k)
                right = np.flatnonzero(others == rows[row_of[p + 1]])
                ranks.append(retrieval.ranks(says[rows[k : k + 1]], holds[others], right))
                asked.append(rows[k : k + 1])
    return np.concatenate(ranks), np.concatenate(asked)


def _unit(rows: np.ndarray) -> np.ndarray:
    rows = np.asarray(rows, np.float64)
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-15)


# ---- hidden samples: sums of them and of what was put in their place ----

SUMS = ('n', 'x', 'r', 'xx', 'rr', 'xr')  # columns of an output: x the signal, r what was put in its place


def hidden(sums: np.ndarray) -> dict[str, np.ndarray]:
    """How well hidden samples were put back: shares of variance and correlations, nan where one is not defined.

    Args:
        sums: [..., 6], as `SUMS` says.
    """
    n, x, r, xx, rr, xr = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    with np.errstate(divide='ignore', invalid='ignore'):
        spread, wide = xx / n - (x / n) ** 2, rr / n - (r / n) ** 2
        spread = np.where(spread > 1e-12 * np.maximum(xx / n, 1e-300), spread, np.nan)
        wide = np.where(wide > 1e-12 * np.maximum(rr / n, 1e-300), wide, np.nan)
        error = (xx - 2 * xr + rr) / n
        both = (xr / n - x * r / n**2) / np.sqrt(spread * wide)
        return {'hidden_r2': 1 - error / spread, 'hidden_pearsonr': np.clip(both, -1, 1)}
