"""Two models on the same subjects: how far apart, how sure, how large.

The unit is the subject; `d` is one difference a subject, f64 [n]. Subjects without a finite difference are left out.
Nothing here gives NaN, an infinity or a warning: where there is no number, None stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench.metrics import uncertainty

ALPHA = uncertainty.ALPHA
POWER = 0.8
RANKED = 200  # subjects: up to here signed ranks have their exact distribution
STEP = 40  # binary digits of the largest score; sums of thousands of such numbers are exact, so equal sums are seen


class Difference(NamedTuple):
    """The mean paired difference."""

    n: int  # subjects
    mean: float | None  # None for no subject
    sd: float | None  # over subjects, ddof 1; None for fewer than two
    interval: tuple[float, float] | None  # 95 %


class Test(NamedTuple):
    """A two-sided test of differences that lie symmetrically around 0."""

    p: float  # above 0; 1.0 where nothing differs
    z: float  # the same as a signed normal score, of the mid-p: what is combined over datasets
    n: int  # subjects that differ
    least: float  # the smallest p that so many subjects can give
    method: str  # 'exact', 'drawn', 'normal', or 'none' where nothing differs


class Effect(NamedTuple):
    """How large the difference is, free of units."""

    g: (
        float | None
    )  # mean / sd, less its bias; None where all subjects differ by the same, not 0, or there are one or two
    rank_biserial: float  # -1..1: share of signed ranks for, less against


def differences(a: np.ndarray, b: np.ndarray, better: str = 'higher') -> np.ndarray:
    """a - b of the subjects where both are finite, positive where a is better.

    What differs by less than 2**-40 of the largest score is equal: means over seeds differ so by rounding alone.

    Args:
        a, b: f64 [N], scores of the same subjects in the same order.
        better: 'higher' or 'lower'.
    Returns: f64 [n], n <= N.
    Raises: ValueError for arrays of different length.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        raise ValueError(f'a has shape {a.shape}, b {b.shape}: subjects are paired')
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    largest = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return _stepped(a - b if better == 'higher' else b - a, largest)


def difference(d: np.ndarray) -> Difference:
    """The mean with the interval of `jbench.metrics.uncertainty`: BCa over subjects at the levels of Student's t.

    No interval for fewer than four subjects, and where all differ by the same.
    """
    d = _finite(d)
    if not len(d):
        return Difference(0, None, None, None)
    found = uncertainty.interval(lambda weights: weights @ d / weights.sum(1), len(d), (-np.inf, np.inf))
    return Difference(len(d), float(d.mean()), float(d.std(ddof=1)) if len(d) > 1 else None, found)


def permutation(d: np.ndarray) -> Test:
    """The paired permutation test: signs of the differences are exchanged, the statistic is their mean.

    `scipy.stats.permutation_test`; all exchanges up to 13 subjects that differ, 10,000 beyond, the same each time,
    among which the true one counts. p = 1 where no subject differs. n subjects give no p below 2 / 2**n: five or fewer
    never reach 0.05.
    """
    d = _finite(d)
    d = _stepped(d[d != 0])
    n = len(d)
    if not n:
        return Test(1.0, 0.0, 0, 1.0, 'none')
    if n == 1:
        return Test(1.0, score_of(0.5, d[0]), 1, 1.0, 'exact')
    from scipy import stats

    exact = 2**n <= uncertainty.DRAWS
    found = stats.permutation_test(
        (d,),
        lambda x, axis: x.sum(axis),
        permutation_type='samples',
        vectorized=True,
        n_resamples=uncertainty.DRAWS,
        batch=max(1, uncertainty.CHUNK // n),
        rng=np.random.default_rng(uncertainty.SEED),
    )
    far, at = np.abs(found.null_distribution), abs(found.statistic)
    extra = 0 if exact else 1  # the true signs, beside those that were drawn
    beyond = ((far > at).sum() + ((far == at).sum() + extra) / 2) / (len(far) + extra)
    least = 2 / 2**n if exact else 2 / (uncertainty.DRAWS + 1)
    return Test(float(found.pvalue), score_of(beyond, found.statistic), n, least, 'exact' if exact else 'drawn')


def wilcoxon(d: np.ndarray) -> Test:
    """The signed-rank test (Wilcoxon 1945). Zeros are ranked, then left out (Pratt 1959, J. Am. Stat. Assoc. 54:655);
    halving their ranks (Demsar 2006) gives the same signed sum, and the same p.

    The direction is that of the ranks, not of the mean. Exact, with ties and zeros too, up to 200 subjects that differ
    (scipy's exact distribution knows neither); beyond `scipy.stats.wilcoxon`'s normal approximation, corrected for ties
    and continuity. p = 1 where no subject differs, or for and against are equal.
    """
    ranks = _signed_ranks(_finite(d))
    n, total = len(ranks), int(ranks.sum())
    if not n:
        return Test(1.0, 0.0, 0, 1.0, 'none')
    if n > RANKED:
        from scipy import stats

        p = float(stats.wilcoxon(_finite(d), zero_method='pratt', correction=True, method='asymptotic').pvalue)
        return Test(p, score_of(p, total), n, 0.0, 'normal')
    size = np.abs(ranks)
    chance = np.ones(1)  # of the sum of ranks on the positive side
    for rank in size:
        chance = (np.append(chance, np.zeros(rank)) + np.append(np.zeros(rank), chance)) / 2
    far = np.abs(2 * np.arange(len(chance)) - size.sum())
    beyond, same = float(chance[far > abs(total)].sum()), float(chance[far == abs(total)].sum())
    return Test(min(1.0, beyond + same), score_of(beyond + same / 2, total), n, 2 / 2**n, 'exact')


def effect(d: np.ndarray) -> Effect:
    """Cohen's d_z (mean / sd of the differences) times Hedges' (1981) correction, exact with n - 1 degrees of freedom;
    and the matched-pairs rank-biserial correlation (Kerby 2014), zeros ranked and left out.

    0 where no subject differs; g None where all differ by the same, or there are fewer than three subjects.
    """
    d = _stepped(_finite(d))
    ranks = _signed_ranks(d)
    biserial = float(ranks.sum() / np.abs(ranks).sum()) if len(ranks) else 0.0
    if len(d) and not len(ranks):
        return Effect(0.0, 0.0)
    if len(d) < 3 or (d == d[0]).all() or not (sd := d.std(ddof=1)):  # 0 where the squares are below any number
        return Effect(None, biserial)
    return Effect(float(d.mean() / sd) * hedges(len(d)), biserial)


def hedges(n: int) -> float:
    """What Cohen's d_z of n > 2 is multiplied with: gamma(f / 2) / (sqrt(f / 2) gamma((f - 1) / 2)), f = n - 1."""
    from scipy import special

    f = n - 1
    return float(np.exp(special.gammaln(f / 2) - special.gammaln((f - 1) / 2)) / np.sqrt(f / 2))


def detectable(sd: float | None, n: int, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The least true mean difference that a two-sided paired t test at `alpha` finds with probability `power`, in the
    units of sd. The permutation test finds it as often from ten subjects on, below that less (docs/statistics.md).

    None where the permutation test of n subjects cannot reach `alpha` (at 0.05: fewer than six), or sd is None or 0.
    """
    if not sd or 2 / 2**n > alpha:
        return None
    from scipy import special

    shift = special.nctdtrinc(n - 1, 1 - power, special.stdtrit(n - 1, 1 - alpha / 2))  # the other side adds 1e-6
    return float(shift * sd / np.sqrt(n))


def _finite(d: np.ndarray) -> np.ndarray:
    d = np.asarray(d, np.float64).ravel()
    return d[np.isfinite(d)]


def _stepped(d: np.ndarray, largest: float | None = None) -> np.ndarray:
    """Differences as multiples of a power of two, STEP binary digits below the largest score."""
    top = np.abs(d).max(initial=0) if largest is None else largest
    if not top:
        return d
    step = max(2.0 ** (np.frexp(top)[1] - STEP), float(np.finfo(float).tiny))
    return np.asarray(np.rint(d / step) * step)


def _signed_ranks(d: np.ndarray) -> np.ndarray:
    """Twice the signed ranks of what is not 0, int [n]; zeros take the lowest."""
    from scipy import stats

    d = _stepped(d)
    ranks = np.rint(2 * stats.rankdata(np.abs(d))).astype(int) * np.sign(d).astype(int)
    return ranks[d != 0]


def score_of(p: float, direction: float) -> float:
    """The normal score of a two-sided p, signed."""
    from scipy import special

    return float(-special.ndtri(p / 2) * np.sign(direction)) if p < 1 else 0.0
