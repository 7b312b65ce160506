"""Where windows lie, and how they are cut from a signal (the rounding rules are NeuralBench's)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench import targets
from jbench.events import SHIFT, Table, as_text, column, present
from jbench.spec.errors import RequestError
from jbench.spec.task import Jitter, Target, Trim, Where, Window

if TYPE_CHECKING:
    from jbench.data.prepare.rows import Rows


def fitting(events: Table, where: Where) -> np.ndarray:
    """Which events a condition names: bool [n]. Values are compared as text; what is missing has none of them.

    Raises: RequestError for an unknown column, or for `least` of what is no number.
    """
    values = column(events, where.field)
    good = present(values)
    texts = np.array([as_text(v) for v in values], dtype=str)
    if where.values:
        good = good & np.isin(texts, where.values)
    if where.least is not None:
        try:
            good[good] = texts[good].astype(float) >= where.least
        except ValueError as error:
            raise RequestError(f'events with {where.field!r} of at least {where.least:g}: {error}') from None
    return good if where.keep else ~good


def chosen(events: Table, window: Window) -> dict[str, np.ndarray]:
    """The event table without the triggers that do not fit `window.where`, the others trimmed by `window.trim`."""
    out = np.zeros(len(events['onset']), bool)
    for where in window.where:
        out |= ~fitting(events, where)
    kept = ~(out & (events['type'] == window.trigger))
    table = {k: v[kept] for k, v in events.items()}
    return _trimmed(table, window, window.trim) if window.trim else table


def possible(fields: tuple[tuple[str, str], ...], window: Window) -> bool:
    """Whether a recording of which these fields are known, before it is read, can hold a window."""
    known = {k: np.array([v]) for k, v in fields if v}
    return all(fitting(known, w).all() for w in window.where if w.field in known)


def _trimmed(events: dict[str, np.ndarray], window: Window, trim: Trim) -> dict[str, np.ndarray]:
    """The triggers less what `Trim` says; what is cut to less than a window is left out."""
    rows = np.flatnonzero(events['type'] == window.trigger)
    is_other = np.array([as_text(v) != trim.value for v in column(events, trim.field)[rows]], bool)
    other = np.flatnonzero(is_other)
    if not len(other):
        return events
    onset, duration = (np.array(events[k], np.float64) for k in ('onset', 'duration'))
    stop = onset + duration
    left = np.ones(len(onset), bool)
    if trim.every:
        cut = rows[~is_other]
        before = np.maximum(0.0, onset[rows[other[0]]] - trim.longest - onset[cut])
        after = np.maximum(0.0, stop[cut] - stop[rows[other[-1]]] - trim.longest)
        onset[cut] += before
        duration[cut] -= before + after
        left[cut] = (before + after == 0) | (duration[cut] > window.duration - 1e-6)
    else:
        if other[0] > 0:
            before_it = rows[other[0] - 1]
            onset[before_it] += max(0.0, duration[before_it] - trim.longest)
        beside = rows[[k for k in (other[0] - 1, other[-1] + 1) if 0 <= k < len(rows)]]
        duration[beside] = np.minimum(duration[beside], trim.longest)
    return {k: v[left] for k, v in (events | {'onset': onset, 'duration': duration}).items()}


def triggers(events: Table, window: Window, target: Target) -> list[int]:
    """Rows of the event table that make windows: not those that begin before the recording (where it was cropped).

    Raises: RequestError if two of one type start at the same time, and the target is what the event says.
    """
    rows = [int(i) for i in np.flatnonzero((events['type'] == window.trigger) & (events['onset'] >= 0))]
    onsets = [float(events['onset'][i]) for i in rows]
    if len(set(onsets)) < len(onsets) and not targets.of(target.kind).together:
        twice = next(t for t in onsets if onsets.count(t) > 1)
        raise RequestError(f'two {window.trigger} events at {twice:.3f} s')
    return targets.of(target.kind).triggers(target, events, rows)


def starts(onset: float, duration: float, window: Window) -> list[float]:
    """Window starts (s) for an event at `onset` lasting `duration` s, or for its last `window.last` s.

    Raises RequestError where windows are strided and the event is shorter than one of them.
    """
    stop, jitter = onset + duration, window.jitter
    if window.last is not None:
        onset = max(onset, stop - window.last)
    first = onset + window.start
    if window.stride is None:
        return _moved([first], jitter)
    needed = window.duration + (jitter.span if jitter else 0.0)
    if window.keep_incomplete:
        n = math.ceil((stop - first) / window.stride - 1e-9)
    else:
        n = math.floor((stop - needed - first) / window.stride + 1e-9) + 1
    if n < 1:
        raise RequestError(f'an event of {stop - onset:.2f} s, shorter than one window of {needed:g} s')
    return _moved([first + k * window.stride for k in range(n)], jitter)


def _moved(onsets: list[float], jitter: Jitter | None) -> list[float]:
    """The same, each moved by what is drawn for it."""
    if jitter is None:
        return onsets
    drawn, steps = random.Random(jitter.seed), round(jitter.span / jitter.step)
    return [t + drawn.randint(0, steps) * jitter.step for t in onsets]


def n_samples(duration: float, sfreq: float) -> int:
    """Samples of a window; Python's round, half to even, at least one."""
    return max(1, round(duration * sfreq))


def cut(data: np.ndarray | Rows, sfreq: float, start: float, duration: float) -> np.ndarray:
    """One window of a signal.

    Args:
        data: [C, T] at `sfreq` Hz.
        start: s from the start of the signal, may lie outside of it.
        duration: s.

    Returns: [C, n_samples(duration, sfreq)]; what lies outside the recording is zero.
    """
    out = np.zeros((len(data), n_samples(duration, sfreq)), data.dtype)
    there, here = _shared(data.shape[1], sfreq, start, duration)
    out[:, here] = data[:, there]
    return out


def _shared(t: int, sfreq: float, start: float, duration: float) -> tuple[slice, slice]:
    """What a window and a signal of `t` samples share: its samples in the signal, and in the window."""
    inside, stop = max(start, 0.0), min(start + duration, t / sfreq)
    if stop <= inside:
        return slice(0, 0), slice(0, 0)
    length = n_samples(duration, sfreq)
    whole = inside == start and stop == start + duration
    n = min(length if whole else n_samples(stop - inside, sfreq), length, t)
    first = min(round(inside * sfreq), t - n)  # rounding may ask for one sample too many
    at = min(round((inside - start) * sfreq), length - n)
    return slice(first, first + n), slice(at, at + n)


def windows(
    data: np.ndarray | Rows, sfreq: float, onsets: list[float], window: Window, baseline: tuple[float, float] | None
) -> Iterator[np.ndarray]:
    """Each window [C, T] of a signal in turn, minus the mean over `baseline` (s from a window's start).

    What lies outside the recording is zero, and counts in no mean; without a sample of the baseline none is subtracted.
    """
    for start in onsets:
        out = cut(data, sfreq, start, window.duration)
        if baseline is not None:
            low, high = baseline
            quiet = data[:, _shared(data.shape[1], sfreq, start + low, high - low)[0]]
            if quiet.size:
                here = _shared(data.shape[1], sfreq, start, window.duration)[1]
                out[:, here] -= quiet.mean(1, keepdims=True)
        yield out


def index(parts: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The event table (`event.<column>`) and the windows (`window.<column>`) of the whole set."""
    columns = list(dict.fromkeys(c for p in parts for c in p['events']))
    out: dict[str, np.ndarray] = {}
    sizes = [len(p['events']['onset']) for p in parts]
    out['event.recording'] = np.repeat(np.arange(len(parts)), sizes)
    for c in columns:
        out[f'event.{c}'] = np.concatenate([p['events'].get(c, [''] * n) for p, n in zip(parts, sizes, strict=True)])
    first = np.cumsum([0, *sizes[:-1]])
    event = [f + np.array(p['windows']['event'], int) for f, p in zip(first, parts, strict=True)]
    out['window.event'] = np.concatenate(event)
    out['window.onset'] = np.concatenate([np.array(p['windows']['onset'], float) for p in parts])
    if all('target' in p['windows'] for p in parts):  # else they lie with the windows
        out['window.target'] = np.concatenate([np.array(p['windows']['target'], str) for p in parts])
    out['window.id'] = np.concatenate([(i << SHIFT) + np.arange(p['n_windows']) for i, p in enumerate(parts)])
    return out
