"""Retrieval: of many stimuli, is the one that was shown among those whose embeddings fit an output best?

The rules are NeuralBench's: score of a candidate = output . target / ||target||, rank = (number of greater scores +
number of greater or equal ones - 1) / 2, so that ties share a rank; a hit in the first k: rank < k. In float64, where
scores that rounding alone may keep apart are equal: a product of matrices adds the same numbers up in an order that
depends on where in the matrix they lie.
"""

from __future__ import annotations

import numpy as np

K = 5
BATCH = 64  # windows that are each other's candidates in batch_top5_acc
MOST_FREQUENT = 250
ROWS = 4096  # of queries that are scored together
EPSILON = np.finfo(np.float64).eps


def ranks(queries: np.ndarray, candidates: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Rank of the right candidate for each query, 0 the best: float64 [N]. That of a query that is not finite lies
    behind all candidates, and is a miss however few these are.

    Args:
        queries: outputs [N, D].
        candidates: targets [M, D].
        answer: int [N], number of the right candidate.
    """
    candidates = np.asarray(candidates, np.float64)
    unit = candidates / (np.linalg.norm(candidates, axis=1, keepdims=True) + 1e-15)
    found = [np.zeros(0)]
    for first in range(0, len(queries), ROWS):
        with np.errstate(invalid='ignore'):
            rows = np.asarray(queries[first : first + ROWS], np.float64)
            scores = rows @ unit.T
            rounding = EPSILON * rows.shape[1] * np.linalg.norm(rows, axis=1, keepdims=True)
            own = np.take_along_axis(scores, answer[first : first + ROWS, None], axis=1)
            rank = ((scores > own + rounding).sum(1) + (scores >= own - rounding).sum(1) - 1) / 2
        found.append(np.where(np.isfinite(own[:, 0]), rank, max(len(candidates), K)))
    return np.concatenate(found)


def means(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Mean of the rows [N, D] of each group, float64 [G, D]; groups: int [N] in 0..G-1, each of which occurs."""
    order = np.argsort(groups, kind='stable')
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sums = np.add.reduceat(np.asarray(rows, np.float64)[order], starts, axis=0)
    return np.asarray(sums / np.bincount(groups)[:, None])


def evaluate(outputs: np.ndarray, targets: np.ndarray, groups: np.ndarray, subjects: np.ndarray) -> dict[str, float]:
    """All scores of a split, fractions.

    Args:
        outputs, targets: float [N, D], windows in canonical order.
        groups: text [N]; windows of one group have the same stimulus (or the same word: its targets are averaged).
        subjects: text [N].
    """
    number = np.unique(groups, return_inverse=True)[1]
    frequent = np.argsort(-np.bincount(number), kind='stable')[:MOST_FREQUENT]
    keep = np.isin(number, frequent)
    found = _among(outputs, targets, number, subjects)
    some = found if keep.all() else _among(outputs[keep], targets[keep], number[keep], subjects[keep])
    scores = found | {f'{name}_250': value for name, value in some.items()}
    return {**scores, 'batch_top5_acc': batch_top5_acc(outputs, targets)}


def batch_top5_acc(outputs: np.ndarray, targets: np.ndarray) -> float:
    """The published monitor: candidates are the targets of the same 64 windows, in order (the last ones may be fewer).

    It depends on the order of windows, and equal stimuli of one batch count as different.
    """
    found = [
        ranks(outputs[k : k + BATCH], targets[k : k + BATCH], np.arange(len(outputs[k : k + BATCH])))
        for k in range(0, len(outputs), BATCH)
    ]
    return _hits(np.concatenate(found))


def per_subject(
    outputs: np.ndarray, targets: np.ndarray, groups: np.ndarray, subjects: np.ndarray, metric: str
) -> dict[str, float]:
    """The share of hits of each subject, sorted by name, under the rule of `metric` (a name of spec/metrics.py); for
    instance_top5_acc, which mixes subjects, and batch_top5_acc that of window_top5_acc."""
    right, subjects = hits(outputs, targets, groups, subjects, metric)
    return {str(s): float(right[subjects == s].mean()) for s in np.unique(subjects)}


def hits(
    outputs: np.ndarray, targets: np.ndarray, groups: np.ndarray, subjects: np.ndarray, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each query is a hit, bool [Q], and whose it is, text [Q]; as for `per_subject`."""
    number = np.unique(groups, return_inverse=True)[1]
    if metric.endswith('_250'):
        keep = np.isin(number, np.argsort(-np.bincount(number), kind='stable')[:MOST_FREQUENT])
        return hits(outputs[keep], targets[keep], groups[keep], subjects[keep], metric.removesuffix('_250'))
    candidates = means(targets, number)
    if metric == 'top5_acc':
        queries, answer, subjects = _averaged(outputs, number, subjects)
    else:
        queries, answer = outputs, number
    return ranks(queries, candidates, answer) < K, subjects


def _among(outputs: np.ndarray, targets: np.ndarray, number: np.ndarray, subjects: np.ndarray) -> dict[str, float]:
    """Scores with one candidate a group: the mean of its targets."""
    number = np.unique(number, return_inverse=True)[1]
    candidates = means(targets, number)
    queries, answer, _ = _averaged(outputs, number, subjects)
    own = ranks(outputs, candidates, number)
    return {
        'top5_acc': _hits(ranks(queries, candidates, answer)),
        'window_top5_acc': _hits(own),
        'instance_top5_acc': _hits(ranks(means(outputs, number), candidates, np.arange(len(candidates)))),
        'subject_top5_acc': float(np.mean(list(_by_subject(own, subjects).values()))),
    }


def _averaged(
    outputs: np.ndarray, number: np.ndarray, subjects: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outputs averaged over the windows of each subject and group, with the group and the subject of each mean."""
    names, who = np.unique(subjects, return_inverse=True)
    pairs, query = np.unique(who * (number.max() + 1) + number, return_inverse=True)
    return means(outputs, query), pairs % (number.max() + 1), names[pairs // (number.max() + 1)]


def _by_subject(found: np.ndarray, subjects: np.ndarray) -> dict[str, float]:
    return {str(s): _hits(found[subjects == s]) for s in np.unique(subjects)}


def _hits(found: np.ndarray) -> float:
    return float((found < K).mean())
