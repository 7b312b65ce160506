"""Draw the simulated sets on one page: `python benchmarks/simulated_figure.py [out.png]` (20 s, needs matplotlib).

A row for each paradigm: five seconds of one recording, spectra of its channels, the time course or spectrum that
carries the classes, and where on the head it is largest (mean over subjects).
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import matplotlib
import mne
import numpy as np
from scipy.signal import welch

from jbench.data.simulation import PARADIGMS
from jbench.data.simulation.paradigm import Paradigm
from jbench.data.simulation.simulate import simulate
from jbench.data.sources.simulated import SEED

matplotlib.use('Agg')
import matplotlib.pyplot as plt

N_SUBJECTS = 8
SHOWN = ('Fp1', 'AFz', 'Fz', 'C3', 'Cz', 'C4', 'Pz', 'POz', 'Oz', 'O1')
COLORS = ('#0072b2', '#d55e00')


class Contrast(NamedTuple):
    """Trials of group `a` against trials of group `b`, as a spectrum (`band` Hz maps it) or as a time course."""

    title: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    electrode: str
    span: tuple[float, float]  # s after the event: of the spectrum, or what is averaged for the map
    band: tuple[float, float] | None = None


def _reach(way: str) -> tuple[str, ...]:
    return tuple(label for label in PARADIGMS['motor_execution'].labels if label.startswith(way))


CONTRASTS = {
    'cvep': Contrast('power locked to the code', (), (), 'Oz', (0.0, 2.1)),
    'mental_imagery': Contrast(
        'log 8-12 Hz: rotation - baseline', ('rotation',), ('baseline',), 'P4', (3.6, 7.0), (8, 12)
    ),
    'motor_execution': Contrast('0.8-1.6 s: right - left reach', _reach('right'), _reach('left'), 'C3', (0.8, 1.6)),
    'motor_imagery': Contrast(
        'log 9-13 Hz: right - left hand', ('right_hand',), ('left_hand',), 'C3', (1.0, 4.0), (9, 13)
    ),
    'p3': Contrast('0.32-0.45 s: target - other', ('Target',), ('NonTarget',), 'Pz', (0.32, 0.45)),
    'ssvep': Contrast('log 10 Hz: 10 Hz - other flicker', ('10',), ('12', '14', '15'), 'Oz', (0.7, 4.5), (9.8, 10.2)),
}


def pieces(p: Paradigm, subject: int, span: tuple[float, float], band: tuple[float, float]) -> tuple:
    """Trials [E, C, T] of a subject in uV, filtered to `band` Hz, and their labels [E]."""
    raw, events = simulate(p.name, subject, SEED)
    x = raw.filter(*band, verbose='ERROR').get_data() * 1e6
    n = round((span[1] - span[0]) * p.sfreq)
    starts = np.round((events['onset'] + span[0]) * p.sfreq).astype(int)
    return np.stack([x[:, i : i + n] for i in starts]), events['label']


def spectral(p: Paradigm, c: Contrast) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x axis (Hz), curves of both groups at the electrode [2, F] (uV/sqrt Hz), map [C] (log ratio)."""
    curves, maps = [], []
    for subject in range(N_SUBJECTS):
        x, label = pieces(p, subject, c.span, (0.5, 45))
        f, s = welch(x, p.sfreq, nperseg=x.shape[-1])
        a, b = (s[np.isin(label, group)].mean(0) for group in (c.a, c.b))
        inside = (f >= c.band[0]) & (f <= c.band[1])
        maps.append(np.log(a[:, inside].mean(1) / b[:, inside].mean(1)))
        curves.append([g[p.chans.index(c.electrode)] ** 0.5 for g in (a, b)])
    shown = (f > 3) & (f < 36)
    return f[shown], np.mean(curves, 0)[:, shown], np.mean(maps, 0)


def temporal(p: Paradigm, c: Contrast) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x axis (s), curves of both groups at the electrode [2, T] (uV), map [C] (uV)."""
    start, stop = -0.2, max(c.span[1], 0.8) + 0.4
    curves, maps = [], []
    for subject in range(N_SUBJECTS):
        x, label = pieces(p, subject, (start, stop), (0.3, 20))
        x = x - x[..., : round(-start * p.sfreq)].mean(-1, keepdims=True)
        a, b = (x[np.isin(label, group)].mean(0) for group in (c.a, c.b))
        t = start + np.arange(x.shape[-1]) / p.sfreq
        maps.append((a - b)[:, (t >= c.span[0]) & (t <= c.span[1])].mean(1))
        curves.append([g[p.chans.index(c.electrode)] for g in (a, b)])
    return t, np.mean(curves, 0), np.mean(maps, 0)


def codes(p: Paradigm, c: Contrast) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x axis (s), mean response to two codes [2, T] (uV), map [C] of the power that repeats over cycles (uV^2)."""
    curves, maps = [], []
    for subject in range(N_SUBJECTS):
        x, label = pieces(p, subject, c.span, (2, 40))
        trials = x.reshape(-1, p.cycles, *x.shape[1:])
        mean = trials.mean(1)
        noise = trials.var(1, ddof=1) / p.cycles  # of the mean
        maps.append((mean**2 - noise).mean((0, 2)))
        curves.append([x[label == f'symbol_{k}'].mean(0)[p.chans.index(c.electrode)] for k in (0, 1)])
    t = np.arange(x.shape[-1]) / p.sfreq
    return t[t < 0.8], np.mean(curves, 0)[:, t < 0.8], np.mean(maps, 0)


def draw_signal(ax: plt.Axes, p: Paradigm, seconds: float = 5.0) -> mne.io.BaseRaw:
    """Some seconds of the first subject, 80 uV a line, with events."""
    raw, events = simulate(p.name, 0, SEED)
    first = events['onset'][4] - 0.5
    i, n = round(first * p.sfreq), round(seconds * p.sfreq)
    shown = [ch for ch in SHOWN if ch in p.chans][:6]
    for k, ch in enumerate(shown):
        x = raw.get_data(ch, i, i + n)[0] * 1e6
        ax.plot(np.arange(n) / p.sfreq, x - x.mean() - 80 * k, lw=0.5, color='0.15')
        ax.text(-0.06, -80 * k, ch, ha='right', va='center', fontsize=7)
    for onset, label in zip(events['onset'] - first, events['label'], strict=True):
        if 0 < onset < seconds and label != 'NonTarget':
            ax.axvline(onset, color=COLORS[1], lw=0.8)
            ax.text(onset, 70, f' {label}', fontsize=6, color=COLORS[1], clip_on=True)
    ax.set(yticks=[], xlim=(0, seconds), ylim=(-80 * len(shown), 110))
    ax.set_title(f'{p.name}: {len(p.chans)} channels, {p.sfreq:g} Hz (80 µV a line)', fontsize=8, loc='left')
    return raw


def draw_row(axes: np.ndarray, p: Paradigm) -> None:
    """One paradigm: signal, spectra, contrast, map."""
    c = CONTRASTS[p.name]
    raw = draw_signal(axes[0], p)
    f, s = welch(raw.get_data() * 1e6, p.sfreq, nperseg=int(4 * p.sfreq))
    axes[1].loglog(f[2:], s[:, 2:].T ** 0.5, lw=0.5)
    axes[1].set(xlim=(0.5, 100), ylim=(0.05, 60))
    axes[1].set_title('µV/√Hz, a line a channel', fontsize=8)
    kind = codes if p.name == 'cvep' else spectral if c.band else temporal
    x, curves, values = kind(p, c)
    names = ('symbol_0', 'symbol_1') if p.name == 'cvep' else [group[0].split('_')[0] for group in (c.a, c.b)]
    if p.name == 'ssvep':
        names = ('10 Hz', '12, 14, 15 Hz')
    for curve, name, color in zip(curves, names, COLORS, strict=True):
        axes[2].plot(x, curve, lw=1, color=color, label=name)
    axes[2].legend(fontsize=6, frameon=False)
    unit = 'µV/√Hz over Hz' if c.band else 'µV over s'
    axes[2].set_title(f'{c.electrode}, mean of {N_SUBJECTS} subjects ({unit})', fontsize=8)
    limit = np.abs(values).max()
    mne.viz.plot_topomap(values, raw.info, axes=axes[3], show=False, vlim=(-limit, limit), contours=4, cmap='RdBu_r')
    top = p.chans[np.abs(values).argmax()]
    axes[3].set_title(f'{c.title}\nextreme at {top}: {values[p.chans.index(top)]:.2f}', fontsize=8)
    print(f'{p.name:16s} {c.title}: extreme at {top}')


def main(path: str) -> None:
    """Draw all paradigms to `path`."""
    widths = {'width_ratios': (2.4, 1.1, 1.5, 1.1)}
    figure, axes = plt.subplots(len(PARADIGMS), 4, figsize=(14, 2.5 * len(PARADIGMS)), gridspec_kw=widths)
    figure.suptitle('simulated recordings')
    for row, p in zip(axes, PARADIGMS.values(), strict=True):
        draw_row(row, p)
    for ax in axes.ravel():
        ax.tick_params(labelsize=6)
    axes[-1, 0].set_xlabel('s')
    axes[-1, 1].set_xlabel('Hz')
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == '__main__':
    main(sys.argv[1] if len(sys.argv) > 1 else 'simulated.png')
