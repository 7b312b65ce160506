"""Magnetoencephalography: two tasks of NeuralBench. Version 1 is the published protocol with its faults."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import Exclusion, SignalSpec
from jbench.tasks import corrected
from jbench.tasks.cognitive import BY_HEART, DISTINCT, TOLD, UNSEEN
from jbench.tasks.cognitive import IMAGE as EEG_IMAGE
from jbench.tasks.cognitive import TYPING as EEG_TYPING

SIGNAL = SignalSpec(picks=('meg',), baseline=(0.0, 0.2))
TRAIN_SCALED = replace(SIGNAL, scaler='train')
BAD = ('S23', 'S11122024', 'S12122024', 'S26112024', 'S27112024', 'S28112024')

IMAGE = replace(
    EEG_IMAGE,
    device='meg',
    category='meg',
    datasets=('Hebart2023ThingsMeg',),
    simulated='SimulatedMegImage',
    signal=SIGNAL,
    overrides=(),
)
TYPING = replace(
    EEG_TYPING,
    device='meg',
    category='meg',
    datasets=('Levy2026NoninvasiveMeg',),
    simulated='SimulatedMegTyping',
    signal=SIGNAL,
    exclude=tuple(Exclusion('Levy2026NoninvasiveMeg', s, 'bad, removed by the published protocol') for s in BAD),
)

TASKS = (
    IMAGE,
    corrected(IMAGE, BY_HEART, signal=TRAIN_SCALED, split=UNSEEN, recipe=DISTINCT),
    TYPING,
    corrected(TYPING, TOLD, signal=TRAIN_SCALED),
)
