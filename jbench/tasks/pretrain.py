"""Pretraining: objectives that need no labels, scored on people who were not seen.

What counts is the kept weights, which `--weights` gives to the same network on other tasks (docs/pretraining.md).
"""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import Hidden, Moment, Next, Recipe, SignalSpec, Task, Where, Window
from jbench.tasks.phenotyping import BY_RELEASE

SIGNAL = SignalSpec(sfreq=100.0, band=(0.5, 45.0))
RECIPE = Recipe(lr=3e-3, weight_decay=0.01, max_epochs=30, patience=10, label_smoothing=0.0)
OPEN = ('Schalk2004Bci2000', 'Zyma2019Electroencephalograms')  # that everybody may fetch and pass on
WHOLE = Window(trigger='Eeg', duration=2.0, stride=2.0)
FILMS = ('task-DespicableMe', 'task-DiaryOfAWimpyKid', 'task-FunwithFractals', 'task-ThePresent')  # of HBN
SEEN = (Where(field='task', values=FILMS), Where(field='duration', least=2.0))  # for a window at least

TASKS = (
    Task(
        name='pretrain/movies',
        category='pretrain',
        title='Which moment of a film is seen, told by what others see (contrastive, across people)',
        datasets=('Chen2023Large', 'Liu2024Eeg2video', 'Shirazi2024Hbn'),
        simulated='SimulatedFilm',
        window=Window(trigger='Film', duration=2.0, stride=2.0),
        target=Moment(),
        signal=SIGNAL,
        recipe=replace(RECIPE, loss='info_nce', sampler='moments'),
        metric='moment_top1',
        overrides=(
            ('Chen2023Large', (('window.trigger', 'Stimulus'), ('target.field', 'code'))),
            ('Liu2024Eeg2video', (('window.trigger', 'Video'), ('window.stride', None))),
            ('Shirazi2024Hbn', (('window.where', SEEN), ('target.field', 'film'), ('split', BY_RELEASE))),
        ),
    ),
    Task(
        name='pretrain/masked',
        category='pretrain',
        title='Samples that are hidden, patches in time and whole channels (masked reconstruction)',
        datasets=OPEN,
        simulated='SimulatedFilm',
        window=WHOLE,
        target=Hidden(),
        signal=SIGNAL,
        recipe=replace(RECIPE, loss='reconstruction'),
        metric='hidden_r2',
    ),
    Task(
        name='pretrain/next',
        category='pretrain',
        title='Which window of a recording comes next (contrastive, in time)',
        datasets=OPEN,
        simulated='SimulatedFilm',
        window=WHOLE,
        target=Next(),
        signal=SIGNAL,
        recipe=replace(RECIPE, loss='next_window', sampler='stretches'),
        metric='next_top1',
    ),
)
