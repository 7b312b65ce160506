"""Intervals and verdicts; docs/statistics.md has their coverage, measured by benchmarks/coverage.py."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

from jbench.metrics import single_answers, uncertainty


def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights @ values / weights.sum(1)


def scores(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(5, 2, n)


def test_the_interval_is_scipys_bca_at_the_levels_of_t() -> None:
    x = scores(15)
    found = uncertainty.interval(partial(mean, x), 15)
    assert found is not None
    reach = np.sqrt(15 / 14) * stats.t.ppf(0.975, 14)
    level = 2 * stats.norm.cdf(reach) - 1
    theirs = stats.bootstrap(
        (x,), np.mean, n_resamples=100_000, confidence_level=level, method='BCa', rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(found, theirs.confidence_interval, atol=0.003)
    plain = stats.t.interval(0.95, 14, x.mean(), stats.sem(x))
    assert found[0] < plain[0] and found[1] < plain[1], 'skewed to the left, as the scores are'


def test_the_interval_is_the_same_each_time_and_in_six_digits() -> None:
    x = scores(12)
    found = uncertainty.interval(partial(mean, x), 12)
    assert found is not None and found == uncertainty.interval(partial(mean, x), 12)
    assert found == tuple(float(f'{end:.6g}') for end in found)
    order = np.argsort(x)
    np.testing.assert_allclose(uncertainty.interval(partial(mean, x[order]), 12), found, atol=0.01)


@pytest.mark.parametrize('n', [0, 1, 3])
def test_nothing_is_said_of_fewer_than_four_subjects(n: int) -> None:
    assert uncertainty.interval(partial(mean, scores(n)), n) is None
    assert uncertainty.differs_from_chance(partial(mean, scores(n)), n, 0.5, None) is None


def test_subjects_at_a_bound_are_no_proof_of_perfection() -> None:
    for n in (4, 12):
        low, high = uncertainty.interval(partial(mean, np.ones(n)), n) or (0, 0)
        assert high == 1 and low**n == pytest.approx(0.025, rel=1e-4)
        low, high = uncertainty.interval(partial(mean, -np.ones(n)), n, (-1.0, 1.0)) or (0, 0)
        assert low == -1 and ((1 - high) / 2) ** n == pytest.approx(0.025, rel=1e-4)
    assert uncertainty.interval(partial(mean, np.full(9, 0.5)), 9) is None, 'alike, and free to differ'
    assert uncertainty.interval(partial(mean, np.zeros(9)), 9, (0.0, np.inf)) is None

    def ranks(weights: np.ndarray) -> np.ndarray:  # of subjects among each other: alone, none has a score
        return np.where((weights > 0).sum(1) > 1, 1.0, np.nan)

    assert uncertainty.interval(ranks, 9) is None


def test_a_score_that_few_draws_have_gets_no_interval() -> None:
    def rarely(weights: np.ndarray) -> np.ndarray:
        return np.where((weights[:, :3] > 0).all(1) & (weights[:, 3:] < 3).all(1), mean(scores(8), weights), np.nan)

    assert 0 < len(uncertainty.drawn(rarely, 8)) < uncertainty.DRAWS / 2
    assert uncertainty.interval(rarely, 8) is None


def test_chance_is_told_apart_where_it_is() -> None:
    x = scores(12)  # about 0.7
    found = uncertainty.interval(partial(mean, x), 12)
    differs = partial(uncertainty.differs_from_chance, partial(mean, x), 12, found=found)
    assert found is not None
    assert differs(chance=0.5) is True and differs(chance=0.95) is True
    assert differs(chance=x.mean()) is False and differs(chance=found[0] + 1e-6) is False
    edge = [differs(chance=found[0] - distance) for distance in (1e-6, 0.05, 0.2)]
    assert edge == sorted(edge), 'the t tests ask for more than the interval'


def test_all_right_differs_from_chance_where_guesses_rarely_are() -> None:
    for n, differs in ((4, False), (5, False), (6, True)):  # 2 * 0.5**5 = 0.06
        found = uncertainty.interval(partial(mean, np.ones(n)), n)
        assert uncertainty.differs_from_chance(partial(mean, np.ones(n)), n, 0.5, found) is differs


def test_wilsons_interval() -> None:
    y = np.zeros(18, int)
    found = single_answers.interval(np.zeros(18, int), y, balanced=False)
    theirs = stats.binomtest(18, 18).proportion_ci(method='wilson')
    np.testing.assert_allclose(found, theirs, rtol=1e-5)
    said = np.r_[np.ones(5, int), np.zeros(13, int)]
    np.testing.assert_allclose(
        single_answers.interval(said, y, balanced=False),
        stats.binomtest(13, 18).proportion_ci(method='wilson'),
        rtol=1e-5,
    )


def test_the_interval_of_balanced_accuracy_weighs_each_class_by_its_own_subjects() -> None:
    y = np.r_[np.zeros(20, int), np.ones(5, int)]
    said = np.r_[np.zeros(16, int), np.ones(4, int), np.ones(4, int), 0]
    low, high = single_answers.interval(said, y, balanced=True)
    ends = [stats.binomtest(k, n).proportion_ci(method='wilson') for k, n in ((16, 20), (4, 5))]
    down = np.sqrt(sum((0.8 - end.low) ** 2 for end in ends)) / 2
    up = np.sqrt(sum((end.high - 0.8) ** 2 for end in ends)) / 2
    np.testing.assert_allclose((low, high), (0.8 - down, 0.8 + up), rtol=1e-5)
    three = single_answers.interval(np.where(said == 1, 2, said), y, balanced=True)
    assert three[1] < high, 'a class that is said and not shown counts 0'


def test_exchanges_of_classes_are_an_exact_test() -> None:
    """3 and 3 subjects, all right: 2 of 20 exchanges are as far from chance; 4 and 4: 2 of 70; 3 and 4: 1 of 35."""
    for n, m, differs in ((2, 2, False), (3, 3, False), (3, 4, True), (4, 4, True)):
        y = np.repeat([0, 1], [n, m])
        for order in (np.arange(n + m), np.arange(n + m)[::-1], np.random.default_rng(0).permutation(n + m)):
            for said in (y, 1 - y):
                found = single_answers.differs_from_chance(said[order], y[order], 0.5, balanced=True)
                assert found is differs, (n, m)
    y = np.repeat([0, 1], [16, 4])
    assert not single_answers.differs_from_chance(np.zeros(20, int), y, 0.5, balanced=True), 'always the commonest'


def test_accuracy_is_tested_against_the_chance_that_is_printed() -> None:
    y = np.repeat([0, 1], [140, 60])
    said = np.where(np.arange(200) < 135, y, 1 - y)  # 0.675, by guesses 0.58 or so; always the commonest has 0.7
    assert not single_answers.differs_from_chance(said, y, 0.7, balanced=False)
    for right, differs in ((3, False), (4, False), (5, False), (6, True)):
        y = np.zeros(right, int)
        assert single_answers.differs_from_chance(y, y, 0.5, balanced=False) is differs
        assert single_answers.differs_from_chance(y + 1, y, 0.5, balanced=False) is differs
    expected = stats.binomtest(9, 10, 0.5).pvalue
    y = np.zeros(10, int)
    assert expected < 0.05 and single_answers.differs_from_chance(np.r_[y[:9], 1], y, 0.5, balanced=False)


@pytest.mark.parametrize('n', [6, 20, 200])
def test_nearly_all_right_differs_from_chance(n: int) -> None:
    """Draws of right subjects alone have no spread: they must not count as infinitely far."""
    for worst in ([0.99], [0.0], [0.0, 0.0], [0.8, 0.7, 0.6])[: 1 if n == 6 else None]:
        x = np.r_[np.ones(n - len(worst)), worst]
        score = partial(mean, x)
        found = uncertainty.interval(score, n)
        assert uncertainty.differs_from_chance(score, n, 0.5, found) is True, worst


@pytest.mark.parametrize(
    ('draw', 'chance'),
    [
        (lambda rng, n: rng.normal(0.5, 0.1, n), 0.5),
        (lambda rng, n: rng.exponential(1, n), 1.0),
        (lambda rng, n: (rng.random(n) < 0.5) * 1.0, 0.5),
    ],
    ids=['normal', 'skewed', 'binary'],
)
def test_guesses_rarely_differ_from_chance(draw, chance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 sets of seven subjects, of which 6 % are 12: more than 22 come by chance once in 300 times."""
    monkeypatch.setattr(uncertainty, 'DRAWS', 1000)
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        score = partial(mean, draw(rng, 7))
        found = uncertainty.interval(score, 7, (-np.inf, np.inf))
        alarms += bool(uncertainty.differs_from_chance(score, 7, chance, found))
    assert alarms <= 22
