"""A story that one person hears in MEG, simulated: speech and silence, and eight phonemes in the speech."""

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
    silent,
)
from jbench.data.simulation.stimuli import HELMET

SFREQ = 128.0  # Hz
SECONDS = 180.0  # of a session
STEP, MIDDLE = 0.8, 0.4  # s from moment to moment, and where it is looked at
SPEECH, SILENCE, PHONEME = (1.5, 5.0), (0.8, 2.5), (0.15, 0.3)  # s, from and to
ENVELOPE, ANSWER = 8.0, 8.0  # uV: while somebody speaks; after a phoneme
AT, WIDTH = 0.12, 0.04  # s
SOURCES: dict[str, Source] = {
    't7': ('T7', 18.0),
    't8': ('T8', 18.0),
    'ft7': ('FT7', 18.0),
    'tp8': ('TP8', 18.0),
}
PHONEMES = {  # name -> sign of the answer of each source
    'aa': (1, 1, 1, 1),
    'iy': (1, 1, -1, -1),
    'uw': (1, -1, 1, -1),
    's': (-1, -1, 1, 1),
    'sh': (-1, -1, -1, -1),
    't': (-1, 1, -1, 1),
    'm': (1, -1, -1, 1),
    'n': (-1, 1, 1, -1),
}
PARTS = ('train', 'train', 'train', 'train', 'valid', 'test')  # by session


def story(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Stretches of speech and silence: moments, and phonemes."""
    spans, at, phonemes = list[tuple[float, float]](), LEAD_IN, list[float]()
    while at < SECONDS - LEAD_OUT - SPEECH[1]:
        stop = at + rng.uniform(*SPEECH)
        spans.append((at, stop))
        while (at := at + rng.uniform(*PHONEME)) < stop - 0.1:
            phonemes.append(at)
        at = stop + rng.uniform(*SILENCE)
    moments = np.arange(MIDDLE, SECONDS - STEP, STEP)
    heard = np.array([any(a <= t < b for a, b in spans) for t in moments])
    names = rng.choice(list(PHONEMES), len(phonemes))
    onset = np.concatenate([moments, np.round(np.array(phonemes) * SFREQ) / SFREQ])
    sizes = (len(moments), len(phonemes))
    table = {
        'onset': onset,
        'duration': np.repeat([STEP, 0.1], sizes),
        'type': np.repeat(['Moment', 'Phoneme'], sizes),
        'label': np.concatenate([np.where(heard, 'speech', 'silence'), names]),
    }
    t = np.arange(int(SECONDS * SFREQ)) / SFREQ
    return Trials(p, onset, np.zeros(len(onset), int), t, table['duration'], table)


def hearing(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Both sides answer while somebody speaks, and each phoneme in its own way."""
    tracks, t, events = silent(SOURCES, len(trials.t)), trials.t, trials.events
    spoken = [
        (o, label)
        for o, k, label in zip(events['onset'], events['type'], events['label'], strict=True)
        if k == 'Phoneme'
    ]
    envelope = np.zeros(len(t), np.float32)
    for onset, label in spoken:
        i, j = np.searchsorted(t, (onset - 0.3, onset + 0.8))
        envelope[i:j] = np.maximum(envelope[i:j], box(t[i:j] - onset, 0.0, 0.4, 0.1))
        i, j = np.searchsorted(t, (onset + AT - 4 * WIDTH, onset + AT + 4 * WIDTH))
        bump = ANSWER * who.evoked * rng.normal(1, 0.1) * gaussian(t[i:j] - onset, AT, WIDTH)
        for name, sign in zip(SOURCES, PHONEMES[label], strict=True):
            tracks[name][i:j] += sign * bump
    for name in ('t7', 't8'):
        tracks[name] += ENVELOPE * who.evoked * envelope
    return {}, tracks


def _part(subject: int, session: int) -> Person:
    return Person({'split': PARTS[session]})


PARADIGMS = (
    Paradigm(
        'meg_listening',
        HELMET,
        SFREQ,
        ('',),
        ((),) * len(PARTS),
        0.0,
        0.0,
        (-0.4, 0.8),
        hearing,
        SOURCES,
        trial=story,
        person=_part,
        device='meg',
    ),
)
