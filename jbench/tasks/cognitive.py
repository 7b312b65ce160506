"""What somebody sees, hears, reads or types: six tasks of NeuralBench.

Version 1 is the published protocol with its faults. Where parts share a recording, version 2 scales it by the windows
of the training part alone.
"""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import (
    ByGroup,
    BySimilarity,
    Classes,
    Embedding,
    Predefined,
    Recipe,
    SignalSpec,
    Where,
    Window,
)
from jbench.tasks import corrected, published

RETRIEVAL = Recipe(loss='clip', label_smoothing=0.0)
DISTINCT = replace(RETRIEVAL, loss='clip_distinct')
EVOKED = SignalSpec(baseline=(0.0, 0.2))
TRAIN_SCALED = SignalSpec(scaler='train')
GIVEN = Predefined(field='split', test=('test',), valid_by='recording')  # the test part is the dataset's own
UNSEEN = replace(GIVEN, valid_by='filepath')  # no picture of the validation part is one of the training part
# why there is a version 2
TOLD = 'channels were scaled by the test part too'
TWINS = f'{TOLD}; another window with the same stimulus was a wrong answer'
BY_HEART = f'{TWINS}; validation showed pictures of the training part'
# what a key counts as: letters, space and numbers; signs are one class (13)
_KEYS = 's o t e n c i a <space> d l r b <special> z v f m u h p g q w x y j k <number>'.split()
_SIGNS = ('\x14', '-', '`', '\xa3', '\xa4', '\xbf', '\xfb', '\xfc', '\xfd')
KEYS = Classes(field='button', mapping=(*((k, i) for i, k in enumerate(_KEYS)), *((k, 13) for k in _SIGNS)))
NOT_PRACTICE = Where(field='trial_id', values=('0', '1'), keep=False)

IMAGE = published(
    name='image',
    category='cognitive',
    paradigm='erp',
    title='Which picture was seen',
    datasets=('Gifford2022Large', 'Grootswagers2022Human', 'Xu2024Alljoined', 'Xu2025Alljoined'),
    simulated='SimulatedImage',
    window=Window(trigger='Image', start=-0.2, duration=1.0),
    target=Embedding(encoder='dinov2_giant'),
    signal=EVOKED,
    split=GIVEN,
    recipe=RETRIEVAL,
    metric='top5_acc',
    overrides=(
        ('Xu2024Alljoined', (('split', ByGroup(by='filepath')),)),
        (
            'Xu2025Alljoined',
            (
                ('window.where', (Where(field='label', values=('stim_train', 'stim_test')),)),
                ('split.field', 'label'),
                ('split.test', ('stim_test',)),
            ),
        ),
    ),
)
SENTENCE = published(
    name='sentence',
    category='cognitive',
    paradigm='rstate',
    title='Which sentence is read',
    datasets=('Hollenstein2018Zuco',),
    simulated='SimulatedSentence',
    window=Window(trigger='Sentence', duration=3.0, stride=3.0, keep_incomplete=True),
    target=Embedding(encoder='gpt2', field='text', group='text', scaled=True),
    split=ByGroup(by='text', valid=0.1),
    recipe=RETRIEVAL,
    metric='top5_acc',
)
SPEECH = published(
    name='speech',
    category='cognitive',
    paradigm='erp',
    title='Which three seconds of a story are heard',
    datasets=('Brennan2019Hierarchical',),
    simulated='SimulatedSpeech',
    window=Window(trigger='Word', start=-0.5, duration=3.0),
    target=Embedding(encoder='wav2vec2_xlsr', event='Audio', group='text', scaled=True),
    signal=EVOKED,
    # the last sequences of the story, which has 84
    split=Predefined(field='sequence_id', test=tuple(map(str, range(68, 85))), valid_by='sequence_id'),
    recipe=RETRIEVAL,
    metric='top5_acc',
)
TYPING = published(
    name='typing',
    category='cognitive',
    paradigm='erp',
    title='Which key is pressed',
    datasets=('Levy2026NoninvasiveEeg',),
    simulated='SimulatedTyping',
    window=Window(trigger='Keystroke', start=-0.2, duration=1.0, where=(NOT_PRACTICE,)),
    target=KEYS,
    signal=EVOKED,
    split=BySimilarity(),
    recipe=Recipe(class_weights=True),
)
VIDEO = published(
    name='video',
    category='cognitive',
    paradigm='rstate',
    title='Which film of two seconds was seen',
    datasets=('Liu2024Eeg2video',),
    simulated='SimulatedVideo',
    window=Window(trigger='Video', duration=2.0),
    target=Embedding(encoder='vjepa2_vitg'),
    split=ByGroup(by='concept'),
    recipe=RETRIEVAL,
    metric='top5_acc',
)
WORD = published(
    name='word',
    category='cognitive',
    paradigm='erp',
    title='Which word is read',
    datasets=('Nieuwland2018Large',),
    simulated='SimulatedWord',
    window=Window(
        trigger='Word', start=-0.5, duration=3.0, where=(Where(field='site', values=('GLAS', 'LOND'), keep=False),)
    ),
    target=Embedding(encoder='spacy_lg', field='text', group='text'),
    split=ByGroup(by='sequence_id', valid=0.1, test=0.1, order=('subject',)),  # a query sorts people by name there
    recipe=RETRIEVAL,
    metric='top5_acc',
)

TASKS = (
    IMAGE,
    corrected(IMAGE, BY_HEART, signal=replace(EVOKED, scaler='train'), split=UNSEEN, recipe=DISTINCT),
    SENTENCE,
    corrected(SENTENCE, TWINS, signal=TRAIN_SCALED, recipe=DISTINCT),
    SPEECH,
    corrected(
        SPEECH,
        f'{TWINS}; windows of sequence 67 reach into the test part',
        signal=replace(EVOKED, scaler='train'),
        drop=(Where(field='sequence_id', values=('67',)),),
        recipe=DISTINCT,
    ),
    TYPING,
    corrected(TYPING, TOLD, signal=replace(EVOKED, scaler='train')),
    VIDEO,
    corrected(VIDEO, TWINS, signal=TRAIN_SCALED, recipe=DISTINCT),
    WORD,
    corrected(
        WORD,
        f'{TWINS}; one sentence was in several parts',
        signal=TRAIN_SCALED,
        split=BySimilarity(by='sentence', valid=0.1, test=0.1),
        recipe=DISTINCT,
    ),
)
