"""What a metric gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Measured(NamedTuple):
    """A score before any ceiling."""

    value: float  # the aggregate: what it is over, the metric says
    error: float  # of the value, as the metric says; nan where it is not defined
    values: np.ndarray  # before aggregation: [split, neuroid] of regressions, [split] of similarities
    notes: tuple[str, ...] = ()  # what a reader of the score must know: 'neuroid 3 is constant'
