"""Two models over several datasets: is there a difference anywhere, how large is it on others, do datasets disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jbench.metrics.uncertainty import CONFIDENCE
from jbench.report.statistics import paired

ROUNDING = 1e-9  # an error that is so much smaller than the effect is one of rounding


class Combined(NamedTuple):
    """Stouffer's test, two-sided."""

    p: float  # 1.0 for no dataset
    z: float
    n: int  # datasets


class RandomEffects(NamedTuple):
    """A random-effects meta-analysis."""

    effect: float  # mean of the true effects of datasets like these
    interval: tuple[float, float] | None  # 95 %; None for a single dataset, or equal effects
    p: float | None  # None where there is no interval
    tau2: float  # variance of the true effects
    i2: float  # share of the variance of the effects that is not error within datasets, 0..1
    q: float  # Cochran's
    n: int  # datasets


class OnTask(NamedTuple):
    """What a task says of two models."""

    z: float  # signed normal score of its test
    n: int  # subjects
    g: float | None  # standardised mean difference


class Entry(NamedTuple):
    """What a dataset says of two models."""

    z: float
    n: int  # mean number of subjects of its tasks
    g: float | None  # None where no task has one
    variance: float | None  # of g


def stouffer(z: Sequence[float], n: Sequence[float]) -> Combined:
    """Signed normal scores, added with weights sqrt(n) (Stouffer 1949, Liptak 1958).

    The scores are those of `paired.Test.z`, of mid-p values: exact tests of few subjects would else be added up as if
    none had found anything (Lancaster 1961, J. Am. Stat. Assoc. 56:223). A score of 0 says that nothing differs.

    Args:
        z: f64 [k], positive where A is better.
        n: [k], subjects of each dataset; those of 0 are left out.
    """
    weights, scores = np.sqrt(np.asarray(n, np.float64)), np.asarray(z, np.float64)
    keep = (weights > 0) & np.isfinite(scores)
    weights, scores = weights[keep], scores[keep]
    if not len(scores):
        return Combined(1.0, 0.0, 0)
    from scipy import special

    total = float(weights @ scores / np.sqrt(weights @ weights))
    return Combined(float(2 * special.ndtr(-abs(total))), total, len(scores))


def effect_variance(g: float, n: int) -> float:
    """Variance of the standardised mean difference of n pairs: 1/n + g**2 / (2 n) (Gibbons, Hedeker & Davis 1993,
    J. Educ. Stat. 18:271; what metafor calls SMCC)."""
    return 1 / n + g**2 / (2 * n)


def random_effects(effects: Sequence[float], variances: Sequence[float]) -> RandomEffects | None:
    """DerSimonian & Laird's (1986) tau2, with the interval and test of Hartung & Knapp (2001), Student's t with k - 1
    degrees of freedom: it holds for few datasets, where the normal one is too narrow.

    The same as `statsmodels.stats.meta_analysis.combine_effects(method_re='chi2', use_t=True)`, its row of
    `conf_int` for random effects with an estimated scale.

    Args:
        effects, variances: f64 [k], of each dataset; those that are not finite, or whose variance is not above 0, are
            left out.
    Returns: None where nothing is left; no interval and no p for one dataset, and where all effects are equal.
    """
    x, v = np.asarray(effects, np.float64), np.asarray(variances, np.float64)
    keep = np.isfinite(x) & np.isfinite(v) & (v > 0)
    x, v = x[keep], v[keep]
    k = len(x)
    if not k:
        return None
    if k == 1:
        return RandomEffects(float(x[0]), None, None, 0.0, 0.0, 0.0, 1)
    from scipy import special

    w = 1 / v
    q = float(w @ (x - w @ x / w.sum()) ** 2)
    tau2 = max(0.0, (q - (k - 1)) / float(w.sum() - (w @ w) / w.sum()))
    w = 1 / (v + tau2)
    mean = float(w @ x / w.sum())
    error = float(np.sqrt(w @ (x - mean) ** 2 / (k - 1) / w.sum()))
    if error <= ROUNDING * abs(mean) or not error:
        return RandomEffects(mean, None, None, tau2, 0.0, q, k)
    reach = float(special.stdtrit(k - 1, 0.5 + CONFIDENCE / 2)) * error
    p = float(2 * special.stdtr(k - 1, -abs(mean) / error))
    i2 = max(0.0, 1 - (k - 1) / q) if q > 0 else 0.0
    return RandomEffects(mean, (mean - reach, mean + reach), p, tau2, i2, q, k)


def task(d: np.ndarray) -> OnTask:
    """A task of which each subject has a difference, f64 [n]."""
    return OnTask(paired.permutation(d).z, len(d), paired.effect(d).g)


def entry(tasks: Sequence[OnTask]) -> Entry:
    """One dataset's part in what is combined, from its tasks: they share its subjects, so that their scores and effects
    are averaged, with no less error than a single task has. Tasks without a subject are left out."""
    known = [t for t in tasks if t.n]
    if not known:
        return Entry(0.0, 0, None, None)
    effects = [(t.g, effect_variance(t.g, t.n)) for t in known if t.g is not None]
    g, variance = (float(np.mean(side)) for side in zip(*effects, strict=True)) if effects else (None, None)
    return Entry(float(np.mean([t.z for t in known])), round(float(np.mean([t.n for t in known]))), g, variance)
