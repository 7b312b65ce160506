"""Recordings of people at rest, simulated: diagnoses, age, sex, psychopathology. Who one is changes traits.

Of each diagnosis, what is added to the alpha peak (Hz) and to the exponent of the background, and the factor on each
named rhythm. The subject's number decides who it is; classes take turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from math import exp

import numpy as np

from jbench.data.simulation.paradigm import Paradigm, Person, Tracks, Traits, Trials, plain

SFREQ = 128.0  # Hz
CLINIC = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2'.split())
LONG_CLINIC = (*CLINIC, 'T9', 'T10')  # the 21 electrodes that TUAB and TUEV are read at
CHILD = tuple('Fp1 F3 Fz F4 C3 Cz C4 P3 Pz P4 O1 O2'.split())
RELEASES = ('R1', 'R2', 'R3', 'R4', 'R5')
GOLDEN = 0.6180339887498949


def release(subject: int) -> str:
    """The release of HBN that a subject is in; the tasks test on R5, which here is a fifth of all."""
    return RELEASES[subject % len(RELEASES)]


def _share(subject: int, first: float) -> float:
    """A number between 0 and 1, evenly spread over subjects."""
    return (first + subject * GOLDEN) % 1


def _resting(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """No event at all, for as long as the window says."""
    none = np.zeros(0)
    return plain(p, none, none.astype(int), p.window[1])


def _nothing(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    return {}, {}


def _resting_row(
    name: str, chans: tuple[str, ...], labels: tuple[str, ...], seconds: float, person: Callable[[int, int], Person]
) -> Paradigm:
    window = (0.0, seconds)
    return Paradigm(name, chans, SFREQ, labels, ((),), 0.0, 0.0, window, _nothing, trial=_resting, person=person)


# ---- diagnoses ----


def _diagnosed(
    name: str,
    chans: tuple[str, ...],
    table: Mapping[str, Mapping[str, float]],
    field: str = 'diagnosis',
    seconds: float = 60.0,
    halves: bool = False,
) -> Paradigm:
    """A paradigm whose subjects have one of the labels of a table. `halves`: every fourth is in the part 'eval'."""
    labels = tuple(table)

    def person(subject: int, session: int) -> Person:
        label = labels[subject % len(labels)]
        part = {'split': 'eval' if subject // len(labels) % 4 == 3 else 'train'} if halves else {}
        return Person({field: label} | part, table[label])

    return _resting_row(name, chans, labels, seconds, person)


PARKINSONS = tuple(
    'Fp1 Fz F3 F7 FC5 FC1 C3 T7 TP9 CP5 CP1 P3 P7 O1 Oz O2 P4 P8 TP10 CP6 CP2 Cz C4 T8 FT10 FC6 FC2 F4 F8 Fp2 AF7 AF3 '
    'AFz F1 F5 FT7 FC3 C1 C5 TP7 CP3 P1 P5 PO7 POz PO8 P6 P2 CPz CP4 TP8 C6 C2 FC4 FT8 F6 AF8 AF4 F2 FCz'.split()
)  # all that the task names
SLOW = {'alpha': -1.5, 'slope': 0.2, 'theta_f': 2.0, 'alpha_l': 0.7, 'alpha_r': 0.7}
DIAGNOSES = (
    _diagnosed(
        'dementia_diagnosis',
        CLINIC,
        {
            'alzheimers': SLOW | {'par_l': 0.6, 'par_r': 0.6, 'slope': 0.3},
            'dementia': {'theta_f': 2.6, 'beta_l': 0.5, 'beta_r': 0.5, 'slope': 0.3},
            'healthy': {'alpha': 0.3, 'alpha_l': 1.3, 'alpha_r': 1.3},
        },
    ),
    _diagnosed(
        'depression_diagnosis',
        CLINIC,
        {
            'healthy': {},
            'major_depressive_disorder': {'theta_f': 2.0, 'lang_l': 2.0, 'alpha_l': 1.5, 'alpha_r': 0.7, 'slope': -0.2},
        },
    ),
    _diagnosed(
        'parkinsons_diagnosis',
        PARKINSONS,
        {'Control': {}, 'PD': {'alpha': -0.8, 'slope': 0.2, 'theta_f': 1.7, 'beta_l': 2.0, 'beta_r': 2.0}},
    ),
    _diagnosed(
        'schizophrenia_diagnosis',
        CLINIC,
        {
            'Control': {},
            'Schizophrenic': {'theta_f': 2.4, 'alpha': -1.0, 'alpha_l': 0.6, 'alpha_r': 0.6, 'beta_l': 2.0},
        },
    ),
    _diagnosed('pathology', LONG_CLINIC, {'abnormal': SLOW, 'normal': {}}, 'label', 120.0, halves=True),
)


# ---- children of the Healthy Brain Network ----


def _child(values: Callable[[int], Person]) -> Callable[[int, int], Person]:
    def person(subject: int, session: int) -> Person:
        fields, change = values(subject)
        return Person({**fields, 'task': 'task-RestingState', 'release': release(subject)}, change)

    return person


def _aged(subject: int) -> Person:
    """5 to 21 years: alpha gets faster, the background flatter, theta smaller."""
    age = round(5 + 16 * _share(subject, 0.5), 2)
    middle = (age - 13) / 8  # -1 to 1
    alpha = 8 + 2.5 * (1 - exp(-age / 8)) - 10
    return Person({'age': str(age)}, {'alpha': 1.5 * alpha, 'slope': -0.25 * middle, 'theta_f': exp(-0.5 * middle)})


def _sexed(subject: int) -> Person:
    sex = 'FM'[subject % 2]
    return Person({'sex': sex}, {'beta_l': 1.8, 'beta_r': 1.8, 'lang_l': 1.6} if sex == 'F' else {})


def _externalizing(subject: int) -> Person:
    """A standard score: more theta and less beta with it."""
    score = round(statistics.NormalDist().inv_cdf(0.02 + 0.96 * _share(subject, 0.5)), 3)
    less, more = exp(-0.4 * score), exp(0.4 * score)
    return Person({'externalizing': str(score)}, {'theta_f': more, 'beta_l': less, 'beta_r': less, 'lang_l': less})


CHILDREN = tuple(
    _resting_row(name, CHILD, labels, 190.0, _child(values))
    for name, labels, values in (
        ('age', (), _aged),
        ('sex', ('F', 'M'), _sexed),
        ('psychopathology', (), _externalizing),
    )
)
PARADIGMS = (*DIAGNOSES, *CHILDREN)
