"""Ranks of models over tasks, from scores: the rules are those of NeuralBench's published table (docs/report.md)."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any, NamedTuple

from jbench.plan import select
from jbench.report import alike, marks
from jbench.report.aggregate import Score, customised
from jbench.results.index import MARKS, LeftOut

LEAST_DATASETS = 5  # of a task, to speak of variability over them
Cell = tuple[str, str, str]  # origin, task, dataset


class Standing(NamedTuple):
    """Where a model stands over the tasks of a table; None where nothing is known."""

    model: str
    title: str
    family: str
    origin: str  # 'own', 'published'
    mean_rank: float | None  # over the tasks that it has, 1: best
    mean_normalised_rank: float | None  # 0: best of all models, 1: last
    mean_normalised_score: float | None  # 0: as the floor, 1: perfect
    wins: int  # cells in which none is better, of those with several models
    n_tasks: int  # with a score
    n_missing: int  # tasks of the table without one
    mean_rank_complete: float | None  # over the cells that all models have, but for those with few (`alike.few`)
    mean_normalised_rank_complete: float | None
    n_complete: int  # tasks with such cells; 0 for a model with few


class Gap(NamedTuple):
    """The best model of a family against the best of another, cell by cell."""

    families: tuple[str, str]
    origin: str
    n_cells: int  # which both have
    n_first_better: int
    n_ties: int
    mean_difference: float | None  # of the normalised scores of the best, first less second


def one_protocol(scores: Iterable[Score]) -> tuple[list[Score], list[LeftOut]]:
    """Scores of one protocol for each dataset of a task; the others are left out.

    The newest version (`_age`); then the protocol without changes of the user's, with most models, with the newest
    result.
    """
    scores = list(scores)
    newest: dict[Cell, tuple[bool, bool, int]] = {}
    models: dict[str, int] = {}
    for s in scores:
        cell = (s.origin, s.task, s.dataset)
        newest[cell] = max(_age(s), newest.get(cell, _age(s)))
        models[s.protocol] = models.get(s.protocol, 0) + 1
    chosen: dict[Cell, str] = {}
    by_date = sorted(scores, key=lambda s: (s.date or '', s.protocol), reverse=True)
    for s in sorted(by_date, key=lambda s: (customised(s.protocol), -models[s.protocol])):
        cell = (s.origin, s.task, s.dataset)
        if s.version == newest[cell][-1]:
            chosen.setdefault(cell, s.protocol)
    kept, left_out = [], []
    for s in scores:
        cell = (s.origin, s.task, s.dataset)
        taken, version = chosen[cell], newest[cell][-1]
        if s.protocol == taken:
            kept.append(s)
            continue
        why = f'other protocol: {s.protocol}; in the table: {taken}'
        if s.version < version:
            why = f'older version: {s.task}@{s.version}; in the table: {s.task}@{version}'
        left_out += [LeftOut(path, why) for path in s.paths]
    return kept, left_out


def _age(s: Score) -> tuple[bool, bool, int]:
    """What sorts the versions of a task: those above the newest that jbench has come first (of tasks that it does not
    have no version does), then those whose scores the user changed or asked for by `--also`."""
    known = select.tasks().get(s.task)
    counts = {'custom', *MARKS}.isdisjoint(marks.of(s.changes))
    return known is None or s.version <= known[-1].version, counts, s.version


def ranks(scores: Iterable[Score]) -> dict[Cell, dict[str, int]]:
    """Of each dataset of a task that several models have, the rank of each: 1 the best, ties get the better rank.

    Args:
        scores: of `one_protocol`.
    """
    found = {}
    for cell, models in _cells(scores).items():
        if len(models) > 1:
            order = sorted(map(_order, models.values()))
            found[cell] = {m: 1 + bisect_left(order, _order(s)) for m, s in models.items()}
    return found


def standings(
    scores: Iterable[Score], *, full: bool = False, given: Mapping[Cell, Mapping[str, int]] | None = None
) -> list[Standing]:
    """Models by their mean rank, for each origin.

    Ranks are averaged inside each task first. A model without a score on a dataset has no rank there: its means are
    over what it has, and the others are ranked among themselves. Normalised rank: (rank - 1) / (models of the table -
    1). Beside them the means over the datasets that all models of the table have, ranked among themselves: those with
    few datasets (`alike.few`) take no part, and have none.

    Args:
        scores: of `one_protocol`.
        full: all datasets of a task, not the Core one alone.
        given: ranks that take the place of those of the scores.
    """
    table = [s for s in scores if full or s.core]
    ranked = ranks(table) if given is None else given
    return [x for origin in _origins(table) for x in _standings([s for s in table if s.origin == origin], ranked)]


def _standings(table: Sequence[Score], ranked: Mapping[Cell, Mapping[str, int]]) -> list[Standing]:
    """Of one origin."""
    by_model: dict[str, list[Score]] = {}
    for s in table:
        by_model.setdefault(s.model, []).append(s)
    mine = {(s.origin, s.task, s.dataset) for s in table}
    ranked = {cell: row for cell, row in ranked.items() if cell in mine}
    many = by_model.keys() - alike.few(table)
    whole = {cell: _among(row, many) for cell, row in ranked.items() if len(many) > 1 and many <= row.keys()}
    n_models, n_tasks = len(by_model), len({s.task for s in table})
    lines = []
    for name, found in by_model.items():
        rank = _over_tasks((cell[1], row[name]) for cell, row in ranked.items() if name in row)
        complete = _over_tasks((cell[1], row[name]) for cell, row in whole.items() if name in many)
        tasks = len({s.task for s in found})
        lines.append(
            Standing(
                model=name,
                title=found[0].title,
                family=found[0].family,
                origin=found[0].origin,
                mean_rank=rank,
                mean_normalised_rank=_normalised(rank, n_models),
                mean_normalised_score=_over_tasks((s.task, s.normalised) for s in found if s.normalised is not None),
                wins=sum(row.get(name) == 1 for row in ranked.values()),
                n_tasks=tasks,
                n_missing=n_tasks - tasks,
                mean_rank_complete=complete,
                mean_normalised_rank_complete=_normalised(complete, len(many)),
                n_complete=len({cell[1] for cell in whole}) if name in many else 0,
            )
        )
    return sorted(lines, key=lambda line: (math.inf if line.mean_rank is None else line.mean_rank, line.model))


def _among(row: Mapping[str, int], models: Collection[str]) -> dict[str, int]:
    """Ranks of some models among themselves, from their ranks among more."""
    order = sorted(row[m] for m in models)
    return {m: 1 + bisect_left(order, row[m]) for m in models}


def by_category(scores: Iterable[Score], *, full: bool = False) -> dict[str, dict[str, float]]:
    """Mean rank of each model, by category of task: {category: {model: rank}}.

    Args:
        scores: of one origin.
        full: as of `standings`.
    """
    table = sorted((s for s in scores if full or s.core), key=lambda s: s.category)
    parts = {category: list(part) for category, part in groupby(table, key=lambda s: s.category)}
    means: dict[str, dict[str, float]] = {}
    for category, part in parts.items():
        found = {line.model: line.mean_rank for line in standings(part, full=full)}
        means[category] = {model: rank for model, rank in found.items() if rank is not None}
    return means


def core_against_full(scores: Sequence[Score]) -> dict[str, Any]:
    """Whether Core orders the models as Full does: Kendall's tau (b) and Spearman's rho of their mean ranks.

    Args:
        scores: of one origin.

    Returns: `kendall_tau`, `spearman_rho`, `n_models`, and `reason`: why the first two are None, else None.
    """
    core, full = (
        {x.model: x.mean_rank for x in standings(scores, full=f) if x.mean_rank is not None} for f in (False, True)
    )
    x, y = ([side[m] for m in core if m in full] for side in (core, full))
    reason = None
    if len(x) < 2:
        reason = 'fewer than two models have both mean ranks'
    elif all(s.core for s in scores):
        reason = 'every dataset is a Core one'
    elif len({*x}) < 2 or len({*y}) < 2:
        reason = 'all models have the same mean rank'
    found: dict[str, Any] = {'kendall_tau': None, 'spearman_rho': None, 'n_models': len(x), 'reason': reason}
    if reason is None:
        from scipy import stats

        found['kendall_tau'] = float(stats.kendalltau(x, y).statistic)
        found['spearman_rho'] = float(stats.spearmanr(x, y).statistic)
    return found


def variability(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """How much the rank of a model differs between the datasets of a task, of those with LEAST_DATASETS or more.

    Returns: dicts of `origin, task, model, n_datasets, sd` (ddof 1), `best`, `worst` (rank).
    """
    found: dict[tuple[str, str, str], list[int]] = {}
    for (origin, task, _), row in ranks(scores).items():
        for model, rank in row.items():
            found.setdefault((origin, task, model), []).append(rank)
    return [
        {
            **dict(zip(('origin', 'task', 'model'), name, strict=True)),
            **{'n_datasets': len(of), 'sd': statistics.stdev(of), 'best': min(of), 'worst': max(of)},
        }
        for name, of in sorted(found.items())
        if len(of) >= LEAST_DATASETS
    ]


def gaps(scores: Iterable[Score], *, full: bool = False) -> list[Gap]:
    """The best model of each family against the best of each other one; `full` as of `standings`."""
    table = [s for s in scores if full or s.core]
    families = sorted({s.family for s in table})
    found = []
    for origin in _origins(table):
        cells = [_best_of(row.values()) for cell, row in _cells(table).items() if cell[0] == origin]
        for a, b in combinations(families, 2):
            both = [(best[a], best[b]) for best in cells if a in best and b in best]
            grades = [(x.normalised, y.normalised) for x, y in both]
            differences = [x - y for x, y in grades if x is not None and y is not None]
            better, ties = (sum(_beats(x, y) for x, y in both), sum(x.mean == y.mean for x, y in both))
            mean = statistics.fmean(differences) if differences else None
            if both:
                found.append(Gap((a, b), origin, len(both), better, ties, mean))
    return found


def best(scores: Iterable[Score]) -> list[Score]:
    """The best score of each dataset of a task; of several alike the first by name."""
    return [row[min(row, key=lambda m: (_order(row[m]), m))] for row in _cells(scores).values()]


def _best_of(scores: Iterable[Score]) -> dict[str, Score]:
    """The best score of each family."""
    found: dict[str, Score] = {}
    for s in scores:
        if s.family not in found or _beats(s, found[s.family]):
            found[s.family] = s
    return found


def _cells(scores: Iterable[Score]) -> dict[Cell, dict[str, Score]]:
    """Scores by what they are of, then by model. Raises: ValueError for several protocols in one."""
    cells: dict[Cell, dict[str, Score]] = {}
    for s in scores:
        row = cells.setdefault((s.origin, s.task, s.dataset), {})
        if s.model in row or any(other.protocol != s.protocol for other in row.values()):
            raise ValueError(f'{s.model} on {s.task}/{s.dataset}: several protocols; one_protocol chooses')
        row[s.model] = s
    return cells


def _beats(a: Score, b: Score) -> bool:
    return _order(a) < _order(b)


def _order(score: Score) -> float:
    """Smaller for better scores."""
    return score.mean if score.better == 'lower' else -score.mean


def _origins(scores: Iterable[Score]) -> list[str]:
    return sorted({s.origin for s in scores})


def _over_tasks(values: Iterable[tuple[str, float]]) -> float | None:
    """The mean over tasks of the means inside each, from (task, value); None for nothing."""
    tasks: dict[str, list[float]] = {}
    for task, value in values:
        tasks.setdefault(task, []).append(value)
    return statistics.fmean(map(statistics.fmean, tasks.values())) if tasks else None


def _normalised(rank: float | None, n_models: int) -> float | None:
    return None if rank is None or n_models < 2 else (rank - 1) / (n_models - 1)
