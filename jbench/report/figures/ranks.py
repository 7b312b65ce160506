"""Ranks of models over tasks: box plot, critical-difference diagram, Core against Full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.report.figures import style
from jbench.report.figures.style import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def box_rows(ranks: Mapping[tuple[str, str, str], Mapping[str, float]], models: Sequence[str]) -> Table:
    """A row for each rank.

    Args:
        ranks: of each model, by (..., task, dataset); 1 is the best.
        models: their order.
    """
    return [
        {'model': model, 'task': cell[-2], 'dataset': cell[-1], 'rank': row[model]}
        for model in models
        for cell, row in sorted(ranks.items())
        if model in row
    ]


@style.styled
def box(table: Table, *, title: str) -> Figure:
    """A box a model (quartiles, median, whiskers to the last rank within 1.5 times its length), a dot a dataset, a
    diamond at the mean.

    Args:
        table: of `box_rows`.
    """
    from matplotlib.ticker import MaxNLocator

    from jbench.report.figures.tasks import spread

    models = list(dict.fromkeys(row['model'] for row in table))
    figure = style.blank(style.WIDTH, 1.4 + style.LINE * max(len(models), 3))
    ax = figure.subplots()
    for k, model in enumerate(models):
        ranks, colour = [row['rank'] for row in table if row['model'] == model], style.look(model).colour
        line = {'color': colour, 'linewidth': 1.2}
        ax.boxplot(
            [ranks],
            positions=[k],
            orientation='horizontal',
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            boxprops={'facecolor': colour, 'alpha': 0.35, 'edgecolor': colour},
            medianprops={'color': 'k', 'linewidth': 1.6},
            whiskerprops=line,
            capprops=line,
        )
        ax.plot(ranks, k + spread(len(ranks)), '.', color=colour, markeredgecolor='k', mew=0.3, ms=5, label='_ranks')
        ax.plot([float(np.mean(ranks))], [k], 'D', color='w', markeredgecolor='k', ms=5, label='_mean')
    ax.set_yticks(range(len(models)), [style.name(m) for m in models])
    ax.set_ylim(len(models) - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(0.5, max(row['rank'] for row in table) + 0.5)
    ax.set_xlabel('rank (1: best)')
    style.note(figure, 'Dot: a dataset of a task; diamond: their mean; box: quartiles and median.')
    style.title(figure, title)
    return figure


def difference_rows(models: Sequence[str], mean_ranks: Sequence[float], groups: Sequence[Sequence[int]]) -> Table:
    """A row a model, the best first, with the numbers of the groups that it belongs to.

    Args:
        models: in the order of their mean ranks.
        mean_ranks: of each.
        groups: places in that order which cannot be told apart.
    """
    return [
        {'model': m, 'mean_rank': r, 'groups': ' '.join(str(n + 1) for n, group in enumerate(groups) if k in group)}
        for k, (m, r) in enumerate(zip(models, mean_ranks, strict=True))
    ]


@style.styled
def difference(table: Table, *, test: str, alpha: float, n: int, n_models: int, title: str) -> Figure:
    """Critical-difference diagram (Demsar 2006): mean ranks on a line; models that share a bar, with a dot on it,
    cannot be told apart.

    Args:
        table: of `difference_rows`.
        test, alpha, n: how groups were found, over how many datasets.
        n_models: how many there are, those without enough datasets too.
    """
    from matplotlib.ticker import MaxNLocator

    groups = sorted({int(g) for row in table for g in row['groups'].split()})
    m, half = len(table), (len(table) + 1) // 2
    low, high = min(1.0, np.floor(table[0]['mean_rank'])), max(2.0, float(np.ceil(table[-1]['mean_rank'])))
    top, step = -0.6 * len(groups) - 0.7, 0.8
    figure = style.blank(style.WIDTH + 2.2, 1.8 + 0.17 * len(groups) + 0.27 * half)
    ax = figure.subplots()
    wide = high - low
    for k, row in enumerate(table):
        left, look = k < half, style.look(row['model'])
        y = top - step * (k if left else m - 1 - k)
        end = low - 0.04 * wide if left else high + 0.04 * wide
        ax.plot([row['mean_rank'], row['mean_rank'], end], [0, y, y], color='0.4', linewidth=0.8, label='_line')
        mark: dict[str, Any] = {'color': look.colour, 'mec': 'k', 'mew': 0.4, 'clip_on': False, 'zorder': 3}
        ax.plot([row['mean_rank']], [0], look.marker, **mark, label='_rank')
        words = f'{style.name(row["model"])}  {row["mean_rank"]:.2f}' if left else ''
        words = words or f'{row["mean_rank"]:.2f}  {style.name(row["model"])}'
        shift, side = (-4, 'right') if left else (4, 'left')
        place: dict[str, Any] = {'textcoords': 'offset points', 'ha': side, 'va': 'center', 'annotation_clip': False}
        ax.annotate(words, (end, y), (shift, 0), **place)
    for k, group in enumerate(groups):
        ranks = [row['mean_rank'] for row in table if str(group) in row['groups'].split()]
        y = -0.6 * (k + 1)
        ax.plot(ranks, [y] * len(ranks), color='k', linewidth=2.5, marker='o', ms=5, label='_bar')
    ax.set_xlim(low, high)
    ax.set_ylim(top - step * (half - 1) - 0.5, 0)
    ax.xaxis.tick_top()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_label_position('top')
    ax.set_xlabel('mean rank (1: best)')
    ax.spines[['left', 'bottom']].set_visible(False)
    ax.spines['top'].set_visible(True)
    ax.set_yticks([])
    told = 'Dots on a bar: models that cannot be told apart' if groups else 'All models are told apart'
    said = [words for words in (f'alpha = {alpha:g}', f'n = {n}') if words not in test]
    few = f' {m} of {n_models} models; the others have fewer than half of the datasets.' * (m < n_models)
    style.note(figure, f'{told}. {", ".join([test, *said])} (datasets; tasks on one count as one).{few}')
    style.title(figure, title)
    return figure


def core_rows(core: Mapping[str, float], full: Mapping[str, float], models: Sequence[str]) -> Table:
    """A row for each model that has both mean ranks."""
    return [{'model': m, 'core': core[m], 'full': full[m]} for m in models if m in core and m in full]


@style.styled
def core_full(table: Table, *, agreement: str, title: str) -> Figure:
    """Mean ranks on the Core datasets against those on all datasets; on the diagonal they are equal.

    Args:
        table: of `core_rows`.
        agreement: correlations, in words.
    """
    figure = style.blank(style.WIDTH, 4.6)
    ax = figure.subplots()
    values = [row[side] for row in table for side in ('core', 'full')]
    ends = [min(1.0, *values) - 0.3, max(values) + 0.3]
    ax.plot(ends, ends, color=style.GREY, linestyle='--', linewidth=1, label='_equal')
    handles = []
    for row in table:
        look = style.look(row['model'])
        handles += ax.plot([row['core']], [row['full']], look.marker, color=look.colour, ms=7, label='_' + row['model'])
    ax.set(xlabel='mean rank, Core (1: best)', ylabel='mean rank, Full (1: best)', xlim=ends, ylim=ends)
    ax.set_title(agreement, fontsize=8)
    style.legend(figure, handles, [style.name(row['model']) for row in table])
    style.title(figure, title)
    return figure


def agreement(found: Mapping[str, Any]) -> str:
    """Kendall's tau and Spearman's rho, in words; '' where not defined."""
    known = {'Kendall tau': found.get('kendall_tau'), 'Spearman rho': found.get('spearman_rho')}
    return ', '.join(f'{name} = {value:.2f}' for name, value in known.items() if value is not None)
