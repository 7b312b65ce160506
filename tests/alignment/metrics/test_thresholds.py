"""Psychometric thresholds: recovered from curves, scored against those of people, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from scipy.optimize import approx_fprime
from scipy.stats import norm

from jbench.alignment.metrics import thresholds
from jbench.alignment.metrics.thresholds import Curve, psychometric_threshold, threshold_elevation, threshold_score
from jbench.spec.errors import RequestError

LEVELS = np.linspace(1, 10, 6)


@pytest.fixture(autouse=True)
def _few_starts(monkeypatch):
    """Fits from a tenth of the starts find the curves here as well."""
    monkeypatch.setattr(thresholds, 'SLOPES', thresholds.SLOPES[::10])


def trials(curve, n=200, levels=LEVELS):
    """Levels and right answers, exactly as often as a curve says."""
    right = [np.arange(n) < round(n * float(curve.accuracy(level))) for level in levels]
    return np.repeat(levels, n), np.concatenate(right)


def test_a_threshold_is_found():
    curve = Curve(slope=0.8, middle=5, lapse=0.05)
    found = psychometric_threshold(*trials(curve))
    assert found.reason == '' and found.accuracy == pytest.approx(curve.accuracy(LEVELS[[0, -1]]).mean(), abs=5e-3)
    assert found.level == pytest.approx(5, abs=0.1)
    assert psychometric_threshold(*trials(curve), accuracy=0.9).level == pytest.approx(curve.level(0.9), abs=0.1)


def test_the_value_of_another_implementation():
    """Trials of a generator with a seed; the threshold that Brain-Score finds is written down."""
    rng, level = np.random.RandomState(0), np.repeat(LEVELS, 40)
    correct = rng.rand(len(level)) < 0.5 + 0.45 * norm.cdf(0.8 * (level - 4))
    found = psychometric_threshold(level, correct)
    assert found.level == pytest.approx(3.83448923, abs=1e-6)
    assert found.accuracy == pytest.approx(0.73826546, abs=1e-6)


def test_levels_after_the_decline_are_left_out():
    level, right = trials(Curve(slope=2, middle=3, lapse=0.03), levels=np.arange(1, 9))
    right[level > 6] = np.resize([1, 0, 1, 0, 1], (level > 6).sum())
    kept = level <= 6
    assert psychometric_threshold(level, right).level == pytest.approx(
        psychometric_threshold(level[kept], right[kept]).level, rel=1e-3
    )


@each(
    'right, said',
    [
        (lambda level: np.arange(len(level)) % 2, 'mean accuracy 0.500 is below 0.6'),
        (lambda level: np.ones(len(level)), 'accuracy is the same at all levels'),
        (lambda level: (level < 2) | (np.arange(len(level)) % 10 < 6), 'falls from the 1. of 6 levels on'),
        (lambda level: np.arange(len(level)) % 40 < 25 + 8 * (np.round(level) % 4 == 1), 'of the variance, below 0.4'),
    ],
)
def test_why_there_is_no_threshold(right, said):
    level = np.repeat(LEVELS, 40)
    found = psychometric_threshold(level, np.asarray(right(level), float))
    assert np.isnan(found.level) and said in found.reason
    scored = threshold_score(found, [10.0, 20.0])
    assert scored.value == 0 and said in scored.notes[0]


def test_a_threshold_beyond_the_levels_does_not_count():
    curve = Curve(slope=0.3, middle=5, lapse=0.05)
    assert 10 < curve.level(0.94) < 13 and np.isnan(curve.level(0.99))
    for accuracy in (0.94, 0.99):
        found = psychometric_threshold(*trials(curve, n=1000), accuracy=accuracy)
        assert np.isnan(found.level) and 'not within the levels, up to 10' in found.reason


def test_elevation():
    below, above = Curve(slope=1.5, middle=3, lapse=0.05), Curve(slope=1.5, middle=6, lapse=0.05)
    assert threshold_elevation(trials(below), trials(above)).level == pytest.approx(2, abs=0.1)
    guessed = (LEVELS.repeat(40), np.resize([0, 1], 240))
    assert threshold_elevation(guessed, trials(above)).reason.startswith('baseline: mean accuracy')
    assert threshold_elevation(trials(below), guessed).reason.startswith('test condition: mean accuracy')


@each('subjects, model, value', [([10, 20, 40, 20], 10.0, 0.5625), ([3, 2, 1.5, 5], 3.0, 0.525)])
def test_scores_of_thresholds(subjects, model, value):
    found = threshold_score(model, subjects)
    assert found.value == pytest.approx(value) and found.values.shape == (4,) and found.error > 0


def test_ceiling_is_each_against_the_others():
    found = thresholds.threshold_ceiling([10.0, 20.0, 40.0])
    np.testing.assert_allclose(found.values, [(0.5 + 0.25) / 2, (0 + 0.5) / 2, 0])


def test_the_slope_of_the_loss():
    level, share = LEVELS, np.array([0.5, 0.55, 0.7, 0.85, 0.9, 0.95])
    at = np.array([0.6, 4.0, 0.1])
    numeric = approx_fprime(at, lambda p: thresholds._loss(p, level, share)[0])
    np.testing.assert_allclose(thresholds._loss(at, level, share)[1], numeric, atol=1e-5)


@each(
    'call, said',
    [
        (lambda: psychometric_threshold(LEVELS, LEVELS[:2]), 'expected one each'),
        (lambda: threshold_score(1.0, []), 'all above zero'),
        (lambda: threshold_score(1.0, [0.0]), 'all above zero'),
        (lambda: thresholds.threshold_ceiling([1.0]), 'at least two'),
    ],
)
def test_what_cannot_be_scored(call, said):
    with pytest.raises(RequestError, match=said):
        call()
