"""How sure a score is, were other subjects recorded, and whether it differs from chance.

The unit is the subject. A score is given as a function of weights, how often each subject counts: f64 [B, S] -> [B],
nan where it is not defined. docs/statistics.md has the measured coverage and false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

CONFIDENCE = 0.95
LEAST = 4  # subjects: of fewer nothing is said
ROUGH = 10  # below, an interval covers less than it says
DRAWS = 10_000
SEED = 33
ALPHA = 0.05
VERDICT = 0.04  # asked of the bootstrap's t tests: skewed scores of few subjects make 0.06 of it
LEAST_SPREAD = 0.1  # of a draw, of that of the subjects
CHUNK = 4_000_000  # weights at a time

Score = Callable[[np.ndarray], np.ndarray]
Interval = tuple[float, float]


def interval(score: Score, n_subjects: int, bounds: Interval = (0.0, 1.0)) -> Interval | None:
    """95 % bootstrap interval over subjects of a score: BCa (Efron 1987, J. Am. Stat. Assoc. 82:171), at the levels of
    Student's t instead of the normal distribution's, times sqrt(n / (n - 1)) (Hesterberg 2015, Am. Stat. 69:371).

    Where all subjects are at one bound, resampling them gives no width: then it ends where the best (worst) score of
    each of n subjects has a probability of at most 2.5 % (Clopper & Pearson 1934).

    Args:
        score: of weights.
        n_subjects: S.
        bounds: least and greatest possible score.
    Returns:
        Six digits; None for fewer than four subjects, where the score is not defined for half of the draws, and where
        subjects are alike and no score of each of them is at a bound.
    """
    from scipy import special  # scipy.stats takes half a second to import

    if n_subjects < LEAST:
        return None
    value, without = score(np.ones((1, n_subjects)))[0], score(1 - np.eye(n_subjects))
    draws = drawn(score, n_subjects)
    if not np.isfinite(value) or len(draws) < DRAWS / 2:
        return None
    same = np.abs(draws - value) <= 1e-12 * max(1.0, abs(value))
    if same.all():
        alone = np.isfinite(bounds).all() and value in bounds and np.isfinite(score(np.eye(n_subjects))).all()
        return _exact(value, n_subjects, bounds) if alone else None
    below = ((draws < value) & ~same).mean() + same.mean() / 2
    bias = special.ndtri(np.clip(below, 0.5 / DRAWS, 1 - 0.5 / DRAWS))
    pull = np.nanmean(without) - without[np.isfinite(without)]
    spread = (pull**2).sum() ** 1.5
    skew = (pull**3).sum() / (6 * spread) if spread else 0.0
    reach = np.sqrt(n_subjects / (n_subjects - 1)) * special.stdtrit(n_subjects - 1, 0.5 + CONFIDENCE / 2)
    ends = [_bca_level(bias, skew, sign * reach) for sign in (-1, 1)]
    return six_digits(np.clip(np.quantile(draws, ends), *bounds))


def differs_from_chance(
    score: Score, n_subjects: int, chance: float, found: Interval | None, bounds: Interval = (0.0, 1.0)
) -> bool | None:
    """Whether chance lies outside of the interval that was found, and either outside of two bootstrap t intervals,
    symmetric and equal-tailed, of the jackknife's pseudo-values, or so far that no distribution of scores between the
    bounds makes it likely (Hoeffding 1963, J. Am. Stat. Assoc. 58:13, equation 2.1); None where there is no interval.

    An interval alone is wrong more often than it says where subjects are few; docs/statistics.md has what is left.
    """
    if found is None:
        return None
    edge = 1e-5 * abs(chance)  # the ends have six digits
    if found[0] - edge <= chance <= found[1] + edge:
        return False
    everyone, without = float(score(np.ones((1, n_subjects)))[0]), score(1 - np.eye(n_subjects))
    if np.isfinite(bounds).all() and 2 * _unlikely(everyone, chance, n_subjects, bounds) <= ALPHA:
        return True
    pseudo = n_subjects * everyone - (n_subjects - 1) * without[np.isfinite(without)]
    n, mean, error = len(pseudo), pseudo.mean(), pseudo.std(ddof=1)
    if error <= 1e-12 * max(1.0, abs(mean)):
        return False
    draws = np.concatenate([_t(pseudo, mean, weights) for weights in _weights(n)])
    t = np.sqrt(n) * (mean - chance) / error
    tails = 2 * min((draws >= t).mean(), (draws <= t).mean())
    return bool(max(tails, (np.abs(draws) >= abs(t)).mean()) <= VERDICT)


def drawn(score: Score, n_subjects: int) -> np.ndarray:
    """The score of 10,000 draws of as many subjects, with replacement; draws without one are left out."""
    found = np.concatenate([score(weights) for weights in _weights(n_subjects)])
    return found[np.isfinite(found)]


def _weights(n: int) -> Iterator[np.ndarray]:
    """How often each of n subjects is drawn, f64 [rows, n] by [rows, n]; the same for every score."""
    random = np.random.RandomState(SEED)  # its numbers are the same in every release of numpy
    rows = max(1, CHUNK // n)
    for first in range(0, DRAWS, rows):
        yield random.multinomial(n, np.full(n, 1 / n), min(rows, DRAWS - first)).astype(np.float64)


def _bca_level(bias: float, skew: float, z: float) -> float:
    """The level of the draws at which an interval ends."""
    from scipy import special

    room = 1 - skew * (bias + z)
    return float(special.ndtr(bias + (bias + z) / room)) if room > 0 else float(z > 0)


def _exact(value: float, n: int, bounds: Interval) -> Interval:
    """Where all n subjects are at one bound."""
    width = (bounds[1] - bounds[0]) * (1 - ((1 - CONFIDENCE) / 2) ** (1 / n))
    return six_digits([value - width, value] if value == bounds[1] else [value, value + width])


def _unlikely(value: float, chance: float, n: int, bounds: Interval) -> float:
    """The greatest probability that the mean of n scores between the bounds is as far on its side of their mean,
    `chance`: exp(-n KL(value, chance))."""
    from scipy import special

    x, c = ((v - bounds[0]) / (bounds[1] - bounds[0]) for v in (value, chance))
    return float(np.exp(-n * (special.rel_entr(x, c) + special.rel_entr(1 - x, 1 - c))))


def _t(values: np.ndarray, mean: float, weights: np.ndarray) -> np.ndarray:
    """Student's t of draws of values [n]. A draw whose error is below a tenth of theirs, as one of a single value has
    none, counts with that tenth."""
    n = len(values)
    centred = values - mean
    shift = weights @ centred / n
    spread = np.sqrt(np.maximum(weights @ centred**2 / n - shift**2, 0) * n / (n - 1))
    return np.asarray(np.sqrt(n) * shift / np.maximum(spread, LEAST_SPREAD * values.std(ddof=1)))


def six_digits(ends: np.ndarray | list[float]) -> Interval:
    """Six digits: more than the draws decide, and the same whatever the order of sums."""
    low, high = (float(f'{end:.6g}') for end in ends)
    return low, high
