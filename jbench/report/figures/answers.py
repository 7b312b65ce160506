"""Answers of one result against what was to be answered: confusion, calibration, values, retrieval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.metrics import retrieval
from jbench.report.figures import style
from jbench.report.figures.style import Table
from jbench.report.statistics.calibration import BINS, Bins
from jbench.targets import score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 2000  # answers that are drawn one by one
RANKS = 40  # bins of ranks, at most
NUMBERS = 12  # classes up to which each cell of a confusion matrix has its number


def units(result: Mapping[str, Any], predictions: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and targets at the level of the headline: of windows, or averaged over recordings or subjects."""
    kind, level = result['config']['task']['target']['kind'], result['headline'].get('level', 'window')
    outputs, y, _ = score.pooled(kind, predictions, level)
    return outputs, y


def confusion_rows(outputs: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Table:
    """A row for each pair of a true and an answered class: how many, and the share of the true class (in per cent; None
    for a class that does not occur).

    Args:
        outputs: [N, K].
        y: int [N].
        names: of the K.
    """
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (y, outputs.argmax(1)), 1)
    totals = counts.sum(1)
    return [
        {
            **{'true': names[t], 'answer': names[a], 'n': int(counts[t, a])},
            'share': float(100 * counts[t, a] / totals[t]) if totals[t] else None,
        }
        for t in range(len(names))
        for a in range(len(names))
    ]


@style.styled
def confusion(table: Table, *, what: str, title: str) -> Figure:
    """Shares of each true class: a row sums to 100 %.

    Args:
        table: of `confusion_rows`.
        what: is counted: 'windows'.
    """
    from matplotlib import colormaps

    k = round(len(table) ** 0.5)
    names = [style.name(row['answer']) for row in table[:k]]
    shares = np.array([np.nan if row['share'] is None else row['share'] for row in table]).reshape(k, k)
    side = min(2.2 + 0.45 * k, 11)
    figure = style.blank(max(side + 1.6, 4.6), max(side, 3.6))
    ax = figure.subplots()
    colours = colormaps[style.MAP].with_extremes(bad='0.85')
    image = ax.imshow(np.ma.masked_invalid(shares), cmap=colours, vmin=0, vmax=100, interpolation='none')
    if k <= NUMBERS:
        for n, row in enumerate(table):
            words = '–' if row['share'] is None else f'{row["share"]:.0f} %\n{row["n"]}'
            light = row['share'] is None or row['share'] > 60
            ax.text(n % k, n // k, words, ha='center', va='center', fontsize=7, color='k' if light else 'w')
    turned = sum(map(len, names)) > 24
    font = 9 if k <= 24 else 6
    ax.set_xticks(range(k), names, rotation=50 * turned, ha='right' if turned else 'center', rotation_mode='anchor')
    ax.set_yticks(range(k), names)
    ax.tick_params(length=0, labelsize=font)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=f'answer ({what})', ylabel='true class')
    figure.colorbar(image, ax=ax, label='share of the true class (%)')
    style.title(figure, title)
    return figure


def reliability_rows(bins: Bins) -> Table:
    """A row a bin that has answers: its ends, how many, the mean probability that the answered class was given, and the
    share that is right, as fractions.

    Args:
        bins: of equal width, BINS between 0 and 1.
    """
    return [
        {
            **{'low': max(0, math.ceil(told * BINS) - 1) / BINS, 'high': max(1, math.ceil(told * BINS)) / BINS},
            'n': n,
            'told': told,
            'right': right,
        }
        for told, right, n in zip(bins.confidence, bins.accuracy, bins.counts, strict=True)
    ]


@style.styled
def reliability(table: Table, *, error: float, look: tuple[str, str], title: str) -> Figure:
    """Share of right answers against the probability that they were given, and how many there are. On the diagonal a
    model is calibrated; below it is too sure.

    Args:
        table: of `reliability_rows`.
        error: expected calibration error.
        look: model, and what is counted: 'windows'.
    """
    figure, (model, what) = style.blank(4.8, 5.2), look
    colour, marker, _ = style.look(model)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    (even,) = top.plot([0, 1], [0, 1], color=style.GREY, linestyle='--', linewidth=1, label='_diagonal')
    x, y = [row['told'] for row in table], [row['right'] for row in table]
    (line,) = top.plot(x, y, color=colour, marker=marker, linewidth=1.4, label='_model')
    bottom.bar([row['low'] for row in table], [row['n'] for row in table], 1 / BINS, align='edge', color=colour)
    for patch in bottom.patches:
        patch.set(edgecolor='w', linewidth=0.8)
    top.set(ylabel='share of right answers', ylim=(-0.03, 1.03), xlim=(0, 1))
    top.legend([line, even], [style.name(model), 'calibrated'], loc='upper left', fontsize=8)
    top.set_title(f'expected calibration error {error:.3f} ({BINS} bins of equal width)', fontsize=8)
    bottom.set(xlabel='probability of the answered class', ylabel=what)
    style.title(figure, title)
    return figure


def value_rows(outputs: np.ndarray, y: np.ndarray) -> Table:
    """A row an answer: what was true, what was answered; of more than POINTS every so many."""
    rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), POINTS)).round().astype(int))
    order = np.argsort(y[:, 0], kind='stable')[rows]  # spread over the values
    return [{'true': float(t), 'answer': float(a)} for t, a in zip(y[order, 0], outputs[order, 0], strict=True)]


@style.styled
def values(table: Table, *, model: str, caption: str, title: str) -> Figure:
    """Answers against true values; on the dashed line they are right.

    Args:
        table: of `value_rows`.
        caption: scores, and how many are drawn.
    """
    figure, look = style.blank(5.6, 4.6), style.look(model)
    ax = figure.subplots()
    true, answer = ([row[side] for row in table] for side in ('true', 'answer'))
    ends = [min(true), max(true)]
    few = len(table) <= 200
    alpha = min(1.0, max(0.25, 150 / len(table)))
    dot: dict[str, Any] = {'color': look.colour, 'alpha': alpha, 'ms': 9 if few else 5, 'mew': 0}
    (dots,) = ax.plot(true, answer, '.', **dot, label='_answers')
    (line,) = ax.plot(ends, ends, color='k', linestyle='--', linewidth=1, label='_right')
    mean = ax.axhline(float(np.mean(true)), color=style.GREY, linestyle=':', linewidth=1, label='_mean')
    ax.set(xlabel='true value', ylabel='answer')
    ax.set_title(caption, fontsize=8)
    labels = [style.name(model), 'right answer', 'mean of the true values']
    figure.legend([dots, line, mean], labels, loc='outside lower center', ncols=2, fontsize=8)
    style.title(figure, title)
    return figure


def rank_rows(predictions: Mapping[str, np.ndarray]) -> Table:
    """A row a bin of ranks (1: the best of the candidates), of each window by itself: its first and last rank, how many
    windows, and how many there would be by chance. Ties share a rank, which is rounded up.

    Args:
        predictions: as results hold them.
    """
    number = np.unique(predictions['group'], return_inverse=True)[1]
    candidates = retrieval.means(predictions['vectors'][predictions['y']], number)
    ranks = np.ceil(retrieval.ranks(predictions['outputs'], candidates, number) + 1)
    n, wide = len(candidates), max(1, -(-len(candidates) // RANKS))
    found: Table = []
    for first in range(1, n + 1, wide):
        last = min(first + wide - 1, n)
        here = int(((ranks >= first) & (ranks <= last)).sum())
        found.append({'first': first, 'last': last, 'n': here, 'chance': len(ranks) * (last - first + 1) / n})
    return found


@style.styled
def ranks(table: Table, *, model: str, caption: str, title: str) -> Figure:
    """How often the right stimulus had each rank, with the line of chance.

    Args:
        table: of `rank_rows`.
        caption: scores.
    """
    figure, look = style.blank(style.WIDTH, 3.6), style.look(model)
    ax = figure.subplots()
    edges = [*(row['first'] - 0.5 for row in table), table[-1]['last'] + 0.5]
    wide = np.diff(edges)
    bars = ax.bar(edges[:-1], [row['n'] for row in table], wide, align='edge', color=look.colour, alpha=0.8)
    for patch in bars:
        patch.set(edgecolor='w', linewidth=0.5)
    line = ax.stairs([row['chance'] for row in table], edges, color='k', linestyle='--', baseline=None)
    hit = ax.axvline(retrieval.K + 0.5, color=style.GREY, linestyle=':', label='_hit')
    ax.set(xlim=(edges[0], edges[-1]), ylabel='windows')
    ax.set_xlabel(f'rank of the right stimulus among {table[-1]["last"]} (1: best)')
    ax.set_title(caption, fontsize=8)
    labels = [style.name(model), 'chance', f'last of the best {retrieval.K}']
    handles: list[Any] = [bars, line, hit]
    figure.legend(handles, labels, loc='outside lower center', ncols=2, fontsize=8)
    style.title(figure, title)
    return figure
