"""Simulated EEG with known truth: `simulate(paradigm, subject, seed) -> (mne.io.RawArray, events)`.

Physics: current dipoles in a three-shell sphere (MNE's forward solution, nothing to download), read by the electrodes
of the paradigm against linked mastoids. Background: 1/f activity of many random cortical dipoles, rhythms with the
subject's own peak frequency, 50 Hz line, blinks, electrode drift, amplifier noise. On top lies the signature of the
paradigm (`paradigms.py`). `effect` scales the signature alone: at `effect=0` the labels mean nothing.

Random numbers come from Philox streams keyed by (paradigm, subject, seed[, session], purpose): any order of calls gives
the same recording. Anatomy and traits belong to the subject, trials and noise to the session.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mne
import numpy as np
from scipy import fft

from jbench.data.paradigms import CODE_BITS, CODE_HZ, EVOKED, PARADIGMS, RHYTHMS, SIGNATURES, Paradigm, Traits, Trials

if TYPE_CHECKING:
    from collections.abc import Sequence

REFERENCE = ('TP9', 'TP10')
LINE_HZ = 50.0
N_BACKGROUND = 150  # dipoles of the background
LEAD_IN, LEAD_OUT = 2.0, 4.0  # s before the first trial and after the last


def stream(*key: object) -> np.random.Generator:
    """A Philox generator of this key: same key, same numbers, on every machine and in any order of calls."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], 'little')))


def simulate(
    paradigm: str, subject: int, seed: int, session: int = 0, effect: float = 1.0
) -> tuple[mne.io.RawArray, dict[str, np.ndarray]]:
    """Simulate one recording.

    Args:
        paradigm: a key of `PARADIGMS`.
        subject: number of the subject in the population.
        seed: which population.
        session: which of the paradigm's sessions, from 0.
        effect: factor on the signature of the paradigm; 0 removes it and changes nothing else.

    Returns:
        The recording (V, with electrode positions) and its events: equally long arrays `onset` (s from the start),
        `duration` (s, of the task's window), `type` ('Stimulus'), `code` (int64) and `label`.
    """
    p, key = PARADIGMS[paradigm], (paradigm, int(subject), int(seed))
    who, rng = _traits(stream(*key, 'subject')), stream(*key, int(session), 'signal')
    onset, label = _timeline(p, p.counts[session], stream(*key, int(session), 'trials'))
    n = int((onset[-1] + p.soa / p.cycles + LEAD_OUT) * p.sfreq)
    trials = Trials(p, onset, label, np.arange(n) / p.sfreq)
    gain, background = _gain(p, stream(*key, 'anatomy'))
    data = gain.astype(np.float32) @ _tracks(trials, who, rng, effect)
    pink = _noise(rng, (len(p.chans), n), p.sfreq, lambda f: np.maximum(f, 0.3) ** (-who.slope / 2))
    data += background.astype(np.float32) @ pink * np.float32(who.background)
    data += _artefacts(p, who, rng, trials.t)
    raw = mne.io.RawArray(data * 1e-6, _info(p.chans, p.sfreq), verbose='ERROR')
    return raw, {
        'onset': onset,
        'duration': np.full(len(onset), p.window[1]),
        'type': np.full(len(onset), 'Stimulus'),
        'code': (label + p.first_code).astype(np.int64),
        'label': np.array(p.labels)[label],
    }


def _traits(rng: np.random.Generator) -> Traits:
    def factor(sd: float, size: int | None = None) -> Any:
        return np.exp(rng.normal(0, sd, size))

    return Traits(
        alpha=rng.normal(10.0, 0.6),
        rhythm=factor(0.25, len(RHYTHMS)),
        evoked=factor(0.2),
        delay=rng.normal(0, 0.005),
        slow_delay=rng.normal(0, 0.03),
        depth=np.clip(factor(0.15), 0.7, 1.2),
        slope=rng.uniform(0.9, 1.5),
        background=8 * factor(0.2),
        line=2 * factor(0.5),
        blink=100 * factor(0.2),
        blink_rate=rng.uniform(0.1, 0.3),
        drift=15 * factor(0.3),
        sensor=0.7 * factor(0.2),
    )


def _timeline(p: Paradigm, counts: Sequence[int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Event onsets (s) and label indices. An oddball comes once a block, never first in it: never twice in a row."""
    if len(counts) == 2 and counts[0] * 2 < counts[1]:
        rare, size = counts[0], sum(counts) // counts[0]
        label = np.ones(size * rare, int)
        label[np.arange(rare) * size + rng.integers(1, size, rare)] = 0
    else:
        label = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    onset = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, len(label)))
    if p.cycles > 1:
        cycle = CODE_BITS / CODE_HZ
        onset, label = (onset[:, None] + cycle * np.arange(p.cycles)).ravel(), np.repeat(label, p.cycles)
    return np.round(onset * p.sfreq) / p.sfreq, label


def _tracks(trials: Trials, who: Traits, rng: np.random.Generator, effect: float) -> np.ndarray:
    """Time courses of the rhythms and of the evoked sources, f32[R + S, T] in uV."""
    p = trials.paradigm
    envelope, evoked = SIGNATURES[p.name](trials, who, rng)
    out = np.empty((len(RHYTHMS) + len(EVOKED[p.name]), len(trials.t)), np.float32)
    for k, (name, r) in enumerate(RHYTHMS.items()):
        hz = r.alpha_factor * who.alpha + r.offset
        band = functools.partial(_gauss, centre=hz, sd=r.sd)
        out[k] = _noise(rng, (1, len(trials.t)), p.sfreq, band)[0] * r.uv * who.rhythm[k]
        if name in envelope:
            out[k] *= 1 + effect * (envelope[name] - 1)
    for k, name in enumerate(EVOKED[p.name], len(RHYTHMS)):
        out[k] = effect * evoked[name]
    return out


def _gauss(f: np.ndarray, centre: float, sd: float) -> np.ndarray:
    return np.exp(-0.5 * ((f - centre) / sd) ** 2)


def _noise(
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


@functools.lru_cache(1)
def montage() -> mne.channels.DigMontage:
    """The 10-05 electrodes on the Colin 27 head; MNE 1.13 renamed it, the positions are the same."""
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage('colin27_1005' if 'colin27_1005' in known else 'standard_1005')


def _info(names: Sequence[str], sfreq: float) -> mne.Info:
    return mne.create_info(list(names), sfreq, 'eeg', verbose='ERROR').set_montage(montage(), verbose='ERROR')


@functools.lru_cache(1)
def _head() -> tuple[mne.bem.ConductorModel, dict[str, np.ndarray]]:
    """The sphere fitted to all electrodes of the montage, and their places in head coordinates (m)."""
    info = _info(montage().ch_names, 250.0)
    sphere = mne.make_sphere_model('auto', 'auto', info, verbose='ERROR')
    return sphere, {c['ch_name']: c['loc'][:3] for c in info['chs']}


def _gain(p: Paradigm, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """How the sources of this subject reach the electrodes.

    Returns: [C, R + S], each source 1 uV at its strongest electrode; and a factor [C, C] of the covariance of the
    background, 1 uV rms on average (dipoles that share a spectrum need no more than that).
    """
    sphere, place = _head()
    sources = [(r.electrode, r.depth) for r in RHYTHMS.values()] + list(EVOKED[p.name].values())
    names = list(dict.fromkeys((*p.chans, *REFERENCE, *(name for name, _ in sources))))
    centre, radius, k = sphere['r0'], sphere['layers'][0]['rad'], len(sources)
    out = _unit(np.array([place[name] for name, _ in sources]) - centre)
    out = _unit(out + rng.normal(0, 0.06, out.shape))  # about 5 mm between subjects
    pos = centre + out * (radius - np.array([[depth * 1e-3] for _, depth in sources]))
    ori = _unit(out + rng.normal(0, 0.15, out.shape))  # about 9 degrees an axis
    far = _unit(rng.standard_normal((N_BACKGROUND, 3)))
    far[:, 2] = np.where(far[:, 2] < -0.4, -far[:, 2], far[:, 2])  # no cortex below the ears
    pos = np.r_[pos, centre + far * (radius - rng.uniform(0.01, 0.035, (N_BACKGROUND, 1)))]
    ori = np.r_[ori, _unit(rng.standard_normal((N_BACKGROUND, 3)))]
    m = len(pos)
    dipole = mne.Dipole(np.arange(m) * 1e-3, pos, np.full(m, 1e-8), ori, np.full(m, 100.0), verbose='ERROR')
    g = mne.make_forward_dipole(dipole, sphere, _info(names, 250.0), verbose='ERROR')[0]['sol']['data']
    g = g - g[[names.index(r) for r in REFERENCE]].mean(0)
    signal = g[: len(p.chans), :k] / np.abs(g[:, :k]).max(0)
    noise = g[: len(p.chans), k:] * np.exp(rng.normal(0, 0.5, N_BACKGROUND))
    cov = noise @ noise.T
    return signal, np.linalg.cholesky(cov / np.trace(cov) * len(cov) + 1e-6 * np.eye(len(cov)))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def _artefacts(p: Paradigm, who: Traits, rng: np.random.Generator, t: np.ndarray) -> np.ndarray:
    """Blinks, line, electrode drift and amplifier noise, f32[C, T] in uV."""
    _, place = _head()
    shape = c, n = len(p.chans), len(t)
    front = np.array([np.exp(-np.linalg.norm(place[ch] - place['Fpz']) / 0.045) for ch in p.chans])  # fades in 45 mm
    blink, pulse = np.zeros(n), np.hanning(int(0.3 * p.sfreq))
    for i in rng.integers(0, n - len(pulse), rng.poisson(who.blink_rate * t[-1])):
        blink[i : i + len(pulse)] += pulse * rng.normal(1, 0.15)
    line = np.sin(2 * np.pi * LINE_HZ * t + rng.uniform(0, 6.28))
    out = np.outer(front * who.blink, blink) + np.outer(who.line * np.exp(rng.normal(0, 0.4, c)), line)
    out += _noise(rng, shape, p.sfreq, lambda f: np.exp(-f / 0.05)) * who.drift
    return (out + rng.standard_normal(shape, dtype=np.float32) * who.sensor).astype(np.float32)
