"""Two models on the same subjects, judged by a score of all of them: the answers of whole subjects are exchanged.

A mean over subjects of their own scores is another score than that of all windows together, and the wrong one where a
subject shows one class alone. Here the score itself is computed anew for each exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jbench.metrics import uncertainty
from jbench.metrics.weighted import Weighted
from jbench.report.statistics import paired

SLOW = 2048  # exchanges of a score that is not linear in them
GROUPS, SLOW_GROUPS = 50, 20  # of subjects that are left out together, at most
ROUNDING = 1e-9

# (exchanged 0/1 [B, S], how often each subject counts [B, S]) -> score of A less that of B [B]
Difference = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Exchange(NamedTuple):
    """A test of exchanged subjects."""

    test: paired.Test
    error: float | None  # standard error of the difference, by the jackknife; None where it is not defined


def difference(stacks: Sequence[Weighted]) -> Difference:
    """The difference of two models, mean over seeds, as a function of who is exchanged.

    Args:
        stacks: one a seed: the score of the answers of A to S subjects, then those of B to the same, by how often each
            of the 2 S counts.
    """

    def of(exchanged: np.ndarray, counts: np.ndarray) -> np.ndarray:
        stay, go = counts * (1 - exchanged), counts * exchanged
        a, b = np.concatenate([stay, go], 1), np.concatenate([go, stay], 1)
        return np.asarray(np.mean([score(a) - score(b) for score in stacks], 0))

    return of


def exchange(of: Difference, n: int, differ: np.ndarray, size: float = 1.0) -> Exchange:
    """The permutation test of a difference: who gave the answers to a subject, A or B, is exchanged.

    The statistic is the difference over its standard error, both computed anew each time: so the test holds too where
    two models are equally good and err on different subjects, which are not exchangeable (Janssen 1997, Stat. Probab.
    Lett. 36:9; Chung & Romano 2013, Ann. Stat. 41:484). For a mean of one score a subject it is `paired.permutation`.
    The error is that of the jackknife over subjects (over groups of them, where there are many).

    All exchanges where those are few, else 10,000 (2,048 where the difference is no sum over subjects), the same each
    time, among which the true one counts.

    Args:
        of: `difference`.
        n: subjects.
        differ: int [d], numbers of those who were answered in different ways.
        size: of the scores; smaller differences than 1e-9 of it are rounding.
    """
    if not len(differ):
        return Exchange(paired.Test(1.0, 0.0, 0, 1.0, 'none'), 0.0)
    linear = _linear(of, n, differ)
    if linear is None:
        evaluate, most = _slowly(of, _left_out(n, SLOW_GROUPS)), SLOW
    else:
        evaluate, most = linear, uncertainty.DRAWS
    exact = 2 ** (len(differ) - 1) <= min(most, uncertainty.DRAWS // 2)
    found = [evaluate(masks) for masks in _masks(n, differ, min(most, uncertainty.DRAWS), exact)]
    values, errors = (np.concatenate(part) for part in zip(*found, strict=True))
    value, error = (float(part[0]) for part in evaluate(np.zeros((1, n))))
    ratios = _ratios(values, errors, size)
    ratios = ratios[np.isfinite(values)]
    at = float(_ratios(np.array([value]), np.array([error]), size)[0])
    over, below = at * (1 + ROUNDING), at * (1 - ROUNDING)
    extra = 0 if exact else 1  # the true one, beside those that were drawn; of exact ones it is the first
    total = len(ratios) + extra
    far, reached = int((ratios > over).sum()), int((ratios >= below).sum())
    p, mid = (reached + extra) / total, (far + (reached - far + extra) / 2) / total
    top = max(ratios.max(initial=0), at)
    least = (int((ratios >= top * (1 - ROUNDING)).sum()) + extra) / total
    side = value if abs(value) > ROUNDING * size else 0.0
    test = paired.Test(p, paired.score_of(mid, side), len(differ), least, 'exact' if exact else 'drawn')
    return Exchange(test, error if np.isfinite(error) else None)


def _masks(n: int, differ: np.ndarray, draws: int, exact: bool) -> Iterator[np.ndarray]:
    """Who is exchanged, 0/1 [B, n] by [B, n]. All: the first stays, since the reverse differs in sign alone."""
    rows = max(1, uncertainty.CHUNK // (n * SLOW_GROUPS))
    random = np.random.RandomState(uncertainty.SEED)  # its numbers are the same in every release of numpy
    total = 2 ** (len(differ) - 1) if exact else draws
    for first in range(0, total, rows):
        numbers = np.arange(first, min(first + rows, total))
        masks = np.zeros((len(numbers), n))
        if exact:
            masks[:, differ[1:]] = numbers[:, None] >> np.arange(len(differ) - 1) & 1
        else:
            masks[:, differ] = random.randint(0, 2, (len(numbers), len(differ)))
        yield masks


def _left_out(n: int, most: int) -> np.ndarray:
    """Who counts, 0/1 [1 + G, n]: all, then all but one group."""
    groups = min(n, most)
    mine = np.random.RandomState(uncertainty.SEED).permutation(n) % groups
    return np.concatenate([np.ones((1, n)), (mine != np.arange(groups)[:, None]).astype(float)])


def _slowly(of: Difference, counts: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A function of exchanges [B, n] that gives differences and their errors, [B] each."""

    def evaluate(masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = max(1, uncertainty.CHUNK // (2 * counts.size))
        found = []
        for first in range(0, len(masks), rows):
            some = masks[first : first + rows]
            each = of(np.repeat(some, len(counts), 0), np.tile(counts, (len(some), 1)))
            found.append(each.reshape(len(some), len(counts)))
        return _error(np.concatenate(found))

    return evaluate


def _linear(of: Difference, n: int, differ: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None:
    """As `_slowly`, from what each subject adds; None where the difference is no sum over subjects.

    AUROC is one: what pairs of an answer of A and one of B add to either side is the same."""
    counts = _left_out(n, GROUPS)
    one = np.zeros((len(differ), n))
    one[np.arange(len(differ)), differ] = 1
    whole = of(np.zeros_like(counts), counts)
    if not np.isfinite(whole).all():
        return None
    parts = np.stack([(whole - of(np.repeat(row[None], len(counts), 0), counts)) / 2 for row in one])  # [d, 1 + G]
    tried = np.random.RandomState(uncertainty.SEED).randint(0, 2, (8, n)) * one.sum(0)
    for mask in (np.zeros(n), *tried):
        expected = of(np.repeat(mask[None], len(counts), 0), counts)
        near = np.abs((1 - 2 * mask[differ]) @ parts - expected) <= ROUNDING * max(1e-300, np.abs(parts).sum())
        if not near.all():
            return None
    return lambda masks: _error((1 - 2 * masks[:, differ]) @ parts)


def _error(each: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differences [B] and their errors by the jackknife, of [B, 1 + G]: of all, and without each group."""
    value, without = each[:, 0], each[:, 1:]
    there = np.isfinite(without)
    g = there.sum(1)
    mean = np.where(there, without, 0).sum(1) / np.maximum(g, 1)
    squares = np.where(there, (without - mean[:, None]) ** 2, 0).sum(1)
    return value, np.where(g > 1, np.sqrt(squares * (g - 1) / np.maximum(g, 1)), np.nan)


def _ratios(values: np.ndarray, errors: np.ndarray, size: float) -> np.ndarray:
    """Differences over their errors, without sign; 0 for no difference, infinite for one without error."""
    far = np.where(np.isfinite(values), np.abs(values), 0)
    far = np.where(far <= ROUNDING * size, 0, far)
    sure = errors <= ROUNDING * np.maximum(far, size)
    ratio = np.divide(far, errors, out=np.zeros(len(far)), where=~sure & np.isfinite(errors))
    return np.where(sure & (far > 0), np.inf, ratio)
