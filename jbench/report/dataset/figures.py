"""Pictures of recordings and windows for the page of `--stage=check`."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jbench import targets
from jbench.data.load import prepared_set
from jbench.data.load.class_names import class_names
from jbench.data.recording import UNIT
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


class Look(NamedTuple):
    """One recording as it is in its file: up to CHANNELS of its channels."""

    name: str
    ch_names: list[str]
    spread: np.ndarray  # [C] robust sd, V (or the unit of the device)
    hz: np.ndarray  # [F]
    power: np.ndarray  # [C, F] unit^2/Hz


PARTS = ('train', 'valid', 'test')
HIGHEST = 150.0  # Hz, of the spectrum of recordings of which a band below is kept
WINDOWS, GROUPS, BEST = 2000, 8, 3  # training windows, classes, channels: shown at most
BYTES = 256 << 20  # of windows that are held at once
UNITS = {'V': ('µV', 1e6), 'T': ('fT', 1e15), 'mol/l': ('µmol/l', 1e6)}  # that people read: name, factor
SCALED = {'robust': 'IQR', 'train': 'IQR', 'standard': 'sd'}  # units of windows: of each channel in its recording
STEADY = ('imagery', 'ssvep', 'rstate', 'sleep', 'emg')  # paradigms in which no response follows an onset
FAR = 5.0  # times above or below the median: an outlier, which is named
NAMED = 6  # outliers of a recording, at most
MAP = 'viridis'  # perceptually uniform, and told apart by the colour-blind
LIMIT = 'firebrick'
Picture = tuple[str, Callable[['Figure'], None]]  # caption, and what draws it


class Classed(NamedTuple):
    """Some training windows, in their classes."""

    x: np.ndarray  # f32 [N, C, T] as networks get them, or [N, C, F] dB
    groups: dict[str, np.ndarray]  # numbers of windows
    ch_names: Sequence[str]
    axis: np.ndarray  # s [T], or Hz [F]
    label: str  # of the axis
    unit: str  # of x
    zero: bool  # whether zero means something on both axes


def evenly(n: int, most: int) -> list[int]:
    """At most so many of 0..n-1, the first and the last among them."""
    return sorted({round(k) for k in np.linspace(0, n - 1, min(n, most))})


def of_recordings(cell: Cell, looks: Sequence[Look], n: int) -> dict[str, Picture]:
    """Pictures of recordings as they are in their files: some of n, by the name of the file."""
    symbol = UNIT.get(cell.dataset.device, ('', 'V'))[1]
    which = f'{len(looks)} of {n} recordings, at most {len(looks[0].ch_names)} channels, as in their files'
    far = f'named: more than {FAR:g} times above or below the median of all, or out of bounds'
    return {
        'amplitude': (
            f'Amplitude of each recording ({which}): grey, its channels; black, their median; red, its bounds; {far}.',
            partial(_amplitude, looks=looks, allowed=cell.dataset.amplitude, symbol=symbol),
        ),
        'spectrum': (
            f'Spectrum of each channel, mean over recordings ({which}); dashed, the band that the task keeps.',
            partial(_spectrum, looks=looks, band=cell.task.signal.band, symbol=symbol),
        ),
    }


def of_windows(cell: Cell, data: prepared_set.PreparedSet) -> dict[str, Picture]:
    """Pictures of training windows and of all targets, by the name of the file."""
    windows, spectra, which, evoked = classed(cell, data)
    differ = f'in the {BEST} channels where classes differ most; bands: standard error over windows ({which})'
    differ += f'; {windows.unit}: that of the channel in its recording' * (windows.unit in SCALED.values())
    found = dict[str, Picture]()
    if evoked:
        found['evoked'] = (f'Mean window of each class, {differ}.', partial(differing, of=windows))
    if spectra is not None:
        found['class_spectrum'] = (f'Mean spectrum of each class, {differ}.', partial(differing, of=spectra))
    if data.vectors is not None or data.groups is None:  # not stimuli without embeddings, which have nothing to show
        found['targets'] = ('Targets of each part.', partial(_targets, dataset=cell.dataset, data=data))
    if windows.x.shape[2] > 2:
        caption = 'The first window of some classes, as networks get it, each channel less its mean, all on one scale.'
        found['windows'] = (caption, partial(_windows, of=windows))
    return found


def classed(cell: Cell, data: prepared_set.PreparedSet) -> tuple[Classed, Classed | None, str, bool]:
    """Some training windows, their spectra (None: too short for one), which they are, and whether means are shown."""
    train, sfreq, cut = data.rows('train'), data.signal.sfreq, cell.task.window
    most = max(1, min(WINDOWS, BYTES // (4 * data.signal.n_chans * data.signal.n_times)))
    rows = np.sort(np.random.default_rng(0).permutation(train)[:most])  # every n-th may always be of one class
    x, groups = prepared_set.read(data, rows, data.clamp), _groups(cell.dataset, data, rows)
    seconds, label = np.arange(x.shape[2]) / sfreq, 'time in the window (s)'
    if cut.stride is None:
        seconds, label = seconds + cut.start, 'time from the onset of the event (s)'
    unit, factor = _unit(cell)
    windows = Classed(x * factor, groups, data.signal.ch_names, seconds, label, unit, cut.stride is None)
    most_of = f'; the {GROUPS} classes that have most' * (len(groups) == GROUPS)
    which = f'{len(rows)} of {len(train)} training windows{most_of}'
    spectra = _spectra(windows, sfreq, cell.task.signal.band)
    return windows, spectra, which, spectra is None or (cut.stride is None and cell.task.paradigm not in STEADY)


def _unit(cell: Cell) -> tuple[str, float]:
    """What the numbers of windows are, and what they are multiplied by to be that."""
    scaler, symbol = cell.task.signal.scaler, UNIT.get(cell.dataset.device, ('', 'V'))[1]
    if cell.task.signal.factor != 1:
        return 'as networks get it', 1.0
    if scaler == 'micro':
        return f'µ{symbol}', 1.0
    if scaler == 'none':
        return UNITS.get(symbol, (symbol, 1.0))
    return SCALED[scaler], 1.0


def _spectra(of: Classed, sfreq: float, band: tuple[float, float] | None) -> Classed | None:
    """Power of each window in dB, inside of the band that is kept; None of windows too short to have a spectrum."""
    from scipy.signal import periodogram

    hz, power = periodogram(of.x, sfreq, window='hann')
    low, high = band or (0.0, np.inf)
    shown = (hz > 0) & (hz >= low) & (hz <= high)
    if shown.sum() <= 2:
        return None
    unit = 'dB' if ' ' in of.unit else f'dB re 1 {_squared(of.unit)}/Hz'
    level = 10 * np.log10(power[..., shown] + 1e-12)
    return Classed(level, of.groups, of.ch_names, hz[shown], 'frequency (Hz)', unit, False)


def _squared(unit: str) -> str:
    return f'({unit})²' if '/' in unit or ' ' in unit else f'{unit}²'


def png(draw: Callable[[Figure], None], title: str) -> bytes:
    """A picture as the bytes of a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), dpi=110, layout='constrained')
    draw(figure)
    if title:
        figure.suptitle(title, color=LIMIT)
    out = io.BytesIO()
    figure.savefig(out, format='png', metadata={'Software': None})
    return out.getvalue()


def _groups(dataset: Dataset, data: prepared_set.PreparedSet, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Which of the windows are of which class (the largest ones): positions in `rows`. A value gives thirds."""
    y = data.y[rows]
    found = targets.of(data.kind).groups(y, class_names(dataset, data))
    largest = sorted(found, key=lambda n: -len(found[n]))[:GROUPS]
    return {n: v for n, v in found.items() if n in largest and len(v)} or {'all windows': np.arange(len(rows))}


def _amplitude(figure: Figure, looks: Sequence[Look], allowed: tuple[float, float], symbol: str) -> None:
    """A line for each recording, under its whole name; what lies far from the others is named."""
    unit, factor = UNITS.get(symbol, (symbol, 1.0))
    figure.set_size_inches(10, 1.6 + 0.24 * max(len(looks), 4))
    ax = figure.subplots()
    middle = np.median(np.concatenate([one.spread for one in looks]))
    for k, one in enumerate(looks):
        ax.plot(one.spread * factor, [k] * len(one.spread), '.', color='0.7')
        ax.plot(np.median(one.spread) * factor, k, 'ko', markersize=4)
        low, high = max(allowed[0], middle / FAR), min(allowed[1], middle * FAR)
        for far, side, at in (
            (one.spread < low, 'right', one.spread.min()),
            (one.spread > high, 'left', one.spread.max()),
        ):
            names = [one.ch_names[c] for c in np.flatnonzero(far)]
            if names:
                words = ', '.join(names[:NAMED]) + f' and {len(names) - NAMED} more' * (len(names) > NAMED)
                shift = (-5 if side == 'right' else 5, 0)
                ax.annotate(
                    words, (at * factor, k), shift, textcoords='offset points', ha=side, va='center', fontsize=6
                )
    for limit in allowed:
        ax.axvline(limit * factor, color=LIMIT, linestyle='--')
    ax.set(xscale='log', xlabel=f'robust sd ({unit})')
    ax.set_yticks(range(len(looks)), [one.name for one in looks], fontsize=7)
    ax.set_ylim(len(looks) - 0.5, -0.7)


def _spectrum(figure: Figure, looks: Sequence[Look], band: tuple[float, float] | None, symbol: str) -> None:
    """The spectrum of each channel; of many channels those that lie far from the others are named."""
    (unit, factor), first, ax = UNITS.get(symbol, (symbol, 1.0)), looks[0], figure.subplots()
    like = [k.power for k in looks if k.ch_names == first.ch_names and np.array_equal(k.hz, first.hz)]
    power = np.mean(like, axis=0)[:, 1:] * factor**2
    level = np.median(np.log(np.maximum(power, 1e-30)), axis=1)
    away = np.abs(level - np.median(level))
    named = [*range(len(away))] if len(away) <= 32 else np.flatnonzero(away > 2 * np.log(FAR))[:NAMED].tolist()
    _colours(ax, len(named))
    rest = np.delete(power, named, 0)
    ax.semilogy(first.hz[1:], rest.T, linewidth=0.5, color='0.7')
    ax.semilogy(first.hz[1:], power[named].T, linewidth=0.8, label=[first.ch_names[k] for k in named])
    for edge in band or ():
        if edge < first.hz[-1]:
            ax.axvline(edge, color='grey', linestyle='--')
    ax.set(xlabel='frequency (Hz)', ylabel=f'power ({_squared(unit)}/Hz)')
    last = min(first.hz[-1], max(HIGHEST, band[1])) if band else first.hz[-1]
    seen = first.hz[1:] <= last
    ax.set_xlim(0, last)
    low, high = np.percentile(power[:, seen], [0.5, 100])
    ax.set_ylim(max(low, high * 1e-12) / 2, high * 2)
    if named:
        _legend(ax, len(named))


def contrast(of: Classed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of classes and their standard errors [G, C, T], and the channels, at most BEST, in which classes differ
    most beside the spread of windows."""
    means = np.stack([of.x[rows].mean(0) for rows in of.groups.values()])
    errors = np.stack([of.x[rows].std(0) / np.sqrt(len(rows)) for rows in of.groups.values()])
    between = (means.var(0) if len(means) > 1 else means[0] ** 2).mean(-1) / (of.x.var(0).mean(-1) + 1e-12)
    return means, errors, np.sort(np.argsort(-between)[:BEST])


def differing(figure: Figure | SubFigure, of: Classed) -> None:
    """Means over the windows of each class, with their standard errors (`contrast`)."""
    means, errors, best = contrast(of)
    for ax, c in zip(np.atleast_1d(figure.subplots(1, len(best), sharex=True, sharey=True)), best, strict=True):
        _colours(ax, len(means))
        for (name, rows), mean, error in zip(of.groups.items(), means[:, c], errors[:, c], strict=True):
            style = 'o' if len(of.axis) < 3 else '-'
            (line,) = ax.plot(of.axis, mean, style, linewidth=1.2, label=f'{name} ({len(rows)})')
            if style == 'o':
                ax.errorbar(of.axis, mean, error, fmt='none', color=line.get_color())
            else:
                ax.fill_between(of.axis, mean - error, mean + error, alpha=0.25, color=line.get_color(), linewidth=0)
        if of.zero:
            ax.axhline(0, color='0.4', linewidth=0.6, label='_')
            if of.axis[0] <= 0 <= of.axis[-1]:
                ax.axvline(0, color='0.4', linewidth=0.6, linestyle=':', label='_')
        ax.set(title=of.ch_names[c])
        if len(of.axis) == 1:
            ax.set_xlim(of.axis[0] - 0.5, of.axis[0] + 0.5)
    figure.supxlabel(of.label, fontsize='medium')
    figure.axes[0].set_ylabel(of.unit)
    _legend(figure.axes[-1], len(means))


def _targets(figure: Figure, dataset: Dataset, data: prepared_set.PreparedSet) -> None:
    """Shares of the classes, histograms of values, likeness of stimuli."""
    ax = figure.subplots()
    _colours(ax, len(PARTS))
    if data.vectors is not None:
        v = data.vectors[evenly(len(data.vectors), 500)]
        v = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
        ax.hist((v @ v.T)[np.triu_indices(len(v), 1)], 50, label=f'pairs of {len(v)} of {len(data.vectors)} stimuli')
        ax.set(xlabel='cosine of their embeddings', ylabel='pairs')
    elif (shares := targets.of(data.kind).shares) is None:
        edges = np.histogram_bin_edges(targets.some(data.y), 30).tolist()
        for part in PARTS:
            ax.hist(targets.some(data.y[data.rows(part)])[:, 0], edges, density=True, histtype='step', label=part)
        ax.set(xlabel='value', ylabel='density')
    else:
        for k, part in enumerate(PARTS):
            y = data.y[data.rows(part)]
            names, share = shares(y, class_names(dataset, data))
            ax.bar(np.arange(len(names)) + 0.27 * (k - 1), share, 0.25, label=f'{part} ({len(y)} windows)')
        turned = len(names) > 8 or sum(map(len, names)) > 80
        ax.set_xticks(range(len(names)), names, rotation=60 * turned, ha='right' if turned else 'center', fontsize=7)
        ax.set_ylabel('share of the part')
    _legend(ax, len(ax.get_legend_handles_labels()[1]))


def _windows(figure: Figure, of: Classed) -> None:
    channels, firsts = evenly(len(of.ch_names), 16), list(of.groups.items())[:4]
    step = 6 * float(np.median(of.x[:, channels].std(2))) or 1.0
    for ax, (name, rows) in zip(np.atleast_1d(figure.subplots(1, len(firsts), sharey=True)), firsts, strict=True):
        x = of.x[rows[0], channels]
        offsets = -step * np.arange(len(channels))
        ax.hlines(offsets, of.axis[0], of.axis[-1], color='0.85', linewidth=0.5)
        ax.plot(of.axis, (x - x.mean(1, keepdims=True) + offsets[:, None]).T, color='k', linewidth=0.6)
        ax.set_title(name)
        ax.set_yticks(offsets, [of.ch_names[c] for c in channels], fontsize=7)
    figure.supxlabel(of.label, fontsize='medium')
    figure.axes[0].set_ylabel(f'from line to line {step:.3g} {of.unit}')


def _legend(ax: Any, n: int) -> None:
    """Beside the picture, so that it hides nothing."""
    ax.legend(fontsize=7, ncols=1 + (n - 1) // 16, loc='upper left', bbox_to_anchor=(1, 1), frameon=False)


def _colours(ax: Any, n: int) -> None:
    from matplotlib import colormaps

    ax.set_prop_cycle(color=colormaps[MAP](np.linspace(0, 0.85, max(n, 2))))
