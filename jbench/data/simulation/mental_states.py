"""Sustained states, simulated: emotions, calculation, workload. How far each state pulls which rhythm."""

from __future__ import annotations

import numpy as np

from jbench.data.simulation.paradigm import Paradigm, Person, Rhythm, Trials, plain, states

SFREQ = 128.0  # Hz
CHANS = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 C3 Cz C4 P3 Pz P4 O1 O2'.split())
FRONTAL = {'front_l': Rhythm('F3', 14, 1, 0.0, 0.8, 5.0), 'front_r': Rhythm('F4', 14, 1, 0.0, 0.8, 5.0)}


def _whole(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """One state for a whole recording, which holds no event."""
    trials = plain(p, np.zeros(1), np.array([session]), p.window[1])
    return trials._replace(events={k: v[:0] for k, v in trials.events.items()})


def _emotion(valence: float, arousal: float, **more: float) -> dict[str, float]:
    """Positive emotions weaken alpha on the left, negative ones on the right; arousal raises beta."""
    return {
        'front_l': 1.5**-valence,
        'front_r': 1.5**valence,
        'beta_l': 1.4**arousal,
        'beta_r': 1.4**arousal,
        **more,
    }


EMOTIONS = {  # of FACED
    'amusement': _emotion(1, 1, theta_f=0.6),
    'anger': _emotion(-1, 1, par_r=0.5),
    'disgust': _emotion(-1, 0, theta_f=1.8),
    'fear': _emotion(-1, 1, alpha_l=0.5, alpha_r=0.5),
    'inspiration': _emotion(1, 0, lang_l=2.0),
    'joy': _emotion(1, 1, alpha_l=1.5, alpha_r=1.5),
    'neutral': _emotion(0, -1),
    'sadness': _emotion(-1, -1, par_l=1.7),
    'tenderness': _emotion(1, -1, mu_l=1.6, mu_r=1.6),
}
ARITHMETIC = {
    'mental_arithmetic': {'theta_f': 2.4, 'par_l': 0.4, 'par_r': 0.45, 'alpha_l': 0.5, 'alpha_r': 0.5},
    'rest': {'alpha_l': 1.3, 'alpha_r': 1.3},
}
WORKLOAD = {
    'MATBdiff': {'theta_f': 2.2, 'par_l': 0.45, 'par_r': 0.45, 'alpha_l': 0.6, 'alpha_r': 0.6},
    'MATBeasy': {'theta_f': 0.9, 'par_l': 1.1, 'par_r': 1.1},
    'MATBmed': {'theta_f': 1.5, 'par_l': 0.7, 'par_r': 0.7, 'alpha_l': 0.8, 'alpha_r': 0.8},
}


def _recordings(name: str, table: dict[str, dict[str, float]], seconds: float) -> Paradigm:
    """A recording for each state."""
    labels, window = tuple(table), (0.0, seconds)

    def person(subject: int, session: int) -> Person:
        return Person({'task': labels[session]})

    counts = ((1,),) * len(labels)
    return Paradigm(name, CHANS, SFREQ, labels, counts, 0, 0, window, states(table), trial=_whole, person=person)


PARADIGMS = (
    Paradigm(
        'emotion',
        CHANS,
        SFREQ,
        tuple(EMOTIONS),
        ((1,) * 9,),
        33.0,
        1.0,
        (0.0, 30.0),
        states(EMOTIONS),
        rhythms=FRONTAL,
    ),
    _recordings('mental_arithmetic', ARITHMETIC, 90.0),
    _recordings('mental_workload', WORKLOAD, 45.0),
)
