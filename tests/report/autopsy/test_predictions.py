"""Answers against targets and against other results, the worst ones with their recordings."""

from __future__ import annotations

import numpy as np
import pytest
from autopsies import planted

from jbench.report.autopsy import predictions
from jbench.report.autopsy.case import Case, Other
from jbench.report.autopsy.case import towards as explained
from jbench.spec.model import Signal


def case_of(kind: str, metric: str, classes: tuple[str, ...] = (), **answers) -> Case:
    n = len(answers['y'])
    given = {'id': np.arange(n), 'subject': np.array(['01'] * n), **answers}
    signal = Signal(n_chans=1, n_times=1, sfreq=1.0)
    return Case({}, kind, metric, 'window', classes, given, None, (), (), signal)


def test_classes_beside_another_result():
    outputs = np.log(np.float32([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]]))
    case = case_of('classes', 'acc', ('left', 'right'), outputs=outputs, y=np.array([0, 1, 0, 1]))
    other = Other('dummy', 0.5, np.float32([[1, 0]] * 4))
    places = tuple((f'subject 01, run {k}', 2.5 * k) for k in range(4))
    found = predictions.answers(case._replace(others=(other,), places=places))
    assert found.value == 0.5 and found.confusion.tolist() == [[1, 1], [1, 1]]
    np.testing.assert_allclose(found.cost, -np.log([0.9, 0.8, 0.3, 0.4]), rtol=1e-5)
    assert found.compared == (predictions.Compared('dummy', 0.5, 0.0, 0.5, 1, 1),)
    worst = found.worst[0]
    assert (worst.id, worst.subject, worst.recording, worst.onset) == (2, '01', 'subject 01, run 2', 5.0)
    assert (worst.target, worst.answer) == ('left', 'right (p 0.70; true class 0.30)')
    assert [bad.id for bad in found.worst] == [2, 3, 1, 0]


@pytest.mark.parametrize(
    ('case', 'cost', 'target', 'weights'),
    [
        (
            case_of('value', 'rmse', outputs=np.float32([[1], [5]]), y=np.float32([[2], [2]])),
            [1, 3],
            '2',
            [[1], [1]],
        ),
        (
            case_of(
                'labels', 'hamming', ('a', 'b'), outputs=np.float32([[9, -9], [-9, 9]]), y=np.float32([[1, 0]] * 2)
            ),
            [np.log1p(np.exp(-9)), 9],
            'a',
            [[0.5, -0.5], [0.5, -0.5]],
        ),
        (
            case_of(
                'embedding',
                'window_top5_acc',
                outputs=np.float32([[1, 0], [0, 1]]),
                y=np.array([0, 0]),
                vectors=np.float32([[2, 0], [0, 3]]),
                group=np.array(['dog', 'dog']),
            ),
            [0, 1],
            'dog',
            [[1, 0], [1, 0]],
        ),
        (
            case_of(
                'keystrokes',
                'cer',
                ('a', 'b', '(blank)'),
                outputs=np.float32([[0, -1], [1, 1]]),
                y=np.array([[0], [0]]),
            ),
            [0, 1],
            'a',
            None,
        ),
        (
            case_of(
                'angles',
                'angular_mae',
                outputs=np.radians(np.float32([[1, 2], [5, 1]])),
                y=np.radians(np.float32([[1, 1, 1, 5], [1, 1, 0, 0]])),
            ),
            [1, 2.5],
            '0.01745, 0',
            [[0, 1], [0, -1]],
        ),
    ],
    ids=lambda v: v.kind if isinstance(v, Case) else '',
)
def test_every_kind_of_target(case, cost, target, weights):
    found = predictions.answers(case)
    np.testing.assert_allclose(found.cost, cost, rtol=1e-4, atol=1e-7)
    assert found.worst[0].id == 1 and found.worst[0].target == target and found.confusion is None
    if weights is not None:
        np.testing.assert_allclose(explained(case, case.answers['outputs'], case.answers), weights)
    else:
        raw = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
        of_path = explained(case, raw, case.answers)
        np.testing.assert_allclose((of_path * raw).sum((1, 2)), (raw.max(-1) - raw.mean(-1)).mean(1), rtol=1e-5)


def test_what_is_explained_of_values_is_their_side_of_the_mean():
    """What raises the answer to a window above the mean, and lowers that to one below, speaks for the right answer."""
    case = case_of('value', 'rmse', outputs=np.float32([[1], [5], [2]]), y=np.float32([[2], [9], [1]]))
    assert explained(case, case.answers['outputs'], case.answers).tolist() == [[-1], [1], [-1]]


def test_what_is_explained_of_classes_does_not_change_with_a_constant():
    case = planted()
    weights = explained(case, case.answers['outputs'], case.answers)
    np.testing.assert_allclose(weights.sum(1), 0, atol=1e-7)
    assert (weights[np.arange(len(weights)), case.answers['y']] == 0.5).all()
