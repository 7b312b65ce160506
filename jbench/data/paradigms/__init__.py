"""Paradigms of the simulated recordings: one row each, in the module of its kind; `PARADIGMS` holds all by name."""

from __future__ import annotations

from jbench.data.paradigms import bci, clinical, evoked, muscles, people, sleep, states, stimuli, volumes
from jbench.data.paradigms.base import Paradigm

MODULES = (bci, clinical, evoked, muscles, people, sleep, states, stimuli, volumes)
PARADIGMS: dict[str, Paradigm] = {p.name: p for module in MODULES for p in module.PARADIGMS}
