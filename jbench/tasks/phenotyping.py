"""Traits of a person from a minute or two of rest: three tasks of NeuralBench on the Healthy Brain Network.

Version 1 is the published protocol with its faults.
"""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import Classes, Crop, Predefined, Recipe, SignalSpec, Value, Where, Window
from jbench.tasks import corrected, published

# published: above 180 s (whole recordings, before they are cropped), which one sample of 2 ms more is
REST = (Where(field='task', values=('task-RestingState',)), Where(field='duration', least=180.002))
TILES = Window(trigger='Eeg', duration=2.0, stride=2.0)
FIRST_MINUTES = SignalSpec(crop=Crop(start=0.0))  # meant to begin after the first minute, which version 2 does
LATER_MINUTES = SignalSpec(crop=Crop())
BY_RELEASE = Predefined(field='release', test=('R5',), valid_by='release', valid=0.091)
REGRESSION = Recipe(loss='squared_error', label_smoothing=0.0, patience=7)

AGE = published(
    name='age',
    category='phenotyping',
    paradigm='rstate',
    title='How old a child or young person is',
    datasets=('Shirazi2024Hbn',),
    simulated='SimulatedAge',
    window=replace(TILES, where=(*REST, Where(field='age'))),
    target=Value(field='age'),
    signal=FIRST_MINUTES,
    split=BY_RELEASE,
    recipe=REGRESSION,
    metric='pearsonr',
)
PSYCHOPATHOLOGY = replace(
    AGE,
    name='psychopathology',
    title='How much somebody young acts against others (externalizing factor)',
    simulated='SimulatedPsychopathology',
    window=replace(TILES, where=(*REST, Where(field='externalizing'))),
    target=Value(field='externalizing'),
)
SEX = replace(
    AGE,
    name='sex',
    title='Whether somebody young is female or male',
    simulated='SimulatedSex',
    window=replace(TILES, where=(*REST, Where(field='sex'))),
    target=Classes(field='sex'),
    recipe=Recipe(class_weights=True, patience=7, published=True),
    metric='bal_acc',
)

# why there is a version 2
LATER = 'the first minute was read, which was to be left out; one trait a subject: scores are of subjects'
SCALED = f'{LATER}; the target is learnt centred and scaled'

TASKS = (
    AGE,
    corrected(AGE, SCALED, target=Value(field='age', scaled=True), signal=LATER_MINUTES, level='subject'),
    PSYCHOPATHOLOGY,
    corrected(
        PSYCHOPATHOLOGY,
        SCALED,
        target=Value(field='externalizing', scaled=True),
        signal=LATER_MINUTES,
        level='subject',
    ),
    SEX,
    corrected(SEX, LATER, signal=LATER_MINUTES, level='subject'),
)
