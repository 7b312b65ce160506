"""Responses in other time bins than they were computed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from jbench.spec.errors import RequestError

Bins = Sequence[tuple[float, float]]  # start and end, ms
_TOLERANCE = 1e-9  # of the largest time: bins such as 1000 / 30 ms do not add up exactly


def weights(source: Bins, target: Bins, how: Literal['portion', 'center'] = 'portion') -> np.ndarray:
    """How much of each source bin goes into each target bin, [target, source].

    Args:
      source: bins in which responses are there.
      target: bins that are wanted.
      how: `portion`, the part of a source bin that a target bin covers; `center`, 1 for the source bin that holds the
        middle of the target bin (of two that meet there the later).

    Raises: RequestError for a target bin that the source does not cover, or a bin that ends before it starts.
    """
    given, wanted = np.asarray(source, float).reshape(-1, 2), np.asarray(target, float).reshape(-1, 2)
    for bins, what in ((given, 'there'), (wanted, 'wanted')):
        wrong = bins[~(bins[:, 0] < bins[:, 1])]
        if len(wrong):
            raise RequestError(
                f'time bin {_shown(wrong[0])} that is {what} ends before it starts; give (start, end) in ms'
            )
    if not len(given):
        raise RequestError('no time bins are there to make others from')
    first, last = given[:, 0].min(), given[:, 1].max()
    slack = _TOLERANCE * max(abs(first), abs(last), 1)
    outside = wanted[(wanted[:, 0] < first - slack) | (wanted[:, 1] > last + slack)]
    if len(outside):
        raise RequestError(f'time bin {_shown(outside[0])} is not within {_shown((first, last))}; ask for bins inside')
    if how == 'center':
        middle = wanted.mean(1)[:, None]
        inside = (given[:, 0] <= middle) & (middle < given[:, 1])
        found = inside & (inside.cumsum(1) == 1)
    else:
        overlap = np.minimum(wanted[:, 1:], given[:, 1]) - np.maximum(wanted[:, :1], given[:, 0])
        found = np.where(overlap > slack, overlap, 0) / (given[:, 1] - given[:, 0])
    empty = wanted[found.sum(1) == 0]
    if len(empty):
        raise RequestError(f'time bin {_shown(empty[0])} lies in a gap of the bins that are there; ask for other bins')
    return found.astype(float)


def rebin(values: np.ndarray, source: Bins, target: Bins, how: Literal['portion', 'center'] = 'portion') -> np.ndarray:
    """Weighted means over source bins, [..., target].

    Args:
      values: [..., source].
      source: bins of the last axis.
      target: bins that are wanted.
      how: as of `weights`.

    Raises: RequestError, as `weights`, and for another number of bins than the values have.
    """
    if values.shape[-1] != len(source):
        raise RequestError(f'{values.shape[-1]} responses in time for {len(source)} time bins; give a bin for each')
    share = weights(source, target, how)
    share /= share.sum(1, keepdims=True)
    dtype = values.dtype if values.dtype.kind == 'f' else np.dtype(float)
    return np.asarray(values @ share.T.astype(dtype), dtype)


def repeated(values: np.ndarray, target: Bins) -> np.ndarray:
    """Responses without time, the same in every bin that is wanted: [..., target], a view."""
    return np.broadcast_to(values[..., None], (*values.shape, len(target)))


def _shown(time_bin: Sequence[float] | np.ndarray) -> str:
    return f'{time_bin[0]:g} to {time_bin[1]:g} ms'
