"""People who see the same film, simulated.

The film decides when what is answered, and is one for all: every half second a latent, which eight sources answer; a
surprise every two to four seconds, answered by an N2 and a P3 of its size; and five slow courses (how much stirs, what
either hand does on the screen, speech, effort), which pull rhythms of the onlooker. How a brain answers is the
subject's own: its anatomy, a fifth of its answers, the size of them, delays, its rhythms and all of its background.
That a film does so is a stated assumption: sensorimotor rhythms fall where hands move, alpha where attention is bound,
and what stands out is answered as the rare tone of an oddball is (bci.py). Real films do so far more weakly.
"""

from __future__ import annotations

import numpy as np

from jbench.data.simulation import stimuli
from jbench.data.simulation.paradigm import (
    LEAD_IN,
    LEAD_OUT,
    Paradigm,
    Tracks,
    Traits,
    Trials,
    gaussian,
    noise,
    plain,
    stream,
)

CHANS = tuple('Fp1 Fp2 F3 Fz F4 FCz T7 C3 Cz C4 T8 CPz P7 P3 Pz P4 P8 O1 Oz O2'.split())
FILM = 'films/street.mp4'
SECONDS = 240.0
AGAIN = 0.5  # s, how often the film is answered
UV = 3.0  # rms of each bump at each source
APART = (2.0, 4.0)  # s between surprises
SURPRISE = (('pz', 8.0, 0.38, 0.07), ('fcz', -3.0, 0.22, 0.03))  # source, uV, s after it, sd in s
PULL = {  # course of the film -> factor on rhythms where it is one sd above its mean
    'stir': {'alpha_l': 0.8, 'alpha_r': 0.8, 'par_l': 0.85, 'par_r': 0.85},
    'right hand': {'mu_l': 0.65, 'beta_l': 0.75},
    'left hand': {'mu_r': 0.65, 'beta_r': 0.75},
    'speech': {'lang_l': 0.8},
    'effort': {'theta_f': 1.2},
}


def course(name: str, t: np.ndarray, sfreq: float) -> np.ndarray:
    """A slow course of the film, f32 [T]: mean 0, sd 1, below 0.5 Hz."""
    return noise(stream(FILM, name), (1, len(t)), sfreq, lambda f: np.exp(-0.5 * (f / 0.25) ** 2))[0]


def surprises() -> tuple[np.ndarray, np.ndarray]:
    """When something stands out, s of the film, and how much it does."""
    rng = stream(FILM, 'surprises')
    at = np.cumsum(rng.uniform(*APART, int(SECONDS / APART[0])))
    at = at[at < SECONDS - 1.0]
    return at, rng.uniform(0.5, 1.5, len(at))


def watching(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Answers to the latents of the film, and rhythms pulled by its courses."""
    (start,), t = trials.onset, trials.t
    steps = np.arange(0, SECONDS, AGAIN)
    _, tracks = stimuli.answered(trials, who, rng, ((start + s, f'{FILM}#{round(s / AGAIN)}') for s in steps), UV)
    for at, size in zip(*surprises(), strict=True):
        i, j = np.searchsorted(t, (start + at, start + at + 0.9))
        own = size * who.evoked * rng.normal(1, 0.15)
        for source, uv, after, sd in SURPRISE:
            delay = after * (1 + who.slow_delay / 0.38)
            tracks[source][i:j] += uv * own * gaussian(t[i:j] - start - at, delay, sd)
    shown = (t >= start) & (t < start + SECONDS)
    envelopes: Tracks = {}
    for name, factors in PULL.items():
        pull = np.where(shown, course(name, t, trials.paradigm.sfreq), 0) * who.depth
        for rhythm, factor in factors.items():
            envelopes[rhythm] = envelopes.get(rhythm, np.float32(1)) * (factor**pull).astype(np.float32)
    return envelopes, tracks


def _shown(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """The film, once: an event of type Film."""
    columns = {'type': np.array(['Film']), 'duration': np.array([SECONDS]), 'filepath': np.array([FILM])}
    trials = plain(p, np.array([LEAD_IN]), np.zeros(1, int), LEAD_IN + SECONDS + LEAD_OUT, **columns)
    return trials._replace(events={k: v for k, v in trials.events.items() if k not in ('code', 'label')})


PARADIGMS = (
    Paradigm(
        'film',
        CHANS,
        stimuli.SFREQ,
        ('',),
        ((),),
        0.0,
        0.0,
        (0.0, SECONDS),
        watching,
        stimuli.SOURCES | {'pz': ('Pz', 25.0), 'fcz': ('FCz', 25.0)},
        trial=_shown,
    ),
)
