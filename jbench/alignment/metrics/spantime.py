"""Regressions with one set of weights for all time bins: fitted on the responses of every bin, scored in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

from .correlation import flat, listed, over_splits
from .design import design, fold
from .measured import Measured
from .regression import Regression, counted, find, score, targets
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
        dtype: of the features in memory, 'float32' or 'float64'; products are float64.

    Raises:
        RequestError: if shapes differ, or stimuli are too few.
    """
    if np.ndim(x) != 3 or np.ndim(y) != 3 or x.shape[::2] != y.shape[::2]:
        raise RequestError(
            f'features of shape {np.shape(x)} and responses of shape {np.shape(y)}; '
            '[stimulus, unit, time bin] and [stimulus, neuroid, time bin] of the same stimuli and bins'
        )
    n, _, n_bins = x.shape
    rows = np.arange(n * n_bins).reshape(n_bins, n)  # of bin, stimulus in what is stacked
    stacked = [np.moveaxis(np.asarray(m), 2, 0).reshape(n_bins * n, -1) for m in (x, y)]
    wanted, kept, notes = targets(*stacked)
    regression = find(name)
    made = design(stacked[0], dtype, dual=regression.dual)
    drawn = splits(n, how, labels)
    values = np.full((n_bins, len(drawn), wanted.shape[1]), np.nan)
    said: list[str] = []
    for k, (train, test) in enumerate(drawn):
        fitting, asked = rows[:, train].ravel(), rows[:, test].ravel()
        fitted = kept & ~flat(wanted[fitting])
        which = np.flatnonzero(fitted)
        if (kept & ~fitted).any():
            said.append(f'{listed("neuroid", np.flatnonzero(kept & ~fitted))} constant in training: left out')
        if not len(which):
            continue
        predicted = regression.fit(fold(made, fitting, asked), wanted[np.ix_(fitting, which)])
        said += predicted.notes
        for b, part in enumerate(np.split(predicted.prediction, n_bins)):
            values[b, k, which], more = score(part, wanted[np.ix_(rows[b, test], which)], which)
            said += [f'time bin {b}: {note}' for note in more]
    return tuple(over_splits(bin_values, notes + counted(said, len(drawn))) for bin_values in values)
