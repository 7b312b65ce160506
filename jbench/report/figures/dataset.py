"""A page of what a task sees of a dataset: averages of classes, spectra, amplitudes, and where classes differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jbench.report.figures import head, style
from jbench.report.figures.style import Table
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from jbench.data.load.prepared_set import PreparedSet
    from jbench.report.dataset.figures import Classed

HEADS = 4  # classes that get one
NAMED = 40  # channels up to which amplitudes have their names
RANGE = (10, 50, 90)  # percentiles over windows


class Seen(NamedTuple):
    """What a page is drawn from."""

    averages: tuple[Classed, ...]  # of windows where responses follow onsets; of spectra
    amplitude: Table
    amplitude_unit: str
    topography: Table
    at: str  # of the topography, in words: '0.32 s'
    unit: str  # of the topography
    which: str  # windows


def opened(result: Mapping[str, Any], path: str) -> tuple[Cell, PreparedSet]:
    """The cell of a result, and the prepared set that it was made from, in the work folder in which it lies.

    Raises: RequestError where that set is not there, or another one.
    """
    from jbench.data.load import prepared_set
    from jbench.data.prepare import build_set

    cell = from_json(Cell, result['config'], 'config')
    above = Path(path).absolute().parents
    results = next((folder for folder in above if folder.name == 'results'), None)
    if results is None:
        raise RequestError('the result lies in no work folder')
    workdir = results.parent
    folder, _ = build_set.locate(cell.task, cell.dataset, None, workdir)
    if folder is None or not build_set.is_ready(folder):
        raise RequestError(f'no prepared set of it in {workdir}')
    if prepared_set.digest(folder) != result['prepared_hash']:
        raise RequestError(f'{folder} is not the prepared set of the result')
    return cell, prepared_set.open_set(folder, cell.task, embedded=False)


def seen(cell: Cell, data: PreparedSet) -> Seen:
    """What there is to see of the training windows of a prepared set."""
    from jbench.report.dataset import figures

    windows, spectra, which, evoked = figures.classed(cell, data)
    averages = (windows,) * evoked + ((spectra,) if spectra is not None else ())
    return Seen(averages, amplitude_rows(windows), windows.unit, *topography_rows(averages[0]), which)


def amplitude_rows(windows: Classed) -> Table:
    """A row a channel: percentiles over windows of the sd of a window, in the unit of the windows."""
    spread = windows.x.std(2) if windows.x.shape[2] > 1 else np.abs(windows.x[:, :, 0])
    low, middle, high = np.percentile(spread, RANGE, axis=0).astype(float)
    return [
        {'channel': name, 'low': float(low[c]), 'median': float(middle[c]), 'high': float(high[c])}
        for c, name in enumerate(windows.ch_names)
    ]


def topography_rows(of: Classed) -> tuple[Table, str, str]:
    """A row for each class and channel of known place: the mean of the class less the mean of all classes shown, where
    on the axis they differ most beside the spread of windows; of one class, its mean where it is largest. Empty where
    too few places are known. Beside it: where on the axis, and the unit."""
    from jbench.report.dataset import figures

    means, _, _ = figures.contrast(of)
    known, xy = head.places(of.ch_names)
    if len(known) < head.LEAST:
        return [], '', ''
    several = len(means) > 1
    strength = means[:, known].var(0) if several else means[0][known] ** 2
    t = int((strength / (of.x[:, known].var(0) + 1e-12)).mean(0).argmax())
    shown = means[:, known, t] - (means[:, known, t].mean(0) if several else 0)
    rows = [
        {'class': name, 'channel': of.ch_names[c], 'x': float(x), 'y': float(y), 'value': float(shown[g, k])}
        for g, name in enumerate(list(of.groups)[:HEADS])
        for k, (c, (x, y)) in enumerate(zip(known, xy, strict=True))
    ]
    quantity, unit = of.label.rpartition(' (')[0], of.label.rpartition(' (')[2].rstrip(')')
    words = 'frequency' if unit == 'Hz' else quantity
    return rows, f'{words} {of.axis[t]:.3g} {unit}', of.unit


def rows(found: Seen) -> Table:
    """All that the page shows: averages with standard errors in the channels shown, amplitudes, topographies."""
    from jbench.report.dataset import figures

    table: Table = []

    def add(panel: str, group: str, channel: str, **values: float) -> None:
        blank = dict.fromkeys(('at', 'value', 'error', 'low', 'high', 'x', 'y'))
        table.append({'panel': panel, 'class': group, 'channel': channel, **blank, **values})

    for of in found.averages:
        means, errors, best = figures.contrast(of)
        for c in best:
            for g, group in enumerate(of.groups):
                for t, at in enumerate(of.axis):
                    value, error = float(means[g, c, t]), float(errors[g, c, t])
                    add(of.label, group, of.ch_names[c], at=float(at), value=value, error=error)
    for row in found.amplitude:
        add('amplitude', '', row['channel'], value=row['median'], low=row['low'], high=row['high'])
    for row in found.topography:
        add('topography', row['class'], row['channel'], value=row['value'], x=row['x'], y=row['y'])
    return table


@style.styled
def page(found: Seen, *, title: str) -> Figure:
    """The parts of a page below each other."""
    from jbench.report.dataset import figures

    parts = len(found.averages) + 1 + bool(found.topography)
    figure = style.blank(9.5, 0.7 + 2.7 * parts)
    subfigures: list[Any] = np.ravel(np.asarray(figure.subfigures(parts, 1))).tolist()
    for part, of in zip(subfigures, found.averages, strict=False):
        figures.differing(part, of)
        part.suptitle('Mean window of each class' if of.label.startswith('time') else 'Mean spectrum of each class')
    n = len(found.averages)
    _amplitude(subfigures[n], found.amplitude, found.amplitude_unit)
    if found.topography:
        _heads(subfigures[n + 1], found)
    style.title(figure, f'{title} ({found.which})')
    return figure


def _amplitude(figure: SubFigure, table: Sequence[Mapping[str, Any]], unit: str) -> None:
    ax = figure.subplots()
    x, low, middle, high = (
        np.arange(len(table)),
        *(np.array([row[name] for row in table]) for name in ('low', 'median', 'high')),
    )
    ax.vlines(x, low, high, color='0.6', linewidth=2 if len(x) <= NAMED else 0.8)
    ax.plot(x, middle, '.', color=style.COLOURS[0], label='_median', ms=6 if len(x) <= NAMED else 3)
    if len(x) <= NAMED:
        ax.set_xticks(x, [row['channel'] for row in table], rotation=60 * (len(x) > 16), fontsize=7)
    else:
        ax.set_xlabel(f'channel, 0 to {len(x) - 1}')
    ax.set(ylabel=f'sd of a window ({unit})', ylim=(0, None))
    figure.suptitle(f'Amplitude of each channel: median over windows; line: {RANGE[0]} to {RANGE[2]} % of them')


def _heads(figure: SubFigure, found: Seen) -> None:
    names = list(dict.fromkeys(row['class'] for row in found.topography))
    most = max(abs(row['value']) for row in found.topography) or 1.0
    axes = figure.subplots(1, max(len(names), 3))
    for ax in axes[len(names) :]:
        ax.axis('off')
    for ax, name in zip(axes, names, strict=False):
        mine = [row for row in found.topography if row['class'] == name]
        xy, values = np.array([(r['x'], r['y']) for r in mine]), np.array([r['value'] for r in mine])
        dots = head.draw(ax, xy, values, (-most, most), 'RdBu_r')
        ax.set_title(style.name(name), fontsize=9)
    figure.colorbar(dots, ax=list(axes), label=found.unit, shrink=0.8)
    several = len(found.averages[0].groups) > 1
    words = 'Mean of each class less the mean of all classes' if several else 'Mean'
    figure.suptitle(f'{words}, {found.at}')
