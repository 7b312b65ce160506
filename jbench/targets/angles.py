"""Joint angles over a window, at every sample of it, answered at as many steps or fewer.

The raw target is one text (`jbench/targets/packed.py`). Of a large set targets stay packed, and what is computed here
unpacks some windows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.events import Table
from jbench.metrics import weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, require_finite
from jbench.targets.packed import BLOCK, RESOLUTION, Packed, in_radians, integers


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


def errors(outputs: np.ndarray, y: np.ndarray | Packed) -> np.ndarray:
    """Mean absolute error of each window over all joints and samples, degrees: float64 [N]. outputs [N, K], y [N, K']
    in radians, K at most K'."""
    blocks, width = _blocks(len(y)), y.shape[1]
    each = [np.abs(held(outputs[b].astype(np.float64), width) - np.asarray(y[b])).mean(1) for b in blocks]
    return np.degrees(np.concatenate([np.zeros(0), *each]))


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
    """Whether shapes fit: [N, K] both, outputs of at most as many steps."""
    return len(outputs) == len(y) == 2 and outputs[0] == y[0] and 0 < outputs[1] <= y[1]


def checked(y: Any, n_out: int) -> Any:
    """As they are. Raises: ValueError for a target that is not finite, as no packed one is."""
    if not isinstance(y, Packed):
        require_finite(y)
    return y


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """angular_mae, degrees: of all windows, joints and samples."""
    return {'angular_mae': float(errors(outputs, y).mean()) if len(y) else None}


def _alone(outputs: np.ndarray, y: np.ndarray) -> Scores:
    return evaluate(outputs, y, {})


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """As of all windows."""
    return by_subject(_alone, outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """As of all windows."""
    return weighted.means(errors(outputs, y), owner)


def dummy(y_fit: np.ndarray | Packed, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The median over the share of each answer, which has the least absolute error of all constants."""
    width = y_fit.shape[1]
    first = borders(n_out or width, width)
    return np.tile(_medians(y_fit, first) if isinstance(y_fit, Packed) else _medians_of_array(y_fit, first), (n, 1))


def _medians_of_array(y: np.ndarray, first: np.ndarray) -> list[float]:
    ends = [*first[1:].tolist(), y.shape[1]]
    return [float(np.median(y[:, a:b].astype(np.float64))) for a, b in zip(first.tolist(), ends, strict=True)]


def _medians(y: Packed, first: np.ndarray) -> list[float]:
    """The same numbers, from how often each integer occurs in each share: 0.5 MB a share at most."""
    share = np.repeat(np.arange(len(first)), np.diff(first, append=y.shape[1]))
    counts = np.zeros(len(first) << 16, np.int64)
    for window in y.blocks():
        np.add.at(counts, (share << 16) + window + (1 << 15), 1)
    found = []
    for one in counts.reshape(len(first), -1):
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
    measured=True,
    answered=answered,
    listed=False,
    counts=counts,
)
