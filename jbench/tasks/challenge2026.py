"""The four tracks of the EEG/EMG Foundation Challenge 2026 (NeurIPS), as its warm-up scores them.

What is hidden, and what was assumed in its place, stands in docs/challenges.md. Version 1 is read from the organisers'
code; windows, splits, metrics and the rule of streams are theirs, recipes are NeuralBench's defaults of these tracks.
"""

from __future__ import annotations

from jbench.spec.task import (
    Angles,
    ByGroup,
    Classes,
    Embedding,
    Predefined,
    Recipe,
    SignalSpec,
    Stream,
    Task,
    Value,
    Where,
    Window,
)
from jbench.tasks.bci import MOTOR_IMAGERY

CODE = 'neural-interfaces26/2026-competition@4f4c74f'  # that the protocols were read from
BCI = dict(MOTOR_IMAGERY.overrides)  # of proxies of track 2, whose windows hold the cue: where it lies, who is tested

TASKS = (
    Task(
        name='challenge2026/image',
        category='challenge2026',
        paradigm='erp',
        title='Track 1: which picture was seen, among all of the test part',
        datasets=('Gifford2022Large', 'Xu2025Alljoined', 'Xu2024Alljoined', 'Grootswagers2022Human'),
        simulated='SimulatedImage',
        window=Window(trigger='Image', start=-0.2, duration=1.0),
        target=Embedding(encoder='dinov2_giant'),
        signal=SignalSpec(baseline=(0.0, 0.2)),
        split=Predefined(field='split', test=('test',), valid_by='recording'),
        recipe=Recipe(loss='clip', label_smoothing=0.0),
        metric='top5_acc',  # the sealed rule, by person and picture; window_top5_acc is that of the warm-up, by epoch
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
        revision=CODE,
    ),
    Task(
        name='challenge2026/bci',
        category='challenge2026',
        paradigm='imagery',
        title='Track 2: motor imagery, subtraction or words, a window at a time',
        datasets=('Dreyer2026Proteus', 'Dreyer2023Large', 'Tangermann2012Review'),
        simulated='SimulatedChallengeBci',
        window=Window(start=1.0, duration=4.0),
        target=Classes(field='code'),
        signal=SignalSpec(scaler='micro', clamp=None),
        split=ByGroup(),
        recipe=Recipe(class_weights=True),
        metric='bal_acc_cells',
        stream=Stream(by=('subject', 'session'), context='interface'),
        overrides=(
            ('Dreyer2023Large', (('window.start', 0.0), *BCI['Dreyer2023Large'])),
            ('Tangermann2012Review', BCI['Tangermann2012Review']),  # 2 s from its events, which are the cross before
        ),
        revision=CODE,
    ),
    Task(
        name='challenge2026/sleep',
        category='challenge2026',
        paradigm='sleep',
        title='Track 3: how long until sleep begins (the first N2), a window at a time',
        datasets=('Interaxon2026Muse',),
        simulated='SimulatedChallengeSleep',
        window=Window(trigger='SleepOnset', duration=5.0, stride=5.0),  # from the start of the recording to it
        target=Value(field='n2_onset', until=True, clip=(0.0, 600.0), scaled=True),
        signal=SignalSpec(sfreq=128.0, band=None, notch=(), scaler='micro', clamp=None),
        split=Predefined(field='split', test=('test',), apart=True),
        recipe=Recipe(loss='squared_error', sampler='bins', label_smoothing=0.0, patience=7),
        metric='wbmae',
        stream=Stream(),
        revision=CODE,
    ),
    Task(
        name='challenge2026/pose',
        device='emg',
        category='challenge2026',
        paradigm='emg',
        title='Track 4: how the joints of a hand are bent, from the muscles of the forearm',
        datasets=('Salter2024Emg2pose',),
        simulated='SimulatedChallengePose',
        window=Window(
            trigger='Emg',
            duration=5.0,
            stride=5.0,
            where=(Where(field='duration', least=5.895), Where(field='split', values=('unscored',), keep=False)),
        ),
        target=Angles(),
        signal=SignalSpec(picks=('emg',), sfreq=2000.0, band=None, notch=(), scaler='micro', clamp=None),
        split=Predefined(field='split', test=('test',), valid_by=''),  # all parts are given
        recipe=Recipe(  # Adam, as there is no decay
            loss='absolute_error',
            label_smoothing=0.0,
            lr=1e-3,
            schedule='constant',
            weight_decay=0.0,
            grad_clip=1e9,  # none
            max_epochs=100,
            patience=20,
            rotation=1,
        ),
        metric='angular_mae',
        revision=CODE,
    ),
)
