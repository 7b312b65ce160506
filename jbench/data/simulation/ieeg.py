"""A film of music and speech, simulated for contacts in the brain: every window of Neuroprobe's tasks is answered.

Each task has a source beside one contact, another one in each person. What it asks of a window goes there up or down;
speech is answered by a rhythm, too. All contacts share what their reference reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jbench.data.formats import neuroprobe
from jbench.data.simulation.paradigm import (
    LEAD_IN,
    LEAD_OUT,
    Paradigm,
    Source,
    Tracks,
    Traits,
    Trials,
    box,
    gaussian,
    noise,
    silent,
)

SFREQ = 256.0  # Hz
SHAFTS, CONTACTS = 'ABC', 8
CHANS = tuple(f'{shaft}{k}' for shaft in SHAFTS for k in range(1, CONTACTS + 1))
BLOCKS, BLOCK = 13, 20.0  # of a film, music first; s
ANSWER, RHYTHM = 25.0, 12.0  # uV at the nearest contact: of a window; of speech
AT, WIDTH = 0.3, 0.08  # s after the start of a window
BACKGROUND, SHARED, LINE, SENSOR = 20.0, 30.0, 5.0, 1.0  # uV rms
FADES = 0.8  # contacts
SOURCES: dict[str, Source] = dict.fromkeys((*map(neuroprobe.event_type, neuroprobe.TASKS), 'Block'), ('', 0.0))


def _spoken(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The words of the film, with columns as Neuroprobe has them, and starts of seconds without speech, s."""
    rows: list[dict[str, Any]] = []
    sentence, left, silence = 0, 0, list[float]()
    for block in range(BLOCKS):
        t, stop = LEAD_IN + block * BLOCK, LEAD_IN + (block + 1) * BLOCK
        if block % 2 == 0:
            silence += np.arange(t + 2, stop - 3, 0.5).tolist()
            continue
        t += 0.3
        while t < stop - 1.5:
            first = left == 0
            if first:
                left, sentence = int(rng.integers(3, 7)), sentence + 1
            rows.append(
                {'start': t, 'end': t + rng.uniform(0.25, 0.45), 'sentence': str(sentence), 'is_onset': int(first)}
            )
            rows[-1]['idx_in_sentence'] = 0 if first else rows[-2]['idx_in_sentence'] + 1
            left -= 1
            t = rows[-1]['end'] + rng.uniform(0.02, 0.25) + 0.5 * (left == 0)
        left = 0
    n = len(rows)
    words = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    drawn: dict[str, np.ndarray] = {name: rng.standard_normal(n) for name in neuroprobe.NUMBERS.values()}
    drawn |= {'face_num': rng.integers(0, 3, n), 'bin_head': rng.integers(0, 2, n)}
    return words | drawn | {'pos': rng.choice(['VERB', 'NOUN', 'PRON'], n)}, np.array(silence)


def film(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """A film of some four minutes: windows of all tasks, and its blocks."""
    words, quiet = _spoken(rng)
    columns = neuroprobe.events(words, np.round(words['start'] * SFREQ) / SFREQ, quiet)
    n = len(columns['onset'])
    blocks: dict[str, list[Any]] = {
        'onset': [LEAD_IN + k * BLOCK for k in range(BLOCKS)],
        'duration': [BLOCK] * BLOCKS,
        'type': ['Block'] * BLOCKS,
        'label': [('music', 'speech')[k % 2] for k in range(BLOCKS)],
        'half': [''] * BLOCKS,
        'quarter': [''] * BLOCKS,
    }
    table = {name: np.array(values + blocks[name]) for name, values in columns.items()}
    table['block'] = np.array([''] * n + [str(k) for k in range(BLOCKS)])
    t = np.arange(int((LEAD_IN + BLOCKS * BLOCK + LEAD_OUT) * SFREQ)) / SFREQ
    return Trials(p, table['onset'], np.zeros(n + BLOCKS, int), t, table['duration'], table)


def answers(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Up after a window of class 1, down after one of class 0; a rhythm while somebody speaks."""
    tracks, t = silent(SOURCES, len(trials.t)), trials.t
    for onset, kind, label in zip(*(trials.events[k].tolist() for k in ('onset', 'type', 'label')), strict=True):
        size = who.evoked * rng.normal(1, 0.15)
        if kind == 'Block':
            i, j = np.searchsorted(t, (onset - 0.5, onset + BLOCK + 0.5))
            wave = np.sin(2 * np.pi * 18.0 * t[i:j] + rng.uniform(0, 6.28)) * box(t[i:j] - onset, 0, BLOCK, 0.3)
            tracks[kind][i:j] += RHYTHM * size * wave * (label == 'speech')
        else:
            i, j = np.searchsorted(t, (onset + AT - 4 * WIDTH, onset + AT + 4 * WIDTH))
            tracks[kind][i:j] += (1 if label == '1' else -1) * ANSWER * size * gaussian(t[i:j] - onset, AT, WIDTH)
    return {}, tracks


def contacts(
    trials: Trials, who: Traits, tracks: np.ndarray, anatomy: np.random.Generator, rng: np.random.Generator
) -> np.ndarray:
    """Samples [24, T] in V: three shafts, one contact after the other."""
    n, near = len(trials.t), anatomy.integers(0, len(CHANS), len(SOURCES))
    place = np.arange(len(CHANS))
    apart = np.abs(place[:, None] - near) / FADES
    gain = np.exp(-apart) * (place[:, None] // CONTACTS == near // CONTACTS)
    out = gain.astype(np.float32) @ tracks
    out += BACKGROUND * noise(rng, (len(CHANS), n), SFREQ, lambda f: np.maximum(f, 0.5) ** (-who.slope / 2))
    out += SHARED * noise(rng, (1, n), SFREQ, lambda f: np.maximum(f, 0.5) ** -0.5)
    out += LINE * np.sin(2 * np.pi * 60.0 * trials.t + rng.uniform(0, 6.28)).astype(np.float32)
    out += SENSOR * rng.standard_normal(out.shape, dtype=np.float32)
    return out * 1e-6


PARADIGMS = (
    Paradigm(
        'ieeg_film',
        CHANS,
        SFREQ,
        ('',),
        ((), ()),
        0.0,
        0.0,
        (0.0, 1.0),
        answers,
        SOURCES,
        trial=film,
        device='seeg',
        body=contacts,
    ),
)
