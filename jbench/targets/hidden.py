"""Samples of a window that were hidden from the network: what it puts in their place.

The target is the window itself: `y` is only its number, by which what is hidden of it in a test is drawn. An output
is not the signal but six sums over the hidden samples (metrics/contrast.py), of which all scores follow exactly;
train/hiding.py makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jbench.events import Table
from jbench.metrics import contrast
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.task import Hidden
from jbench.targets.kind import About, Each, Encoded, Kind, by_subject


def collect(target: Hidden, events: Table, trigger_row: int, onset: float, duration: float) -> int:
    """Nothing."""
    return 0


def encode(target: Hidden, raw: Sequence[int], classes: Sequence[str] | None) -> Encoded:
    """int64 [N, 1]: their numbers."""
    return Encoded(np.arange(len(raw))[:, None], ())


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a sum."""
    return len(contrast.SUMS)


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, 6] and [N, 1]."""
    return y == (outputs[0], 1) and outputs[1] == len(contrast.SUMS)


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As they are."""
    return y


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """hidden_r2, hidden_pearsonr, over all hidden samples."""
    found = contrast.hidden(np.asarray(outputs, np.float64).sum(0))
    return {name: float(value) if np.isfinite(value) else None for name, value in found.items()}


def _alone(outputs: np.ndarray, y: np.ndarray) -> Scores:
    return evaluate(outputs, y, {})


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """As of all windows."""
    return by_subject(_alone, outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """As of all windows."""
    sums = np.zeros((int(owner.max()) + 1, outputs.shape[1]))
    np.add.at(sums, owner, np.asarray(outputs, np.float64))
    return lambda w: contrast.hidden(w @ sums)[metric]


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The mean, which is 0: signals of variance 1 for all that it knows."""
    return np.tile([1.0, 0.0, 0.0, 1.0, 0.0, 0.0], (n, 1))


HIDDEN = Kind('hidden', collect, encode, n_out, fits, checked, evaluate, per_subject, by_weights, dummy, listed=False)
