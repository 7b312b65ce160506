"""Functional magnetic resonance imaging: one task of NeuralBench. Version 1 is the published protocol."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import SignalSpec, Window
from jbench.tasks import corrected
from jbench.tasks.cognitive import BY_HEART, DISTINCT, UNSEEN
from jbench.tasks.cognitive import IMAGE as EEG_IMAGE

IMAGE = replace(
    EEG_IMAGE,
    device='fmri',
    category='fmri',
    paradigm='fmri',
    datasets=('Chang2019Bold5000', 'Allen2022MassiveRaw', 'Hebart2023ThingsBold'),
    simulated='SimulatedFmriImage',
    window=Window(trigger='Image', start=2.0, duration=7.0),  # four volumes
    # at the rate of the scanner: one over the time between volumes
    signal=SignalSpec(picks=('misc',), sfreq=0.5, band=None, notch=(), scaler='standard', clamp=None),
    overrides=(
        ('Allen2022MassiveRaw', (('signal.sfreq', 1 / 1.6),)),
        ('Hebart2023ThingsBold', (('signal.sfreq', 1 / 1.5), ('window.duration', 5.7))),
    ),
)

TASKS = (
    IMAGE,
    corrected(IMAGE, BY_HEART, signal=replace(IMAGE.signal, scaler='train'), split=UNSEEN, recipe=DISTINCT),
)
