"""Several datasets together, against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from jbench.report.statistics import datasets, paired

pytestmark = pytest.mark.filterwarnings('error')


def test_stouffer_is_scipys() -> None:
    z, n = np.array([1.2, -0.3, 2.1]), np.array([10, 40, 5])
    theirs = stats.combine_pvalues(stats.norm.sf(z), method='stouffer', weights=np.sqrt(n))
    found = datasets.stouffer(z, n)
    assert found.z == pytest.approx(theirs.statistic) and found.p == pytest.approx(2 * theirs.pvalue)
    assert datasets.stouffer(-z, n).p == found.p and found.n == 3


@pytest.mark.parametrize('spread', [0.0, 0.5])
def test_random_effects_are_statsmodels(spread: float) -> None:
    random = np.random.default_rng(2)
    v = random.uniform(0.02, 0.2, 8)
    x = 0.3 + random.normal(0, spread, 8) + random.normal(0, np.sqrt(v))
    with np.errstate(invalid='ignore'):  # where tau2 is 0, statsmodels goes on with the value below 0
        theirs = combine_effects(x, v, method_re='chi2', use_t=True)
        intervals = theirs.conf_int()
    found = datasets.random_effects(x, v)
    assert found is not None and found.interval is not None and found.p is not None
    assert (found.tau2 > 0) is (spread > 0), 'both cases are tried'
    assert found.tau2 == pytest.approx(max(theirs.tau2, 0))
    assert found.q == pytest.approx(theirs.q) and found.i2 == pytest.approx(max(0, theirs.i2))
    if found.tau2:
        assert found.effect == pytest.approx(theirs.mean_effect_re)
        np.testing.assert_allclose(found.interval, intervals[3])
    else:
        assert found.effect == pytest.approx(theirs.mean_effect_fe)
        np.testing.assert_allclose(found.interval, intervals[2])
    edge = datasets.random_effects(x - found.interval[0], v)
    assert edge is not None and edge.p == pytest.approx(0.05)


def test_degenerate_sets_of_datasets() -> None:
    assert datasets.stouffer([], []) == (1.0, 0.0, 0)
    assert datasets.stouffer([0.0, 0.0], [5, 9]) == (1.0, 0.0, 2)
    assert datasets.stouffer([1.0, 3.0], [9, 0]).n == 1, 'a dataset without subjects does not count'
    assert datasets.random_effects([], []) is None
    assert datasets.random_effects([0.3], [0.1]) == (0.3, None, None, 0.0, 0.0, 0.0, 1)
    assert datasets.random_effects([0.3, np.nan], [0.1, 0.1]) == (0.3, None, None, 0.0, 0.0, 0.0, 1)
    alike = datasets.random_effects([0.2, 0.2, 0.2], [0.1, 0.2, 0.3])
    assert alike is not None and alike.interval is None and alike.effect == pytest.approx(0.2) and alike.tau2 == 0


def test_tasks_on_one_dataset_are_no_independent_datasets() -> None:
    d = np.random.default_rng(0).normal(0.5, 1, 12)
    one = datasets.entry([datasets.task(d)])
    assert datasets.entry([datasets.task(d)] * 3) == pytest.approx(one)
    assert one[0] == paired.permutation(d).z and one[1] == 12
    assert one[2] == paired.effect(d).g and one[3] == pytest.approx(1 / 12 + one[2] ** 2 / 24)
    assert datasets.entry([datasets.task(np.empty(0))]) == (0.0, 0, None, None)
    assert datasets.entry([datasets.task(np.full(7, 0.1))])[2:] == (None, None), 'an effect without bound is left out'


def test_moabb_684_datasets_where_nothing_differs_do_not_make_nan() -> None:
    entries = [datasets.entry([datasets.task(d)]) for d in (np.zeros(6), np.zeros(18), np.full(6, 0.1))]
    found = datasets.stouffer([z for z, *_ in entries], [n for _, n, *_ in entries])
    assert 0 < found.p < 1 and found.n == 3


def test_moabb_44_a_dataset_of_one_subject_breaks_nothing() -> None:
    z, n, g, variance = datasets.entry([datasets.task(np.array([0.1]))])
    assert np.isfinite(z) and (n, g, variance) == (1, None, None)


def test_few_subjects_in_many_datasets_add_up() -> None:
    """Four subjects alone never reach 0.05, 12 datasets of four do."""
    z, n, *_ = datasets.entry([datasets.task(np.array([0.1, 0.2, 0.3, 0.4]))])
    assert z == pytest.approx(-stats.norm.ppf(1 / 32)) and datasets.stouffer([z] * 12, [n] * 12).p < 1e-6
