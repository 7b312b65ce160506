"""Joint angles over a window: an output for each joint and step.

The raw target is one text: steps by joints of a window as 16-bit integers of RESOLUTION, in base 64.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from jbench.events import Table
from jbench.metrics import challenges, weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, require_finite

RESOLUTION = 1e-4  # rad; 16 bits reach 3.27 rad


def packed(angles: np.ndarray) -> str:
    """Angles in radians, [J, steps], as one text. Raises: RequestError for what is not finite or beyond 3.27 rad."""
    numbers = np.round(np.asarray(angles, np.float64) / RESOLUTION)
    if not (np.abs(numbers) < 2**15).all():
        raise RequestError(f'angles must be finite and below {2**15 * RESOLUTION:.2f} rad: are they in degrees?')
    return base64.b64encode(numbers.astype('<i2').tobytes()).decode()


def collect(target: Angles, events: Table, trigger_row: int, onset: float, duration: float) -> str:
    """Angles are channels, no events: `jbench/data/prepare/angles.py` reads them."""
    raise RequestError('angles of joints are channels of a recording, and this one was read for its events alone')


def encode(target: Angles, raw: Sequence[str], classes: Sequence[str] | None) -> Encoded:
    """float32 [N, joints * steps], rad: the steps of the first joint, then those of the next. Raises: RequestError for
    windows of different lengths."""
    rows = [np.frombuffer(base64.b64decode(text), '<i2') for text in raw]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) % target.steps:
        raise RequestError(f'windows have {sorted({len(row) for row in rows})} angles, expected {target.steps} a joint')
    return Encoded((np.stack(rows) * RESOLUTION).astype(np.float32), ())


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a joint and step."""
    return int(y.shape[1])


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, K] both."""
    return y == outputs


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As float64. Raises: ValueError for a target that is not finite."""
    require_finite(y)
    return y.astype(np.float64)


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """angular_mae, degrees."""
    return {'angular_mae': challenges.angular_mae(outputs[..., None], y[..., None])}


def _alone(outputs: np.ndarray, y: np.ndarray) -> Scores:
    return evaluate(outputs, y, {})


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """As of all windows."""
    return by_subject(_alone, outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """As of all windows."""
    return weighted.angles(outputs, y, owner)


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The median of each joint and step, which has the least absolute error of all constants."""
    return np.tile(np.median(y_fit.astype(np.float64), 0), (n, 1))


def counts(y: np.ndarray, names: Sequence[str], train: np.ndarray) -> Counts:
    """The sd of all angles."""
    return {'sd of the angles (degrees)': lambda part: f'{np.degrees(y[part].std()):.4g}'}


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
    counts=counts,
)
