"""Sleep: three tasks of NeuralBench. Version 1 is the published protocol with its faults."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import Classes, Recipe, StateClasses, Trim, Value, Where, Window
from jbench.tasks import corrected, published

LABELLED = (Where(field='split', values=('train',)),)  # the test part of its challenge has no labels
UNTIL_SLEEP = Value(field='n2_onset', until=True, clip=(0.0, 600.0))

ONSET = published(
    name='sleep_onset',
    category='sleep',
    paradigm='sleep',
    title='How long until sleep begins (the first N2), at most ten minutes',
    datasets=('Kemp2000Analysis', 'Alvarez2022Haaglanden', 'Ghassemi2018You'),
    simulated='SimulatedSleepOnset',
    window=Window(trigger='SleepOnset', duration=5.0, stride=5.0),  # the 20 minutes before it
    target=UNTIL_SLEEP,
    recipe=Recipe(loss='squared_error', loss_scale=1e-4, sampler='bins', label_smoothing=0.0, patience=7),
    metric='bmae',
    overrides=(('Ghassemi2018You', (('window.where', LABELLED),)),),
)
STAGE = published(
    name='sleep_stage',
    category='sleep',
    paradigm='sleep',
    title='Wake, N1, N2, N3 or REM every 30 s',
    datasets=('Kemp2000Analysis', 'Alvarez2022Haaglanden', 'Ghassemi2018You'),
    simulated='SimulatedSleepStage',
    window=Window(trigger='SleepStage', duration=30.0, stride=30.0, trim=Trim(both=False)),
    target=Classes(field='stage'),
    recipe=Recipe(class_weights=True),
    overrides=(('Ghassemi2018You', (('window.where', LABELLED),)),),
)

TASKS = (
    published(
        name='sleep_arousal',
        category='sleep',
        paradigm='sleep',
        title='Whether 15 s of a night touch an arousal',
        datasets=('Ghassemi2018You',),
        simulated='SimulatedSleepArousal',
        window=Window(trigger='Eeg', duration=15.0, stride=15.0, where=LABELLED),
        target=StateClasses(event='SleepArousal', field='label'),
        recipe=Recipe(sampler='balanced', label_smoothing=0.0),
    ),
    ONSET,
    corrected(
        ONSET,
        'recordings began 20 minutes before sleep: time since the start told the target, which is now learnt scaled',
        window=replace(ONSET.window, trigger='BeforeSleep'),  # from the start of the recording
        target=replace(UNTIL_SLEEP, scaled=True),
        recipe=replace(ONSET.recipe, loss_scale=1.0),
    ),
    STAGE,
    corrected(
        STAGE,
        'long wake before sleep stayed where a night was scored by epochs, and all of it after sleep',
        window=replace(STAGE.window, trim=Trim()),
    ),
)
