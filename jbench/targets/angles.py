"""Joint angles over a window, at every sample of it, answered at as many steps or fewer.

The raw target is one text: angles as 16-bit integers of RESOLUTION, deflated, in base 64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np

from jbench.events import Table
from jbench.metrics import weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, require_finite

RESOLUTION = 1e-4  # rad; 16 bits reach 3.27 rad
BLOCK = 64  # windows that are compared at once


def packed(angles: np.ndarray) -> str:
    """Angles in radians, [J, steps], as one text: J, then second differences (of joints that move smoothly next to
    nothing), deflated. Raises: RequestError for what is not finite or beyond 3.27 rad."""
    numbers = np.round(np.asarray(angles, np.float64) / RESOLUTION)
    if not (np.abs(numbers) < 2**15).all():
        raise RequestError(f'angles must be finite and below {2**15 * RESOLUTION:.2f} rad: are they in degrees?')
    changes = numbers.astype(np.int64)
    for _ in range(2):
        changes = np.diff(changes, axis=1, prepend=0)
    low = (changes % 2**16).astype('<u2')  # their sums, modulo 2^16, are the numbers
    return f'{len(low)}:{base64.b64encode(zlib.compress(low.tobytes())).decode()}'


def _unpacked(text: str) -> np.ndarray:
    """The inverse: float32 [J, steps], rad."""
    n, _, packed_ = text.partition(':')
    low = np.frombuffer(zlib.decompress(base64.b64decode(packed_)), '<u2').reshape(int(n), -1)
    for _ in range(2):
        low = np.cumsum(low, axis=1, dtype=np.uint16)
    return low.view(np.int16).astype(np.float32) * np.float32(RESOLUTION)


def borders(n_out: int, width: int) -> np.ndarray:
    """Where the share of each of n_out answers begins among `width` targets, of all joints one after the other: target
    k is answered by number floor(k * n_out / width), as the platform of the challenge resamples. int [n_out]."""
    return -(-np.arange(n_out) * width // n_out)


def held(outputs: np.ndarray, width: int) -> np.ndarray:
    """Outputs [N, K] held for their shares of the window: [N, width]."""
    k = outputs.shape[1]
    return outputs if k == width else outputs[:, np.arange(width) * k // width]


def answered(y: np.ndarray, n_out: int) -> np.ndarray:
    """The mean of targets [N, K] over the share of each of n_out answers: float32 [N, n_out]."""
    if n_out == y.shape[1]:
        return y
    first = borders(n_out, y.shape[1])
    counts = np.diff(first, append=y.shape[1])
    return (np.add.reduceat(y, first, axis=1, dtype=np.float64) / counts).astype(np.float32)


def errors(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean absolute error of each window over all joints and samples, degrees: float64 [N]. outputs [N, K], y [N, K']
    in radians, K at most K'."""
    blocks = [slice(k, k + BLOCK) for k in range(0, len(y), BLOCK)]
    each = [np.abs(held(outputs[b].astype(np.float64), y.shape[1]) - y[b]).mean(1) for b in blocks]
    return np.degrees(np.concatenate([np.zeros(0), *each]))


def collect(target: Angles, events: Table, trigger_row: int, onset: float, duration: float) -> str:
    """Angles are channels, no events: `jbench/data/prepare/angles.py` reads them."""
    raise RequestError('angles of joints are channels of a recording, and this one was read for its events alone')


def encode(target: Angles, raw: Sequence[str], classes: Sequence[str] | None) -> Encoded:
    """float32 [N, joints * steps], rad: the steps of the first joint, then those of the next; and what each output of a
    model without time stands for. Raises: RequestError for windows of different lengths."""
    rows = [_unpacked(text) for text in raw]
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


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As they are. Raises: ValueError for a target that is not finite."""
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


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The median over the share of each answer, which has the least absolute error of all constants."""
    width = y_fit.shape[1]
    first = borders(n_out or width, width).tolist()
    found = [np.median(y_fit[:, a:b].astype(np.float64)) for a, b in zip(first, [*first[1:], width], strict=True)]
    return np.tile(found, (n, 1))


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
    errors=errors,
    measured=True,
    answered=answered,
    listed=False,
    counts=counts,
)
