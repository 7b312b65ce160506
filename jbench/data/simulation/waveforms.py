"""Patterns of waves that fill events: spindles, spikes, seizures, muscles, eyes. `waves` makes a signature of a table.

A shape is a function of the time within the event (s, [T]), how long it lasts (s), and random numbers; it peaks at
about 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from jbench.data.simulation.paradigm import Signature, Tracks, Traits, Trials, box, gaussian, silent

Shape = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]


def _train(u: np.ndarray, lasts: float, hz: float, pulse: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A pulse every 1 / hz s; `pulse` is a function of the time since its start."""
    return pulse(u % (1 / hz)) * (u >= 0) * (u < lasts)


def _spike_wave(v: np.ndarray) -> np.ndarray:
    return -gaussian(v, 0.06, 0.015) + 0.6 * gaussian(v, 0.17, 0.05)


def spikes(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """One spike and slow wave, somewhere in the event."""
    return _spike_wave(u - rng.uniform(0.1, max(0.1, lasts - 0.4)))


def periodic(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """Sharp discharges, about 1.5 a second."""
    hz = rng.uniform(1.2, 1.8)
    return _train(u, lasts, hz, lambda v: gaussian(v, 0.1, 0.03) - 0.5 * gaussian(v, 0.22, 0.06))


def seizure(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """Spike and wave at 3 Hz."""
    return _train(u, lasts, rng.uniform(2.7, 3.3), lambda v: _spike_wave(v) - 0.1)


def evolving(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """A rhythm that slows from 6 to 3 Hz and grows sixfold."""
    share = np.clip(u / lasts, 0, 1)
    return np.sin(2 * np.pi * (6 * u - 1.5 * u * share)) * (1 / 6 + 5 / 6 * share) * box(u, 0, lasts, 0.5)


def spindle(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """0.8 s of 13 Hz."""
    return gaussian(u, 0.5, 0.2) * np.sin(2 * np.pi * rng.normal(13, 0.4) * u)


def k_complex(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """A sharp negative wave, then a slow positive one."""
    return -gaussian(u, 0.4, 0.08) + 0.6 * gaussian(u, 0.75, 0.15)


def glance(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """The eyes go to one side and back."""
    start, stay = rng.uniform(0, max(0.1, lasts - 0.6)), rng.uniform(0.3, 0.6)
    return rng.choice([-1.0, 1.0]) * box(u, start, start + stay, 0.06)


def pop(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """An electrode jumps, and comes back in a second."""
    v = u - rng.uniform(0, max(0.1, lasts - 0.6))
    return rng.choice([-1.0, 1.0]) * (v >= 0) * np.exp(-np.maximum(v, 0) / 0.4)


def muscle(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """Broad noise above 20 Hz."""
    white = rng.standard_normal(len(u))
    return 0.5 * np.r_[0, np.diff(white)] * box(u, 0, lasts, 0.1)


def chewing(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """Bursts of muscle, about 1.5 a second."""
    return muscle(u, lasts, rng) * (0.5 + 0.5 * np.sin(2 * np.pi * rng.uniform(1.2, 1.8) * u)) ** 2 * 2


def shiver(u: np.ndarray, lasts: float, rng: np.random.Generator) -> np.ndarray:
    """A tremor at 9 to 11 Hz with muscle on it."""
    tremor = np.sin(2 * np.pi * rng.uniform(9, 11) * u)
    return (tremor + 0.4 * muscle(u, lasts, rng)) * box(u, 0, lasts, 0.2)


Row = tuple[str, float, Shape]  # (source, uV, shape), once an event
Repeated = tuple[str, float, Shape, float]  # ... or so many a minute


def waves(table: Mapping[str, tuple[Row | Repeated, ...]]) -> Signature:
    """Each event adds the patterns of its label; several sources share one pattern ('C3+C4'), '-' turns it around."""

    def signature(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
        tracks = silent(trials.paradigm.sources, len(trials.t))
        for onset, label, lasts in zip(trials.onset, trials.label, trials.duration, strict=True):
            for names, uv, shape, *rate in table.get(trials.paradigm.labels[label], ()):
                n = rng.poisson(rate[0] * lasts / 60) if rate else 1
                for start in onset + rng.uniform(0, max(0.0, lasts - 1.5), n) * bool(rate):
                    length = 1.5 if rate else lasts
                    i, j = np.searchsorted(trials.t, (start, start + length + 0.5))
                    wave = uv * who.evoked * rng.normal(1, 0.15) * shape(trials.t[i:j] - start, length, rng)
                    for name in names.split('+'):
                        tracks[name.lstrip('-')][i:j] += -wave if name.startswith('-') else wave
        return {}, tracks

    return signature
