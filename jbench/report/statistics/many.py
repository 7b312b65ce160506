"""Several models or tasks at once: adjusted p values, groups of models alike, the critical-difference diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jbench.report.statistics import paired


class Friedman(NamedTuple):
    """Whether any of several models differs in rank."""

    statistic: float  # Iman & Davenport's F
    p: float
    mean_ranks: tuple[float, ...]  # of each model, 1 the best; equal scores share their mean rank
    n: int  # rows


class Ranking(NamedTuple):
    """What a critical-difference diagram shows. Models stand in the order of their mean ranks, the best first."""

    order: tuple[int, ...]  # columns of the scores
    mean_ranks: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]  # places in the order that cannot be told apart: two or more, each a bar
    p: np.ndarray  # f64 [M, M], in that order: adjusted p of each pair, 1 on the diagonal
    friedman_p: float
    n: int  # rows that count
    left_out: int  # rows that lack a score
    alpha: float
    test: str  # in words, for the caption


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """p values adjusted for how many there are, f64 [m] (Holm 1979, Scand. J. Stat. 6:65): where those at most alpha
    are called differences, any is false with a probability of at most alpha, however the tests depend on each other."""
    p = np.asarray(p, np.float64)
    order = np.argsort(p, kind='stable')
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def holm_of_known(p: Sequence[float | None]) -> list[float | None]:
    """p values adjusted for those that are known; None stays."""
    found = iter(holm([x for x in p if x is not None]).tolist())
    return [None if x is None else next(found) for x in p]


def friedman(scores: np.ndarray, better: str = 'higher') -> Friedman:
    """Friedman's test, ties corrected, with Iman & Davenport's (1980) F of (M - 1) and (M - 1)(n - 1) degrees of
    freedom (Demsar 2006, J. Mach. Learn. Res. 7:1).

    Args:
        scores: f64 [n, M], a row a task, a column a model; all finite.
        better: 'higher' or 'lower', or scores turned so before.
    Returns: statistic 0.0 and p 1.0 for fewer than two rows or models, and where all ranks are equal. Where every row
        ranks alike, F has no bound: then chi-square and its p.
    """
    from scipy import stats

    n, m = scores.shape
    ranks = stats.rankdata(-scores if better == 'higher' else scores, axis=1)
    means = tuple(map(float, ranks.mean(0))) if n else tuple([(m + 1) / 2] * m)
    spread = float(((ranks - (m + 1) / 2) ** 2).sum())
    if n < 2 or m < 2 or not spread:
        return Friedman(0.0, 1.0, means, n)
    chi = (m - 1) * float(((ranks.sum(0) - n * (m + 1) / 2) ** 2).sum()) / spread
    most = n * (m - 1)
    if chi >= most * (1 - 1e-12):
        return Friedman(chi, float(stats.chi2.sf(chi, m - 1)), means, n)
    f = (n - 1) * chi / (most - chi)
    return Friedman(f, float(stats.f.sf(f, m - 1, (m - 1) * (n - 1))), means, n)


def ranking(scores: np.ndarray, *, alpha: float = paired.ALPHA) -> Ranking:
    """Mean ranks over tasks, and which models cannot be told apart: Friedman's test, then Wilcoxon's on each pair, Holm
    over the pairs (Benavoli et al. 2016, J. Mach. Learn. Res. 17:5), not Nemenyi's, which the other models decide.

    Where Friedman's test does not reject, no pair is called different. Rows that lack a score are left out.

    Args:
        scores: f64 [n, M], a row a task and dataset, a column a model; the higher the better, and on one scale in all
            rows (normalised scores), since differences are ranked across them.
    """
    scores = np.asarray(scores, np.float64)
    whole = np.isfinite(scores).all(1)
    rows, m = scores[whole], scores.shape[1]
    overall = friedman(rows)
    order = np.argsort(np.array(overall.mean_ranks), kind='stable')
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    found = [paired.wilcoxon(paired.differences(rows[:, order[i]], rows[:, order[j]])).p for i, j in pairs]
    p = np.ones((m, m))
    for (i, j), adjusted in zip(pairs, holm(found), strict=True):
        p[i, j] = p[j, i] = adjusted
    told_apart = (p <= alpha) & (overall.p <= alpha)
    return Ranking(
        order=tuple(map(int, order)),
        mean_ranks=tuple(overall.mean_ranks[k] for k in order),
        groups=groups(~told_apart),
        p=p,
        friedman_p=overall.p,
        n=len(rows),
        left_out=int((~whole).sum()),
        alpha=alpha,
        test=f'Friedman (p = {overall.p:.2g}), then Wilcoxon signed rank with Holm, alpha = {alpha:g}, n = {len(rows)}',
    )


def groups(alike: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """The largest sets of models of which no two are told apart: maximal cliques (Bron & Kerbosch 1973, with a pivot).

    A set may pass over a model that stands between its members, where that one is told apart from one of them.

    Args:
        alike: bool [M, M], symmetric: whether two models cannot be told apart.
    Returns: sets of two or more, each sorted, in the order of their members.
    """
    near = [{j for j in range(len(alike)) if j != i and alike[i, j]} for i in range(len(alike))]
    found: list[tuple[int, ...]] = []
    todo: list[tuple[set[int], set[int], set[int]]] = [(set(), set(range(len(alike))), set())]
    while todo:
        chosen, open_, done = todo.pop()
        if not open_ and not done:
            found.append(tuple(sorted(chosen)))
            continue
        pivot = max(sorted(open_ | done), key=lambda k: len(near[k] & open_))
        for k in sorted(open_ - near[pivot]):
            todo.append((chosen | {k}, open_ & near[k], done & near[k]))
            open_, done = open_ - {k}, done | {k}
    return tuple(sorted(group for group in found if len(group) > 1))
