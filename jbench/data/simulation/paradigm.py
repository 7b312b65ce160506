"""What paradigms of the simulated recordings are made of; the paradigms themselves stand in the modules beside.

A paradigm is one row: electrodes, labels, times, sources, and a signature, which is a function of the trials and the
subject that returns the envelopes of rhythms (1 = as at rest) and the time courses of further sources (uV). Signatures
are made from tables where possible: `states` (which rhythms a label pulls, and how far), `responses` (which bumps
follow an event), `waves` (which patterns of waves fill it). Everything in the tables is a stated assumption about EEG,
with amplitudes in uV at the electrode where a source is strongest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy import fft

LEAD_IN, LEAD_OUT = 2.0, 4.0  # s before the first trial and after the last


class Rhythm(NamedTuple):
    """An oscillation: Gaussian in frequency around `alpha_factor` * alpha peak + `offset`."""

    electrode: str  # the source lies under it
    depth: float  # mm below the inner skull
    alpha_factor: float  # 0: a fixed frequency; 1: follows the subject's alpha peak; 2: its double
    offset: float  # Hz
    sd: float  # Hz
    uv: float


RHYTHMS = {  # of every brain
    'alpha_l': Rhythm('PO3', 18, 1, 0.0, 0.7, 7.0),
    'alpha_r': Rhythm('PO4', 18, 1, 0.0, 0.7, 7.0),
    'mu_l': Rhythm('C3', 14, 1, 1.0, 0.8, 7.0),
    'mu_r': Rhythm('C4', 14, 1, 1.0, 0.8, 7.0),
    'beta_l': Rhythm('C3', 14, 2, 1.0, 1.8, 3.5),
    'beta_r': Rhythm('C4', 14, 2, 1.0, 1.8, 3.5),
    'theta_f': Rhythm('Fz', 20, 0, 6.0, 0.8, 5.0),
    'par_l': Rhythm('P3', 14, 1, 0.0, 0.8, 6.0),
    'par_r': Rhythm('P4', 14, 1, 0.0, 0.8, 6.0),
    'lang_l': Rhythm('FC5', 14, 2, 1.0, 2.0, 4.0),
}


class Traits(NamedTuple):
    """One subject, the same in every session. Amplitude factors are 1 on average."""

    alpha: float  # Hz
    rhythm: np.ndarray  # [rhythms] amplitude factors
    evoked: float  # amplitude factor
    delay: float  # s, of early visual responses
    slow_delay: float  # s, of late responses and of imagery
    depth: float  # factor on the modulation of rhythms
    slope: float  # exponent b of the 1/f^b background
    background: float  # uV rms
    line: float  # uV
    blink: float  # uV at Fpz
    blink_rate: float  # per s
    drift: float  # uV rms
    sensor: float  # uV rms


class Person(NamedTuple):
    """What the subject's number alone decides, whatever the population."""

    fields: Mapping[str, str] = {}  # of the recording, as a diagnosis
    # how it shows: Hz added to 'alpha', exponent added to 'slope', a factor on each named rhythm
    change: Mapping[str, float] = {}


Source = tuple[str, float]  # (electrode, depth mm)
Tracks = dict[str, np.ndarray]  # name -> f32[T]


class Paradigm(NamedTuple):
    """What is fixed for a paradigm. Times in seconds."""

    name: str
    chans: tuple[str, ...]
    sfreq: float  # Hz
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]  # trials of each label, a row for each session
    soa: float  # from one trial to the next, at least
    jitter: float  # uniform extra of up to this
    window: tuple[float, float]  # (start after the event, duration) that the task reads
    signature: Signature
    sources: Mapping[str, Source] = {}  # of the signature's time courses
    rhythms: Mapping[str, Rhythm] = {}  # beyond those of every brain
    cycles: int = 1  # events a trial (c-VEP: one a code cycle)
    cycle: float = 0.0  # from one of them to the next
    first_code: int = 1
    lasts: float = 0.0  # how long an event is; 0: as the window
    trial: Callable[[Paradigm, int, np.random.Generator], Trials] | None = None  # None: `shuffled`
    person: Callable[[int, int], Person] = lambda subject, session: Person()
    device: str = 'eeg'  # 'meg': the same brain under a helmet
    body: Body | None = None  # what is recorded, where it is neither


class Trials(NamedTuple):
    """The events of one recording: `onset` s [E], `label` index [E]; `t` s [T] is the time axis of the recording."""

    paradigm: Paradigm
    onset: np.ndarray
    label: np.ndarray
    t: np.ndarray
    duration: np.ndarray  # s [E]
    events: Mapping[str, np.ndarray]  # the table that the source hands over


Signature = Callable[[Trials, Traits, np.random.Generator], tuple[Tracks, Tracks]]
# (trials, subject, time courses of the sources [S, T], generators of anatomy and of noise) -> samples [C, T]
Body = Callable[[Trials, Traits, np.ndarray, np.random.Generator, np.random.Generator], np.ndarray]


def stream(*key: object) -> np.random.Generator:
    """A Philox generator of this key: same key, same numbers, on every machine and in any order of calls."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], 'little')))


# ---- when ----


def shuffled(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Trials of all labels in random order. An oddball comes once a block, never first in it: never twice in a row."""
    counts = p.counts[session]
    if len(counts) == 2 and 0 < counts[0] * 2 < counts[1]:
        rare, size = counts[0], sum(counts) // counts[0]
        label = np.ones(size * rare, int)
        label[np.arange(rare) * size + rng.integers(1, size, rare)] = 0
    else:
        label = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    onset = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, len(label)))
    if p.cycles > 1:
        onset, label = (onset[:, None] + p.cycle * np.arange(p.cycles)).ravel(), np.repeat(label, p.cycles)
    onset = np.round(onset * p.sfreq) / p.sfreq
    return plain(p, onset, label, onset[-1] + p.soa / p.cycles + LEAD_OUT)


def plain(p: Paradigm, onset: np.ndarray, label: np.ndarray, seconds: float, **columns: np.ndarray) -> Trials:
    """Trials as events of type Stimulus, with code and label, unless `columns` say otherwise."""
    duration = columns.get('duration', np.full(len(onset), p.lasts or p.window[1]))
    events = {
        'onset': onset,
        'duration': duration,
        'type': np.full(len(onset), 'Stimulus'),
        'code': (label + p.first_code).astype(np.int64),
        'label': np.array(p.labels)[label],
    }
    t = np.arange(int(seconds * p.sfreq)) / p.sfreq
    return Trials(p, onset, label, t, duration, events | columns)


# ---- shapes ----


def gaussian(t: np.ndarray, at: float, sd: float) -> np.ndarray:
    """A bump of height 1 around `at`; t, at and sd in s."""
    return np.exp(-0.5 * ((t - at) / sd) ** 2)


def box(t: np.ndarray, start: float, stop: float, ramp: float) -> np.ndarray:
    """A smooth box: 0 -> 1 around `start`, 1 -> 0 around `stop`; all in s."""
    rise = 1 + np.exp(-np.clip((t - start) / ramp * 4, -30, 30))
    fall = 1 + np.exp(np.clip((t - stop) / ramp * 4, -30, 30))
    return 1 / rise / fall


def noise(
    rng: np.random.Generator, shape: tuple[int, int], sfreq: float, amplitude: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Gaussian noise f32[rows, T] of unit variance, without DC, whose amplitude spectrum is `amplitude(Hz)`."""
    rows, n = shape
    nfft = fft.next_fast_len(n, real=True)
    f = fft.rfftfreq(nfft, 1 / sfreq)
    a = np.r_[0, amplitude(f[1:])].astype(np.float32)
    z = rng.standard_normal((rows, len(f), 2), dtype=np.float32).view(np.complex64)[..., 0]
    unit = nfft / 2 / np.sqrt((a.astype(float) ** 2).sum())
    return fft.irfft(z * (a * unit).astype(np.float32), nfft)[:, :n]


def silent(names: Mapping[str, object], n: int) -> Tracks:
    """A time course of zeros for each name."""
    return {name: np.zeros(n, np.float32) for name in names}


# ---- signatures made of tables ----


def states(
    table: Mapping[str, Mapping[str, float]], span: tuple[float, float] | None = None, spread: float = 0.2
) -> Signature:
    """Each trial pulls rhythms towards its label's row (amplitude relative to rest), in some trials more than others.

    `span` is when after an event (s), None: for as long as it lasts; `spread` the sd of the pull between trials.
    """

    def signature(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
        names = sorted({n for row in table.values() for n in row})
        out = {name: np.ones(len(trials.t), np.float32) for name in names}
        for onset, label, lasts in zip(trials.onset, trials.label, trials.duration, strict=True):
            start, stop = span or (-who.slow_delay, lasts)
            i, j = np.searchsorted(trials.t, (onset + start - 0.6, onset + stop + 0.6))
            shape = box(trials.t[i:j] - onset, start + who.slow_delay + rng.normal(0, 0.05), stop, 0.3)
            depth = who.depth * np.clip(rng.normal(1, spread), 0.3, 1.4)
            for name, level in table[trials.paradigm.labels[label]].items():
                out[name][i:j] *= np.maximum(1 + depth * (level - 1) * shape, 0.1)
        return out, {}

    return signature


Bump = tuple[str, float, float, float]  # (source, uV, s after the event, sd in s)


def responses(table: Mapping[str, tuple[Bump, ...]]) -> Signature:
    """Each trial adds the bumps of its label, and those of the label ''. A slow subject is slow in proportion."""

    def signature(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
        tracks = silent(trials.paradigm.sources, len(trials.t))
        for onset, label in zip(trials.onset, trials.label, strict=True):
            size = who.evoked * rng.normal(1, 0.15)
            for source, uv, at, sd in (*table.get('', ()), *table.get(trials.paradigm.labels[label], ())):
                at = at * (1 + who.slow_delay / 0.38)
                i, j = np.searchsorted(trials.t, (onset + at - 4 * sd, onset + at + 4 * sd))
                tracks[source][i:j] += uv * size * gaussian(trials.t[i:j] - onset, at, sd)
        return {}, tracks

    return signature


def both(*signatures: Signature) -> Signature:
    """Several signatures at once."""

    def signature(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
        envelopes: Tracks = {}
        tracks = silent(trials.paradigm.sources, len(trials.t))
        for part in signatures:
            more, waves = part(trials, who, rng)
            envelopes |= {k: v * envelopes.get(k, np.float32(1)) for k, v in more.items()}
            tracks |= {k: v + tracks[k] for k, v in waves.items()}
        return envelopes, tracks

    return signature
