"""Electromyography: one task of NeuralBench. Version 1 is the published protocol."""

from __future__ import annotations

from jbench.spec.task import Keystrokes, Recipe, SignalSpec, Where, Window
from jbench.tasks import corrected, published

TYPING = published(
    name='typing',
    device='emg',
    category='emg',
    paradigm='emg',
    title='What is typed, from the muscles of both forearms',
    datasets=('Sivakumar2024Emg2qwerty',),
    simulated='SimulatedEmgTyping',
    window=Window(
        trigger='Emg',
        start=-0.9,
        duration=5.0,
        stride=4.0,
        where=(Where(field='recording_index', values=tuple(map(str, range(120)))),),  # the first 120 recordings
    ),
    target=Keystrokes(field='label', held=True),
    signal=SignalSpec(picks=('emg',), sfreq=2000.0, band=None, notch=(), scaler='micro', clamp=None),
    recipe=Recipe(
        loss='ctc',
        label_smoothing=0.0,
        lr=1e-3,
        weight_decay=0.0,
        batch_size=16,
        warmup=0.4,
        start_div=1e5,
        end_div=1e3,
    ),
    metric='cer',
)

TASKS = (
    TYPING,
    corrected(
        TYPING, 'a key that was held into the core of a window counted there, too', target=Keystrokes(field='label')
    ),
)
