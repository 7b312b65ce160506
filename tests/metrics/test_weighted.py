"""Scores by weights: what windows repeated as often as their subject is drawn would give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jbench import targets
from jbench.spec.metrics import METRICS, of_kind

N, S = 240, 8


def answers(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Outputs, targets, number of each window's subject, and what is beside them; every subject shows everything."""
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.arange(N) % S)
    subjects = np.array([f's{o}' for o in owner])
    number = np.arange(N) // S % 4
    if kind == 'classes':
        return np.round(rng.normal(size=(N, 4)) + np.eye(4)[number], 1), number, owner, {}
    if kind == 'labels':
        y = (rng.random((N, 3)) < 0.4).astype(float)
        return rng.normal(size=(N, 3)) + y, y, owner, {}
    if kind == 'value':
        y = rng.uniform(0, 700, (N, 1))
        return y + 150 * rng.normal(size=(N, 1)), y, owner, {}
    if kind == 'embedding':
        vectors = rng.normal(size=(30, 6))
        y = rng.permutation(np.arange(N) % 30)
        about = {'vectors': vectors, 'group': y.astype(str), 'subject': subjects}
        return vectors[y] + 2 * rng.normal(size=(N, 6)), y, owner, about
    y = rng.integers(0, 5, (N, 4))
    return np.where(rng.random((N, 4)) < 0.3, rng.integers(0, 5, (N, 4)), y).astype(float), y, owner, {}


CASES = [
    (kind, metric)
    for kind in ('classes', 'labels', 'value', 'keystrokes')
    for metric in of_kind(kind)
    if not METRICS[metric].cells  # tests/targets/test_cells.py
]


@pytest.mark.parametrize(('kind', 'metric'), CASES, ids='-'.join)
def test_weights_are_repetitions(kind: str, metric: str) -> None:
    outputs, y, owner, about = answers(kind, 0)
    known = targets.of(kind)
    score = known.by_weights(outputs, y, owner, about, metric)
    assert score is not None
    weights = np.random.default_rng(1).multinomial(S, np.full(S, 1 / S), 20).astype(float)
    weights[0] = 1
    expected = []
    for row in weights.astype(int):
        rows = np.repeat(np.arange(N), row[owner])
        expected.append(known.evaluate(outputs[rows], y[rows], about)[metric])
    np.testing.assert_allclose(score(weights), expected, rtol=1e-9)
    assert len(set(expected)) > 10


@pytest.mark.parametrize('metric', of_kind('embedding'))
def test_a_hit_counts_as_often_as_its_subject(metric: str) -> None:
    outputs, y, owner, about = answers('embedding', 0)
    known = targets.of('embedding')
    score = known.by_weights(outputs, y, owner, about, metric)
    if metric.startswith(('instance', 'batch')):
        assert score is None
        return
    assert score is not None
    each = known.per_subject(outputs, y, about['subject'], about, metric)
    whole = known.evaluate(outputs, y, about)[metric]
    np.testing.assert_allclose(score(np.ones((1, S))), whole, rtol=1e-12)
    np.testing.assert_allclose(score(np.eye(S)), [each[f's{k}'] for k in range(S)], rtol=1e-12)


def rare(kind: str) -> tuple[Any, ...]:
    """As `answers`; the last class or label is shown by subject 0 alone, one more by nobody."""
    outputs, y, owner, about = answers(kind, 0)
    if kind == 'classes':
        y = np.where((y == 3) & (owner != 0), 0, y)
        outputs = np.concatenate([outputs, np.full((N, 1), 9.0) * (np.arange(N)[:, None] % 9 == 0)], 1)
    else:
        y = np.concatenate([y * np.where(owner[:, None] == 0, 1, [1, 1, 0]), np.zeros((N, 1))], 1)
        outputs = np.concatenate([outputs, np.full((N, 1), -1.0)], 1)
    return outputs, y, owner, about


@pytest.mark.parametrize('metric', ['bal_acc', 'f1_macro', 'auroc', 'auprc', 'f1_score_macro'])
def test_what_a_draw_lacks_is_left_out_and_what_nobody_shows_counts_as_ever(metric: str) -> None:
    kind = METRICS[metric].kinds[0]
    outputs, y, owner, about = rare(kind)
    known = targets.of(kind)
    score = known.by_weights(outputs, y, owner, about, metric)
    assert score is not None
    np.testing.assert_allclose(score(np.ones((1, S))), known.evaluate(outputs, y, about)[metric], rtol=1e-12)
    without = np.ones((1, S))
    without[0, 0] = 0
    rows = owner != 0
    only = known.per_subject(outputs[rows], y[rows], np.full(rows.sum(), 'all'), about, metric)['all']
    if metric == 'auprc':  # a class that nobody shows has none
        expected = only
    elif kind == 'classes':  # of three shown classes; 0 for the one that nobody shows
        expected = only * 3 / 4
    else:
        expected = only * 2 / 3
    np.testing.assert_allclose(score(without), expected, rtol=1e-12)


def test_a_draw_without_a_score_is_nan() -> None:
    y = np.repeat([0, 1], 4)
    by_auroc = targets.of('classes').by_weights(np.eye(2)[y], y, np.arange(8) // 2, {}, 'auroc')
    assert by_auroc is not None
    np.testing.assert_array_equal(by_auroc(np.array([[2, 2, 0, 0.0], [1, 0, 1, 0]])), [np.nan, 1])
    value = np.repeat([1.0, 2, 2, 2], 2)[:, None]
    by_r = targets.of('value').by_weights(np.arange(8.0)[:, None], value, np.arange(8) // 2, {}, 'pearsonr')
    assert by_r is not None
    assert np.isnan(by_r(np.array([[0, 1, 1, 1.0]]))).all() and np.isfinite(by_r(np.ones((1, 4)))).all()
