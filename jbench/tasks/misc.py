"""Two more tasks of NeuralBench. Version 1 is the published protocol with its faults."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import Labels, Predefined, Recipe, Value, Where, Window
from jbench.tasks import corrected, published

REACTION_TIME = published(
    name='reaction_time',
    category='misc',
    paradigm='erp',
    title='How long a child took to see a change of contrast',
    datasets=('Shirazi2024Hbn',),
    simulated='SimulatedReactionTime',
    window=Window(
        trigger='Keystroke',
        start=0.5,
        duration=2.0,
        where=(Where(field='task', values=('task-contrastChangeDetection',)), Where(field='reaction_time', least=0.5)),
    ),
    target=Value(field='reaction_time'),
    split=Predefined(field='release', test=('R5',), valid_by='release', valid=0.091),
    recipe=Recipe(loss='squared_error', label_smoothing=0.0),
    metric='pearsonr',
)

OTHERS = (
    published(
        name='artifact',
        category='misc',
        paradigm='rstate',
        title='Which artefacts are in three seconds: chewing, electrode, eyes, muscle, shivering',
        datasets=('Hamid2020Tuar',),
        simulated='SimulatedArtifact',
        window=Window(trigger='Eeg', start=-1.0, duration=3.0, stride=1.0, keep_incomplete=True),
        target=Labels(),
        recipe=Recipe(class_weights=True, loss='binary_cross_entropy', label_smoothing=0.0),
        metric='f1_score_macro',
    ),
)

TASKS = (
    REACTION_TIME,
    corrected(
        REACTION_TIME,
        'windows followed the key press, when the answer is known; the target is learnt centred and scaled',
        window=replace(REACTION_TIME.window, trigger='Stimulus'),  # the change of contrast, not the key after it
        target=Value(field='reaction_time', scaled=True),
    ),
    *OTHERS,
    *map(corrected, OTHERS),
)
