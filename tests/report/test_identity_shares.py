"""The partition of the variance of features: exact on made ones, no false alarms, and words where there is no share."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from jbench.report import identity

SUBJECTS, CLASSES, ROWS = 4, 3, 5


def made(subject: float, target: float, noise: float, width: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Balanced windows: effects of subjects, of classes and of windows whose sums of squares are known."""
    rng = np.random.default_rng(0)
    who, what, _ = (np.array(a) for a in zip(*itertools.product(*map(range, (SUBJECTS, CLASSES, ROWS))), strict=True))

    def of(n: int, size: float) -> np.ndarray:
        """n effects of mean 0, and a sum of squares of `size` for each."""
        drawn = rng.standard_normal((n, width))
        drawn -= drawn.mean(0)
        return drawn * np.sqrt(size * n / (drawn**2).sum())

    rest = np.concatenate([of(ROWS, noise) for _ in range(SUBJECTS * CLASSES)])
    x = of(SUBJECTS, subject)[who] + of(CLASSES, target)[what] + rest
    return 7 + x, np.array([f's{k}' for k in who]), what


@pytest.mark.parametrize('width', [6, 300], ids=['few', 'more features than windows'])
def test_shares_are_exact(width):
    x, who, what = made(3.0, 2.0, 5.0, width)
    order = np.random.default_rng(1).permutation(len(x))
    found = identity.partition(x[order], who[order], what[order], draws=99)
    assert (found.n_windows, found.n_subjects, found.n_classes) == (60, 4, 3)
    np.testing.assert_allclose([found.subject.share, found.target.share, found.residual], [0.3, 0.2, 0.5], rtol=1e-9)
    assert found.subject.p == found.target.p == 1 / 100 and found.words == ()
    assert found.meaning.startswith('the features hold both; beyond chance the subject is')
    each = identity.sums_of_squares(x, who, what)
    np.testing.assert_allclose(each.sum(0), ((x - x.mean(0)) ** 2).sum(0))
    np.testing.assert_allclose(each.sum(1) / each.sum(), [0.3, 0.2, 0.5])


def test_a_share_by_hand():
    """Two subjects at 0 and 10; classes at -1 and 1 within each; windows at -2 and 2 about these."""
    x = np.array([s + c + r for s in (0, 10) for c in (-1, 1) for r in (-2, 2)], float)[:, None]
    who, what = np.repeat([0, 1], 4), np.tile([0, 0, 1, 1], 2)
    found = identity.partition(x, who.astype(str), what, draws=500)
    shares = [Fraction(25, 30), Fraction(1, 30), Fraction(4, 30)]
    np.testing.assert_allclose([found.subject.share, found.target.share, found.residual], [float(s) for s in shares])
    # by hand over all orders: a subject is 5 of 70 ways apart or more, a class takes 1/3 of the rest
    assert found.target.chance == pytest.approx(5 / 30 / 3, abs=0.005)
    assert found.subject.chance == pytest.approx(1 / 7, abs=0.03)
    assert found.subject.p == pytest.approx(2 / 70, abs=0.02)


def test_what_lies_between_subjects_is_not_the_targets():
    """A class that some subjects see more often: what the subjects have is theirs alone."""
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(10), 20)
    what = (rng.random(200) < np.where(who < 5, 0.9, 0.1)).astype(int)
    x = np.where(who < 5, 5.0, -5.0)[:, None] + rng.standard_normal((200, 3))
    found = identity.partition(x, who.astype(str), what, draws=199)
    assert found.subject.share > 0.9 and found.subject.p == 1 / 200
    assert found.target.share < 0.02 and found.target.p > identity.ALPHA
    assert 'of the target no more than chance' in found.meaning
    between = ((np.where(what == 1, 1, -1) - np.mean(np.where(what == 1, 1, -1))) * x[:, 0]).sum()
    assert abs(between) > 100, 'over all windows the classes do differ'


def test_classes_of_each_subject_may_differ_in_their_own_way():
    x, who, what = made(0.1, 0.0, 1.0)
    x = x + np.where(np.isin(who, ['s0', 's1']), 3.0, -3.0)[:, None] * (what[:, None] - 1)
    found = identity.partition(x, who, what, draws=99)
    assert found.target.p == 1 / 100 and found.target.share > 0.5
    assert found.meaning.startswith('the features hold')


@pytest.mark.parametrize('null', ['target', 'subject'])
def test_no_false_alarms(null):
    """Of 300 sets without an effect no more have p <= alpha than a rate of alpha allows (one in a thousand more)."""
    rng, alarms, n, alpha = np.random.default_rng(3), 0, 300, 0.1
    for _ in range(n):
        who, what = rng.integers(0, 5, 40), rng.integers(0, 2, 40)
        x = rng.standard_exponential((40, 2))  # skewed
        x += 3 * rng.standard_normal((5, 2))[who] if null == 'target' else np.zeros((40, 2))
        found = identity.partition(x, who.astype(str), what, draws=39)
        alarms += getattr(found, null).p <= alpha
    assert 12 <= alarms <= 48, alarms  # binomial(300, 0.1): 99.9 % within


def test_an_effect_that_is_there_is_found():
    rng = np.random.default_rng(4)
    who, what = rng.integers(0, 6, 120), rng.integers(0, 2, 120)
    x = 5 * rng.standard_normal((6, 8))[who] + rng.standard_normal((120, 8))
    x[:, 0] += what
    found = identity.partition(x, who.astype(str), what, draws=199)
    assert found.target.p <= 0.01 and found.target.share < 0.02, 'small beside the subjects, and seen'


LINE = np.arange(12.0)[:, None]
PAIRS = np.repeat(list('abcdef'), 2)
DEGENERATE = {
    'one subject': (LINE, ['a'] * 12, [0, 1] * 6, 'target', 'one subject: no others'),
    'one class': (LINE, PAIRS, [0] * 12, 'subject', 'one class: no other'),
    'a class for each subject': (LINE, PAIRS, [0, 0, 1, 1] * 3, 'subject', 'cannot be told apart'),
    'a subject for each window': (LINE, list('abcdefghijkl'), [0, 1] * 6, '', 'no two windows are of one subject'),
    'a class for each window': (LINE, PAIRS, range(12), 'subject', 'no class has two windows'),
    'constant': (np.full((12, 3), 0.1), PAIRS, [0, 1] * 6, '', 'the same of all windows'),
    'constant but for rounding': (1e6 + 1e-7 * LINE, PAIRS, [0, 1] * 6, '', 'the same of all windows'),
    'one window': (LINE[:1], ['a'], [0], '', 'the same of all windows'),
    'nothing to tell': (LINE, ['a'] * 12, [0] * 12, '', 'one class: no other'),
}


@pytest.mark.parametrize('name', DEGENERATE)
def test_what_cannot_be_told_is_said_in_words(name):
    x, who, what, there, words = DEGENERATE[name]
    found = identity.partition(x, np.array(who), np.array(what), draws=19)
    assert [k for k in ('subject', 'target') if getattr(found, k) is not None] == ([there] if there else [])
    assert words in ' '.join(found.words) and words in found.meaning and found.residual is None
    known = found.subject or found.target
    assert known is None or np.isfinite([known.share, known.chance, known.p]).all()


def test_without_any_order_that_differs_p_is_one():
    """A subject of two classes beside subjects of one: its two windows change places, and nothing else."""
    x = np.array([[0.0], [1.0], [5.0], [6.0]])
    found = identity.partition(x, np.array(list('aabb')), np.array([0, 1, 0, 0]), draws=19)
    assert found.target.p == 1.0 and found.target.share == pytest.approx(found.target.chance)


@pytest.mark.parametrize(
    ('y', 'expected'),
    [
        (np.array([3, 1, 3]), [1, 0, 1]),
        (np.array([[0, 1], [1, 0], [0, 1]], np.float32), [0, 1, 0]),  # labels: those that go together
        (np.arange(10, dtype=np.float32)[:, None], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        (np.array([[0.0], [0.5], [0.0]], np.float32), [0, 1, 0]),
        (np.array([[1.0]] * 6 + [[k] for k in (2.0, 3, 4, 5, 6)]), [0] * 6 + [1, 2, 2, 3, 3]),  # equal ones together
        (np.array([[1, 2, 0], [1, 2, 0], [1, 3, 0]], np.int32), [0, 0, 1]),  # keys
    ],
)
def test_targets_of_any_kind_become_classes(y, expected):
    assert identity.classes(y).tolist() == expected


def test_what_is_no_table_of_features_is_refused():
    with pytest.raises(ValueError, match='finite'):
        identity.partition(np.array([[1.0], [np.nan]]), np.array(['a', 'b']), np.array([0, 1]))
    with pytest.raises(ValueError, match='3 subjects and 2 targets'):
        identity.partition(np.zeros((2, 1)), np.array(['a', 'b', 'c']), np.array([0, 1]))
    with pytest.raises(ValueError, match='draws=0'):
        identity.partition(LINE, PAIRS, np.arange(12), draws=0)
