"""Scores: bars of the models of a task, subjects of two models, models by tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.report.aggregate import Score
from jbench.report.figures import style
from jbench.report.figures.style import Table
from jbench.spec.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bar_rows(scores: Sequence[Score], models: Sequence[str]) -> Table:
    """A row for each model (`of` 'mean'), each of its subjects, and chance, as figures show them.

    Args:
        scores: of one protocol.
        models: their order.
    """
    times = style.factor(scores[0].metric)
    found: Table = []

    def add(model: str, of: str, subject: str, values: Sequence[float | None], n_seeds: int | None) -> None:
        score, low, high = (None if v is None else v * times for v in values)
        row = {'model': model, 'of': of, 'subject': subject, 'score': score, 'low': low, 'high': high}
        found.append({**row, 'n_seeds': n_seeds})

    for score in sorted(scores, key=lambda s: models.index(s.model)):
        add(score.model, 'mean', '', (score.mean, *(score.interval or (None, None))), score.n_seeds)
        for subject, value in sorted(score.per_subject.items()):
            add(score.model, 'subject', subject, (value, None, None), score.n_seeds)
    chance = next((s.chance for s in scores if s.chance is not None), None)
    if chance is not None:
        add('', 'chance', '', (chance, None, None), None)
    return found


@style.styled
def bars(table: Table, *, title: str, metric: str) -> Figure:
    """A bar a model with its 95 % interval, a dot a subject, a line at chance.

    Args:
        table: of `bar_rows`.
    """
    means = [row for row in table if row['of'] == 'mean']
    n = len(means)
    figure = style.blank(style.WIDTH, 1.5 + style.LINE * max(n, 3))
    ax = figure.subplots()
    for k, row in enumerate(means):
        look = style.look(row['model'])
        ax.barh(k, row['score'], 0.7, color=look.colour, alpha=0.55, label='_bar')
        if row['low'] is not None:
            ax.plot([row['low'], row['high']], [k, k], color='k', linewidth=1.4, label='_interval')
        each = [r['score'] for r in table if r['of'] == 'subject' and r['model'] == row['model']]
        if each:
            dot: dict[str, Any] = {'color': look.colour, 'markeredgecolor': 'k', 'mew': 0.4, 'ms': 6}
            ax.plot(each, k + spread(len(each)), '.', **dot, label='_subjects')
    handles, labels = _bar_legend(table)
    for row in table:
        if row['of'] == 'chance':
            handles.append(ax.axvline(row['score'], color='k', linestyle='--', linewidth=1, label='_chance'))
            labels.append(f'chance ({row["score"]:.3g})')
    ax.set_yticks(range(n), [style.name(row['model']) for row in means])
    ax.set_ylim(n - 0.4, -0.6)
    seeds = sorted({row['n_seeds'] for row in means})
    several = f'mean over {seeds[0]} seeds' if len(seeds) == 1 else f'means over {seeds[0]} to {seeds[-1]} seeds'
    ax.set_xlabel(style.score_axis(metric) + f'; {several}' * (seeds[-1] > 1))
    figure.legend(handles, labels, loc='outside lower center', ncols=4, fontsize=8)
    style.title(figure, title)
    return figure


def _bar_legend(table: Table) -> tuple[list[Any], list[str]]:
    """What marks mean, of those that are there."""
    from matplotlib.lines import Line2D

    found: list[tuple[Any, str]] = []
    if any(row['low'] is not None for row in table):
        found.append((Line2D([], [], color='k', linewidth=1.4), '95 % interval over subjects'))
    if any(row['of'] == 'subject' for row in table):
        found.append((Line2D([], [], color='0.7', markeredgecolor='k', mew=0.4, ls='', marker='.', ms=7), 'a subject'))
    return [handle for handle, _ in found], [label for _, label in found]


def spread(n: int) -> np.ndarray:
    """Places of n dots across a bar, so that equal ones are seen: the same each time."""
    golden = (np.sqrt(5) - 1) / 2
    return ((np.arange(n) + 0.5) * golden % 1 - 0.5) * 0.5


def pair_rows(a: Score, b: Score) -> Table:
    """A row a subject that both models have, as figures show scores."""
    times = style.factor(a.metric)
    return [
        {'subject': subject, a.model: value * times, b.model: b.per_subject[subject] * times}
        for subject, value in sorted(a.per_subject.items())
        if subject in b.per_subject
    ]


@style.styled
def pair(table: Table, *, title: str, metric: str) -> Figure:
    """A line a subject from the score of one model to that of the other; the thick one joins their means.

    Args:
        table: of `pair_rows`: the columns behind the first are the models.
    """
    _, a, b = table[0]
    figure = style.blank(4.6, 4.4)
    ax = figure.subplots()
    sign, up = (1 if METRICS[metric].better == 'higher' else -1), 0
    for row in table:
        better, other = (row[m] * sign for m in (a, b))
        up += better > other
        colour = style.GREY if better == other else style.look(a if better > other else b).colour
        ax.plot([0, 1], [row[a], row[b]], color=colour, linewidth=1, alpha=0.8, marker='o', ms=4, label='_subject')
    means = [float(np.mean([row[m] for row in table])) for m in (a, b)]
    ax.plot([0, 1], means, color='k', linewidth=2.6, marker='D', ms=6, label='_mean')
    for x, mean, side in ((0, means[0], 'right'), (1, means[1], 'left')):
        shift = -9 if side == 'right' else 9
        ax.annotate(f'{mean:.3g}', (x, mean), (shift, 0), textcoords='offset points', ha=side, va='center')
    ax.set_xlim(-0.35, 1.35)
    ax.set_xticks([0, 1], [style.name(a), style.name(b)])
    ax.set_ylabel(style.score_axis(metric))
    ties = sum(row[a] == row[b] for row in table)
    words = f'{style.name(a)} is better in {up} of {len(table)} subjects' + f', {ties} alike' * bool(ties)
    style.note(figure, f'{words}; black: means.')
    style.title(figure, title)
    return figure


def heat_rows(scores: Sequence[Score], models: Sequence[str]) -> Table:
    """A row for each normalised score that is there: a model on a dataset of a task."""
    there = [s for s in scores if s.normalised is not None]
    place = {model: k for k, model in enumerate(models)}
    return [
        {
            **{'model': s.model, 'category': s.category, 'task': s.task, 'dataset': s.dataset},
            'normalised': s.normalised,
        }
        for s in sorted(there, key=lambda s: (place[s.model], s.category, s.task, s.dataset))
    ]


@style.styled
def heatmap(table: Table, *, title: str) -> Figure:
    """Models by tasks; colours end at 0 and 1, numbers do not. What is missing is grey.

    Args:
        table: of `heat_rows`, in the order of the models.
    """
    from matplotlib import colormaps

    models, several = list(dict.fromkeys(row['model'] for row in table)), _several(table)
    columns = list(dict.fromkeys((row['task'], row['dataset']) for row in sorted(table, key=_column)))
    grid = np.full((len(models), len(columns)), np.nan)
    for row in table:
        grid[models.index(row['model']), columns.index((row['task'], row['dataset']))] = row['normalised']
    figure = style.blank(max(style.WIDTH, 3 + 0.42 * len(columns)), 2.4 + style.LINE * max(len(models), 5))
    ax = figure.subplots()
    colours = colormaps[style.MAP].with_extremes(bad='0.85')
    image = ax.imshow(np.ma.masked_invalid(grid), cmap=colours, vmin=0, vmax=1, aspect='auto', interpolation='none')
    for k, line in enumerate(grid):
        for j, value in enumerate(line):
            dark = not np.isnan(value) and value < 0.6
            text = '–' if np.isnan(value) else f'{value:.2f}'.replace('-0.00', '0.00')
            ax.text(j, k, text, ha='center', va='center', fontsize=6.5, color='w' if dark else 'k')
    ax.set_yticks(range(len(models)), [style.name(m) for m in models])
    labels = [style.name(f'{task}, {dataset}' if several else task) for task, dataset in columns]
    ax.set_xticks(range(len(columns)), labels, rotation=50, ha='right', rotation_mode='anchor')
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    figure.colorbar(image, ax=ax, label='normalised score\n(0: dummy or chance, 1: perfect)', extend='min', shrink=0.9)
    style.title(figure, title)
    return figure


def _several(table: Table) -> bool:
    """Whether any task has several datasets."""
    return len({(r['task'], r['dataset']) for r in table}) > len({r['task'] for r in table})


def _column(row: dict[str, Any]) -> tuple[str, str, str]:
    return row['category'], row['task'], row['dataset']
