"""Which training windows come how often, and what each class counts."""

from __future__ import annotations

import numpy as np

from jbench.metrics import regression


def class_weights(y: np.ndarray, kind: str, *, n_out: int | None = None) -> np.ndarray:
    """Loss weights against class imbalance, from the training windows.

    Args:
        y: int [N] for 'classes' and 'state'; 0/1 [N, K] for 'labels'.
        kind: of the target.
        n_out: number of classes, where the last ones may have no window.
    Returns:
        float32 [K]. Classes: scikit-learn's 'balanced' rule N / (number of observed classes * count), 1 for a class
        without windows. Labels: n_negative / n_positive, 1 for a label without a positive window.
    Raises:
        ValueError: the kind has no classes, or y is empty.
    """
    y = np.asarray(y)
    if not y.size:
        raise ValueError('class weights of no window')
    if kind == 'labels':
        positive = (y > 0).sum(0)
        return np.where(positive > 0, (len(y) - positive) / np.maximum(positive, 1), 1.0).astype(np.float32)
    if kind not in ('classes', 'state'):
        raise ValueError(f'targets of kind {kind!r} have no class weights')
    counts = np.bincount(y, minlength=n_out or 0)
    seen = counts > 0
    return np.where(seen, len(y) / (seen.sum() * np.maximum(counts, 1)), 1.0).astype(np.float32)


def _balanced(y: np.ndarray) -> np.ndarray:
    return class_weights(y, 'classes')[y]


def _by_bin(y: np.ndarray) -> np.ndarray:
    """One over the count of the bin that a value [N, 1] lies in; bins as the metric has them (binned_mae)."""
    number = np.digitize(y[:, 0], regression.BIN_EDGES[1:-1])
    return np.asarray(1 / np.bincount(number)[number])


SAMPLERS = {'shuffle': None, 'balanced': _balanced, 'bins': _by_bin}  # weights of training windows, by their targets
