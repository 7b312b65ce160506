"""A curve for each network: its score by the share of channels that fail in the test."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.report import robustness
from jbench.report.figures import style
from jbench.report.figures.style import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@style.styled
def draw(table: Table, title: str) -> Figure:
    """Points with the interval over test subjects, joined for each network; dotted: chance.

    Args:
        table: rows of `robustness.means`, of one task on one dataset.
        title: above.
    """
    figure, factor = style.blank(style.WIDTH, 3.8), style.factor(table[0]['metric'])
    ax, width, beside = figure.subplots(), 0.004, robustness.keys(table)
    for k, key in enumerate(names := list(dict.fromkeys((row['model'], row['key']) for row in table))):
        rows = sorted((r for r in table if (r['model'], r['key']) == key), key=lambda r: r['share'])
        x = [100 * (row['share'] + width * (k - (len(names) - 1) / 2)) for row in rows]
        y, low, high = ([math.nan if r[c] is None else factor * r[c] for r in rows] for c in ('score', 'low', 'high'))
        look = style.look(key[0])
        label = style.name(key[0]) + beside[key]
        line: dict[str, Any] = {'color': look.colour, 'linestyle': look.line, 'marker': look.marker}
        ax.plot(x, y, **line, linewidth=1.4, markersize=4, label=label)
        ax.vlines(x, low, high, color=look.colour, linewidth=1.2)
    if table[0]['chance'] is not None:
        ax.axhline(factor * table[0]['chance'], color=style.GREY, linestyle=':', linewidth=1)
    ax.set_xlabel('channels of each test window that fail (%)')
    ax.set_ylabel(style.score_axis(table[0]['metric']))
    style.title(figure, title)
    style.legend(figure, *ax.get_legend_handles_labels())
    style.note(figure, 'bars: 95 % interval over test subjects; of several seeds their means; dotted: chance')
    return figure


def write(table: Table, home: Path, title: str) -> list[Path]:
    """`robustness.png`, `.svg`, and `.csv` with what is drawn, in a folder; the paths."""
    return style.save(draw(table, title), table, home / 'robustness')
