"""Curves of the finders: loss by learning rate, memory and speed by batch size."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.report.figures import style
from jbench.report.figures.style import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@style.styled
def find_lr(table: Table, *, model: str, title: str, value: float | None) -> Figure:
    """The loss of each step and its smoothed course by the rate.

    Args:
        table: rows with `rate, loss, smoothed`.
        model: whose colour it has.
        title: above.
        value: that was found; None: none.
    """
    figure = style.blank(style.WIDTH, 3.6)
    ax, look = figure.subplots(), style.look(model)
    rates = [row['rate'] for row in table]
    ax.plot(rates, [row['loss'] for row in table], linestyle='', marker='.', markersize=3, color=style.GREY)
    ax.plot(rates, [row['smoothed'] for row in table], color=look.colour, linewidth=1.6)
    ax.set_xscale('log')
    ax.set_xlabel('learning rate')
    ax.set_ylabel('training loss')
    if table:
        means = [row['smoothed'] for row in table]
        ax.set_ylim(min(means) - 0.1 * (means[0] - min(means)) - 1e-3, means[0] + 1.5 * (means[0] - min(means)) + 1e-2)
    _mark(ax, value, 'nothing found' if value is None else f'{value:.2g}')
    style.title(figure, title)
    style.note(figure, 'dots: batches; line: smoothed over the rate')
    return figure


@style.styled
def find_batch(table: Table, *, model: str, title: str, value: float | None) -> Figure:
    """Memory of a step, and windows a second, by batch size.

    Args:
        table: rows with `batch_size, megabytes, free_megabytes, windows_per_second`.
        model, title, value: as of `find_lr`.
    """
    figure = style.blank(style.WIDTH, 4.8)
    (top, bottom), look = figure.subplots(2, 1, sharex=True), style.look(model)
    sizes = [row['batch_size'] for row in table]
    line = {'color': look.colour, 'marker': look.marker, 'linewidth': 1.4, 'markersize': 4}
    top.plot(sizes, [row['megabytes'] for row in table], **line)
    top.axhline(table[0]['free_megabytes'], color=style.GREY, linestyle='--', linewidth=1)
    top.set_yscale('log')
    top.set_ylabel('MB of a step')
    speeds = [row['windows_per_second'] for row in table]
    bottom.plot(sizes, [math.nan if v is None else v for v in speeds], **line)
    bottom.set_ylabel('windows a second')
    bottom.set_ylim(bottom=0)
    bottom.set_xscale('log', base=2)
    bottom.set_xticks(sizes, [str(n) for n in sizes])
    bottom.set_xlabel('batch size')
    for ax in (top, bottom):
        _mark(ax, value, 'nothing found' if value is None else f'{value:g}')
    style.title(figure, title)
    style.note(figure, 'dashed: the memory that was free')
    return figure


def _mark(ax: Axes, value: float | None, words: str) -> None:
    """A line where the value is, and its words beside the axes."""
    if value is not None:
        ax.axvline(value, color='k', linewidth=0.8)
    ax.set_title(words, loc='right', fontsize=9)


def write(name: str, table: Table, home: Path, *, model: str, title: str, value: float | None) -> list[Path]:
    """The picture of a finder, as PNG and SVG, and its curve as CSV, in the folder `home`; the paths."""
    draw = {'find_lr': find_lr, 'find_batch': find_batch}[name]
    return style.save(draw(table, model=model, title=title, value=value), table, home / name)
