"""Typing with a wristband on each arm, simulated: bursts of the forearm's muscles.

Sixteen electrodes stand around each wrist. Each finger has a muscle of its own under some of them; a key is a burst of
its finger's muscle just before the press: noise of 20 to 450 Hz under an envelope of a tenth of a second. Subjects
differ in how a band sits and in how strong each muscle is. What is typed are drills of the home row, one key a finger.
"""

from __future__ import annotations

import numpy as np

from jbench.data.simulation.paradigm import (
    LEAD_IN,
    LEAD_OUT,
    Paradigm,
    Person,
    Source,
    Tracks,
    Traits,
    Trials,
    gaussian,
    noise,
    plain,
    silent,
)

SFREQ = 2000.0  # Hz
N_ELECTRODES = 16  # of a band
BAND = (20.0, 450.0)  # Hz
BURST, TONE, LINE, SENSOR = 250.0, 5.0, 3.0, 3.0  # uV at the strongest electrode; of line and sensor, at each
WIDTH = 0.5  # rad: how far around the wrist a muscle is felt
KEYS = {  # of the home row: the hand and place (in electrodes) of the muscle that presses it
    'a': ('left', 1.0),
    's': ('left', 4.0),
    'd': ('left', 7.0),
    'f': ('left', 10.0),
    'Key.space': ('right', 14.0),
    'j': ('right', 10.0),
    'k': ('right', 7.0),
    'l': ('right', 4.0),
}
WORDS = 'ask all fall lad sad dad lass flask salad alas fad add falls lads asks jak'.split()
MUSCLES: dict[str, Source] = dict.fromkeys(KEYS, ('', 0.0))
SECONDS = 37.0


def _drill(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Words in random order for half a minute: events of type Keystroke."""
    keys: list[str] = []
    while len(keys) < SECONDS / p.soa:
        keys += [*WORDS[rng.integers(len(WORDS))], 'Key.space']
    onset = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, len(keys)))
    n = int(np.searchsorted(onset, SECONDS - LEAD_OUT))
    label = np.array([p.labels.index(key) for key in keys[:n]])
    trials = plain(p, onset[:n], label, SECONDS, duration=np.full(n, 0.1), type=np.full(n, 'Keystroke'))
    return trials._replace(events={k: v for k, v in trials.events.items() if k != 'code'})


def bursts(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Activity of each muscle, uV: a burst before each press of its key."""
    tracks, t = silent(KEYS, len(trials.t)), trials.t
    for onset, label in zip(trials.onset, trials.label, strict=True):
        at, sd = onset - 0.05 + rng.normal(0, 0.005), 0.035
        i, j = np.searchsorted(t, (at - 4 * sd, at + 4 * sd))
        tracks[trials.paradigm.labels[label]][i:j] += who.evoked * rng.normal(1, 0.15) * gaussian(t[i:j], at, sd)
    carrier = noise(rng, (len(tracks), len(t)), SFREQ, lambda f: (f > BAND[0]) & (f < BAND[1]))
    return {}, {name: BURST * envelope * wave for (name, envelope), wave in zip(tracks.items(), carrier, strict=True)}


def arms(
    trials: Trials, who: Traits, tracks: np.ndarray, anatomy: np.random.Generator, rng: np.random.Generator
) -> np.ndarray:
    """Samples [32, T] in V: the left band, then the right one, each in order around the wrist."""
    n, step = len(trials.t), 2 * np.pi / N_ELECTRODES
    turned = dict(zip(('left', 'right'), anatomy.normal(0, 0.4, 2), strict=True))  # electrodes
    strength = np.exp(anatomy.normal(0, 0.2, len(KEYS)))
    gain = np.zeros((2 * N_ELECTRODES, len(KEYS)))
    for k, (hand, place) in enumerate(KEYS.values()):
        apart = (np.arange(N_ELECTRODES) - place - turned[hand]) * step
        felt = np.exp((np.cos(apart) - 1) / WIDTH**2)
        gain[:N_ELECTRODES, k] = felt * (hand == 'left')
        gain[N_ELECTRODES:, k] = felt * (hand == 'right')
    tone = TONE * noise(rng, (len(KEYS), n), SFREQ, lambda f: (f > BAND[0]) & (f < BAND[1]))
    out = (gain * strength).astype(np.float32) @ (tracks + tone)
    out += LINE * np.sin(2 * np.pi * 50.0 * trials.t + rng.uniform(0, 6.28)).astype(np.float32)
    out += SENSOR * rng.standard_normal(out.shape, dtype=np.float32)
    return out * 1e-6


def _numbered(subject: int, session: int) -> Person:
    return Person({'recording_index': str(subject)})


PARADIGMS = (
    Paradigm(
        'emg_typing',
        tuple(f'EMG_{hand}{k:02d}' for hand in 'LR' for k in range(N_ELECTRODES)),
        SFREQ,
        tuple(KEYS),
        ((),),
        0.2,
        0.15,
        (-0.9, 5.0),
        bursts,
        MUSCLES,
        trial=_drill,
        person=_numbered,
        device='emg',
        body=arms,
    ),
)
