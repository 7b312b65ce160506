"""Simulated EEG with known truth: `simulate(paradigm, subject, seed) -> (mne.io.RawArray, events)`.

Physics: current dipoles in a three-shell sphere (MNE's forward solution, nothing to download), read by the electrodes
of the paradigm against linked mastoids. Background: 1/f activity of many random cortical dipoles, rhythms with the
subject's own peak frequency, 50 Hz line, blinks, electrode drift, amplifier noise. On top lies the signature of the
paradigm (`paradigms/`), or what its subject's traits change. `effect` scales these alone: at `effect=0` the labels
mean nothing.

Random numbers come from Philox streams keyed by (paradigm, subject, seed[, session], purpose): any order of calls gives
the same recording. Anatomy and traits belong to the subject, trials and noise to the session.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import mne
import numpy as np

from jbench.data.paradigms import PARADIGMS
from jbench.data.paradigms.base import RHYTHMS, Paradigm, Traits, Trials, gaussian, noise, shuffled, stream

REFERENCE = ('TP9', 'TP10')
LINE_HZ = 50.0
N_BACKGROUND = 150  # dipoles of the background


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
        `duration` (s), `type`, and what the paradigm tells of each, as `code` (int64) and `label`.
    """
    p, key = PARADIGMS[paradigm], (paradigm, int(subject), int(seed))
    who, rng = _traits(p, stream(*key, 'subject')), stream(*key, int(session), 'signal')
    who = _changed(p, who, p.person(int(subject), int(session)).change, effect)
    trials = (p.trial or shuffled)(p, int(session), stream(*key, int(session), 'trials'))
    gain, background = _gain(p, stream(*key, 'anatomy'))
    data = gain.astype(np.float32) @ _tracks(trials, who, rng, effect)
    shape = (len(p.chans), len(trials.t))
    pink = noise(rng, shape, p.sfreq, lambda f: np.maximum(f, 0.3) ** (-who.slope / 2))
    data += background.astype(np.float32) @ pink * np.float32(who.background)
    data += _artefacts(p, who, rng, trials.t)
    raw = mne.io.RawArray(data * 1e-6, _info(p.chans, p.sfreq), verbose='ERROR')
    return raw, dict(trials.events)


def _traits(p: Paradigm, rng: np.random.Generator) -> Traits:
    def factor(sd: float, size: int | None = None) -> Any:
        return np.exp(rng.normal(0, sd, size))

    who = Traits(
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
    return who._replace(rhythm=np.r_[who.rhythm, factor(0.25, len(p.rhythms))])


def _changed(p: Paradigm, who: Traits, change: Mapping[str, float], effect: float) -> Traits:
    """A subject with some traits changed: Hz and exponents are added, amplitudes of rhythms multiplied."""
    factors = [change.get(name, 1.0) ** effect for name in (*RHYTHMS, *p.rhythms)]
    return who._replace(
        alpha=who.alpha + effect * change.get('alpha', 0.0),
        slope=who.slope + effect * change.get('slope', 0.0),
        rhythm=who.rhythm * factors,
    )


def _tracks(trials: Trials, who: Traits, rng: np.random.Generator, effect: float) -> np.ndarray:
    """Time courses of the rhythms and of the signature's sources, f32[R + S, T] in uV."""
    p = trials.paradigm
    rhythms = {**RHYTHMS, **p.rhythms}
    envelope, evoked = p.signature(trials, who, rng)
    out = np.empty((len(rhythms) + len(p.sources), len(trials.t)), np.float32)
    for k, (name, r) in enumerate(rhythms.items()):
        band = functools.partial(gaussian, at=r.alpha_factor * who.alpha + r.offset, sd=r.sd)
        out[k] = noise(rng, (1, len(trials.t)), p.sfreq, band)[0] * r.uv * who.rhythm[k]
        if name in envelope:
            out[k] *= 1 + effect * (envelope[name] - 1)
    for k, name in enumerate(p.sources, len(rhythms)):
        out[k] = effect * evoked[name]
    return out


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
    sources = [(r.electrode, r.depth) for r in (RHYTHMS | dict(p.rhythms)).values()] + list(p.sources.values())
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
    out += noise(rng, shape, p.sfreq, lambda f: np.exp(-f / 0.05)) * who.drift
    return (out + rng.standard_normal(shape, dtype=np.float32) * who.sensor).astype(np.float32)
