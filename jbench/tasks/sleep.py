"""Sleep: three tasks of NeuralBench. Version 1 is the published protocol with its faults."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.overrides import Override
from jbench.spec.task import Classes, Recipe, StateClasses, Trim, Value, Where, Window
from jbench.tasks import corrected, published

LABELLED = (Where(field='split', values=('train',)),)  # the test part of its challenge has no labels
EARLY = {  # by task: events of the challenge as the published reader has them, by some minutes too early
    'sleep_arousal': ('target.event', 'SleepArousalEarly'),
    'sleep_onset': ('window.trigger', 'SleepOnsetEarly'),
    'sleep_stage': ('window.trigger', 'SleepStageEarly'),
}
# the reference's crop of wake sorts nights by their names, which begin with the two letters of the file of stages
BY_SCORER = ('Kemp2000Analysis', (('split.order', ('scorer', 'session', 'subject')),))
UNTIL_SLEEP = Value(field='n2_onset', until=True, clip=(0.0, 600.0))


def _challenge(*more: Override) -> tuple[str, tuple[Override, ...]]:
    return 'Ghassemi2018You', (('window.where', LABELLED), *more)


AROUSAL = published(
    name='sleep_arousal',
    category='sleep',
    paradigm='sleep',
    title='Whether 15 s of a night touch an arousal',
    datasets=('Ghassemi2018You',),
    simulated='SimulatedSleepArousal',
    window=Window(trigger='Eeg', duration=15.0, stride=15.0, where=LABELLED),
    target=StateClasses(event='SleepArousal', field='label'),
    recipe=Recipe(sampler='balanced', label_smoothing=0.0),
    overrides=(('Ghassemi2018You', (EARLY['sleep_arousal'],)),),
)
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
    overrides=(_challenge(EARLY['sleep_onset']),),
)
STAGE = published(
    name='sleep_stage',
    category='sleep',
    paradigm='sleep',
    title='Wake, N1, N2, N3 or REM every 30 s',
    datasets=('Kemp2000Analysis', 'Alvarez2022Haaglanden', 'Ghassemi2018You'),
    simulated='SimulatedSleepStage',
    window=Window(trigger='SleepStage', duration=30.0, stride=30.0, trim=Trim(every=False)),
    target=Classes(field='stage'),
    recipe=Recipe(class_weights=True),
    overrides=(BY_SCORER, _challenge(EARLY['sleep_stage'])),
)

TASKS = (
    AROUSAL,
    corrected(AROUSAL, 'annotations of the challenge were moved by the time of the first one', overrides=()),
    ONSET,
    corrected(
        ONSET,
        'the target is learnt scaled; annotations of the challenge were moved by the time of the first one',
        target=replace(UNTIL_SLEEP, scaled=True),
        recipe=replace(ONSET.recipe, loss_scale=1.0),
        overrides=(_challenge(),),
    ),
    STAGE,
    corrected(
        STAGE,
        'wake in several events kept more than half an hour beside sleep; annotations of the challenge were moved',
        window=replace(STAGE.window, trim=Trim()),
        overrides=(BY_SCORER, _challenge()),
    ),
)
