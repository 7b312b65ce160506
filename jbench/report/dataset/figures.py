"""Pictures of recordings and windows for the page of `--stage=check`."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jbench import targets
from jbench.data.load import prepared_set
from jbench.data.load.prepared_set import PreparedSet, class_names
from jbench.data.recording import UNIT
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Look(NamedTuple):
    """One recording as it is in its file: up to CHANNELS of its channels."""

    name: str
    ch_names: list[str]
    spread: np.ndarray  # [C] robust sd, V (or the unit of the device)
    hz: np.ndarray  # [F]
    power: np.ndarray  # [C, F] unit^2/Hz


PARTS = ('train', 'valid', 'test')
HIGHEST = 45.0  # Hz, of the spectrum of classes
WINDOWS, GROUPS, BEST = 2000, 8, 3  # training windows, classes, channels: shown at most
BYTES = 256 << 20  # of windows that are held at once
Picture = tuple[str, Callable[['Figure'], None]]  # caption, and what draws it


class Classed(NamedTuple):
    """Some training windows, in their classes."""

    x: np.ndarray  # f32 [N, C, T] as networks get them, or [N, C, F] dB
    groups: dict[str, np.ndarray]  # numbers of windows
    ch_names: Sequence[str]
    axis: np.ndarray  # s [T], or Hz [F]
    label: str  # of the axis


def evenly(n: int, most: int) -> list[int]:
    """At most so many of 0..n-1, the first and the last among them."""
    return sorted({round(k) for k in np.linspace(0, n - 1, min(n, most))})


def of_recordings(cell: Cell, looks: Sequence[Look], n: int) -> dict[str, Picture]:
    """Pictures of recordings as they are in their files: some of n, by the name of the file."""
    symbol = UNIT.get(cell.dataset.device, ('', 'V'))[1]
    which = f'{len(looks)} of {n} recordings, at most {len(looks[0].ch_names)} channels, as in their files'
    return {
        'amplitude': (
            f'Amplitude of each recording ({which}): grey, its channels; black, their median; red, what it may be.',
            partial(_amplitude, looks=looks, allowed=cell.dataset.amplitude, symbol=symbol),
        ),
        'spectrum': (
            f'Spectrum of each channel, mean over recordings ({which}); dashed, the band that the task keeps.',
            partial(_spectrum, looks=looks, band=cell.task.signal.band, symbol=symbol),
        ),
    }


def of_windows(cell: Cell, data: PreparedSet) -> dict[str, Picture]:
    """Pictures of training windows and of all targets, by the name of the file."""
    from scipy.signal import periodogram

    train, sfreq = data.rows('train'), data.signal.sfreq
    most = max(1, min(WINDOWS, BYTES // (4 * data.signal.n_chans * data.signal.n_times)))
    rows = np.sort(np.random.default_rng(0).permutation(train)[:most])  # every n-th may always be of one class
    x, groups = prepared_set.read(data, rows, data.clamp), _groups(cell.dataset, data, rows)
    seconds, label, cut = np.arange(x.shape[2]) / sfreq, 's of the window', cell.task.window
    if cut.stride is None:
        seconds, label = seconds + cut.start, 's from the onset of the event'
    windows = Classed(x, groups, data.signal.ch_names, seconds, label)
    which = f'{len(rows)} of {len(train)} training windows'
    which += f'; the {GROUPS} classes that have most' * (len(groups) == GROUPS)
    differ = f'in the {BEST} channels where classes differ most ({which})'
    found: dict[str, Picture] = {
        'evoked': (f'Mean window of each class, {differ}.', partial(_differing, of=windows, unit='as networks get it')),
    }
    if data.vectors is not None or data.groups is None:  # not stimuli without embeddings, which have nothing to show
        found['targets'] = ('Targets of each part.', partial(_targets, dataset=cell.dataset, data=data))
    if x.shape[2] > 2:
        caption = 'The first window of some classes, as networks get it, each channel less its mean.'
        found['windows'] = (caption, partial(_windows, of=windows))
    hz, power = periodogram(x, sfreq, window='hann')
    low = (hz > 0) & (hz <= HIGHEST)
    if low.sum() > 2:
        level = 10 * np.log10(power[..., low] + 1e-12)
        spectra = Classed(level, groups, data.signal.ch_names, hz[low], 'Hz')
        caption = f'Mean spectrum of the windows of each class, {differ}.'
        found['class_spectrum'] = (caption, partial(_differing, of=spectra))
    return found


def png(draw: Callable[[Figure], None], title: str) -> bytes:
    """A picture as the bytes of a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), dpi=80, layout='constrained')
    draw(figure)
    if title:
        figure.suptitle(title, color='firebrick')
    out = io.BytesIO()
    figure.savefig(out, format='png', metadata={'Software': None})
    return out.getvalue()


def _groups(dataset: Dataset, data: PreparedSet, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Which of the windows are of which class (the largest ones): positions in `rows`. A value gives thirds."""
    y = data.y[rows]
    found = targets.of(data.kind).groups(y, class_names(dataset, data))
    largest = sorted(found, key=lambda n: -len(found[n]))[:GROUPS]
    return {n: v for n, v in found.items() if n in largest and len(v)} or {'all windows': np.arange(len(rows))}


def _amplitude(figure: Figure, looks: Sequence[Look], allowed: tuple[float, float], symbol: str) -> None:
    ax = figure.subplots()
    for k, one in enumerate(looks):
        ax.plot([k] * len(one.spread), one.spread, '.', color='silver')
        ax.plot(k, np.median(one.spread), 'ko')
    for limit in allowed:
        ax.axhline(limit, color='firebrick', linestyle='--')
    ax.set(yscale='log', ylabel=f'robust sd ({symbol})')
    ax.set_xticks(range(len(looks)), [one.name[-16:] for one in looks], rotation=60, ha='right', fontsize=7)


def _spectrum(figure: Figure, looks: Sequence[Look], band: tuple[float, float] | None, symbol: str) -> None:
    ax, first = figure.subplots(), looks[0]
    like = [k.power for k in looks if k.ch_names == first.ch_names and np.array_equal(k.hz, first.hz)]
    _colours(ax, len(first.ch_names))
    ax.semilogy(first.hz[1:], np.mean(like, axis=0)[:, 1:].T, linewidth=0.8, label=first.ch_names)
    for edge in band or ():
        if edge < first.hz[-1]:
            ax.axvline(edge, color='grey', linestyle='--')
    ax.set(xlabel='Hz', ylabel=f'({symbol})²/Hz', xlim=(0, min(first.hz[-1], 150)))
    if len(first.ch_names) <= 32:
        ax.legend(fontsize=7, ncols=2, loc='upper right')


def _differing(figure: Figure, of: Classed, unit: str = 'dB') -> None:
    """Means over the windows of each class, in the channels where these differ most beside the spread of windows."""
    means = np.stack([of.x[rows].mean(0) for rows in of.groups.values()])
    between = (means.var(0) if len(means) > 1 else means[0] ** 2).mean(-1) / (of.x.var(0).mean(-1) + 1e-12)
    best = np.sort(np.argsort(-between)[:BEST])
    for ax, c in zip(np.atleast_1d(figure.subplots(1, len(best), sharey=True)), best, strict=True):
        _colours(ax, len(means))
        ax.plot(
            of.axis,
            means[:, c].T,
            '.' if len(of.axis) < 3 else '-',
            label=[f'{n} ({len(v)})' for n, v in of.groups.items()],
        )
        ax.set(title=of.ch_names[c], xlabel=of.label)
    figure.axes[0].set_ylabel(unit)
    figure.axes[-1].legend(fontsize=7)


def _targets(figure: Figure, dataset: Dataset, data: PreparedSet) -> None:
    """Shares of the classes, histograms of values, likeness of stimuli."""
    ax = figure.subplots()
    if data.vectors is not None:
        v = data.vectors[evenly(len(data.vectors), 500)]
        v = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
        ax.hist((v @ v.T)[np.triu_indices(len(v), 1)], 50, label=f'pairs of {len(v)} of {len(data.vectors)} stimuli')
        ax.set(xlabel='cosine of their embeddings', ylabel='pairs')
    elif (shares := targets.of(data.kind).shares) is None:
        edges = np.histogram_bin_edges(data.y, 30).tolist()
        for part in PARTS:
            ax.hist(data.y[data.rows(part), 0], edges, density=True, histtype='step', label=part)
        ax.set(xlabel='value', ylabel='density')
    else:
        for k, part in enumerate(PARTS):
            y = data.y[data.rows(part)]
            names, share = shares(y, class_names(dataset, data))
            ax.bar(np.arange(len(names)) + 0.27 * (k - 1), share, 0.25, label=f'{part} ({len(y)} windows)')
        ax.set_xticks(range(len(names)), names, rotation=60 * (len(names) > 8), fontsize=7)
        ax.set_ylabel('share of the part')
    ax.legend(loc='upper left', bbox_to_anchor=(1, 1))


def _windows(figure: Figure, of: Classed) -> None:
    channels, firsts = evenly(len(of.ch_names), 16), list(of.groups.items())[:4]
    for ax, (name, rows) in zip(np.atleast_1d(figure.subplots(1, len(firsts), sharey=True)), firsts, strict=True):
        x = of.x[rows[0], channels]
        step = 6 * np.median(of.x[:, channels].std(2)) or 1.0
        ax.plot(
            of.axis,
            (x - x.mean(1, keepdims=True) - step * np.arange(len(channels))[:, None]).T,
            color='k',
            linewidth=0.6,
        )
        ax.set(title=name, xlabel=of.label)
        ax.set_yticks([-step * i for i in range(len(channels))], [of.ch_names[c] for c in channels], fontsize=7)


def _colours(ax: Any, n: int) -> None:
    from matplotlib import colormaps

    ax.set_prop_cycle(color=colormaps['turbo'](np.linspace(0.05, 0.95, max(n, 2))))
