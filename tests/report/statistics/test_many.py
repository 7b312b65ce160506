"""Many models and tasks, against scipy and statsmodels, and diagrams whose groups are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from jbench.report.statistics import many

pytestmark = pytest.mark.filterwarnings('error')


@pytest.mark.slow
def test_holm_is_statsmodels() -> None:
    for p in ([0.01, 0.04, 0.03, 0.2, 0.03], [0.05], [1.0, 1.0], [0.5, 1e-9]):
        np.testing.assert_allclose(many.holm(p), multipletests(p, method='holm')[1])
    assert many.holm([]).shape == (0,)


def test_friedman_is_scipys_with_iman_and_davenports_f() -> None:
    scores = np.random.default_rng(0).integers(0, 6, (12, 4)) / 5
    found = many.friedman(scores)
    chi = stats.friedmanchisquare(*scores.T).statistic
    f = 11 * chi / (12 * 3 - chi)
    assert found.statistic == pytest.approx(f) and found.p == pytest.approx(stats.f.sf(f, 3, 33))
    ranks = stats.rankdata(-scores, axis=1).mean(0)
    assert found.mean_ranks == pytest.approx(ranks)
    assert many.friedman(-scores, 'lower') == found


@pytest.mark.parametrize(
    'scores', [np.zeros((9, 3)), np.zeros((0, 3)), np.ones((1, 3)), np.ones((5, 1)), np.arange(3.0)[None]]
)
def test_nothing_to_rank_is_no_difference(scores: np.ndarray) -> None:
    assert many.friedman(scores)[:2] == (0.0, 1.0)
    found = many.ranking(scores)
    m = scores.shape[1]
    assert (found.p == 1).all() and found.groups == ((tuple(range(m)),) if m > 1 else ())


def test_rows_that_all_rank_alike_have_a_finite_statistic() -> None:
    found = many.friedman(np.tile(np.arange(4.0), (10, 1)))
    assert found.statistic == pytest.approx(30) and found.p == pytest.approx(stats.chi2.sf(30, 3))


def test_a_diagram_whose_groups_are_known() -> None:
    """Two pairs of models, far apart: pairs hold together."""
    random = np.random.default_rng(0)
    scores = random.normal(0, 0.05, (20, 4)) + np.array([0.5, 0.7, 0.5, 0.7])
    scores[3, 1] = np.nan
    found = many.ranking(scores)
    assert {found.order[:2], found.order[2:]} <= {(1, 3), (3, 1), (0, 2), (2, 0)} and set(found.order[:2]) == {1, 3}
    assert found.groups == ((0, 1), (2, 3))
    assert (found.n, found.left_out, found.alpha) == (19, 1, 0.05)
    assert found.mean_ranks == tuple(sorted(found.mean_ranks)) and sum(found.mean_ranks) == pytest.approx(10)
    assert found.p[0, 2] < 0.05 < found.p[0, 1] and (found.p == found.p.T).all()
    for word in ('Friedman', 'Wilcoxon', 'Holm', 'alpha = 0.05', 'n = 19'):
        assert word in found.test


def test_without_friedman_no_pair_is_told_apart() -> None:
    scores = np.round(np.random.default_rng(18).normal(0, 1, (12, 4)) + [0.55, 0, 0, 0], 2)
    found = many.ranking(scores)
    assert found.p.min() < 0.05 < found.friedman_p
    assert found.groups == ((0, 1, 2, 3),)


def test_five_tasks_tell_nothing_apart() -> None:
    scores = np.tile(np.arange(3.0), (5, 1)) + np.random.default_rng(0).normal(0, 0.01, (5, 3))
    assert many.ranking(scores).groups == ((0, 1, 2),)


def test_groups_are_the_largest_sets_without_two_that_differ() -> None:
    alike = np.ones((4, 4), bool)
    assert many.groups(alike) == ((0, 1, 2, 3),)
    alike[0, 3] = alike[3, 0] = False
    assert many.groups(alike) == ((0, 1, 2), (1, 2, 3))
    alike[0, 1] = alike[1, 0] = False
    assert many.groups(alike) == ((0, 2), (1, 2, 3)), 'the first passes over one that it differs from'
    assert many.groups(np.eye(3, dtype=bool)) == () and many.groups(np.ones((0, 0), bool)) == ()


@pytest.mark.slow
def test_five_equal_models_are_rarely_told_apart() -> None:
    """200 diagrams, of which at most 5 % are 10: more than 21 come by chance once in 1,000 times."""
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        alarms += many.ranking(random.normal(0, 1, (10, 5))).groups != (tuple(range(5)),)
    assert alarms <= 21
