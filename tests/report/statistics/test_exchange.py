"""Exchanged subjects: against every exchange by hand, the paired test, and models whose headlines are equal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jbench.metrics import uncertainty, weighted
from jbench.metrics.weighted import Weighted
from jbench.report.statistics import exchange, paired
from jbench.targets import score

pytestmark = pytest.mark.filterwarnings('error')


def stacked(a: np.ndarray, b: np.ndarray, y: np.ndarray, owner: np.ndarray, metric: str) -> Weighted:
    n = owner.max() + 1
    both = np.concatenate([owner, owner + n])
    return weighted.classes(np.concatenate([a, b]), np.concatenate([y, y]), both, metric)


def gave(a: np.ndarray, b: np.ndarray, y: np.ndarray, owner: np.ndarray, metric: str = 'bal_acc') -> exchange.Exchange:
    n = int(owner.max()) + 1
    of = exchange.difference([stacked(a, b, y, owner, metric)])
    return exchange.exchange(of, n, np.arange(n))


def by_hand(a: np.ndarray, b: np.ndarray, y: np.ndarray, owner: np.ndarray, metric: str) -> float:
    """p from predictions that are really exchanged, and scored as results are."""
    n = owner.max() + 1

    def gap(swap: np.ndarray, use: np.ndarray) -> float:
        first, second = (np.where(swap[owner][:, None], *pair) for pair in ((b, a), (a, b)))
        x, z = (score.evaluate('classes', o[use], y[use])[metric] for o in (first, second))
        return float(x) - float(z)  # type: ignore[arg-type]

    ratios = []
    for swap in itertools.product([False, True], repeat=n):
        who = np.array(swap)
        without = np.array([gap(who, owner != k) for k in range(n)])
        error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
        ratios.append(abs(gap(who, owner >= 0)) / error)
    return float((np.array(ratios) >= ratios[0] * (1 - 1e-9)).mean())


@pytest.mark.parametrize('metric', ['bal_acc', 'auroc', 'f1_macro', 'auprc'])
def test_every_exchange_by_hand(metric: str) -> None:
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(5), 8)
    y = (np.arange(40) % 8 < np.array([8, 7, 2, 1, 0])[owner]).astype(int)
    a, b = (random.normal(0, 1, (40, 2)) + 0.5 * np.eye(2)[y] + [0, bias] for bias in (0.8, -0.8))
    found = gave(a, b, y, owner, metric)
    assert found.test.method == 'exact' and found.test.n == 5 and found.test.least == 2 / 2**5
    assert found.test.p == pytest.approx(by_hand(a, b, y, owner, metric))


@pytest.mark.parametrize('n', [3, 8, 12, 30])
def test_a_mean_of_subjects_has_the_paired_test(n: int) -> None:
    random = np.random.default_rng(n)
    a, b = random.normal(0.05, 0.1, n), random.normal(0, 0.1, n)
    both = np.concatenate([a, b])
    found = exchange.exchange(exchange.difference([lambda w: w @ both / w.sum(1)]), n, np.arange(n))
    d = paired.differences(a, b)
    theirs = paired.permutation(d)
    assert found.error == pytest.approx(d.std(ddof=1) / np.sqrt(n))
    if theirs.method == 'exact':
        assert found.test.p == pytest.approx(theirs.p) and found.test.z == pytest.approx(theirs.z)
    else:
        assert found.test.p == pytest.approx(theirs.p, abs=0.015)


def test_nothing_to_exchange() -> None:
    y, owner = np.tile([0, 1], 6), np.repeat(np.arange(6), 2)
    a = np.eye(2)[y] - 0.5
    of = exchange.difference([stacked(a, a, y, owner, 'bal_acc')])
    assert exchange.exchange(of, 6, np.array([], int)) == (paired.Test(1.0, 0.0, 0, 1.0, 'none'), 0.0)
    found = gave(a, a * 2, y, owner)
    assert found.test.p == 1.0 and found.test.z == 0.0 and found.error == 0.0, 'other outputs, the same answers'
    one = gave(a[:2], -a[:2], y[:2], owner[:2])
    assert one.test.p == 1.0 and one.error is None


def test_all_by_the_same_is_the_smallest_p() -> None:
    y, owner = np.tile([0, 1], 7), np.repeat(np.arange(7), 2)
    right = np.eye(2)[y] - 0.5
    found = gave(right, -right, y, owner)
    assert found.test.p == found.test.least == 2 / 2**7 and found.test.z > 0
    assert gave(-right, right, y, owner).test.z == -found.test.z


def rejected(random: np.random.Generator, a: tuple[float, float], b: tuple[float, float], n: tuple[int, int]) -> int:
    """1 where A is called better, -1 where B is: models whose share of right ones in the two classes is a and b, on
    subjects of one class each (n of them), 50 windows."""
    c = np.repeat([0, 1], n)
    owner, y = np.repeat(np.arange(len(c)), 50), np.repeat(c, 50)
    sides = []
    for shares in (a, b):
        share = np.array(shares)[c]
        each = np.where(share * (1 - share) > 0, random.normal(share, 0.1), share).clip(0, 1)
        said = np.where(random.uniform(size=len(y)) < each[owner], y, 1 - y)
        sides.append(np.eye(2)[said])
    test = gave(*sides, y, owner).test
    return int(np.sign(test.z)) * (test.p <= paired.ALPHA)


@pytest.fixture
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, 'DRAWS', 1000)


def test_equal_headlines_of_opposite_bias_in_some_sets(fewer: None) -> None:
    random = np.random.default_rng(0)
    found = [rejected(random, (0.75, 0.55), (0.55, 0.75), (16, 4)) for _ in range(40)]
    assert np.abs(found).sum() <= 5, 'the mean over subjects was called different in 23 of 40'


def test_a_dummy_is_never_better_than_a_net(fewer: None) -> None:
    random = np.random.default_rng(0)
    for n in ((16, 4), (20, 4), (28, 2), (6, 6)):
        found = [rejected(random, (1.0, 0.0), (0.72, 0.72), n) for _ in range(10)]
        assert 1 not in found, n
    assert found == [-1] * 10, 'and where both classes have six subjects, the net is'


@pytest.mark.slow
@pytest.mark.parametrize(
    ('n', 'a', 'b'),
    [
        ((16, 4), (0.75, 0.55), (0.55, 0.75)),
        ((10, 10), (0.75, 0.55), (0.55, 0.75)),
        ((16, 4), (0.65, 0.65), (0.65, 0.65)),
        ((10, 10), (0.5, 0.5), (1.0, 0.0)),
    ],
)
def test_false_positives(fewer: None, n: tuple[int, int], a: tuple[float, float], b: tuple[float, float]) -> None:
    random = np.random.default_rng(1)
    found = np.abs([rejected(random, a, b, n) for _ in range(400)]).mean()
    assert 0.02 <= found <= 0.075, found
