"""Scores to draw, and what a figure shows, read back from its parts."""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from jbench.report.aggregate import Score

BASE = Score(
    device='eeg',
    category='bci',
    task='p3',
    version=2,
    dataset='Real',
    core=True,
    model='eegnet',
    title='eegnet',
    family='classic',
    origin='own',
    metric='bal_acc',
    better='higher',
    mean=0.7,
    sd=0.01,
    n_seeds=3,
    interval=(0.6, 0.8),
    n_subjects=3,
    chance=0.5,
    floor=0.5,
    normalised=0.4,
    per_subject={'S01': 0.6, 'S02': 0.7, 'S03': 0.8},
    seconds={'fit': 10.0},
    n_parameters=1458,
    suite=None,
    protocol='p3@2/Real, bal_acc',
    changes=(),
    metrics={},
    pretraining=(),
    seen_beside=False,
    date=None,
    paths=(),
)


def score(model: str, mean: float = 0.7, **changes: Any) -> Score:
    """A score whose normalised one goes with its mean."""
    shift = {name: value + mean - 0.7 for name, value in BASE.per_subject.items()}
    known = {'model': model, 'title': model, 'mean': mean, 'normalised': 2 * mean - 1, 'per_subject': shift}
    return BASE._replace(**{**known, 'interval': (mean - 0.1, mean + 0.1), **changes})


def table(models: dict[str, float], tasks: tuple[str, ...] = ('p3', 'age', 'sex')) -> list[Score]:
    """Each model on each task; later tasks are easier."""
    return [
        score(m, mean + 0.02 * k, task=t, dataset=f'Of_{t}', protocol=t)
        for k, t in enumerate(tasks)
        for m, mean in models.items()
    ]


def lines(figure: Figure, label: str) -> list[list[tuple[float, float]]]:
    """Points of all lines with a label."""
    found = [line for ax in figure.axes for line in ax.lines if line.get_label() == label]
    return [[(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)] for line in found]


def colours(figure: Figure, label: str) -> list[str]:
    """Colours of all lines with a label."""
    return [to_hex(line.get_color()) for ax in figure.axes for line in ax.lines if line.get_label() == label]


def cut(figure: Figure) -> list[str]:
    """Texts that lie beyond the edge of the figure; its title, where a legend lies over it."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    wide, high = canvas.get_width_height()
    ghosts = _beyond(figure)
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in ghosts:
            box = text.get_window_extent(canvas.get_renderer())
            if box.x0 < -1 or box.y0 < -1 or box.x1 > wide + 1 or box.y1 > high + 1:
                found.append(text.get_text())
    if (title := figure._suptitle) is not None:
        box = title.get_window_extent(canvas.get_renderer())
        legends = [legend.get_window_extent(canvas.get_renderer()) for legend in figure.legends]
        found += ['a legend over the title'] * any(box.overlaps(legend) for legend in legends)
    return found


def _beyond(figure: Figure) -> set[Text]:
    """Labels of ticks beyond the limits of their axis, or of an axis that is off: they are not drawn."""
    found = set()
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        there = axis._update_ticks() if axis.axes.axison else ()
        found |= {label for tick in ticks if tick not in there for label in (tick.label1, tick.label2)}
    return found


def words(figure: Figure) -> str:
    """All texts of a figure."""
    return '\n'.join(text.get_text() for text in figure.findobj(Text))
