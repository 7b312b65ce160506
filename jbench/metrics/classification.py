"""Scores of decisions, in plain numpy float64: one class of several, or each of several labels."""

from __future__ import annotations

import numpy as np

NORMALISED = 1e-6  # how far the logarithm of a sum of probabilities may lie from 0: single precision


def log_probabilities(outputs: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities of classes that logits [N, K] stand for, float64.

    A row of such logarithms already, as a baseline gives it, is left as it is: probabilities that were equal stay so.
    The order in which terms are added does not count, and nothing near 1 is rounded to it.
    """
    z = np.asarray(outputs, np.float64)
    most = z.max(1, keepdims=True)
    others = np.exp(np.sort(z - most, 1)[:, :-1]).sum(1, keepdims=True)
    total = most + np.log1p(others)
    return np.where(np.abs(total) <= NORMALISED, z, z - most - np.log1p(others))


def log_of(p: np.ndarray) -> np.ndarray:
    """The logarithm of probabilities, finite where they are 0 (-708)."""
    return np.log(np.maximum(p, np.finfo(float).tiny))


def classes(outputs: np.ndarray, y: np.ndarray, *, only_true: bool = False) -> dict[str, float | None]:
    """Macro means over classes. torchmetrics' rules, which differ from scikit-learn's for a class that no window has:

    bal_acc, f1_macro: left out if never predicted, counts 0 if predicted (scikit-learn's balanced accuracy leaves it
    out either way). auroc: counts 0 (scikit-learn: undefined). auprc: left out (scikit-learn: 0).
    With a single class in y, auroc and auprc are undefined. `only_true`: such classes are left out everywhere.
    """
    n_out = outputs.shape[1]
    counts = np.bincount(y * n_out + outputs.argmax(1), minlength=n_out * n_out).reshape(n_out, n_out)  # [true, said]
    hits, true, predicted = np.diag(counts), counts.sum(1), counts.sum(0)
    use = (true > 0) if only_true else (true + predicted > 0)
    scores: dict[str, float | None] = {
        'bal_acc': float((hits / np.maximum(true, 1))[use].mean()),
        'acc': float(hits.sum() / len(y)),
        'f1_macro': float((2 * hits / np.maximum(true + predicted, 1))[use].mean()),
        'auroc': None,
        'auprc': None,
    }
    if (true > 0).sum() > 1:
        p = log_probabilities(outputs)
        shown = np.flatnonzero(true > 0)
        areas = np.array([_areas(p[:, k], y == k) for k in shown])
        scores['auroc'] = float(areas[:, 0].sum() / (len(shown) if only_true else n_out))
        scores['auprc'] = float(areas[:, 1].mean())
    return scores


def _areas(score: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Area under the ROC curve (trapezoids, ties joined) and average precision (steps), at every threshold."""
    order = np.argsort(-score, kind='stable')
    score, positive = score[order], positive[order]
    ends = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # last of each group of equal scores
    hits = np.cumsum(positive)[ends].astype(np.float64)
    predicted = ends + 1.0
    recall = np.append(0.0, hits / hits[-1])
    false = np.append(0.0, (predicted - hits) / (len(score) - hits[-1]))
    roc = float((np.diff(false) * (recall[1:] + recall[:-1]) / 2).sum())
    return roc, float((np.diff(recall) * hits / predicted).sum())


def labels(outputs: np.ndarray, y: np.ndarray) -> dict[str, float | None]:
    """Each label by itself at 0.5 of the sigmoid; a label that is neither true nor said counts 0 in the mean F1."""
    predicted, true = outputs > 0, y > 0
    hits, total = (predicted & true).sum(0), predicted.sum(0) + true.sum(0)
    return {
        'f1_score_macro': float((2 * hits / np.maximum(total, 1)).mean()),
        'hamming': float((predicted != true).mean()),
        'exact_match': float((predicted == true).all(1).mean()),
    }
