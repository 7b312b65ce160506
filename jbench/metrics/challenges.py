"""Scores of the EEG/EMG Foundation Challenge 2026 and of the EEG Challenge 2025, in plain numpy float64.

The rules are those of the organisers' code (docs/challenges.md says which file each was read from). Scores of cells are
means over cells: a recording (track 3), or one interface in a session of a subject (track 2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jbench.metrics.regression import BIN_EDGES

BIN_WEIGHTS = (10.0, 5.0, 3.0, 1.0)  # of the bins of track 3, the one next to sleep first
SHARES_2025 = (0.3, 0.7)  # of challenge 1 and challenge 2 in the overall score
DECIMALS_2025 = 5

Score = Callable[[np.ndarray, np.ndarray], float | None]  # (outputs, y) of one cell


# ---- track 2: which mental task ----


def balanced_accuracy(said: np.ndarray, y: np.ndarray) -> float:
    """Mean recall over the classes that are true or said: one that is said and never true counts 0, which scikit-learn
    leaves out. said, y: [N]; nan among `said` is a class of its own."""
    classes = np.unique(np.concatenate([np.asarray(said, np.float64), np.asarray(y, np.float64)]))
    shares = [float((said[y == c] == c).mean()) if (y == c).any() else 0.0 for c in classes]
    return float(np.mean(shares))


# ---- track 3: seconds until sleep ----


def weighted_binned_mae(
    outputs: np.ndarray,
    y: np.ndarray,
    edges: tuple[float, ...] = BIN_EDGES,
    weights: tuple[float, ...] = BIN_WEIGHTS,
) -> float | None:
    """Mean absolute error in each bin of y, [low, high) and the last [low, high], averaged over the bins that hold a
    target with their weights; with equal ones the bmae. None where no target lies inside. outputs, y: [N], s.

    Raises: ValueError for weights that are not above 0, or not one a bin.
    """
    if len(weights) != len(edges) - 1 or not all(w > 0 for w in weights):
        raise ValueError(f'weights {weights} must be {len(edges) - 1} numbers above 0, one a bin')
    error, bins = np.abs(np.asarray(outputs, np.float64) - y), np.digitize(y, edges[1:-1])
    inside = (y >= edges[0]) & (y <= edges[-1])
    mine = [inside & (bins == b) for b in range(len(weights))]
    found = [(w, float(error[rows].mean())) for w, rows in zip(weights, mine, strict=True) if rows.any()]
    return sum(w * e for w, e in found) / sum(w for w, _ in found) if found else None


# ---- 2025 ----


def overall_2025(challenge_1: float, challenge_2: float) -> float:
    """The score that ranked: 0.3 and 0.7 of the two errors, rounded to five decimals."""
    return round(SHARES_2025[0] * challenge_1 + SHARES_2025[1] * challenge_2, DECIMALS_2025)


# ---- cells ----


def of_cells(score: Score, outputs: np.ndarray, y: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The score of each cell that has one, float64 [M], and a window of it, int [M]. cell: text [N]."""
    _, first, number = np.unique(cell, return_index=True, return_inverse=True)
    order = np.argsort(number, kind='stable')
    rows = np.split(order, np.cumsum(np.bincount(number))[:-1])
    found = [(score(outputs[mine], y[mine]), k) for mine, k in zip(rows, first, strict=True)]
    kept = [(value, k) for value, k in found if value is not None]
    return np.array([value for value, _ in kept], np.float64), np.array([k for _, k in kept], int)
