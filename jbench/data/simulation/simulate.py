"""Simulated recordings with known truth: `simulate(paradigm, subject, seed) -> (mne.io.RawArray, events)`.

Physics: current dipoles in a three-shell sphere (MNE's forward solution, nothing to download), read by the electrodes
of the paradigm against linked mastoids, or by the coils of a helmet (`meg_helmet.py`). There dipoles lie along the
scalp, since those that point outwards have no field outside; what is 1 uV at an electrode is 20 fT at a magnetometer.
Background: 1/f activity of many random cortical dipoles, rhythms with the subject's own peak frequency, 50 Hz line,
blinks, drift, noise of the sensors. Forearms and volumes of blood have their own (their modules here). On top lies the
signature of the paradigm, or what its subject's traits change. `effect` scales these alone: at `effect=0` the labels
mean nothing.

Random numbers come from Philox streams keyed by (paradigm, subject, seed[, session], purpose): any order of calls gives
the same recording. Anatomy and traits belong to the subject, trials and noise to the session.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mne
import numpy as np

from jbench.data.electrodes import montage
from jbench.data.simulation import PARADIGMS, meg_helmet
from jbench.data.simulation.paradigm import RHYTHMS, Paradigm, Rhythm, Traits, Trials, gaussian, noise, shuffled, stream

REFERENCE = ('TP9', 'TP10')
LINE_HZ = 50.0
N_BACKGROUND = 150  # dipoles of the background
FORWARD = (0.0, 1.0, 0.3)  # dipoles of MEG lie across this direction, and along the scalp


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
        The recording (V, with electrode positions; MEG: T and T/m; fMRI: scanner units) and its events: equally long
        arrays `onset` (s from the start), `duration` (s), `type`, and what the paradigm tells of each, as `code`
        (int64) and `label`.
    """
    p, key = PARADIGMS[paradigm], (paradigm, int(subject), int(seed))
    who, rng = _traits(p, stream(*key, 'subject')), stream(*key, int(session), 'signal')
    who = _changed(p, who, p.person(int(subject), int(session)).change, effect)
    trials = (p.trial or shuffled)(p, int(session), stream(*key, int(session), 'trials'))
    anatomy = stream(*key, 'anatomy')
    if p.body is not None:
        kind = {'fmri': 'misc'}.get(p.device, p.device)
        info = mne.create_info(list(p.chans), p.sfreq, kind, verbose='ERROR')
        data = p.body(trials, who, _tracks(trials, who, rng, effect), anatomy, rng)
    else:
        info, unit = _sensors(p)
        data = _head_signal(p, trials, who, anatomy, rng, effect) * unit
    return mne.io.RawArray(data, info, verbose='ERROR'), dict(trials.events)


def _head_signal(
    p: Paradigm, trials: Trials, who: Traits, anatomy: np.random.Generator, rng: np.random.Generator, effect: float
) -> np.ndarray:
    """What the sensors of a head read, f32[C, T] in uV (of coils, in their unit)."""
    gain, background = _gain(p, anatomy)
    data: np.ndarray = gain.astype(np.float32) @ _tracks(trials, who, rng, effect)
    shape = (len(p.chans), len(trials.t))
    pink = noise(rng, shape, p.sfreq, lambda f: np.maximum(f, 0.3) ** (-who.slope / 2))
    data += background.astype(np.float32) @ pink * np.float32(who.background)
    data += _artefacts(p, who, rng, trials.t)
    return data


def _rhythms(p: Paradigm) -> dict[str, Rhythm]:
    """Those of the recording: of a brain seen from outside, and the paradigm's own."""
    return {**(RHYTHMS if p.body is None else {}), **p.rhythms}


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
    rhythms = _rhythms(p)
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


def _info(names: Iterable[str], sfreq: float) -> mne.Info:
    return mne.create_info(list(names), sfreq, 'eeg', verbose='ERROR').set_montage(montage(), verbose='ERROR')


def _sensors(p: Paradigm, more: Sequence[str] = ()) -> tuple[mne.Info, Any]:
    """The sensors of a head (and `more` electrodes), and what 1 uV in a source is in their own unit: V; T and T/m."""
    if p.device == 'meg':
        info = meg_helmet.info(p.chans, p.sfreq, _head()[0])
        return info, meg_helmet.units(info)
    return _info(dict.fromkeys((*p.chans, *more)), p.sfreq), 1e-6


@functools.lru_cache(1)
def _head() -> tuple[mne.bem.ConductorModel, dict[str, np.ndarray]]:
    """The sphere fitted to all electrodes of the montage, and their places in head coordinates (m)."""
    info = _info(montage().ch_names, 250.0)
    sphere = mne.make_sphere_model('auto', 'auto', info, verbose='ERROR')
    return sphere, {c['ch_name']: c['loc'][:3] for c in info['chs']}


def _gain(p: Paradigm, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """How the sources of this subject reach the sensors.

    Returns: [C, R + S], each source 1 uV at its strongest sensor (of coils, in their unit); and a factor [C, C] of the
    covariance of the background, 1 uV rms on average (dipoles that share a spectrum need no more than that).
    """
    sphere, place = _head()
    sources = [(r.electrode, r.depth) for r in _rhythms(p).values()] + list(p.sources.values())
    info, unit = _sensors(p, (*REFERENCE, *(name for name, _ in sources)))
    centre, radius, k = sphere['r0'], sphere['layers'][0]['rad'], len(sources)
    out = _unit(np.array([place[name] for name, _ in sources]) - centre)
    out = _unit(out + rng.normal(0, 0.06, out.shape))  # about 5 mm between subjects
    pos = centre + out * (radius - np.array([[depth * 1e-3] for _, depth in sources]))
    seen = _unit(np.cross(out, FORWARD)) if p.device == 'meg' else out
    ori = _unit(seen + rng.normal(0, 0.15, out.shape))  # about 9 degrees an axis
    far = _unit(rng.standard_normal((N_BACKGROUND, 3)))
    far[:, 2] = np.where(far[:, 2] < -0.4, -far[:, 2], far[:, 2])  # no cortex below the ears
    pos = np.r_[pos, centre + far * (radius - rng.uniform(0.01, 0.035, (N_BACKGROUND, 1)))]
    ori = np.r_[ori, _unit(rng.standard_normal((N_BACKGROUND, 3)))]
    m = len(pos)
    dipole = mne.Dipole(np.arange(m) * 1e-3, pos, np.full(m, 1e-8), ori, np.full(m, 100.0), verbose='ERROR')
    g = mne.make_forward_dipole(dipole, sphere, info, verbose='ERROR')[0]['sol']['data']
    g = g / unit if p.device == 'meg' else g - g[[info.ch_names.index(r) for r in REFERENCE]].mean(0)
    signal = g[: len(p.chans), :k] / np.abs(g[:, :k]).max(0)
    noise = g[: len(p.chans), k:] * np.exp(rng.normal(0, 0.5, N_BACKGROUND))
    cov = noise @ noise.T
    return signal, np.linalg.cholesky(cov / np.trace(cov) * len(cov) + 1e-6 * np.eye(len(cov)))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def _artefacts(p: Paradigm, who: Traits, rng: np.random.Generator, t: np.ndarray) -> np.ndarray:
    """Blinks, line, drift and noise of the sensors, f32[C, T] in uV."""
    forehead = _head()[1]['Fpz']
    shape = c, n = len(p.chans), len(t)
    places = [channel['loc'][:3] for channel in _sensors(p)[0]['chs']]
    front = np.array([np.exp(-np.linalg.norm(place - forehead) / 0.045) for place in places])  # fades in 45 mm
    blink, pulse = np.zeros(n), np.hanning(int(0.3 * p.sfreq))
    for i in rng.integers(0, n - len(pulse), rng.poisson(who.blink_rate * t[-1])):
        blink[i : i + len(pulse)] += pulse * rng.normal(1, 0.15)
    line = np.sin(2 * np.pi * LINE_HZ * t + rng.uniform(0, 6.28))
    out = np.outer(front * who.blink, blink) + np.outer(who.line * np.exp(rng.normal(0, 0.4, c)), line)
    out += noise(rng, shape, p.sfreq, lambda f: np.exp(-f / 0.05)) * who.drift
    return (out + rng.standard_normal(shape, dtype=np.float32) * who.sensor).astype(np.float32)
