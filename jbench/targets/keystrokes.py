"""The keys pressed in a window, in time order; a network answers several outputs a frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jbench.events import Table, as_text, column, present, unique_sorted
from jbench.metrics import keystrokes, weighted
from jbench.metrics.keystrokes import NONE
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.errors import RequestError
from jbench.spec.task import Keystrokes
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, lookup


def collect(target: Keystrokes, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """Key labels of the events of the type with onset in [onset + core[0], onset + core[1]), in time order; with
    `held`, where there is one, also those that last into it."""
    values, start = column(events, target.field), column(events, 'onset')
    inside = (start >= onset + target.core[0]) & (start < onset + target.core[1])
    keys = (column(events, 'type') == target.event) & present(values)
    if target.held and (inside & keys).any():
        stop = start + column(events, 'duration')
        inside = (start < onset + target.core[1]) & (stop > onset + target.core[0])
    rows = np.flatnonzero(inside & keys)
    return [as_text(v) for v in values[rows[np.argsort(start[rows], kind='stable')]]]


def encode(target: Keystrokes, raw: Sequence[Sequence[str]], classes: Sequence[str] | None) -> Encoded:
    """int32 [N, length], -1 where there is no further key; classes are the keys, outputs without one ('') and
    '(blank)'. Raises: RequestError for too many keys."""
    keys = unique_sorted(v for row in raw for v in row) if classes is None else tuple(classes)
    index = {key: i for i, key in enumerate(keys)}
    if len(keys) > target.blank:
        raise RequestError(f'{len(keys)} keys, but output {target.blank} is the blank: at most {target.blank} keys')
    y = np.full((len(raw), target.length), NONE, np.int32)
    for i, pressed in enumerate(raw):
        if len(pressed) > target.length:
            raise RequestError(f'window {i} has {len(pressed)} keystrokes, more than {target.length} (target.length)')
        y[i, : len(pressed)] = [lookup(index, key, target.field) for key in pressed]
    return Encoded(y, (*keys, *[''] * (target.blank - len(keys)), '(blank)'))


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a key, and the blank."""
    return len(classes)


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: paths [N, frames] and [N, length]."""
    return y[:1] == outputs[:1]


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As they are."""
    return y


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """cer, edit distances over lengths of the references."""
    return {'cer': keystrokes.error_rate(outputs, y)}


def _alone(outputs: np.ndarray, y: np.ndarray) -> Scores:
    return evaluate(outputs, y, {})


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """As of all windows."""
    return by_subject(_alone, outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """As of all windows."""
    return weighted.error_rate(outputs, y, owner)


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """A path of the most frequent key, as often as the median window has keys (none where that has none)."""
    pressed = y_fit[y_fit != NONE]
    modal = np.bincount(pressed).argmax() if len(pressed) else 0
    lengths = np.sort((y_fit != NONE).sum(1))
    often = lengths[(len(lengths) - 1) // 2]  # of two in the middle the lower one, as published
    path = keystrokes.encode(np.full(often, modal)) if often else np.array([NONE])
    return np.tile(path, (n, 1)).astype(np.float64)


def counts(y: np.ndarray, names: Sequence[str], train: np.ndarray) -> Counts:
    """How many keys were pressed."""
    return {'keys': lambda part: int((y[part] >= 0).sum())}


def shares(y: np.ndarray, names: Sequence[str]) -> tuple[Sequence[str], np.ndarray]:
    """The share of each key; further outputs have none."""
    names, pressed = [name for name in names[:-1] if name], y[y >= 0]
    return names, np.bincount(pressed, minlength=len(names)) / pressed.size


KEYSTROKES = Kind(
    'keystrokes',
    collect,
    encode,
    n_out,
    fits,
    checked,
    evaluate,
    per_subject,
    by_weights,
    dummy,
    frames=True,
    counts=counts,
    shares=shares,
)
