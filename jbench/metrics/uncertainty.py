"""How sure a mean over subjects is, and what chance would give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

CONFIDENCE = 0.95


def interval(
    values: Mapping[str, float], bounds: tuple[float, float] = (0.0, 1.0), *, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Student's t confidence interval of the mean over subjects, clipped to `bounds`; None below two subjects."""
    from scipy import special  # scipy.stats takes half a second to import

    x = np.asarray(list(values.values()), np.float64)
    if len(x) < 2:
        return None
    half = float(special.stdtrit(len(x) - 1, 0.5 + confidence / 2) * x.std(ddof=1) / np.sqrt(len(x)))
    low, high = np.clip([x.mean() - half, x.mean() + half], *bounds)
    return float(low), float(high)


def differs_from_chance(values: Mapping[str, float], chance: float) -> bool | None:
    """Whether `chance` lies outside the (unclipped) 95 % interval of the mean over subjects: a two-sided one-sample
    t-test at 5 %. None below two subjects."""
    found = interval(values, (-np.inf, np.inf))
    return None if found is None else not found[0] <= chance <= found[1]


def best_constant(y: np.ndarray, subjects: np.ndarray) -> float:
    """Balanced accuracy, averaged over subjects, of the constant answer that suits them best.

    1/K where every subject shows all K classes. In a diagnosis task a subject shows one class, so that always naming
    the commonest scores its share of the subjects, not 1/K: the chance level of a mean over subjects.
    """
    who, what = np.unique(subjects, return_inverse=True)[1], np.unique(y, return_inverse=True)[1]
    shown = np.zeros((who.max() + 1, what.max() + 1))
    shown[who, what] = 1
    return float((shown / shown.sum(1, keepdims=True)).mean(0).max())
