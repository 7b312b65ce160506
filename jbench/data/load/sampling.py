"""Which training windows come how often, and what each class counts."""

from __future__ import annotations

import numpy as np

from jbench import targets
from jbench.metrics import regression
from jbench.targets import classes


def class_weights(y: np.ndarray, kind: str, *, n_out: int | None = None) -> np.ndarray:
    """Loss weights against class imbalance, from the training windows.

    Args:
        y: of the training windows.
        kind: of the target, one that has classes or labels.
        n_out: number of classes, where the last ones may have no window.
    Returns:
        float32 [K].
    Raises:
        ValueError: the kind has no classes, or y is empty.
    """
    y = np.asarray(y)
    if not y.size:
        raise ValueError('class weights of no window')
    weights = targets.of(kind).class_weights
    if weights is None:
        raise ValueError(f'targets of kind {kind!r} have no class weights')
    return weights(y, n_out)


def _balanced(y: np.ndarray) -> np.ndarray:
    return classes.class_weights(y, None)[y]


def _by_bin(y: np.ndarray) -> np.ndarray:
    """One over the count of the bin that a value [N, 1] lies in; bins as the metric has them (binned_mae)."""
    number = np.digitize(y[:, 0], regression.BIN_EDGES[1:-1])
    return np.asarray(1 / np.bincount(number)[number])


SAMPLERS = {'shuffle': None, 'balanced': _balanced, 'bins': _by_bin}  # weights of training windows, by their targets
