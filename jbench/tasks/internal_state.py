"""Internal states: three tasks of NeuralBench. Version 1 is the published protocol with its faults."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import Classes, Exclusion, Recipe, Where, Window
from jbench.tasks import corrected, published

TILES = Window(trigger='Eeg', duration=5.0, stride=5.0)  # of a recording
HARD_OR_EASY = Classes(mapping=(('0', 0), ('1', 1), ('2', 1)))  # hard and extremely hard are one class

OTHERS = (
    published(
        name='emotion',
        category='internal_state',
        paradigm='rstate',
        title='Which of nine emotions a film clip stirs',
        datasets=('Chen2023Large',),
        simulated='SimulatedEmotion',
        window=Window(duration=5.0, stride=5.0, last=30.0),
        target=Classes(field='label'),
        recipe=Recipe(class_weights=True),
    ),
    published(
        name='mental_arithmetic',
        category='internal_state',
        paradigm='rstate',
        title='Whether a person calculates or rests',
        datasets=('Zyma2019Electroencephalograms', 'Shin2017OpenB'),
        simulated='SimulatedMentalArithmetic',
        window=TILES,
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
    published(
        name='mental_workload',
        category='internal_state',
        paradigm='rstate',
        title='How hard a task is',
        datasets=('Hinss2023Open', 'Hinss2021Open', 'Jao2023Eeg'),
        simulated='SimulatedMentalWorkload',
        window=replace(TILES, where=(Where(field='task', values=('MATBeasy', 'MATBmed', 'MATBdiff')),)),
        target=Classes(field='task'),
        overrides=(
            (
                'Hinss2021Open',
                (('window', Window(duration=2.0, stride=2.0, keep_incomplete=True)), ('target', Classes())),
            ),
            ('Jao2023Eeg', (('window', Window(duration=2.0, stride=1.0)), ('target', HARD_OR_EASY))),
        ),
    ),
)

TASKS = (*OTHERS, *map(corrected, OTHERS))
