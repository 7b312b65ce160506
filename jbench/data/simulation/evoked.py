"""Evoked responses, simulated: the components of the ERP CORE, sights and sounds, reaction time, typing.

Tables of bumps (source, uV, s after the event, sd in s). Onsets are the true ones, of stimuli or of key presses.
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
    box,
    gaussian,
    plain,
    responses,
    silent,
)
from jbench.data.simulation.traits import release

SFREQ = 128.0  # Hz
ERP = tuple('Fp1 F3 Fz F4 FCz C3 Cz C4 CPz P3 Pz P4 P7 P8 PO7 PO8 O1 Oz O2'.split())
AUDIOVISUAL = tuple('Fp1 F3 Fz F4 FCz T7 C3 Cz C4 T8 CPz P7 P3 Pz P4 P8 O1 Oz O2'.split())
SEEN: dict[str, Source] = {'v1_l': ('O1', 16.0), 'v1_r': ('O2', 16.0)}
HEARD: dict[str, Source] = {'a1_l': ('T7', 18.0), 'a1_r': ('T8', 18.0)}
PAIR = ('Target', 'NonTarget')
EPOCH = (-0.2, 1.0)

P1_N1 = (('v1_l', 3.0, 0.1, 0.015), ('v1_r', 3.0, 0.1, 0.015))
TONE = (('a1_l', -2.0, 0.1, 0.02), ('a1_r', -2.0, 0.1, 0.02))
ERP_CORE = (
    Paradigm(
        'n170',  # a face (Target) or a car
        ERP,
        SFREQ,
        PAIR,
        ((40, 40),),
        0.9,
        0.2,
        EPOCH,
        responses(
            {
                '': P1_N1,
                'Target': (('face_r', -6.0, 0.17, 0.015), ('face_l', -3.6, 0.17, 0.015)),
                'NonTarget': (('face_r', -2.0, 0.17, 0.015), ('face_l', -1.2, 0.17, 0.015)),
            }
        ),
        SEEN | {'face_r': ('P8', 30.0), 'face_l': ('P7', 30.0)},
    ),
    Paradigm(
        'mismatch_negativity',  # a deviant tone (Target) or the standard one
        ERP,
        SFREQ,
        PAIR,
        ((20, 100),),
        0.5,
        0.05,
        EPOCH,
        responses({'': TONE, 'Target': (('fcz', -5.0, 0.15, 0.03), ('fcz', 4.0, 0.25, 0.03))}),
        HEARD | {'fcz': ('FCz', 25.0)},
    ),
    Paradigm(
        'n400',  # a word unrelated to the one before (Target) or related
        ERP,
        SFREQ,
        PAIR,
        ((40, 40),),
        1.1,
        0.2,
        EPOCH,
        responses({'': P1_N1, 'Target': (('cpz', -6.0, 0.4, 0.08),), 'NonTarget': (('cpz', -1.0, 0.4, 0.08),)}),
        SEEN | {'cpz': ('CPz', 30.0)},
    ),
    Paradigm(
        'n2pc',  # what is searched for lies on the left (Target) or on the right
        ERP,
        SFREQ,
        PAIR,
        ((40, 40),),
        1.0,
        0.2,
        EPOCH,
        responses(
            {
                '': (('po_l', -3.0, 0.16, 0.02), ('po_r', -3.0, 0.16, 0.02)),
                'Target': (('po_r', -4.0, 0.25, 0.03),),
                'NonTarget': (('po_l', -4.0, 0.25, 0.03),),
            }
        ),
        {'po_l': ('PO7', 16.0), 'po_r': ('PO8', 16.0)},
    ),
    Paradigm(
        'ern',  # a wrong press (Target) or a right one
        ERP,
        SFREQ,
        PAIR,
        ((12, 84),),
        1.0,
        0.2,
        EPOCH,
        responses(
            {
                '': (('fcz', -1.0, 0.05, 0.025),),
                'Target': (('fcz', -6.0, 0.05, 0.025), ('pz', 5.0, 0.25, 0.06)),
            }
        ),
        {'fcz': ('FCz', 25.0), 'pz': ('Pz', 25.0)},
    ),
    Paradigm(
        'lrp',  # a press of the left hand (Target) or of the right: the other side's cortex leads up to it
        ERP,
        SFREQ,
        PAIR,
        ((40, 40),),
        1.3,
        0.2,
        (-0.8, 1.0),
        responses(
            {
                '': (('m1_l', -1.5, -0.1, 0.1), ('m1_r', -1.5, -0.1, 0.1)),
                'Target': (('m1_r', -4.0, -0.05, 0.08),),
                'NonTarget': (('m1_l', -4.0, -0.05, 0.08),),
            }
        ),
        {'m1_l': ('C3', 14.0), 'm1_r': ('C4', 14.0)},
    ),
)


# ---- how fast one reacts ----

REACTION = (0.5, 2.2)  # s, least and most


def _in_a_release(subject: int, session: int) -> Person:
    return Person({'task': 'task-contrastChangeDetection', 'release': release(subject)})


def _reacting(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Targets and presses: events of type Stimulus and Keystroke, each with the reaction time of its trial (s)."""
    n = p.counts[session][0]
    seen = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, n))
    time = np.round(rng.uniform(*REACTION, n), 3)
    onset = np.stack([seen, seen + time], 1).ravel()
    columns = {
        'type': np.tile(['Stimulus', 'Keystroke'], n),
        'duration': np.full(2 * n, 0.1),
        'reaction_time': np.repeat(time, 2),
    }
    return plain(p, onset, np.zeros(2 * n, int), onset[-1] + LEAD_OUT, **columns)


def reaction_time(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """A parietal positivity that builds up to the press; in slow trials attention had lapsed: more alpha and less
    frontal theta from before the target until well after the press."""
    rhythms = {'alpha_l': 1.9, 'alpha_r': 1.9, 'par_l': 1.7, 'par_r': 1.7, 'theta_f': 0.6}  # slowest over middle
    envelopes = {name: np.ones(len(trials.t), np.float32) for name in rhythms}
    tracks = silent(trials.paradigm.sources, len(trials.t))
    seen = trials.events['type'] == 'Stimulus'
    for onset, time in zip(trials.onset[seen], trials.events['reaction_time'][seen], strict=True):
        i, j = np.searchsorted(trials.t, (onset - 1.0, onset + time + 3.4))
        u = trials.t[i:j] - onset
        lapse = 2 * (time - REACTION[0]) / (REACTION[1] - REACTION[0]) - 1 + rng.normal(0, 0.2)  # -1 to 1
        for name, level in rhythms.items():
            envelopes[name][i:j] *= level ** (who.depth * lapse * box(u, -0.5, time + 3.0, 0.4))
        size = who.evoked * rng.normal(1, 0.15)
        tracks['cpp'][i:j] += 8 * size * gaussian(u, time, 0.08 + 0.12 * (time - REACTION[0]))
    return envelopes, tracks


PARADIGMS = (
    *ERP_CORE,
    Paradigm(
        'audiovisual_stimulus',  # a tone in one ear, or a checkerboard on one side: the other half of the brain answers
        AUDIOVISUAL,
        SFREQ,
        ('left_audio', 'left_visual', 'right_audio', 'right_visual'),
        ((24,) * 4,),
        0.75,
        0.1,
        EPOCH,
        responses(
            {
                'left_audio': (('a1_r', -5.0, 0.1, 0.02), ('a1_l', -2.5, 0.11, 0.02)),
                'right_audio': (('a1_l', -5.0, 0.1, 0.02), ('a1_r', -2.5, 0.11, 0.02)),
                'left_visual': (('v1_r', 6.0, 0.1, 0.015), ('v1_r', -6.0, 0.16, 0.02)),
                'right_visual': (('v1_l', 6.0, 0.1, 0.015), ('v1_l', -6.0, 0.16, 0.02)),
            }
        ),
        SEEN | HEARD,
    ),
    Paradigm(
        'reaction_time',
        ERP,
        SFREQ,
        ('press',),
        ((32,),),
        5.8,
        0.4,
        (0.5, 2.0),
        reaction_time,
        {'cpp': ('CPz', 25.0)},
        trial=_reacting,
        person=_in_a_release,
    ),
)
