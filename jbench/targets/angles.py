"""Joint angles over a window, at every sample of it, answered at as many steps or fewer.

The raw target is one text (`jbench/targets/packed.py`). Of a large set targets stay packed, and what is computed here
unpacks some windows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.events import Table
from jbench.metrics import weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject
from jbench.targets.packed import BLOCK, RESOLUTION, Packed, in_radians, integers

SHARES = 1024  # whose medians are found at once


def borders(n_out: int, width: int) -> np.ndarray:
    """Where the share of each of n_out answers begins among `width` targets, of all joints one after the other: target
    k is answered by number floor(k * n_out / width), as the platform of the challenge resamples. int [n_out]."""
    return -(-np.arange(n_out) * width // n_out)


def held(outputs: np.ndarray, width: int) -> np.ndarray:
    """Outputs [N, K] held for their shares of the window: [N, width]."""
    k = outputs.shape[1]
    return outputs if k == width else outputs[:, np.arange(width) * k // width]


def answered(y: np.ndarray | Packed, n_out: int) -> np.ndarray:
    """The mean of targets [N, K] over the share of each of n_out answers: float32 [N, n_out]."""
    if n_out == y.shape[1]:
        return np.asarray(y)
    first, out = borders(n_out, y.shape[1]), np.empty((len(y), n_out), np.float32)
    counts = np.diff(first, append=y.shape[1])
    for b in _blocks(len(y)):
        out[b] = np.add.reduceat(np.asarray(y[b]), first, axis=1, dtype=np.float64) / counts
    return out


def _blocks(n: int) -> list[slice]:
    return [slice(k, k + BLOCK) for k in range(0, n, BLOCK)]


def errors(outputs: np.ndarray, y: np.ndarray | Packed) -> tuple[np.ndarray, np.ndarray]:
    """Mean absolute error of each window over the joints and samples that are known, degrees, without wrapping at 360,
    and the share of them that is known: float64 [N] both; 0 and 0 where none is.

    Args:
        outputs: rad, [N, K].
        y: rad, [N, K'], K at most K'; nan where not known.
    """
    found, width = [np.zeros((2, 0))], y.shape[1]
    for b in _blocks(len(y)):
        truth = np.asarray(y[b])
        error, unknown = np.abs(held(outputs[b].astype(np.float64), width) - truth), np.isnan(truth)
        error[unknown] = 0
        n = width - unknown.sum(1)
        found.append(np.stack([error.sum(1) / np.maximum(n, 1), n / width]))
    mean, share = np.concatenate(found, 1)
    return np.degrees(mean), share


def _of_windows(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    return errors(outputs, y)[0]


def collect(target: Angles, events: Table, trigger_row: int, onset: float, duration: float) -> str:
    """Angles are channels, no events: `jbench/data/prepare/angles.py` reads them."""
    raise RequestError('angles of joints are channels of a recording, and this one was read for its events alone')


def encode(target: Angles, raw: Sequence[str], classes: Sequence[str] | None) -> Encoded:
    """float32 [N, joints * steps], rad: the steps of the first joint, then those of the next; and what each output of a
    model without time stands for. Raises: RequestError for windows of different lengths."""
    rows = [in_radians(integers(text)) for text in raw]
    shapes = sorted({row.shape for row in rows})
    if len(shapes) > 1 or (target.steps and shapes and shapes[0][1] != target.steps):
        expected = f'{target.steps} a joint' if target.steps else 'as many of each'
        raise RequestError(f'windows have {" and ".join(f"{n} angles of {j} joints" for j, n in shapes)}, {expected}')
    n, steps = shapes[0] if shapes else (0, 0)
    names = tuple(f'{target.field}{j} {k}' for j in range(n) for k in range(min(target.answers, steps)))
    return Encoded(np.array([row.ravel() for row in rows], np.float32), names)


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a joint and answer."""
    return len(classes)


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: outputs [N, K], targets [N, K'] or [N, J, steps], outputs of at most as many steps."""
    return len(outputs) == 2 and len(y) in (2, 3) and outputs[0] == y[0] and 0 < outputs[1] <= math.prod(y[1:])


def checked(y: Any, n_out: int) -> Any:
    """[N, K]. Of [N, J, steps] a step at which any joint is nan is nan for all joints: it counts in no score.

    Raises: ValueError for a target that is infinite, or where no angle is known; packed ones are finite.
    """
    if isinstance(y, Packed):
        return y
    if y.ndim == 3:
        y = np.where(np.isnan(y).any(1)[:, None], np.nan, y).reshape(len(y), -1)
    if np.isinf(y).any() or np.isnan(y).all():
        raise ValueError('angles must be finite, or nan where they are not known, and some must be known')
    return y


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """angular_mae, degrees: of all windows, joints and samples that are known."""
    error, share = errors(outputs, y)
    return {'angular_mae': float((share * error).sum() / share.sum()) if share.any() else None}


def _alone(outputs: np.ndarray, y: np.ndarray) -> Scores:
    return evaluate(outputs, y, {})


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """As of all windows."""
    return by_subject(_alone, outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """As of all windows."""
    return weighted.means(*errors(outputs, y), owner)


def dummy(y_fit: np.ndarray | Packed, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The median over the share of each answer, which has the least absolute error of all constants."""
    width = y_fit.shape[1]
    first = borders(n_out or width, width)
    return np.tile(_medians(y_fit, first) if isinstance(y_fit, Packed) else _medians_of_array(y_fit, first), (n, 1))


def _medians_of_array(y: np.ndarray, first: np.ndarray) -> list[float]:
    ends = [*first[1:].tolist(), y.shape[1]]
    return [float(np.median(y[:, a:b].astype(np.float64))) for a, b in zip(first.tolist(), ends, strict=True)]


def _medians(y: Packed, first: np.ndarray) -> list[float]:
    """The same numbers, from how often each integer occurs in each share: 0.5 MB a share, of `SHARES` at once."""
    found = []
    for k in range(0, len(first), SHARES):
        mine, end = first[k : k + SHARES], [*first, y.shape[1]][min(k + SHARES, len(first))]
        share = np.repeat(np.arange(len(mine)), np.diff(mine, append=end))
        counts = np.zeros(len(mine) << 16, np.int64)
        for windows in y.blocks():
            np.add.at(counts, (share << 16) + windows[..., mine[0] : end] + (1 << 15), 1)
        for one in counts.reshape(len(mine), -1):
            below = np.cumsum(one)
            middle = np.searchsorted(below, [(below[-1] - 1) // 2, below[-1] // 2], 'right') - (1 << 15)
            found.append(float(in_radians(middle.astype(np.int16)).astype(np.float64).mean()))
    return found


def _sd(y: np.ndarray | Packed) -> float:
    if not isinstance(y, Packed):
        return float(y.std())
    if not len(y):
        return float('nan')
    sums = np.sum([(b.sum(), np.square(b).sum()) for b in (x.astype(np.float64) for x in y.blocks())], axis=0)
    mean, square = sums / (len(y) * y.shape[1])
    return float(np.sqrt(square - mean**2) * RESOLUTION)


def counts(y: np.ndarray | Packed, names: Sequence[str], train: np.ndarray) -> Counts:
    """The sd of all angles."""
    return {'sd of the angles (degrees)': lambda part: f'{np.degrees(_sd(y[part])):.4g}'}


ANGLES = Kind(
    'angles',
    collect,
    encode,
    n_out,
    fits,
    checked,
    evaluate,
    per_subject,
    by_weights,
    dummy,
    errors=_of_windows,
    measured=True,
    answered=answered,
    listed=False,
    counts=counts,
)
