"""Scores of probabilities, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from jbench.report.statistics.calibration import calibration

pytestmark = pytest.mark.filterwarnings('error')


def answers(n: int = 400, k: int = 3, sharp: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose probabilities hold, made sharper."""
    random = np.random.default_rng(0)
    logits = random.normal(0, 1.5, (n, k))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return logits * sharp, (p.cumsum(1) < random.random((n, 1))).sum(1)


def test_by_hand() -> None:
    """Four answers at 0.9, of which two are right; one at 0.6, which is."""
    p = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]])
    found = calibration(np.log(p), np.array([0, 0, 1, 1, 1]))
    assert found is not None
    assert found.ece == pytest.approx(0.8 * 0.4 + 0.2 * 0.4) and found.ece_mass == pytest.approx(found.ece)
    assert found.brier == pytest.approx((2 * 0.02 + 2 * 1.62 + 0.32) / 5)
    assert found.width.counts == (1, 4) and found.width.accuracy == (1.0, 0.5)
    assert found.width.confidence == pytest.approx((0.6, 0.9))


def test_bins_are_scikit_learns() -> None:
    logits, y = answers(k=2)
    found = calibration(logits, y)
    assert found is not None
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    right, confidence = p.argmax(1) == y, p.max(1)
    for bins, strategy in ((found.width, 'uniform'), (found.mass, 'quantile')):
        true, told = calibration_curve(right, confidence, n_bins=15, strategy=strategy)
        np.testing.assert_allclose(bins.accuracy, true, atol=0.04 if strategy == 'quantile' else 1e-9)
        np.testing.assert_allclose(bins.confidence, told, atol=0.01 if strategy == 'quantile' else 1e-9)
    assert max(found.mass.counts) - min(found.mass.counts) <= 1
    assert found.auroc == pytest.approx(roc_auc_score(y, p[:, 1]))


def test_brier_and_auroc_of_several_classes_are_scikit_learns() -> None:
    logits, y = answers()
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = calibration(logits, y)
    assert found is not None and found.brier == pytest.approx(brier_score_loss(y, p, scale_by_half=False))
    assert found.auroc == pytest.approx(roc_auc_score(y, p, multi_class='ovr'))


def test_sharper_answers_are_worse_calibrated_and_as_right() -> None:
    held, sharp = (calibration(*answers(4000, sharp=sharp)) for sharp in (1.0, 4.0))
    assert held is not None and sharp is not None
    assert held.ece < 0.03 < 0.1 < sharp.ece and held.ece_mass < 0.03 < 0.1 < sharp.ece_mass
    assert sharp.brier > held.brier


def test_the_order_of_windows_does_not_count() -> None:
    logits, y = answers(k=2)
    logits = np.round(logits)  # many equal probabilities
    order = np.random.default_rng(1).permutation(len(y))
    one, other = calibration(logits, y), calibration(logits[order], y[order])
    assert one is not None and other is not None
    assert one.ece_mass == pytest.approx(other.ece_mass) and one.mass.counts == other.mass.counts


@pytest.mark.parametrize('n', [1, 2, 5])
def test_few_and_equal_answers(n: int) -> None:
    found = calibration(np.zeros((n, 2)), np.zeros(n, int))
    assert found is not None and found[:4] == (0.5, 0.5, 0.5, None)
    assert calibration(np.zeros((0, 2)), np.zeros(0, int)) is None
    assert calibration(np.full((n, 2), np.nan), np.zeros(n, int)) is None
    sure = calibration(np.tile([800.0, -800.0], (n, 1)), np.ones(n, int))
    assert sure is not None and sure[:3] == (1.0, 1.0, 2.0)
