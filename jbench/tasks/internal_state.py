"""Internal states of NeuralBench."""

from __future__ import annotations

from jbench.spec import Classes, Exclusion, Recipe, Task, Window

TASKS = (
    Task(
        name='mental_arithmetic',
        category='internal_state',
        paradigm='rstate',
        title='Whether a person calculates or rests',
        datasets=('Zyma2019Electroencephalograms', 'Shin2017OpenB'),
        window=Window(trigger='Eeg', duration=5.0, stride=5.0),
        target=Classes(field='task'),
        recipe=Recipe(class_weights=True),
        overrides=(('Shin2017OpenB', (('window.trigger', 'Stimulus'), ('target.field', 'code'))),),
        exclude=(
            Exclusion(
                'Zyma2019Electroencephalograms',
                'Subject00',
                'the published reader counts from 1 and never reads it; another list gives another split',
            ),
        ),
    ),
)
