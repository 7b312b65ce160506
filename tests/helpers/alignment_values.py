"""Recorded values of the metrics of alignment."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from places import FIXTURES


@functools.cache
def recorded(name: str) -> dict[str, np.ndarray]:
    """The arrays of one file of tests/fixtures/alignment."""
    with np.load(FIXTURES / 'alignment' / f'{name}.npz') as file:
        return {key: file[key][()] for key in file.files}  # numbers as numbers


class Aligned(NamedTuple):
    """Features and responses of the same stimuli in the order of the responses."""

    x: np.ndarray
    y: np.ndarray
    labels: np.ndarray


@functools.cache
def aligned() -> Aligned:
    """The 120 stimuli of regression.npz."""
    g = recorded('regression')
    order = {s: k for k, s in enumerate(g['source_stimulus_id'])}
    rows = [order[s] for s in g['target_stimulus_id']]
    return Aligned(g['source'][rows], g['target'], g['target_object_name'])
