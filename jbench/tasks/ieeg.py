"""Electrodes in the brain: the fifteen tasks of Neuroprobe, and music or speech in a film.

Windows, labels and metric of Neuroprobe are the published ones (formats/neuroprobe.py says from which commit). Its
three splits are those of `CROSS_SESSION`, `WITHIN_SESSION` and `CROSS_SUBJECT`; each person's contacts are his own, so
that a model is learnt for each, or regions of the brain stand for contacts. The signal and the recipe are ours: the
benchmark leaves both to the model (docs/ieeg.md).
"""

from __future__ import annotations

from jbench.spec.task import ByGroup, Classes, Predefined, Recipe, SignalSpec, Task, Window

REVISION = 'insight-neuro/neuroprobe@2d25f3d'
DOI = '10.48550/arXiv.2509.21671'
SIMULATED = 'SimulatedIeegFilm'
# the other session of a person tests, its first half validates
CROSS_SESSION = ByGroup(by='session', within='subject', folds='2', validate_by='quarter')
# the other half of a session tests, its first quarter validates
WITHIN_SESSION = ByGroup(by='half', within='session', folds='2', validate_by='quarter')
# one session of one person trains, halves of the other people's validate and test; with signal.regions
CROSS_SUBJECT = Predefined(field='cross_subject', test=('test',), valid_by='')
SIGNAL = SignalSpec(
    picks=('seeg', 'ecog'), sfreq=512.0, band=(0.5, 150.0), notch=(60.0,), reference='laplacian', scaler='train'
)
EUROPE = SignalSpec(
    picks=('seeg', 'ecog'), sfreq=256.0, band=(0.5, 100.0), notch=(50.0,), reference='average', scaler='train'
)
RECIPE = Recipe(lr=1e-3, max_epochs=40, patience=10)
ASKED = {  # of Neuroprobe, in its order
    'onset': 'Whether a sentence begins, or nobody speaks',
    'speech': 'Whether a word is heard, or nobody speaks',
    'volume': 'Whether a word is loud or soft',
    'delta_volume': 'Whether the volume rises or falls at a word',
    'pitch': 'Whether a word is high or low',
    'word_index': 'Whether a word is the first or the second of its sentence',
    'word_gap': 'Whether a word comes long or soon after the one before',
    'gpt2_surprisal': 'Whether GPT-2 expected a word less or more',
    'word_head_pos': 'On which side of a word its head stands',
    'word_part_speech': 'Whether a word is a verb or a noun',
    'word_length': 'Whether a word is long or short',
    'global_flow': 'Whether the picture of a film moves much or little',
    'local_flow': 'Whether something in the picture moves much or little',
    'frame_brightness': 'Whether the picture is bright or dark',
    'face_num': 'Whether a face is seen',
}


def _neuroprobe(name: str, title: str) -> Task:
    return Task(
        name=name,
        device='ieeg',
        category='ieeg',
        paradigm='erp',
        title=title,
        datasets=('Wang2024Brain',),
        simulated=SIMULATED,
        window=Window(trigger=''.join(word.capitalize() for word in name.split('_')), duration=1.0),
        target=Classes(field='label'),
        signal=SIGNAL,
        split=CROSS_SESSION,
        recipe=RECIPE,
        metric='auroc',
        doi=DOI,
        revision=REVISION,
    )


FILM = Task(
    name='film',
    device='ieeg',
    category='ieeg',
    paradigm='rstate',
    title='Whether music or speech is heard in a film, from block to block',
    datasets=('Berezutskaya2022Open',),
    simulated=SIMULATED,
    window=Window(trigger='Block', duration=2.0, stride=2.0),
    target=Classes(field='label'),
    signal=EUROPE,
    split=ByGroup(by='block', within='subject', folds='3', stratify='label'),
    recipe=RECIPE,
)
TASKS = (*(_neuroprobe(name, title) for name, title in ASKED.items()), FILM)
