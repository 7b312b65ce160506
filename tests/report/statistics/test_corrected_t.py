"""The corrected resampled t test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from jbench.report.statistics import folds

pytestmark = pytest.mark.filterwarnings('error')


def test_the_formula_of_nadeau_and_bengio() -> None:
    d = np.random.default_rng(0).normal(0.02, 0.03, 10)
    found = folds.corrected_t(d, 90, 10)
    t = d.mean() / np.sqrt((1 / 10 + 10 / 90) * d.var(ddof=1))
    assert found.t == pytest.approx(t) and found.p == pytest.approx(2 * stats.t.sf(abs(t), 9))
    assert found.interval is not None and found.n == 10
    at_edge = folds.corrected_t(d - found.interval[0], 90, 10)
    assert at_edge.p == pytest.approx(0.05)


def test_moabb_1140_it_says_less_than_the_plain_test_and_agrees_where_nothing_is_trained_on() -> None:
    d = np.random.default_rng(1).normal(0.02, 0.03, 10)
    plain = stats.ttest_1samp(d, 0).pvalue
    assert folds.corrected_t(d, 90, 10).p > plain
    assert folds.corrected_t(d, 1e12, 1).p == pytest.approx(plain)


@pytest.mark.parametrize(
    ('d', 'p'),
    [([], 1.0), ([0.1], 1.0), ([0.0] * 5, 1.0), ([0.1] * 5, None), ([np.nan] * 3, 1.0), ([0.1, -0.1], 1.0)],
)
def test_degenerate_folds(d: list[float], p: float | None) -> None:
    found = folds.corrected_t(np.array(d), 90, 10)
    assert found.p == p and (found.t is None or np.isfinite(found.t))


def test_sizes_are_above_0() -> None:
    with pytest.raises(ValueError, match='above 0'):
        folds.corrected_t(np.ones(3), 0, 10)
