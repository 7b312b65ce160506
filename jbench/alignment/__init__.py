"""How brain-like a model is: its responses to stimuli beside those of neurons, voxels and people (Brain-Score)."""

from __future__ import annotations
