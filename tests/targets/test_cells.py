"""Scores over the cells of streams, and angles: by hand, by subject and by weights."""

from __future__ import annotations

import numpy as np
import pytest

from jbench import targets
from jbench.metrics import challenges
from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets import score
from jbench.targets.angles import packed

RNG = np.random.default_rng(5)


def nights(n_subjects: int = 6) -> dict[str, np.ndarray]:
    """Answers to two recordings of each subject."""
    cell = np.repeat([f's{k // 2}/{k}' for k in range(2 * n_subjects)], 9)
    y = RNG.uniform(0, 600, (len(cell), 1))
    return {
        'id': np.arange(len(cell)),
        'outputs': y + RNG.normal(0, 50, y.shape),
        'y': y,
        'subject': np.array([c.partition('/')[0] for c in cell]),
        'cell': cell,
    }


def commands(n_subjects: int = 6) -> dict[str, np.ndarray]:
    found = nights(n_subjects)
    y = RNG.integers(0, 3, len(found['cell']))
    return found | {'y': y, 'outputs': np.eye(3)[y] + RNG.normal(0, 0.6, (len(y), 3))}


KINDS = {
    'value': ('wbmae', nights, lambda o, y: challenges.weighted_binned_mae(o[:, 0], y[:, 0])),
    'classes': ('bal_acc_cells', commands, lambda o, y: challenges.balanced_accuracy(o.argmax(1), y)),
}


@pytest.mark.parametrize('kind', KINDS)
def test_a_headline_is_the_mean_over_cells(kind: str) -> None:
    metric, make, of = KINDS[kind]
    arrays = make()
    each = {
        c: of(arrays['outputs'][arrays['cell'] == c], arrays['y'][arrays['cell'] == c]) for c in set(arrays['cell'])
    }
    found = score.score(kind, metric, arrays, None)
    assert found['headline']['value'] == pytest.approx(np.mean(list(each.values())))
    mine = {s: np.mean([v for c, v in each.items() if c.startswith(f'{s}/')]) for s in set(arrays['subject'])}
    assert found['per_subject'] == pytest.approx(mine)
    low, high = found['headline']['interval']
    assert low < found['headline']['value'] < high


@pytest.mark.parametrize('kind', KINDS)
def test_weights_count_the_cells_of_each_subject(kind: str) -> None:
    metric, make, _ = KINDS[kind]
    arrays = make(4)
    owner = np.unique(arrays['subject'], return_inverse=True)[1]
    known = targets.of(kind)
    weighted = known.by_weights(arrays['outputs'], arrays['y'], owner, arrays, metric)
    each = known.per_subject(arrays['outputs'], arrays['y'], arrays['subject'], arrays, metric)
    values = np.array([each[f's{k}'] for k in range(4)])
    weights = np.array([[1.0, 1, 1, 1], [2, 0, 1, 1], [0, 4, 0, 0]])
    np.testing.assert_allclose(weighted(weights), weights @ values / weights.sum(1))


def test_without_cells_there_is_no_such_score() -> None:
    arrays = nights()
    del arrays['cell']
    assert 'wbmae' not in score.evaluate('value', arrays['outputs'], arrays['y'], arrays)


# ---- angles ----


def test_angles_are_kept_to_a_ten_thousandth() -> None:
    x = RNG.uniform(-3, 3, (20, 50))
    encoded = targets.encode(Angles(), [packed(x), packed(-x)])
    assert encoded.y.shape == (2, 1000) and encoded.y.dtype == np.float32
    np.testing.assert_allclose(encoded.y.reshape(2, 20, 50), [x, -x], atol=0.51e-4)


@pytest.mark.parametrize('x', [np.full((1, 2), 90.0), np.array([[0.0, np.nan]])])
def test_degrees_and_gaps_are_refused(x: np.ndarray) -> None:
    with pytest.raises(RequestError, match='degrees'):
        packed(x)


def test_windows_of_unequal_length_are_refused() -> None:
    with pytest.raises(RequestError, match='expected 50 a joint'):
        targets.encode(Angles(), [packed(np.zeros((1, 50))), packed(np.zeros((1, 51)))])


def test_errors_of_angles_are_degrees() -> None:
    y = RNG.normal(0, 1, (40, 100)).astype(np.float32)
    outputs = y + np.radians(RNG.choice([-5, 15], y.shape))
    subject = np.repeat(['a', 'b', 'c', 'd'], 10)
    found = score.score(
        'angles', 'angular_mae', {'id': np.arange(40), 'outputs': outputs, 'y': y, 'subject': subject}, None
    )
    expected = np.degrees(np.abs(outputs - y).mean())
    assert found['headline']['value'] == pytest.approx(expected, rel=1e-5) and 5 < expected < 15
    assert set(found['per_subject']) == {'a', 'b', 'c', 'd'} and found['headline']['interval'] is not None
    assert score.dummy('angles', y, 3).shape == (3, 100)
