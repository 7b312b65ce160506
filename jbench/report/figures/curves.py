"""Learning curves: loss and validation score by epoch, the epoch that was kept, and where a run was resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jbench.report.figures import style
from jbench.report.figures.style import Table
from jbench.results import learnt
from jbench.spec.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def monitor(result: Mapping[str, Any]) -> str:
    """The score on the validation part that selected the epoch."""
    task = result['config']['task']
    published = task['recipe'].get('published') is True
    return (METRICS[task['metric']].monitor if published else '') or str(task['metric'])


def rows(model: str, result: Mapping[str, Any]) -> Table:
    """A row an epoch, counted from 1: `train_loss`, `monitor` (as figures show it), whether the epoch was kept, and how
    often the run was resumed there. Empty for what learns in no epochs.

    Args:
        model: how the figure calls it.
        result: as read; of results of schema 1 nobody knows when they were resumed.
    """
    metric = monitor(result)
    best, times = learnt.best_epoch(result, metric), style.factor(metric)
    return [
        {
            'model': model,
            'seed': result['seed'],
            'epoch': epoch['epoch'] + 1,
            'train_loss': epoch.get('train_loss'),
            'monitor': None if epoch.get('monitor') is None else epoch['monitor'] * times,
            'kept': k == best,
            'resumed': result.get('resumed_at', []).count(epoch['epoch']),
        }
        for k, epoch in enumerate(result['history'])
    ]


@style.styled
def curves(table: Table, *, title: str, metric: str) -> Figure:
    """Two axes with a line a model, in its colour and line style.

    Args:
        table: `rows` of several models.
        metric: of the validation part.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    figure = style.blank(style.WIDTH + 1.6, 5.2)
    top, bottom = figure.subplots(2, 1, sharex=True)
    models = list(dict.fromkeys((row['model'], row['seed']) for row in table))
    handles = []
    for model, seed in models:
        mine, look = [r for r in table if (r['model'], r['seed']) == (model, seed)], style.look(model)
        epochs = [row['epoch'] for row in mine]
        line: dict[str, Any] = {'color': look.colour, 'linestyle': look.line}
        for ax, column in ((top, 'train_loss'), (bottom, 'monitor')):
            y = [math.nan if row[column] is None else row[column] for row in mine]
            mark = '.' if len(mine) == 1 else ''
            ax.plot(epochs, y, **line, marker=mark, linewidth=1.2, label=f'_{model}')
            kept, again = ([k for k, r in enumerate(mine) if r[what]] for what in ('kept', 'resumed'))
            at = {'linestyle': '', 'color': look.colour}
            ax.plot([epochs[k] for k in kept], [y[k] for k in kept], **at, marker=look.marker, markersize=7)
            ax.plot([epochs[k] for k in again], [y[k] for k in again], **at, marker='|', markersize=14, mew=2)
        handles.append(Line2D([], [], **line, marker=look.marker))
    top.set_ylabel('training loss')
    bottom.set_ylabel(f'validation {style.score_axis(metric)}')
    bottom.set_xlabel('epoch')
    bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
    labels = [f'{style.name(m)}, seed {s}' for m, s in models]
    _legend(figure, handles, labels, ['o', *('|' if any(row['resumed'] for row in table) else '')])
    style.title(figure, title)
    return figure


def _legend(figure: Figure, lines: list[Any], labels: list[str], marks: Sequence[str]) -> None:
    """Models with the marker of the epoch that was kept, and what the marks mean."""
    from matplotlib.lines import Line2D

    words = {'o': 'epoch that was kept', '|': 'resumed'}
    black = [Line2D([], [], linestyle='', marker=mark, color='k', ms=9, mew=1.5) for mark in marks]
    style.legend(figure, [*lines, *black], [*labels, *(words[mark] for mark in marks)])
