"""Scores as functions of how often each subject counts, for the bootstrap: sums of subjects, not windows, are weighted.

Each function returns f64 [B, S] -> f64 [B], nan where a draw has no score; with all weights 1 it gives the score of
jbench/metrics, with others that of windows repeated as often as their subject is drawn. What is said of classes and
bins that a draw lacks stands in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jbench.metrics import classification, keystrokes
from jbench.metrics.regression import BIN_EDGES

Weighted = Callable[[np.ndarray], np.ndarray]


def classes(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, metric: str) -> Weighted:
    """A score of `classification.classes`.

    A class that some subject shows is left out of a draw without it: no share of it is defined there. One that nobody
    shows counts as it does without weights.

    Args:
        outputs, y: logits [N, K], classes int [N].
        owner: int [N], number of the subject of each window, 0..S-1, each of which occurs.
        metric: a name among the scores.
    """
    n_out, n = outputs.shape[1], owner.max() + 1
    said = outputs.argmax(1)
    true, predicted = _per(owner, y, n, n_out), _per(owner, said, n, n_out)
    right = _per(owner[said == y], y[said == y], n, n_out)
    if metric == 'acc':
        return lambda w: (w @ right.sum(1)) / (w @ true.sum(1))
    if metric in ('bal_acc', 'f1_macro'):
        never = int(((true.sum(0) == 0) & (predicted.sum(0) > 0)).sum())
        both = true + predicted if metric == 'f1_macro' else 2 * true
        return lambda w: _mean(2 * (w @ right), w @ both, (w @ true) > 0, never)
    p = classification.log_probabilities(outputs)
    shown = np.flatnonzero(true.sum(0))
    if metric == 'auroc':
        pairs = [_pairs(p[:, k], y == k, owner, n) for k in shown]
        return lambda w: _mean(*_areas_by_weights(w, pairs, true[:, shown]), never=n_out - len(shown))
    return lambda w: _precision_by_weights(w, p[:, shown], y[:, None] == shown, owner)


def labels(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, metric: str) -> Weighted:
    """A score of `classification.labels`: outputs, y [N, K]; labels that a draw lacks as for `classes`."""
    predicted, true = outputs > 0, y > 0
    n = owner.max() + 1
    windows = np.bincount(owner)
    if metric == 'exact_match':
        right = np.bincount(owner, (predicted == true).all(1))
        return lambda w: (w @ right) / (w @ windows)
    if metric == 'hamming':
        wrong = np.bincount(owner, (predicted != true).mean(1))
        return lambda w: (w @ wrong) / (w @ windows)
    right, shown, said = (_sums(owner, what, n) for what in (predicted & true, true, predicted))
    never = int((shown.sum(0) == 0).sum())
    return lambda w: _mean(2 * (w @ right), w @ (shown + said), (w @ shown) > 0, never)


def value(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, metric: str) -> Weighted:
    """A score of `regression.value`: outputs, y [N]. A bin without a window in a draw is left out of its mean."""
    error = outputs - y
    if metric == 'bmae':
        bins = np.digitize(y, BIN_EDGES[1:-1])[:, None] == np.arange(len(BIN_EDGES) - 1)
        inside = bins & ((y >= BIN_EDGES[0]) & (y <= BIN_EDGES[-1]))[:, None]
        n = owner.max() + 1
        errors, counts = _sums(owner, inside * np.abs(error)[:, None], n), _sums(owner, inside, n)
        return lambda w: _mean(w @ errors, w @ counts, (w @ counts) > 0, 0)
    a, b = outputs - outputs.mean(), y - y.mean()
    columns = np.stack([np.ones(len(y)), a, b, a * a, b * b, a * b, error**2, np.abs(error)], 1)
    sums = _sums(owner, columns, owner.max() + 1)

    def score(w: np.ndarray) -> np.ndarray:
        n, a, b, aa, bb, ab, squares, absolute = (w @ sums).T
        if metric == 'mae':
            return np.asarray(absolute / n)
        rmse = np.sqrt(squares / n)
        if metric == 'rmse':
            return np.asarray(rmse)
        spread = bb / n - (b / n) ** 2
        varies = spread > 1e-12 * max(sums[:, 4].sum() / len(y), 1e-300)
        spread = np.where(varies, spread, np.nan)
        if metric == 'r2':
            return 1 - rmse**2 / spread
        if metric == 'normalized_rmse':
            return np.asarray(rmse / np.sqrt(spread))
        wide = aa / n - (a / n) ** 2
        wide = np.where(wide > 1e-12 * max(sums[:, 3].sum() / len(y), 1e-300), wide, np.nan)
        return np.clip((ab / n - a * b / n**2) / np.sqrt(wide * spread), -1, 1)

    return score


def error_rate(paths: np.ndarray, y: np.ndarray, owner: np.ndarray) -> Weighted:
    """`keystrokes.error_rate`: paths [N, frames], y [N, length]."""
    counts = np.stack(keystrokes.errors(paths, y), 1).astype(np.float64)
    sums = _sums(owner, counts, owner.max() + 1)
    return lambda w: _ratio(w @ sums[:, 0], w @ sums[:, 1])


def hits(right: np.ndarray, owner: np.ndarray, n: int, metric: str) -> Weighted:
    """The share of hits among queries, bool [Q] of subjects int [Q] in 0..n-1; of subject_top5_acc the mean of
    subjects' shares."""
    found = np.bincount(owner, right, minlength=n).astype(np.float64)
    asked = np.bincount(owner, minlength=n).astype(np.float64)
    if metric.startswith('subject'):
        found, asked = found / np.maximum(asked, 1), np.minimum(asked, 1)
    return lambda w: _ratio(w @ found, w @ asked)


def cells(scores: np.ndarray, owner: np.ndarray, n: int) -> Weighted:
    """The mean over cells: score f64 [M] and subject int [M], in 0..n-1, of each."""
    total, count = np.bincount(owner, scores, n).astype(np.float64), np.bincount(owner, minlength=n).astype(np.float64)
    return lambda w: _ratio(w @ total, w @ count)


def means(values: np.ndarray, share: np.ndarray, owner: np.ndarray) -> Weighted:
    """The mean of a number of each window [N], of which so much counts: a share of it, [N]."""
    n = owner.max() + 1
    total, count = np.bincount(owner, share * values, n), np.bincount(owner, share, n)
    return lambda w: _ratio(w @ total, w @ count)


def _sums(owner: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """Sums of rows [N, K] over the windows of each subject: f64 [S, K]."""
    return np.stack([np.bincount(owner, column, minlength=n) for column in rows.T.astype(np.float64)], 1)


def _per(owner: np.ndarray, of: np.ndarray, n: int, n_out: int) -> np.ndarray:
    """How many windows of each subject are `of` each class: f64 [S, K]."""
    return np.bincount(owner * n_out + of, minlength=n * n_out).reshape(n, n_out).astype(np.float64)


def _mean(part: np.ndarray, whole: np.ndarray, use: np.ndarray, never: int) -> np.ndarray:
    """Mean of part / whole [B, K] over the classes in use and those, counted 0, that nobody shows: [B]."""
    n = use.sum(1) + never
    return np.divide((use * part / np.where(use, whole, 1)).sum(1), n, out=np.full(len(n), np.nan), where=use.any(1))


def _pairs(score: np.ndarray, positive: np.ndarray, owner: np.ndarray, n: int) -> np.ndarray:
    """Pairs of a positive window of one subject and a negative of another in right order, ties half: f64 [S, S]."""
    found = np.zeros((n, n))
    mine, whose = score[positive], owner[positive]
    order = np.lexsort([score[~positive], owner[~positive]])
    of_each = np.split(score[~positive][order], np.cumsum(np.bincount(owner[~positive], minlength=n))[:-1])
    for other, theirs in enumerate(of_each):
        below = (np.searchsorted(theirs, mine, 'left') + np.searchsorted(theirs, mine, 'right')) / 2
        found[:, other] = np.bincount(whose, below, minlength=n)
    return found


def _areas_by_weights(
    w: np.ndarray, pairs: list[np.ndarray], true: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs in right order and all pairs of each class, [B, K], and whether there are any."""
    right = np.stack([((w @ table) * w).sum(1) for table in pairs], 1)
    positive = w @ true
    every = positive * (positive.sum(1, keepdims=True) - positive)
    return right, every, every > 0


def _precision_by_weights(w: np.ndarray, p: np.ndarray, positive: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Average precision, mean over the classes that a draw shows: [B]."""
    found = np.stack([_average_precision(w, p[:, k], positive[:, k], owner) for k in range(p.shape[1])], 1)
    shown = np.isfinite(found)
    total = np.where(shown, found, 0).sum(1)
    return np.divide(total, shown.sum(1), out=np.full(len(w), np.nan), where=shown.sum(1) > 1)


def _average_precision(w: np.ndarray, score: np.ndarray, positive: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Of windows in falling order of scores, each counted as often as its subject: [B]; nan where none is positive.
    Memory: a row of weights at a time."""
    order = np.argsort(-score, kind='stable')
    score, positive, owner = score[order], positive[order], owner[order]
    ends = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # last of each group of equal scores
    found = np.full(len(w), np.nan)
    for b, row in enumerate(w):
        weight = row[owner]
        hits, predicted = np.cumsum(weight * positive)[ends], np.cumsum(weight)[ends]
        if hits[-1]:
            found[b] = (np.diff(hits, prepend=0.0) * hits / np.maximum(predicted, 1)).sum() / hits[-1]
    return found


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
