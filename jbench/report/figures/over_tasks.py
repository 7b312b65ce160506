"""Figures over all tasks: heatmap, ranks, critical differences, Core against Full, costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jbench.report import alike, marks
from jbench.report import ranks as ranking_rules
from jbench.report.aggregate import Score
from jbench.report.figures import cost, ranks, style, tasks
from jbench.report.figures.plan import Absent, Plan, there

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jbench.report.figures.style import Table


def plans(scores: Sequence[Score], models: Sequence[str]) -> Iterator[Plan]:
    """The figures of each origin.

    Args:
        models: their order.
    """
    for origin in sorted({s.origin for s in scores}):
        mine = [s for s in scores if s.origin == origin]
        core = [s for s in mine if s.core]
        about = ', published scores' if origin == 'published' else ''
        for kind, words, make in (
            ('heatmap', 'Normalised scores of models on tasks', partial(_heatmap, mine)),
            ('ranks', 'Ranks of models over datasets of tasks, Core', partial(_box, core)),
            ('critical_difference', 'Mean ranks of models, Core', partial(_difference, core)),
            ('core_full', 'Mean ranks of models on Core and on Full', partial(_core_full, mine)),
            ('parameters', 'Score against parameters', partial(_cost, core, cost.PARAMETERS)),
            ('seconds', 'Score against training time', partial(_cost, core, cost.SECONDS)),
        ):
            title = marks.titled(words + about, marks.of_many(mine))
            stem = style.stem(kind, *([origin] if origin != 'own' else []))
            yield Plan(stem, kind, origin, '', '', title, partial(make, models, title))


def _heatmap(scores: Sequence[Score], models: Sequence[str], title: str) -> tuple[Figure, Table]:
    table = there(tasks.heat_rows(scores, models), 1, 'no normalised score')
    return tasks.heatmap(table, title=title), table


def _box(scores: Sequence[Score], models: Sequence[str], title: str) -> tuple[Figure, Table]:
    table = there(ranks.box_rows(ranking_rules.ranks(scores), models), 1, 'no dataset of a task has several models')
    return ranks.box(table, title=title), table


def _difference(scores: Sequence[Score], models: Sequence[str], title: str) -> tuple[Figure, Table]:
    found = alike.alike(scores, models)
    if found.reason:
        raise Absent(found.reason)
    table = ranks.difference_rows(found.models, found.mean_ranks, found.groups)
    return ranks.difference(
        table, test=found.test, alpha=found.alpha, n=found.n, n_models=found.n_models, title=title
    ), table


def _core_full(scores: Sequence[Score], models: Sequence[str], title: str) -> tuple[Figure, Table]:
    if all(s.core for s in scores):
        raise Absent('every dataset is a Core one')
    core, full = (
        {x.model: x.mean_rank for x in ranking_rules.standings(scores, full=f) if x.mean_rank} for f in (False, True)
    )
    table = there(ranks.core_rows(core, full, models), 1, 'no model has both ranks')
    words = ranks.agreement(ranking_rules.core_against_full(scores))
    return ranks.core_full(table, agreement=words, title=title), table


def _cost(scores: Sequence[Score], axis: cost.Axis, models: Sequence[str], title: str) -> tuple[Figure, Table]:
    why = f'no two models have normalised scores and {axis.column} on the same datasets'
    table = there(cost.rows(scores, models, axis), 2, why)
    return cost.cost(table, axis, title=title), table
