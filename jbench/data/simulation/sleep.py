"""Sleep, simulated: its stages, arousals, and falling asleep. Each stage has its rhythms, and graphs such as spindles.

Short nights: epochs of 30 s, four electrodes.
"""

from __future__ import annotations

import numpy as np

from jbench.data.simulation.paradigm import Paradigm, Person, Rhythm, Tracks, Traits, Trials, both, plain, states
from jbench.data.simulation.waveforms import glance, k_complex, spindle, waves

SFREQ = 100.0  # Hz, as Sleep-EDF
EPOCH = 30.0  # s
CHANS = ('Fpz', 'Cz', 'Pz', 'Oz')
STAGES = ('W', 'N1', 'N2', 'N3', 'R')
RHYTHMS = {
    'delta': Rhythm('Fz', 25, 0, 1.2, 0.5, 12.0),
    'theta_c': Rhythm('Cz', 20, 0, 5.5, 0.9, 5.0),
    'fast': Rhythm('Fz', 20, 0, 25.0, 5.0, 3.0),
}
SOURCES = {'cz': ('Cz', 14.0), 'fz': ('Fz', 20.0), 'eyes': ('Fpz', 8.0)}
ASLEEP = {
    'W': {'alpha_l': 1.5, 'alpha_r': 1.5, 'fast': 1.6, 'delta': 0.5},
    'N1': {'alpha_l': 0.4, 'alpha_r': 0.4, 'theta_c': 1.8, 'delta': 0.9},
    'N2': {'alpha_l': 0.3, 'alpha_r': 0.3, 'theta_c': 1.6, 'delta': 1.8, 'fast': 0.7},
    'N3': {'alpha_l': 0.2, 'alpha_r': 0.2, 'theta_c': 1.4, 'delta': 4.5, 'fast': 0.4},
    'R': {'alpha_l': 0.4, 'alpha_r': 0.4, 'theta_c': 1.5, 'delta': 0.6, 'fast': 1.1},
}
GRAPHS = {  # a minute
    'N2': (('cz', 20.0, spindle, 6.0), ('fz', 100.0, k_complex, 2.0)),
    'N3': (('cz', 15.0, spindle, 1.0),),
    'R': (('eyes', 60.0, glance, 12.0),),
}
# stage and how many epochs at least; up to two more
NIGHT = (('W', 2), ('N1', 2), ('N2', 3), ('N3', 4), ('N2', 1), ('R', 4), ('W', 1), ('N1', 2), ('N2', 1), ('R', 1))


def hypnogram(p: Paradigm, runs: list[tuple[str, float]]) -> Trials:
    """A night of the given stages (and how long each lasts, s), with the markers of its first N2.

    A SleepStage event for each run of a stage; SleepOnset, the last 20 minutes before N2.
    """
    label = np.array([p.labels.index(stage) for stage, _ in runs])
    lasts = np.array([seconds for _, seconds in runs])
    onset = np.r_[0.0, np.cumsum(lasts)[:-1]]
    n2 = float(onset[label == p.labels.index('N2')][0])
    trials = plain(p, onset, label, lasts.sum(), duration=lasts)
    start = max(0.0, n2 - 1200)
    stage = np.array(p.labels)[label]
    return trials._replace(
        events={
            'onset': np.r_[onset, start],
            'duration': np.r_[lasts, n2 - start],
            'type': np.array([*['SleepStage'] * len(onset), 'SleepOnset']),
            'stage': np.r_[stage, ['']],
            'n2_onset': np.full(len(onset) + 1, n2),
        }
    )


def _night(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    return hypnogram(p, [(stage, EPOCH * (n + rng.integers(0, 3))) for stage, n in NIGHT])


# ---- falling asleep ----

DROWSY = {'alpha_l': 0.3, 'alpha_r': 0.3, 'theta_c': 3.0, 'fast': 0.4, 'delta': 2.0}  # at the first N2, over awake
FALLS_IN = 250.0  # s


def _evening(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Awake for 5 to 13 minutes, a minute of N1, half a minute of N2."""
    return hypnogram(p, [('W', round(rng.uniform(240, 720))), ('N1', 2 * EPOCH), ('N2', EPOCH)])


def falling_asleep(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Drowsiness grows towards the first N2: each rhythm moves towards its level there, most in the last minutes."""
    left = trials.events['n2_onset'][0] - trials.t
    near = np.exp(-np.maximum(left, 0) / FALLS_IN)
    return {name: (level ** (near * who.depth)).astype(np.float32) for name, level in DROWSY.items()}, {}


# ---- arousals ----

AROUSED = {
    'sleep': {'alpha_l': 0.3, 'alpha_r': 0.3, 'delta': 1.8, 'fast': 0.7},
    'arousal': {'alpha_l': 4.0, 'alpha_r': 4.0, 'fast': 3.5, 'delta': 0.6},  # over sleep
}


def _restless(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Sleep with an arousal of 6 to 12 s somewhere in each 45 s: events of type SleepArousal."""
    n = p.counts[session][1]
    onset = np.r_[0.0, p.soa * np.arange(n) + rng.uniform(0, p.jitter, n)]
    seconds = p.soa * n
    label = np.r_[0, np.ones(n, int)]
    trials = plain(p, onset, label, seconds, duration=np.r_[seconds, rng.uniform(6, 12, n)])
    words = {'type': np.full(n, 'SleepArousal'), 'state': np.full(n, 'rera'), 'label': np.full(n, 'arousal')}
    return trials._replace(events={k: trials.events[k][1:] for k in ('onset', 'duration')} | words)


def _labelled(subject: int, session: int) -> Person:
    return Person({'split': 'train'})


PARADIGMS = (
    Paradigm(
        'sleep_stage',
        CHANS,
        SFREQ,
        STAGES,
        ((),),
        0,
        0,
        (0.0, EPOCH),
        both(states(ASLEEP, spread=0.1), waves(GRAPHS)),
        SOURCES,
        RHYTHMS,
        trial=_night,
    ),
    Paradigm(
        'sleep_onset',
        CHANS,
        SFREQ,
        STAGES,
        ((),),
        0,
        0,
        (0.0, 5.0),
        falling_asleep,
        rhythms=RHYTHMS,
        trial=_evening,
    ),
    Paradigm(
        'sleep_arousal',
        CHANS,
        SFREQ,
        ('sleep', 'arousal'),
        ((1, 8),),
        45.0,
        33.0,
        (0.0, 15.0),
        states(AROUSED),
        rhythms=RHYTHMS,
        trial=_restless,
        person=_labelled,
    ),
)
