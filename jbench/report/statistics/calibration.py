"""Whether a model's probabilities are what they say: of answers given with 80 %, 80 % should be right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench.metrics import classification

BINS = 15  # as Guo et al. have it


class Bins(NamedTuple):
    """Answers in bins of the probability that the model gave them; empty bins are left out."""

    confidence: tuple[float, ...]  # mean probability
    accuracy: tuple[float, ...]  # share of right answers
    counts: tuple[int, ...]


class Calibration(NamedTuple):
    """Scores of probabilities, beside the headline."""

    ece: float  # over bins of equal width
    ece_mass: float  # over bins of equal counts
    brier: float  # 0..2
    auroc: float | None  # None where a single class is shown
    width: Bins
    mass: Bins


def calibration(outputs: np.ndarray, y: np.ndarray, n_bins: int = BINS) -> Calibration | None:
    """Expected calibration error of the class that is said (Guo et al. 2017, arXiv:1706.04599): the mean over answers
    of |share of right ones - mean probability| of their bin.

    Bins of equal width are (0, 1/15], ..., (14/15, 1]. Bins of equal counts end at the quantiles of the probabilities;
    equal ones stay in one bin, so that the order of windows does not count. Brier (1950): mean over windows of the sum
    over classes of (probability - 1 if true else 0)**2. AUROC as `jbench.metrics.classification` has it.

    Args:
        outputs: logits or logarithms of probabilities [N, K], as results hold them.
        y: int [N], classes 0..K-1.
    Returns: None for no window. Windows with an output that is not finite are left out.
    """
    outputs, y = np.asarray(outputs, np.float64), np.asarray(y)
    finite = np.isfinite(outputs).all(1)
    outputs, y = outputs[finite], y[finite]
    if not len(y):
        return None
    p = np.exp(classification.log_probabilities(outputs))
    said = outputs.argmax(1)
    confidence, right = p[np.arange(len(y)), said], said == y
    width = _bins(confidence, right, np.linspace(0, 1, n_bins + 1)[1:-1])
    inner = np.quantile(confidence, np.arange(1, n_bins) / n_bins, method='inverted_cdf')
    mass = _bins(confidence, right, np.unique(inner))
    brier = float(((p - np.eye(p.shape[1])[y]) ** 2).sum(1).mean())
    return Calibration(_error(width), _error(mass), brier, classification.classes(outputs, y)['auroc'], width, mass)


def _bins(confidence: np.ndarray, right: np.ndarray, ends: np.ndarray) -> Bins:
    """Bins that end at `ends`, each with its upper end."""
    number = np.searchsorted(ends, confidence, side='left')
    count = np.bincount(number)
    shown = count > 0
    means = (np.bincount(number, values)[shown] / count[shown] for values in (confidence, right))
    told, true = (tuple(map(float, mean)) for mean in means)
    return Bins(told, true, tuple(map(int, count[shown])))


def _error(bins: Bins) -> float:
    count = np.array(bins.counts)
    return float(count @ np.abs(np.array(bins.confidence) - np.array(bins.accuracy)) / count.sum())
