"""Scores over the cells of streams, and angles: by hand, by subject and by weights."""

from __future__ import annotations

import numpy as np
import pytest

from jbench import targets
from jbench.metrics import challenges
from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets import score
from jbench.targets.angles import answered
from jbench.targets.packed import packed
from jbench.train.losses import LOSSES

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


@pytest.mark.parametrize('steps', [0, 70])
def test_angles_are_kept_to_a_ten_thousandth(steps: int) -> None:
    x = RNG.uniform(-3.2, 3.2, (20, 70))
    encoded = targets.encode(Angles(steps=steps), [packed(x), packed(-x)])
    assert encoded.y.shape == (2, 1400) and encoded.y.dtype == np.float32
    np.testing.assert_allclose(encoded.y.reshape(2, 20, 70), [x, -x], atol=0.51e-4)
    assert len(encoded.classes) == targets.of('angles').n_out(encoded.y, encoded.classes, None) == 1000


def test_joints_that_move_smoothly_take_little_room() -> None:
    """Tracked at 60 Hz and interpolated to 2 kHz, as the recordings are: a seventh of 16 bits a sample."""
    slow = np.cumsum(RNG.normal(0, 0.02, (20, 301)), 1)
    x = np.stack([np.interp(np.arange(10_000) / 2000 * 60, np.arange(301), row) for row in slow])
    assert len(packed(x)) < 20 * 10_000 * 2 / 7
    np.testing.assert_allclose(targets.encode(Angles(), [packed(x)]).y.reshape(x.shape), x, atol=0.51e-4)


@pytest.mark.parametrize('x', [np.full((1, 2), 90.0), np.array([[0.0, np.nan]])])
def test_degrees_and_gaps_are_refused(x: np.ndarray) -> None:
    with pytest.raises(RequestError, match='degrees'):
        packed(x)


def test_windows_of_unequal_length_are_refused() -> None:
    two = [packed(np.zeros((1, 50))), packed(np.zeros((1, 51)))]
    with pytest.raises(RequestError, match='50 angles of 1 joints and 51 angles of 1 joints'):
        targets.encode(Angles(), two)
    with pytest.raises(RequestError, match='51 angles of 1 joints, 50 a joint'):
        targets.encode(Angles(steps=50), two[1:])


@pytest.mark.parametrize('steps', [1, 3, 50, 97, 100])
def test_fewer_steps_are_held_as_the_platform_resamples(steps: int) -> None:
    """Step floor(k * steps / times) of an answer stands for sample k: in all scores, and in the loss."""
    n, joints, times = 12, 3, 100
    outputs, y = RNG.normal(0, 1, (n, joints, steps)), RNG.normal(0, 1, (n, joints, times))
    at = np.floor(np.arange(times) * steps / times).astype(int)
    expected = np.degrees(np.abs(outputs[:, :, at] - y).mean((1, 2)))
    flat = outputs.reshape(n, -1).astype(np.float32), y.reshape(n, -1).astype(np.float32)
    assert score.evaluate('angles', *flat)['angular_mae'] == pytest.approx(expected.mean(), rel=1e-6)
    subject = np.repeat(['a', 'b', 'c', 'd'], 3)
    arrays = {'id': np.arange(n), 'outputs': flat[0], 'y': flat[1], 'subject': subject}
    each = score.score('angles', 'angular_mae', arrays, None)['per_subject']
    np.testing.assert_allclose([*each.values()], expected.reshape(4, 3).mean(1), rtol=1e-6)
    loss, _ = LOSSES['absolute_error'](flat[0], {'y': flat[1]}, None, 0.0)
    np.testing.assert_allclose(np.degrees(loss), expected, rtol=1e-5)
    coarse = answered(flat[1], joints * steps).reshape(n, joints, steps)
    np.testing.assert_allclose(
        coarse, [[[row[at == k].mean() for k in range(steps)] for row in w] for w in y], atol=1e-6
    )
    constant = score.dummy('angles', flat[1], 2, n_out=joints * steps).reshape(2, joints, steps)
    np.testing.assert_allclose(
        constant[0], [[np.median(y[:, j, at == k]) for k in range(steps)] for j in range(joints)], atol=1e-6
    )


def test_more_steps_than_samples_are_refused() -> None:
    assert not targets.of('angles').fits((3, 101), (3, 100)) and targets.of('angles').fits((3, 7), (3, 100))


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
