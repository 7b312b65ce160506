"""Paradigms of the simulated recordings: one row each, in the module of its kind; `PARADIGMS` holds all by name."""

from __future__ import annotations

from jbench.data.simulation import (
    bci,
    challenges,
    clinical,
    emg,
    evoked,
    films,
    fmri,
    ieeg,
    listening,
    mental_states,
    sleep,
    stimuli,
    traits,
)
from jbench.data.simulation.paradigm import Paradigm

MODULES = (bci, clinical, evoked, emg, traits, sleep, mental_states, stimuli, films, fmri, challenges, ieeg, listening)
PARADIGMS: dict[str, Paradigm] = {p.name: p for module in MODULES for p in module.PARADIGMS}
