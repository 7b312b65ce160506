"""Models beside brains: scores and their ceilings, nodes of the tree, neuroids, time courses, dissimilarities, shape
and texture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.report.figures import style
from jbench.report.figures.style import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = np.linspace(-1, 1, 41)


@style.styled
def scores(table: Table, *, title: str) -> Figure:
    """A bar a model: the raw score with its error, and the ceiling as a line over all bars.

    Args:
        table: rows {model, raw, raw_error, ceiling (None: none), score}.
    """
    figure = style.blank(style.WIDTH, 1.5 + style.LINE * max(len(table), 3))
    ax = figure.subplots()
    for k, row in enumerate(table):
        ax.barh(k, row['raw'], 0.7, color=style.look(row['model']).colour, alpha=0.55)
        if row['raw_error'] is not None:
            ends = [row['raw'] - row['raw_error'], row['raw'] + row['raw_error']]
            ax.plot(ends, [k, k], color='k', linewidth=1.4)
        if row['ceiling'] is not None:
            ax.plot([row['ceiling']] * 2, [k - 0.5, k + 0.5], color=style.GREY, linewidth=1.6)
        ax.text(max(row['raw'] + (row['raw_error'] or 0), 0), k, f' {row["score"]:.3f}', va='center', fontsize=7)
    ax.set_yticks(range(len(table)), [style.name(row['model']) for row in table])
    ax.set_ylim(len(table) - 0.4, -0.6)
    ax.set_xlabel('raw score')
    ceiled = any(row['ceiling'] is not None for row in table)
    line = 'Line across: ceiling. ' if ceiled else 'No ceiling. '
    style.note(figure, f'{line}Black: error of the raw score. Number: score{" beside the ceiling" if ceiled else ""}.')
    style.title(figure, title)
    return figure


@style.styled
def grid(table: Table, *, title: str, rows: str, columns: str) -> Figure:
    """Values as colours with their numbers: models by nodes of the tree, layers by regions.

    Args:
        table: rows {row, column, value (None: empty)}.
        rows: what the rows are, in words; so are `columns`.
    """
    down = list(dict.fromkeys(r['row'] for r in table))
    across = list(dict.fromkeys(r['column'] for r in table))
    values = np.full((len(down), len(across)), np.nan)
    for r in table:
        if r['value'] is not None:
            values[down.index(r['row']), across.index(r['column'])] = r['value']
    figure = style.blank(style.WIDTH + 0.3 * max(len(across) - 8, 0), 1.8 + style.LINE * max(len(down), 3))
    ax = figure.subplots()
    image = ax.imshow(values, cmap=style.MAP, aspect='auto')
    middle = float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
    for k, j in np.argwhere(np.isfinite(values)):
        colour = 'w' if values[k, j] < middle else 'k'
        ax.text(j, k, f'{values[k, j]:.2f}', ha='center', va='center', fontsize=7, color=colour)
    ax.set_yticks(range(len(down)), [style.name(name) for name in down])
    ax.set_xticks(range(len(across)), [style.name(name) for name in across], rotation=45, ha='right')
    ax.set_ylabel(rows)
    ax.set_xlabel(columns)
    figure.colorbar(image, ax=ax, label='score')
    style.title(figure, title)
    return figure


@style.styled
def neuroids(table: Table, *, title: str) -> Figure:
    """How many neuroids have which score, a line a model.

    Args:
        table: rows {model, neuroid, value}.
    """
    models = list(dict.fromkeys(row['model'] for row in table))
    figure = style.blank(style.WIDTH, 3.2)
    ax = figure.subplots()
    for model in models:
        values = np.array([row['value'] for row in table if row['model'] == model], float)
        counts, _ = np.histogram(values[np.isfinite(values)], BINS)
        look = style.look(model)
        line: dict[str, Any] = {'color': look.colour, 'linestyle': look.line, 'linewidth': 1.4}
        ax.stairs(counts, BINS, label=style.name(model), **line)
        ax.axvline(float(np.nanmedian(values)), color=look.colour, linewidth=1, linestyle=':')
    ax.set_xlabel('score of a neuroid, mean over splits')
    ax.set_ylabel('neuroids')
    style.legend(figure, *ax.get_legend_handles_labels())
    style.note(figure, 'Dotted: median.')
    style.title(figure, title)
    return figure


@style.styled
def over_time(table: Table, *, title: str, label: str) -> Figure:
    """A score over time, a line a model, its error as a band.

    Args:
        table: rows {model, start, end (ms), value, error}.
        label: of the axis of values.
    """
    figure = style.blank(style.WIDTH, 3.2)
    ax = figure.subplots()
    for model in dict.fromkeys(row['model'] for row in table):
        mine = [row for row in table if row['model'] == model]
        at = np.array([(row['start'] + row['end']) / 2 for row in mine])
        value = np.array([row['value'] for row in mine], float)
        error = np.array([row['error'] or 0 for row in mine], float)
        look = style.look(model)
        line: dict[str, Any] = {'color': look.colour, 'linestyle': look.line, 'marker': look.marker}
        ax.plot(at, value, markersize=3, label=style.name(model), **line)
        ax.fill_between(at, value - error, value + error, color=look.colour, alpha=0.2, linewidth=0)
    ax.axhline(0, color=style.GREY, linewidth=0.8)
    ax.set_xlabel('ms after the stimulus, middle of the bin')
    ax.set_ylabel(label)
    style.legend(figure, *ax.get_legend_handles_labels())
    style.title(figure, title)
    return figure


def rdm_rows(matrices: Sequence[tuple[str, np.ndarray]]) -> Table:
    """A row a pair of stimuli of each matrix: {of, first, second, value}."""
    return [
        {'of': name, 'first': int(i), 'second': int(j), 'value': float(matrix[i, j])}
        for name, matrix in matrices
        for i, j in np.argwhere(np.triu(np.ones(matrix.shape, bool), 1))
    ]


@style.styled
def rdms(matrices: Sequence[tuple[str, np.ndarray]], *, title: str) -> Figure:
    """Dissimilarities side by side, each scaled by its own ranks.

    Args:
        matrices: what of, and [stimulus, stimulus].
    """
    figure = style.blank(1.0 + 2.9 * len(matrices), 3.4)
    axes = np.atleast_1d(figure.subplots(1, len(matrices)))
    for ax, (name, matrix) in zip(axes, matrices, strict=True):
        upper = np.triu_indices(len(matrix), 1)
        _, place, counts = np.unique(matrix[upper], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts + 1) / 2)[place]  # equal ones share a rank
        shown = np.zeros(matrix.shape)
        shown[upper] = ranks / max(len(ranks) - 1, 1)
        ax.imshow(shown + shown.T, cmap=style.MAP, vmin=0, vmax=1)
        ax.set_title(style.name(name))
        ax.set_xlabel('stimulus')
    axes[0].set_ylabel('stimulus')
    style.note(figure, 'Ranks of dissimilarities: dark alike, bright different.')
    style.title(figure, title)
    return figure


@style.styled
def shape_bias(table: Table, *, title: str) -> Figure:
    """Share of answers by shape among those by shape or texture: a row a category, a mark a model, a line at the mean.

    Args:
        table: rows {model, category, value (None: no such answer), answers}.
    """
    categories = list(dict.fromkeys(row['category'] for row in table))
    figure = style.blank(style.WIDTH, 1.6 + style.LINE * len(categories))
    ax = figure.subplots()
    for model in dict.fromkeys(row['model'] for row in table):
        mine = [row for row in table if row['model'] == model and row['value'] is not None]
        look = style.look(model)
        at = [categories.index(row['category']) for row in mine]
        ax.plot([r['value'] for r in mine], at, look.marker, color=look.colour, label=style.name(model))
        weights = np.array([r['answers'] for r in mine], float)
        if weights.sum():
            mean = float(np.average([r['value'] for r in mine], weights=weights))
            ax.axvline(mean, color=look.colour, linewidth=1, linestyle=':')
    ax.set_yticks(range(len(categories)), [style.name(c) for c in categories])
    ax.set_ylim(len(categories) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel('answers by shape (1) or by texture (0)')
    style.legend(figure, *ax.get_legend_handles_labels())
    style.note(figure, 'Dotted: all categories together.')
    style.title(figure, title)
    return figure


def shape_rows(model: str, choice: Iterable[Any], shape: Iterable[Any], texture: Iterable[Any]) -> Table:
    """A row a category of shape: the share of its answers by shape, of images whose texture is another's."""
    found: Table = []
    answers = list(zip(map(str, choice), map(str, shape), map(str, texture), strict=True))
    for category in sorted({s for _, s, _ in answers}):
        mine = [(c, t) for c, s, t in answers if s == category and t != s]
        by_shape = sum(c == category for c, _ in mine)
        n = by_shape + sum(c == t for c, t in mine)
        found.append({'model': model, 'category': category, 'value': by_shape / n if n else None, 'answers': n})
    return found
