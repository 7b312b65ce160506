"""Regressions with one set of weights for all time bins: fitted on the responses of every bin, scored in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

from .correlation import over_splits
from .design import design
from .measured import Measured
from .regression import Regression, _one, _targets, find
from .splits import Splits, splits


def spantime_cv(
    name: str | Regression,
    x: np.ndarray,
    y: np.ndarray,
    *,
    how: Splits | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    dtype: str = 'float32',
) -> tuple[Measured, ...]:
    """One score a time bin, of a regression fitted to all bins of the stimuli of training together.

    Args:
        name: 'pls', 'ridge' or another key of REGRESSIONS, or a regression.
        x: [stimulus, unit, time bin].
        y: [stimulus, neuroid, time bin], the same stimuli and bins.
        how: the splits, of stimuli; None: ten of 90 % and 10 %.
        labels: class of each stimulus, for splits of equal classes.
        dtype: of large products, 'float32' or 'float64'.

    Raises:
        RequestError: if shapes differ, or stimuli are too few.
    """
