"""Paired tests against scipy and statsmodels, and what MOABB's issues list as going wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from jbench.metrics import uncertainty
from jbench.report.statistics import paired

pytestmark = pytest.mark.filterwarnings('error')
DEGENERATE = {
    'none': [],
    'one': [0.1],
    'one equal': [0.0],
    'two': [0.1, 0.3],
    'all equal': [0.0] * 30,
    'all by the same': [0.1] * 8,
    'one differs': [0.0] * 11 + [0.2],
    'ties': [0.1, -0.1, 0.1, 0.1, -0.1, 0.0],
    'nan': [np.nan, 0.1, np.inf, 0.2],
    'nan alone': [np.nan] * 3,
    'tiny': [1e-320, -1e-300, 1e-310],
}


def drawn(n: int, seed: int = 0, shift: float = 0.4) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1, n)


def flips(d: np.ndarray) -> np.ndarray:
    """The sum under every exchange of signs."""
    return np.array(list(itertools.product([-1, 1], repeat=len(d)))) @ d


@pytest.mark.parametrize('n', [2, 5, 9, 13])
def test_the_exact_permutation_test_counts_every_exchange(n: int) -> None:
    d = drawn(n)
    found = paired.permutation(d)
    assert found.method == 'exact' and found.n == n and found.least == 2 / 2**n
    assert found.p == pytest.approx((np.abs(flips(d)) >= abs(d.sum()) - 1e-9).mean())
    theirs = stats.permutation_test((d,), np.mean, permutation_type='samples', n_resamples=np.inf)
    assert found.p == pytest.approx(theirs.pvalue)


def test_a_drawn_permutation_test_is_near_students() -> None:
    d = drawn(40)
    found = paired.permutation(d)
    assert found.method == 'drawn'
    assert found.p == pytest.approx(stats.ttest_1samp(d, 0).pvalue, abs=0.01)
    assert found.z == pytest.approx(-stats.norm.ppf(found.p / 2), abs=0.01) and paired.permutation(-d).z < 0


@pytest.mark.parametrize('n', [1, 4, 6, 20, 50])
def test_wilcoxon_without_ties_is_scipys(n: int) -> None:
    d = drawn(n)
    found = paired.wilcoxon(d)
    assert found.p == pytest.approx(stats.wilcoxon(d, method='exact').pvalue)
    assert found.method == 'exact'


def test_wilcoxon_with_ties_and_zeros_counts_every_exchange() -> None:
    d = np.array([0.1, 0.1, -0.1, 0.2, 0.0, 0.0, 0.3, 0.3, -0.2])
    ranks = (stats.rankdata(np.abs(d)) * np.sign(d))[d != 0]
    found = paired.wilcoxon(d)
    assert found.p == pytest.approx((np.abs(flips(ranks)) >= abs(ranks.sum())).mean())
    halved = stats.wilcoxon(d, zero_method='zsplit').statistic, stats.wilcoxon(d, zero_method='pratt').statistic
    assert halved[0] - halved[1] == 1.5, 'both sides get half of the ranks of zeros, 1 and 2: the difference stays'


@pytest.mark.parametrize('test', [paired.permutation, paired.wilcoxon])
def test_the_normal_score_is_that_of_the_mid_p(test: Callable[[np.ndarray], paired.Test]) -> None:
    found = test(np.arange(1.0, 5))  # 2 of 16 exchanges are as far
    assert found.p == 2 / 16 and found.z == pytest.approx(-stats.norm.ppf(1 / 32))


def test_wilcoxon_of_many_is_scipys_approximation() -> None:
    d = np.r_[drawn(300), 0.0, 0.0]
    found = paired.wilcoxon(d)
    assert found.method == 'normal'
    assert found.p == stats.wilcoxon(d, zero_method='pratt', correction=True, method='asymptotic').pvalue


def test_the_interval_is_the_one_of_results() -> None:
    d = drawn(12)
    found = paired.difference(d)
    mean = found.mean, found.sd
    assert mean == (pytest.approx(d.mean()), pytest.approx(d.std(ddof=1)))
    theirs = uncertainty.interval(lambda w: w @ d / w.sum(1), 12, (-np.inf, np.inf))
    assert found.interval == theirs and theirs[0] < d.mean() < theirs[1]
    assert paired.difference(d[:3]).interval is None, 'of fewer than four subjects nothing is said'


def test_the_effect_by_hand() -> None:
    d = np.array([1.0, 2.0, 3.0, -1.0])
    found = paired.effect(d)
    assert found.g == pytest.approx(d.mean() / d.std(ddof=1) * 0.7236, abs=1e-4)  # Hedges' c(3)
    assert found.rank_biserial == pytest.approx((1.5 + 3 + 4 - 1.5) / 10)
    assert paired.hedges(50) == pytest.approx(1 - 3 / (4 * 49 - 1), abs=1e-4)


@pytest.mark.parametrize('n', [6, 9, 30, 500])
def test_what_can_be_detected_is_statsmodels(n: int) -> None:
    theirs = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8)
    assert paired.detectable(2.0, n) == pytest.approx(2 * theirs, rel=1e-4)


def test_five_subjects_detect_nothing() -> None:
    assert paired.permutation(np.ones(5)).p > 0.05 >= paired.permutation(np.ones(6)).p
    assert paired.detectable(1.0, 5) is None and paired.detectable(1.0, 6) is not None
    assert paired.detectable(0.0, 10) is None and paired.detectable(None, 10) is None


def test_differences_turn_what_is_better_and_leave_out_who_has_no_score() -> None:
    a, b = np.array([1.0, 2.0, np.nan]), np.array([0.5, 3.0, 1.0])
    assert paired.differences(a, b) == pytest.approx([0.5, -1.0])
    assert paired.differences(a, b, 'lower') == pytest.approx([-0.5, 1.0])
    with pytest.raises(ValueError, match='paired'):
        paired.differences(a, b[:2])


def test_means_over_seeds_that_differ_by_rounding_are_equal() -> None:
    a = np.array([(0.1 + 0.2 + 0.3) / 3] * 7)
    b = np.array([(0.3 + 0.2 + 0.1) / 3] * 7)
    assert (a != b).all() and not paired.differences(a, b).any()


def test_ties_are_seen_through_rounding() -> None:
    """0.3 - 0.2 and 0.2 - 0.1 are not the same number, and yet tie."""
    d = paired.differences(np.array([0.3, 0.2, 0.8, 0.7]), np.array([0.2, 0.1, 0.9, 0.8]))
    assert len(set(np.abs(d))) == 1
    assert paired.wilcoxon(d).p == 1.0 and paired.permutation(d).p == 1.0


@pytest.mark.parametrize('d', DEGENERATE.values(), ids=DEGENERATE)
def test_there_is_a_number_or_nothing_and_no_warning(d: list[float]) -> None:
    for test in (paired.permutation(np.array(d)), paired.wilcoxon(np.array(d))):
        assert 0 < test.p <= 1 and np.isfinite(test.z) and test.p >= test.least
    for value in (*paired.effect(np.array(d)), *paired.difference(np.array(d))[:3]):
        assert value is None or np.isfinite(value)


def test_a_score_is_antisymmetric() -> None:
    d = np.array(DEGENERATE['ties'])
    for test in (paired.permutation, paired.wilcoxon):
        assert test(d).p == test(-d).p and test(d).z == -test(-d).z


# ---- what goes wrong in MOABB ----


@pytest.mark.parametrize('n', [6, 18])
def test_moabb_684_equal_scores_have_p_1_and_not_1_minus_1_in_n(n: int) -> None:
    assert paired.permutation(np.zeros(n)) == (1.0, 0.0, 0, 1.0, 'none')


@pytest.mark.parametrize('n', [4, 18])
def test_moabb_684_p_is_neither_0_nor_above_1(n: int) -> None:
    assert paired.permutation(np.ones(n)).p == pytest.approx(max(2 / 2**n, 2 / 10_001))
    assert paired.permutation(np.r_[np.ones(n // 2), -np.ones(n // 2)]).p == 1.0


def test_moabb_684_exchanges_that_tie_count() -> None:
    d = np.array([0.1, 0.2, -0.3, 0.3, 0.1])  # sums of tenths, which floats do not add up to
    whole = np.array([1, 2, -3, 3, 1])
    assert paired.permutation(d).p == (np.abs(flips(whole)) >= 4).mean()


def test_moabb_734_p_does_not_change_from_run_to_run() -> None:
    d = drawn(18)
    assert len({paired.permutation(d).p for _ in range(3)}) == 1


@pytest.mark.parametrize('n', [3, 10, 25, 30, 300])
def test_moabb_1134_equal_scores_say_the_same_at_every_number_of_subjects(n: int) -> None:
    assert paired.wilcoxon(np.zeros(n)).p == 1.0
    assert paired.effect(np.zeros(n)) == (0.0, 0.0)


def test_moabb_1134_a_constant_difference_has_no_infinite_effect() -> None:
    assert paired.effect(np.full(25, 0.1)) == (None, 1.0)


def test_moabb_1176_ranks_have_their_own_direction() -> None:
    d = np.array([0.02] * 6 + [-0.2])  # six better, one far worse: the mean is below 0, the ranks are above
    assert d.mean() < 0 < paired.wilcoxon(d).z and paired.effect(d).rank_biserial > 0
    assert paired.permutation(d).z < 0


@pytest.mark.slow
@pytest.mark.parametrize('n', [6, 8, 10])
def test_two_seeds_of_one_model_are_rarely_different(n: int) -> None:
    """400 sets, of which at most 5 % are 20: more than 33 come by chance once in 500 times."""
    random = np.random.default_rng(n)
    alarms = np.zeros(2)
    for _ in range(400):
        ability = random.normal(0.7, 0.1, n).clip(0, 1)
        d = paired.differences(*(random.binomial(20, ability, (2, n)) / 20))
        alarms += [paired.permutation(d).p <= 0.05, paired.wilcoxon(d).p <= 0.05]
    assert (alarms <= 33).all() and (alarms >= 4).all()
