"""Scores of values, in plain numpy float64."""

from __future__ import annotations

import numpy as np

BIN_EDGES = (0.0, 40.0, 90.0, 300.0, 600.0)  # s to sleep onset
Scores = dict[str, float | None]


def binned_mae(outputs: np.ndarray, y: np.ndarray, edges: tuple[float, ...] = BIN_EDGES) -> float | None:
    """Mean over the non-empty bins of y, [lo, hi) and the last [lo, hi], of the mean absolute error in the bin.

    NeuralBench's score of sleep onset. outputs, y: [N]; targets outside the edges count nowhere.
    """
    bins = np.digitize(y, edges[1:-1])
    inside = (y >= edges[0]) & (y <= edges[-1])
    errors = [np.abs(outputs - y)[inside & (bins == b)] for b in range(len(edges) - 1)]
    means = [float(e.mean()) for e in errors if len(e)]
    return float(np.mean(means)) if means else None


def value(outputs: np.ndarray, y: np.ndarray) -> Scores:
    """Scores of a number: outputs, y [N]."""
    error = outputs - y
    rmse, spread = float(np.sqrt((error**2).mean())), float(y.std()) if np.ptp(y) > 0 else 0.0
    scores: Scores = {
        'pearsonr': None,  # a constant has no correlation
        'rmse': rmse,
        'mae': float(np.abs(error).mean()),
        'r2': 1.0 - rmse**2 / spread**2 if spread else None,
        'normalized_rmse': rmse / spread if spread else None,
        'bmae': binned_mae(outputs, y),
    }
    if spread and np.ptp(outputs) > 0:
        a, b = outputs - outputs.mean(), y - y.mean()
        a, b = a / np.abs(a).max(), b / np.abs(b).max()
        scores['pearsonr'] = float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1, 1))
    return scores
