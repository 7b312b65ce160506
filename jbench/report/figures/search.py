"""Trials of a search: the validation score in their order, and by each field."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jbench.report.figures import style
from jbench.report.figures.style import Table
from jbench.spec.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3


class Look(NamedTuple):
    """What a picture of trials says beside them."""

    model: str  # whose colour it has
    title: str  # above
    metric: str  # of the validation part
    best: int | None  # the number of the best trial; None: all failed


@style.styled
def search(table: Table, *, fields: list[str], look: Look) -> Figure:
    """Axes of the trials in their order, then one a field.

    Args:
        table: rows with `trial, validation` and the fields; trial 0 changes none.
        fields: that were searched.
        look: what else is said.
    """
    n = 1 + len(fields)
    figure = style.blank(style.WIDTH + 2, 2.8 * -(-n // COLUMNS) + 0.8)
    colour, times = style.look(look.model).colour, style.factor(look.metric)
    known = [row for row in table if row['validation'] is not None]
    for k, field in enumerate(['trial', *fields]):
        ax = figure.add_subplot(-(-n // COLUMNS), min(n, COLUMNS), k + 1)
        rows = [row for row in known if row[field] is not None]
        words = any(not isinstance(row[field], int | float) or isinstance(row[field], bool) for row in rows)
        x = [str(row[field]) if words else row[field] for row in rows]
        y = [row['validation'] * times for row in rows]
        ax.plot(x, y, linestyle='', marker='o', markersize=4, color=colour)
        mine = [i for i, row in enumerate(rows) if row['trial'] == look.best]
        ax.plot(
            [x[i] for i in mine], [y[i] for i in mine], linestyle='', marker='o', markersize=10, mfc='none', mec='k'
        )
        if field == 'trial':
            ax.plot(x, _course(y, METRICS[look.metric].better == 'higher'), color=style.GREY, linewidth=1)
        elif not words and _wide([row[field] for row in rows]):
            ax.set_xscale('log')
        ax.set_xlabel(field)
        if k % COLUMNS == 0:
            ax.set_ylabel(f'validation {style.score_axis(look.metric)}')
    style.title(figure, look.title)
    style.note(figure, 'ring: the best; line: the best so far; trial 0: nothing changed')
    return figure


def _wide(numbers: list[float]) -> bool:
    """Whether numbers span decades."""
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) > 10


def _course(values: list[float], higher: bool) -> list[float]:
    """The best up to each value."""
    return [(max if higher else min)(values[: k + 1]) for k in range(len(values))]
