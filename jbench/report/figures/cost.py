"""What a score costs: against parameters, and against training time, with the models that none beats in both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jbench.report.aggregate import Score
from jbench.report.figures import style
from jbench.report.figures.style import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Axis(NamedTuple):
    """What a cost is."""

    column: str
    label: str


PARAMETERS = Axis('parameters', 'parameters (geometric mean over tasks)')
SECONDS = Axis('seconds', 'training time (s; geometric mean over tasks, mean over seeds)')
LEAST = 0.5  # of the datasets that any model has: a model with fewer is left out


def cost_of(score: Score, axis: Axis) -> float | None:
    """What a score costs, above zero; None where nobody knows, or the model learns nothing."""
    cost = score.n_parameters if axis is PARAMETERS else score.seconds.get('fit')
    return float(cost) if cost and cost > 0 else None


def rows(scores: Sequence[Score], models: Sequence[str], axis: Axis) -> Table:
    """A row a model: mean normalised score and geometric mean of the cost, over the datasets of tasks that all of the
    models have; `front`: no other one is at least as good and as cheap.

    Models that have fewer than LEAST of the datasets are left out, so that they do not decide which these are. What
    looks at no signal is left out, too. Empty where no dataset is left.
    """
    cells: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
    for s in scores:
        cost = cost_of(s, axis)
        if cost is not None and s.normalised is not None and s.model not in style.PLAIN:
            cells.setdefault(s.model, {})[s.task, s.dataset] = (s.normalised, cost)
    every = set().union(*cells.values()) if cells else set()
    kept = {m: row for m, row in cells.items() if len(row) >= LEAST * len(every)}
    shared = set.intersection(*(set(row) for row in kept.values())) if kept else set()
    if not shared:
        return []
    means = {m: _means([kept[m][cell] for cell in sorted(shared)]) for m in models if m in kept}
    return [
        {'model': m, 'score': score, axis.column: cost, 'front': on_front(m, means), 'n_datasets': len(shared)}
        for m, (score, cost) in means.items()
    ]


def on_front(model: str, means: Mapping[str, tuple[float, float]]) -> bool:
    """Whether no other model is as good and as cheap, and one of both better."""
    score, cost = means[model]
    return not any(s >= score and c <= cost and (s, c) != (score, cost) for s, c in means.values())


def short(value: float) -> str:
    """A round number in few letters: 0.5, 20, 5k, 2M."""
    for unit, name in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if value >= unit:
            return f'{value / unit:g}{name}'
    return f'{value:g}'


def _means(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    scores, costs = np.array(values).T
    return float(scores.mean()), float(np.exp(np.log(costs).mean()))


@style.styled
def cost(table: Table, axis: Axis, *, title: str) -> Figure:
    """A mark a model; a line joins those of the Pareto front, whose names stand beside their marks.

    Args:
        table: of `rows`.
        axis: which of the two costs.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    figure = style.blank(style.WIDTH + 1.2, 4.2)
    ax = figure.subplots()
    front = sorted((row[axis.column], row['score']) for row in table if row['front'])
    (line,) = ax.plot(*zip(*front, strict=True), color='k', linewidth=1, drawstyle='steps-post', label='_front')
    handles = []
    for row in table:
        look, x = style.look(row['model']), row[axis.column]
        edge = {'markeredgecolor': 'k', 'mew': 1.2} if row['front'] else {'mew': 0}
        handles += ax.plot([x], [row['score']], look.marker, color=look.colour, ms=8, **edge, label='_' + row['model'])
    costs = [row[axis.column] for row in table]
    ax.set_xlim(min(costs) / 1.6, max(costs) * 1.6)
    ax.set(xscale='log', xlabel=axis.label, ylabel='mean normalised score (0: dummy or chance)')
    ax.margins(y=0.1)
    decades = math.log10(max(costs) / min(costs)) + 0.4
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3 else (1,), numticks=12))
    ax.xaxis.set_major_formatter(lambda value, place: short(value))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.axhline(0, color=style.GREY, linestyle='--', linewidth=1, label='_floor')
    style.legend(figure, [*handles, line], [*(style.name(row['model']) for row in table), 'Pareto front'])
    if axis is SECONDS:
        style.note(figure, 'Times are those of the machines that the results were made on.')
    n = table[0]['n_datasets']
    style.title(figure, f'{title}, {n} dataset{"s" * (n > 1)} of tasks')
    return figure
