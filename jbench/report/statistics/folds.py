"""Two models on the folds of one data set: these share training data, so that they are no independent observations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench.report.statistics import paired


class Resampled(NamedTuple):
    """A corrected resampled t test, two-sided."""

    p: float | None  # None where all folds differ by the same, not 0: their spread says nothing
    t: float | None
    mean: float | None  # None for no fold
    interval: tuple[float, float] | None  # 95 %
    n: int  # folds


def corrected_t(d: np.ndarray, n_train: float, n_test: float) -> Resampled:
    """Student's t with the variance times 1/k + n_test / n_train instead of 1/k, k - 1 degrees of freedom (Nadeau &
    Bengio 2003, Mach. Learn. 52:239; Bouckaert & Frank 2004 for repeated cross-validation).

    p = 1 where no fold differs, and for a single one.

    Args:
        d: f64 [k], difference of two models in each fold; folds without a finite one are left out.
        n_train, n_test: windows (or subjects) of a fold, in the same unit.
    Raises: ValueError for sizes that are not above 0.
    """
    if not (n_train > 0 and n_test > 0):
        raise ValueError(f'n_train = {n_train}, n_test = {n_test}: both are above 0')
    d = paired.differences(np.asarray(d, np.float64), np.zeros(np.size(d)))
    k = len(d)
    mean = float(d.mean()) if k else None
    if mean is None or k < 2 or not d.any():
        return Resampled(1.0, 0.0, mean, None, k)
    if (d == d[0]).all():
        return Resampled(None, None, mean, None, k)
    from scipy import special

    error = float(d.std(ddof=1) * np.sqrt(1 / k + n_test / n_train))
    t = mean / error
    reach = float(special.stdtrit(k - 1, 1 - paired.ALPHA / 2)) * error
    return Resampled(float(2 * special.stdtr(k - 1, -abs(t))), t, mean, (mean - reach, mean + reach), k)
