"""Which models cannot be told apart over datasets, and which have too few of these to stand among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.report.aggregate import Score
from jbench.report.statistics import many, paired

LEAST = 0.5  # of the datasets: a model with fewer stands below the others, and is not compared with them
SHOWN = 2  # groups, in a line


class Alike(NamedTuple):
    """Mean ranks of models on the datasets that they share, the best first."""

    models: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]  # places in `models` that cannot be told apart, two or more each
    test: str  # in words
    alpha: float
    n: int  # datasets
    n_models: int  # of the scores, those that are left out too
    reason: str  # why there is nothing to say; '' where there is


def counts(scores: Sequence[Score]) -> dict[str, int]:
    """On how many datasets of tasks each model has a score."""
    found: dict[str, set[tuple[str, str]]] = {}
    for s in scores:
        found.setdefault(s.model, set()).add((s.task, s.dataset))
    return {model: len(cells) for model, cells in found.items()}


def few(scores: Sequence[Score]) -> set[str]:
    """Models with scores on fewer than half (LEAST) of the datasets.

    Args:
        scores: of one origin.
    """
    n = len({(s.task, s.dataset) for s in scores})
    return {model for model, count in counts(scores).items() if count < LEAST * n}


def alike(scores: Sequence[Score], models: Sequence[str]) -> Alike:
    """Groups of models that cannot be told apart by their normalised scores, on the datasets that all of them have.

    Tasks on one dataset share its subjects: their scores are averaged to one row.

    Args:
        scores: of one origin, of `ranks.one_protocol`.
        models: their order, where mean ranks are equal.
    """
    cells = sorted({(s.task, s.dataset) for s in scores})
    grades = {(s.model, s.task, s.dataset): s.normalised for s in scores if s.normalised is not None}
    counted = counts([s for s in scores if s.normalised is not None])
    shown = [m for m in models if m in counted and counted[m] >= LEAST * len(cells)]
    rows: dict[str, list[list[float]]] = {}
    for task, dataset in cells:
        row = [grades[m, task, dataset] for m in shown if (m, task, dataset) in grades]
        if len(row) == len(shown):
            rows.setdefault(dataset, []).append(row)
    grid = np.array([np.mean(tasks, 0) for tasks in rows.values()], float)
    n_models, n_whole = len({s.model for s in scores}), len(grid)
    if len(shown) < 2 or n_whole < 2:
        why = f'needs two models and two datasets that all have; there are {len(shown)} and {n_whole}'
        return Alike((), (), (), '', paired.ALPHA, n_whole, n_models, why)
    found = many.ranking(grid)
    order = tuple(shown[k] for k in found.order)
    return Alike(order, found.mean_ranks, found.groups, found.test, found.alpha, found.n, n_models, '')


def plain(found: Alike) -> dict[str, Any]:
    """For summary.json: groups by the names of their models."""
    return {**found._asdict(), 'groups': [[found.models[k] for k in group] for group in found.groups]}


def words(found: Alike, titles: Mapping[str, str]) -> str:
    """In one line; of many groups the first. `titles`: how models are called."""
    if found.reason:
        return f'which models differ is not asked: {found.reason}'
    of = f'{len(found.models)} of {found.n_models} models; {found.test}'
    if not found.groups:
        return f'all models are told apart ({of})'
    named = '; '.join(', '.join(titles[found.models[k]] for k in group) for group in found.groups[:SHOWN])
    more = f'; and {len(found.groups) - SHOWN} more groups' if len(found.groups) > SHOWN else ''
    return f'cannot be told apart: {named}{more} ({of})'
