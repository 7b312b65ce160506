"""GeneratedSentences: 60 sentences, and 24 units that respond to what they are about; made from a seed, no files.

Units answer to the words' kinds and to the length of a sentence, with noise that differs between three repetitions.
A set whose stimuli are texts, small enough for a test.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jbench.alignment import assembly as make
from jbench.alignment import stimuli

if TYPE_CHECKING:
    from xarray import DataArray

SUBJECTS = {
    'animal': ('the dog', 'a small bird', 'her old cat', 'the horse'),
    'person': ('the boy', 'my aunt', 'a nurse'),
}
ACTS = {'motion': ('runs to', 'walks towards', 'jumps over'), 'sight': ('looks at', 'sees', 'watches')}
OBJECTS = {'food': ('the bread', 'a red apple', 'some soup'), 'place': ('the garden', 'a quiet street', 'the wall')}
N, N_UNITS, REPETITIONS, SEED = 60, 24, 3, 20230
NOISE = 1.0  # standard deviation of a repetition, in units of what the sentences evoke


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Sentences and responses; `data_dir` and `which` are not used."""
    del data_dir, which
    rng = np.random.default_rng(SEED)
    every = [
        (who, act, what, f'{subject} {verb} {thing}.'.capitalize())
        for who, subjects in SUBJECTS.items()
        for act, verbs in ACTS.items()
        for what, things in OBJECTS.items()
        for subject in subjects
        for verb in verbs
        for thing in things
    ]
    chosen = [every[k] for k in sorted(rng.choice(len(every), N, replace=False).tolist())]
    ids = [f'sentence{k + 1:02d}' for k in range(N)]
    subject, act, thing, texts = (list(column) for column in zip(*chosen, strict=True))
    length = np.array([len(t.split()) for t in texts], float)
    kinds = [np.array(subject) == 'animal', np.array(act) == 'motion', np.array(thing) == 'food']
    causes = np.stack([*kinds, (length - length.mean()) / length.std()], 1).astype(float)
    evoked = (causes - causes.mean(0)) @ rng.standard_normal((4, N_UNITS))
    evoked /= evoked.std(0)
    responses = evoked + NOISE * rng.standard_normal((REPETITIONS, N, N_UNITS))
    table = {'stimulus_id': ids, 'image_label': subject, 'act': act, 'object': thing}
    presentation = {'stimulus_id': np.tile(ids, REPETITIONS), 'repetition': np.repeat(np.arange(REPETITIONS), N)}
    neuroid = {'neuroid_id': [str(u) for u in range(N_UNITS)], 'region': ['language'] * N_UNITS}
    values = responses.reshape(-1, N_UNITS).astype(np.float32)
    made = make.neuroids(values, presentation=presentation, neuroid=neuroid)
    return stimuli.of_arrays('GeneratedSentences', table, texts), made
