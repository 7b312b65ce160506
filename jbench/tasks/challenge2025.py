"""The EEG Challenge 2025 (NeurIPS, Healthy Brain Network): both challenges, as its local scorer scores them.

Windows and targets follow the competition's own code, on its copies at 100 Hz. The two scores make one:
`jbench.metrics.challenges.overall_2025`. What is hidden, and what was assumed, stands in docs/challenges.md.
"""

from __future__ import annotations

from jbench.spec.task import Jitter, Predefined, Recipe, SignalSpec, Task, Value, Where, Window

CODE = 'Longcodedao/eeg_challenge, local_scoring.py; eeg2025/startkit'  # that the protocols were read from
COPIES = ('Shirazi2024HbnL100', 'Shirazi2024HbnL100Mini')  # whole, and twenty people of each release
CONTRAST = Where(field='task', values=('task-contrastChangeDetection',))
AS_IT_IS = SignalSpec(sfreq=100.0, band=None, notch=(), scaler='micro', clamp=None)
BY_RELEASE = Predefined(field='release', test=('R5',), valid_by='subject', valid=0.1)
RECIPE = Recipe(loss='squared_error', label_smoothing=0.0, lr=1e-3, batch_size=128, patience=7)

TASKS = (
    Task(
        name='challenge2025/response_time',
        category='challenge2025',
        paradigm='erp',
        title='Challenge 1: how long a child took to see a change of contrast',
        datasets=COPIES,
        simulated='SimulatedReactionTime',
        window=Window(start=0.5, duration=2.0, where=(CONTRAST, Where(field='reaction_time'))),
        target=Value(field='reaction_time', scaled=True),
        signal=AS_IT_IS,
        split=BY_RELEASE,
        recipe=RECIPE,
        metric='normalized_rmse',
        revision=CODE,
    ),
    Task(
        name='challenge2025/externalizing',
        category='challenge2025',
        paradigm='rstate',
        title='Challenge 2: how much a child acts against others (externalizing factor), from two seconds',
        datasets=COPIES,
        simulated='SimulatedPsychopathology',
        window=Window(
            trigger='Eeg',
            duration=2.0,
            stride=2.0,
            jitter=Jitter(),  # two of every four seconds
            where=(CONTRAST, Where(field='externalizing'), Where(field='duration', least=4.0)),
        ),
        target=Value(field='externalizing', scaled=True),
        signal=AS_IT_IS,
        split=BY_RELEASE,
        recipe=RECIPE,
        metric='normalized_rmse',
        overrides=(('SimulatedPsychopathology', (('window.where', (Where(field='externalizing'),)),)),),
        revision=CODE,
    ),
)
