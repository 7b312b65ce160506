"""Clinical recordings, simulated: seizures, epileptic discharges, artefacts. Artefacts are shallow dipoles here too."""

from __future__ import annotations

import numpy as np

from jbench.data.simulation.paradigm import LEAD_IN, LEAD_OUT, Paradigm, Person, Source, Trials, plain
from jbench.data.simulation.traits import LONG_CLINIC
from jbench.data.simulation.waveforms import (
    chewing,
    evolving,
    glance,
    muscle,
    periodic,
    pop,
    seizure,
    shiver,
    spikes,
    waves,
)

SFREQ = 128.0  # Hz
CHANS = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2'.split())
SOURCES: dict[str, Source] = {
    'fz': ('Fz', 25.0),
    't7': ('T7', 14.0),
    't8': ('T8', 14.0),
    'temporal': ('P7', 14.0),
    'jaw_l': ('FT7', 4.0),
    'jaw_r': ('FT8', 4.0),
    'neck': ('Oz', 4.0),
    'eye_l': ('AF7', 4.0),
    'eye_r': ('AF8', 4.0),
    'lead': ('P4', 1.0),
}


def _fits(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Seizures of 12 to 22 s: events of type Seizure."""
    return _some(p, session, rng, 'Seizure', (12.0, 22.0), state=np.full(sum(p.counts[session]), 'seiz'))


def _some(
    p: Paradigm, session: int, rng: np.random.Generator, kind: str, lasts: tuple[float, float], **columns: np.ndarray
) -> Trials:
    """Trials of a type, each as long as chance will have it, in random order."""
    label = rng.permutation(np.repeat(np.arange(len(p.labels)), p.counts[session]))
    onset = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, len(label)))
    duration = np.round(rng.uniform(*lasts, len(label)), 2)
    columns = {'type': np.full(len(label), kind), 'state': np.array(p.labels)[label], **columns}
    return plain(p, onset, label, onset[-1] + lasts[1] + LEAD_OUT, duration=duration, **columns)


def _clinical(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    return _some(p, session, rng, 'ClinicalEvent', (1.0, 2.0))


def _artefacts(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    return _some(p, session, rng, 'Artifact', (2.0, 4.0))


def _in_part(subject: int, session: int) -> Person:
    return Person({'split': 'eval' if subject % 4 == 3 else 'train'})


PARADIGMS = (
    Paradigm(
        'seizure',
        CHANS,
        SFREQ,
        ('generalised', 'focal'),
        ((1, 1),),
        20.0,
        50.0,
        (0.0, 5.0),
        waves(
            {
                'generalised': (('fz', 100.0, seizure),),
                'focal': (('t7', 60.0, evolving),),
            }
        ),
        {k: SOURCES[k] for k in ('fz', 't7')},
        trial=_fits,
    ),
    Paradigm(
        'clinical_event',
        LONG_CLINIC,
        SFREQ,
        ('artf', 'bckg', 'eyem', 'gped', 'pled', 'spsw'),
        ((5, 5, 5, 5, 5, 5),),
        4.5,
        0.5,
        (-1.0, 3.0),
        waves(
            {
                'artf': (('jaw_l', 60.0, muscle), ('jaw_r', 60.0, muscle)),
                'eyem': (('eye_l+-eye_r', 100.0, glance),),
                'gped': (('fz', 60.0, periodic),),
                'pled': (('temporal', 60.0, periodic),),
                'spsw': (('t8', 100.0, spikes),),
            }
        ),
        SOURCES,
        trial=_clinical,
        person=_in_part,
    ),
    Paradigm(
        'artifact',
        CHANS,
        SFREQ,
        ('chew', 'elpp', 'eyem', 'musc', 'shiv'),
        ((2,) * 5,),
        7.5,
        1.0,
        (-1.0, 3.0),
        waves(
            {
                'chew': (('jaw_l+jaw_r', 80.0, chewing),),
                'elpp': (('lead', 150.0, pop),),
                'eyem': (('eye_l+-eye_r', 120.0, glance),),
                'musc': (('neck', 60.0, muscle),),
                'shiv': (('jaw_l', 40.0, shiver), ('jaw_r', 40.0, shiver), ('neck', 40.0, shiver)),
            }
        ),
        SOURCES,
        trial=_artefacts,
    ),
)
