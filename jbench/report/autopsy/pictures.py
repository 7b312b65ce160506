"""Pictures of an autopsy, drawn with matplotlib and, for heads, MNE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench import targets
from jbench.report.autopsy import attribution
from jbench.report.autopsy.ablation import Ablation
from jbench.report.autopsy.case import Case, explained
from jbench.report.autopsy.examine import Parts
from jbench.report.autopsy.findings import answers_something, groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAP, SIGNED = 'viridis', 'RdBu_r'
PLAIN, OUT, LINE = '0.65', 'tab:blue', 'firebrick'  # of bars, of those that stand out, of floors
MOMENTS = 6  # heads over time
LABELLED = 4  # channels on a head
NOISE = 'this run answers no better than with shuffled targets, so nothing stands out'
SHOWN = 40  # tensors, units of a layer, classes: names on an axis at most
Pictures = dict[str, tuple[str, str, Callable[['Figure'], None]]]  # file -> section, caption, what draws it


def pictures(case: Case, parts: Parts) -> Pictures:
    """Every picture that the parts allow."""
    sure = answers_something(parts.base)
    found: Pictures = {
        'shuffled': (
            'answers',
            f'{case.metric} of this run (red) and with shuffled targets (grey); dotted: chance, as the result has it.',
            partial(_shuffled, case=case, parts=parts),
        )
    }
    if parts.answers.confusion is not None:
        caption = 'Windows of each true class by the class that was said; colour: share of the true class.'
        found['confusion'] = 'answers', caption, partial(_confusion, case=case, parts=parts)
    elif not case.classes and case.answers['y'].ndim == 2 and case.answers['outputs'].ndim == 2:
        found['scatter'] = 'answers', 'Answer against target; line: equal.', partial(_scatter, case=case)
    for one in parts.ablations:
        caption = f'Fall of {case.metric} without each part ({one.family}); dashed: the largest that chance gives; '
        caption += 'blue: above it.' if sure else NOISE
        found[f'without_{one.family}'] = one.family, caption, partial(_falls, one=one, sure=sure)
    if parts.attribution is not None:
        found |= _of_attribution(case, parts)
    if parts.cams:
        caption = (
            'GradCAM of each layer over time, mean over windows with attributions, as a share of its sum; where a '
            'layer has fewer times than samples, they are spread over the window.'
        )
        found['gradcam'] = 'time', caption, partial(_cams, case=case, parts=parts)
    if parts.layers:
        caption = 'Spread (sd over windows and times) of every unit of each layer, sorted; a dead unit lies at 0.'
        found['units'] = 'network', caption, partial(_units, parts=parts)
    if parts.flow is not None:
        caption = (
            f'Norm of the gradient beside the norm of the weights of each tensor that is not 0, from input (top) to '
            f'output, over {parts.flow.n_batches} batches of training windows.'
        )
        found['gradients'] = 'network', caption, partial(_flow, parts=parts)
    return found


def _of_attribution(case: Case, parts: Parts) -> Pictures:
    n = len(parts.explained) if parts.explained is not None else 0
    of = f'integrated gradients, mean over {n} test windows; positive: speaks for {explained(case)}'
    of += '' if answers_something(parts.base) else f'; {NOISE}'
    found: Pictures = {
        'frequencies': (
            'frequency',
            f'Attribution by frequency, sum over channels ({of}); dotted: floor of each line.',
            partial(_frequencies, case=case, parts=parts),
        ),
        'times': ('time', f'Attribution over time, sum over channels ({of}).', partial(_times, case=case, parts=parts)),
    }
    assert parts.attribution is not None
    if len(parts.attribution.hz) < 2:  # windows of one sample
        del found['frequencies']
    if case.head is not None:
        caption = (
            f'Left: attribution of each channel over the whole window, the largest named; the others: over time ({of}).'
        )
        found['heads'] = 'channel', caption, partial(_heads, case=case, parts=parts)
    else:
        caption = f'Attribution of each channel ({of}).'
        found['channels'] = 'channel', caption, partial(_by_channel, case=case, parts=parts)
    return found


def _shuffled(figure: Figure, case: Case, parts: Parts) -> None:
    figure.set_size_inches(7, 2.4)
    ax = figure.subplots()
    ax.hist(np.round(parts.base.shuffled, 9), 30, color=PLAIN)  # of a constant all are equal, but for rounding
    if np.isfinite(parts.base.value):
        ax.axvline(parts.base.value, color=LINE)
    if case.chance is not None:
        ax.axvline(case.chance, color='k', linestyle=':')
    ax.set(xlabel=case.metric, ylabel='shufflings')


def _confusion(figure: Figure, case: Case, parts: Parts) -> None:
    counts = parts.answers.confusion
    assert counts is not None
    k = len(counts)
    size = float(np.clip(1.6 + 0.5 * k, 3, 9))
    figure.set_size_inches(size + 1.2, size)
    ax = figure.subplots()
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    image = ax.imshow(share, cmap=MAP, vmin=0, vmax=1)
    names = list(case.classes)[:k] or [str(i) for i in range(k)]
    if k <= SHOWN:
        ax.set_xticks(range(k), names, rotation=60 if max(map(len, names)) > 4 else 0, fontsize=8)
        ax.set_yticks(range(k), names, fontsize=8)
    if k <= 16:
        for i, j in np.ndindex(k, k):
            ax.text(j, i, str(counts[i, j]), ha='center', va='center', fontsize=8, color='wk'[int(share[i, j] > 0.6)])
    ax.set(xlabel='said', ylabel='true')
    figure.colorbar(image, ax=ax, shrink=0.8)


def _scatter(figure: Figure, case: Case) -> None:
    figure.set_size_inches(5, 4.5)
    ax = figure.subplots()
    said = case.answers['outputs']
    y, said = targets.of(case.kind).answered(case.answers['y'], said.shape[1])[:, 0], said[:, 0]
    ax.plot(y, said, '.', color=OUT, alpha=0.5)
    ends = [min(y.min(), said.min()), max(y.max(), said.max())]
    ax.plot(ends, ends, color='k', linewidth=0.8)
    ax.set(xlabel='target', ylabel='answer')


def _falls(figure: Figure, one: Ablation, sure: bool) -> None:
    figure.set_size_inches(9, 3.2)
    ax, n = figure.subplots(), len(one.parts)
    colours = [OUT if sure and fall > one.floor else PLAIN for fall in one.falls]
    if one.family == 'channel':
        ax.bar(range(n), one.falls, color=colours)
        ax.set_xticks(range(n), one.parts, rotation=90 if n > 12 else 0, fontsize=8 if n <= SHOWN else 5)
    else:
        low, high = np.array(one.edges).T
        ax.bar(low, one.falls, high - low, align='edge', color=colours, edgecolor='white')
        ax.set_xlabel('frequency (Hz)' if one.family == 'frequency' else 'time (s)')
    ax.axhline(0, color='k', linewidth=0.6)
    ax.axhline(one.floor, color=LINE, linestyle='--', linewidth=1)
    ax.set_ylabel('fall')


def _frequencies(figure: Figure, case: Case, parts: Parts) -> None:
    found = parts.attribution
    assert found is not None
    ax = figure.subplots()
    named = groups(case, parts)
    for (name, rows), colour in zip(named.items(), _colours(len(named)), strict=True):
        values = found.frequencies[rows].sum(1)
        ax.plot(found.hz, values.mean(0), color=colour, linewidth=1.1, label=f'{name} ({len(rows)})')
        ax.axhline(attribution.floor(values), color=colour, linestyle=':', linewidth=0.8)
    power = np.abs(found.frequencies).sum((0, 1))
    last = found.hz[np.flatnonzero(power > 1e-3 * max(power.max(), 1e-30))[-1]] if power.any() else found.hz[-1]
    ax.set(xlabel='frequency (Hz)', ylabel='attribution', xlim=(0, max(float(last), float(found.hz[1]))))
    _legend(ax)


def _times(figure: Figure, case: Case, parts: Parts) -> None:
    found = parts.attribution
    assert found is not None
    figure.set_size_inches(9, 2.8)
    ax = figure.subplots()
    t = case.start + np.arange(found.samples.shape[2]) / case.signal.sfreq
    width = max(1, len(t) // 40)
    kernel = np.ones(width) / width
    named = groups(case, parts)
    for (name, rows), colour in zip(named.items(), _colours(len(named)), strict=True):
        mean = found.samples[rows].sum(1).mean(0)
        ax.plot(t, np.convolve(mean, kernel, 'same'), color=colour, linewidth=1.1, label=f'{name} ({len(rows)})')
    ax.axhline(0, color='k', linewidth=0.6)
    ax.set(xlabel=f'time (s), mean of {width} samples', ylabel='attribution')
    _legend(ax)


def _heads(figure: Figure, case: Case, parts: Parts) -> None:
    import mne

    found, names = parts.attribution, list(case.signal.ch_names)
    assert found is not None
    picks = [names.index(name) for name in case.head.ch_names]
    mean = found.samples.mean(0)[picks]
    pieces = np.array_split(np.arange(mean.shape[1]), min(MOMENTS, mean.shape[1]))
    maps = [mean.sum(1), *(mean[:, p].sum(1) for p in pieces)]
    titles = ['whole window', *(_span(case, p) for p in pieces)]
    figure.set_size_inches(11, 2.6)
    axes = figure.subplots(1, len(maps), width_ratios=[1.6, *[1] * len(pieces)])
    rest = max((float(np.abs(m).max()) for m in maps[1:]), default=0.0)
    best = set(np.argsort(-maps[0])[:LABELLED].tolist()) if answers_something(parts.base) else set()
    labels = [name if k in best else '' for k, name in enumerate(case.head.ch_names)]
    for k, (ax, values, title) in enumerate(zip(axes, maps, titles, strict=True)):
        limit = (float(np.abs(values).max()) if k == 0 else rest) or 1.0
        mne.viz.plot_topomap(
            values,
            case.head,
            axes=ax,
            show=False,
            cmap=SIGNED,
            vlim=(-limit, limit),
            contours=0,
            image_interp='linear',  # others overshoot between electrodes
            extrapolate='local',
            border=0.0,
            names=labels if k == 0 else None,
        )
        ax.set_title(title, fontsize=8)


def _span(case: Case, samples: np.ndarray) -> str:
    first, last = (case.start + k / case.signal.sfreq for k in (samples[0], samples[-1] + 1))
    return f'{first:.2g} to {last:.2g} s'


def _by_channel(figure: Figure, case: Case, parts: Parts) -> None:
    assert parts.attribution is not None
    mean = parts.attribution.samples.sum(2).mean(0)
    figure.set_size_inches(9, 2.8)
    ax, names = figure.subplots(), list(case.signal.ch_names)
    if len(mean) <= SHOWN and len(names) == len(mean):
        ax.bar(range(len(mean)), mean, color=OUT)
        ax.set_xticks(range(len(mean)), names, rotation=90 if len(mean) > 12 else 0, fontsize=8)
    else:
        ax.plot(mean, color=OUT, linewidth=0.8)
        ax.set_xlabel('channel')
    ax.axhline(0, color='k', linewidth=0.6)
    ax.set_ylabel('attribution')


def _cams(figure: Figure, case: Case, parts: Parts) -> None:
    figure.set_size_inches(9, 2.8)
    ax, length = figure.subplots(), case.signal.n_times / case.signal.sfreq
    for (name, cam), colour in zip(parts.cams.items(), _colours(len(parts.cams)), strict=True):
        mean = cam.mean(0)
        n = len(mean)
        at = case.start + (np.arange(n) + 0.5) / n * length
        ax.plot(at, mean / max(mean.sum(), 1e-30) * n, color=colour, label=f'{name} ({n} times)', linewidth=1.2)
    ax.axhline(1, color='k', linewidth=0.6, linestyle=':')
    ax.set(xlabel='time (s)', ylabel='of an equal share')
    _legend(ax)


def _units(figure: Figure, parts: Parts) -> None:
    figure.set_size_inches(9, 2.8)
    ax = figure.subplots()
    for layer, colour in zip(parts.layers, _colours(len(parts.layers)), strict=True):
        spread = np.sort(layer.spread)[::-1]
        at = (np.arange(len(spread)) + 0.5) / len(spread)
        dead = f', {len(layer.dead)} dead' if len(layer.dead) else ''
        mark = 'o' if len(spread) <= SHOWN else ''
        label = f'{layer.name} ({len(spread)} units{dead})'
        ax.plot(at, spread / max(spread.max(), 1e-30), color=colour, marker=mark, markersize=3, label=label)
    ax.set(xlabel='units, sorted (share)', ylabel='sd, of the largest', ylim=(-0.03, 1.05))
    _legend(ax)


def _flow(figure: Figure, parts: Parts) -> None:
    flow = parts.flow
    assert flow is not None
    known = np.flatnonzero(flow.weight > 0)
    pick = known[np.unique(np.linspace(0, len(known) - 1, min(SHOWN, len(known))).round().astype(int))]
    figure.set_size_inches(9, 1.2 + 0.2 * len(pick))
    ax = figure.subplots()
    ax.barh(range(len(pick)), np.maximum(flow.relative[pick], 1e-12), color=OUT)
    ax.set_yticks(range(len(pick)), [flow.names[k] for k in pick], fontsize=7)
    ax.invert_yaxis()
    ax.set(xscale='log', xlabel='norm of the gradient / norm of the weights')


def _colours(n: int) -> Any:
    from matplotlib import colormaps

    return colormaps[MAP](np.linspace(0, 0.85, max(n, 2)))[:n]


def _legend(ax: Any) -> None:
    """Beside the picture, so that it hides nothing."""
    ax.legend(fontsize=7, loc='upper left', bbox_to_anchor=(1, 1), frameon=False)
