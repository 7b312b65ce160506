"""Thresholds of perception from psychometric curves, and how near those of a model are to those of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import RequestError

GUESS = 0.5  # accuracy of guessing between two
LAPSES = (0.03, 0.5)  # bounds of the share of lapses
SLOPES = np.logspace(-3, 1, 50)  # where fits start, at each level
ACCURATE = 0.6  # least mean accuracy of a curve that is fitted
FITTED = 0.4  # least share of variance that a fit explains
KEPT = 1 / 3  # least share of levels that are left below the decline


class Threshold(NamedTuple):
    """Where a psychometric curve reaches an accuracy."""

    level: float  # of the stimulus; nan where there is no threshold
    accuracy: float  # at the threshold
    reason: str = ''  # why there is none


class Curve(NamedTuple):
    """Wichmann & Hill (2001, Percept. Psychophys. 63:1293): guess + (1 - guess - lapse) Phi(slope (x - middle))."""

    slope: float
    middle: float
    lapse: float

    def accuracy(self, level: np.ndarray | float) -> np.ndarray:
        """Accuracy at levels of the stimulus."""
        from scipy.special import ndtr

        return np.asarray(GUESS + (1 - GUESS - self.lapse) * ndtr(self.slope * (np.asarray(level) - self.middle)))

    def level(self, accuracy: float) -> float:
        """Level of the stimulus at an accuracy; nan where the curve never has it."""
        from scipy.special import ndtri

        with np.errstate(all='ignore'):
            share = (accuracy - GUESS) / (1 - GUESS - self.lapse)
            return float(self.middle + ndtri(share) / self.slope)


def psychometric_threshold(
    level: np.ndarray, correct: np.ndarray, *, accuracy: float | None = None, least: float = ACCURATE
) -> Threshold:
    """Fit a psychometric curve and read its threshold.

    Levels after the point from which all accuracies are a standard deviation or more below the best are left out: a
    curve cannot fall. There is no threshold where the answers are poor, fewer than a third of the levels are left,
    the fit explains less than 0.4 of the variance, or the threshold lies beyond the greatest level that is left.

    Args:
        level: of the stimulus, [trial].
        correct: 1 right, 0 wrong, [trial].
        accuracy: at the threshold; None: midway between those of the curve at the least and greatest level.
        least: mean accuracy that is asked for.
    Raises:
        RequestError: lengths differ, no trials.
    """
    level, right = np.asarray(level, float), np.asarray(correct, float)
    if level.ndim != 1 or level.shape != right.shape or not len(level):
        raise RequestError(f'threshold: {level.shape} levels, {right.shape} answers: expected one each, of any trials')

    def without(reason: str) -> Threshold:
        return Threshold(float('nan'), float('nan') if accuracy is None else accuracy, reason)

    if right.mean() < least:
        return without(f'mean accuracy {right.mean():.3f} is below {least:g}')
    levels, place = np.unique(level, return_inverse=True)
    share = np.bincount(place, right) / np.bincount(place)
    n = _before_decline(share)
    if np.ptp(share) == 0:
        return without('accuracy is the same at all levels')
    if n < max(2, KEPT * len(levels)):
        return without(f'accuracy falls from the {n}. of {len(levels)} levels on')
    curve = fit_curve(levels[:n], share[:n])
    explained = 1 - ((share[:n] - curve.accuracy(levels[:n])) ** 2).sum() / ((share[:n] - share[:n].mean()) ** 2).sum()
    if explained < FITTED:
        return without(f'the curve explains {explained:.3f} of the variance, below {FITTED:g}')
    wanted = float(curve.accuracy(level[[level.argmin(), level.argmax()]]).mean()) if accuracy is None else accuracy
    found = curve.level(wanted)
    if not found <= levels[n - 1]:
        return without(f'the threshold {found:.4g} is not within the levels, up to {levels[n - 1]:.4g}')
    return Threshold(found, wanted)


def threshold_elevation(baseline: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> Threshold:
    """Threshold of a test condition over that of a baseline, both at the accuracy midway along the baseline's curve.

    Args:
        baseline: levels and right answers of trials.
        test: the same.
    Returns:
        The ratio as `level`.
    """
    below = psychometric_threshold(*baseline)
    if below.reason:
        return below._replace(reason=f'baseline: {below.reason}')
    above = psychometric_threshold(*test, accuracy=below.accuracy)
    if above.reason:
        return above._replace(reason=f'test condition: {above.reason}')
    return Threshold(above.level / below.level, below.accuracy)


def threshold_score(model: Threshold | float, subjects: Sequence[float] | np.ndarray) -> Measured:
    """1 - |h - m| / h, at least 0, averaged over the thresholds (or elevations) h of subjects.

    Args:
        model: its threshold (or elevation) m.
        subjects: theirs, above zero.
    Returns:
        Mean, standard deviation and values over subjects; 0 and a note where the model has no threshold.
    Raises:
        RequestError: no subjects, or thresholds that are not above zero.
    """
    theirs = np.asarray(subjects, float)
    if theirs.ndim != 1 or not len(theirs) or not (theirs > 0).all():
        raise RequestError(f'thresholds of subjects {theirs}: expected at least one, all above zero')
    if isinstance(model, Threshold) and model.reason:
        return Measured(0.0, 0.0, np.zeros(len(theirs)), (f'the model has no threshold: {model.reason}',))
    mine = model.level if isinstance(model, Threshold) else model
    values = np.maximum(1 - np.abs(theirs - mine) / theirs, 0)
    return Measured(float(values.mean()), float(values.std()), values)


def threshold_ceiling(subjects: Sequence[float] | np.ndarray) -> Measured:
    """`threshold_score` of each subject against the others.

    Raises:
        RequestError: fewer than two subjects.
    """
    theirs = np.asarray(subjects, float)
    if len(theirs) < 2:
        raise RequestError(f'ceiling of thresholds: {len(theirs)} subjects, expected at least two')
    values = np.array([threshold_score(theirs[k], np.delete(theirs, k)).value for k in range(len(theirs))])
    return Measured(float(values.mean()), float(values.std()), values)


def fit_curve(level: np.ndarray, share: np.ndarray) -> Curve:
    """The most likely curve, of fits that start at each slope of SLOPES and each level.

    Args:
        level: of the stimulus, each once.
        share: of right answers there.
    """
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    starts = [(slope, middle, 1 - share.max()) for slope in SLOPES for middle in level]
    bounds = [(None, None), (None, None), LAPSES]
    with threadpool_limits(1):  # for three parameters, threads only wait for each other
        fits = [minimize(_loss, start, (level, share), 'L-BFGS-B', jac=True, bounds=bounds) for start in starts]
    best = min(fits, key=lambda fit: float(np.nan_to_num(fit.fun, nan=np.inf)))
    return Curve(*map(float, best.x))


def _loss(curve: np.ndarray, level: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
    """Negative log likelihood of shares of right answers, and its gradient."""
    from scipy.special import ndtr

    slope, middle, lapse = curve
    distance = level - middle
    below = ndtr(slope * distance)
    density = np.exp(-((slope * distance) ** 2) / 2) / np.sqrt(2 * np.pi)
    reach = 1 - GUESS - lapse
    p = GUESS + reach * below
    loss = -(share * np.log(p) + (1 - share) * np.log1p(-p)).sum()
    pull = -(share / p - (1 - share) / (1 - p))
    return float(loss), np.array(
        [(pull * reach * density * distance).sum(), -(pull * reach * density).sum() * slope, -(pull * below).sum()]
    )


def _before_decline(share: np.ndarray) -> int:
    """Levels before the one from which all accuracies are at least a standard deviation off the best."""
    top = int(share.argmax())
    low = np.abs(share - share[top]) >= share.std()
    for k in range(top + 1, len(share)):
        if low[k:].all():
            return k
    return len(share)
