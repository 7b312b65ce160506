"""What a window is to be predicted as: read from the events at preparation, encoded as an array at load.

Two steps, so that the classes of a task are known only once every window of a data set is: `collect` gives one small
JSON value a window (label text, list of labels, number); `encode` maps all of them to `y`.

An event table is a dict of equally long numpy columns. A missing value is '' in a text column and nan in a float
column; an integer column has none missing (where some rows lack a number, the column is text).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.spec import Classes, Keystrokes, Labels, RequestError, StateClasses, Target, Value, unknown

Table = Mapping[str, np.ndarray]
INTEGER = re.compile(r'[+-]?[0-9]+')


class Encoded(NamedTuple):
    """Targets of all windows of a data set."""

    y: np.ndarray  # int64 [N] | float32 [N, K] (labels), [N, 1] (value) | int32 [N, length] (keystrokes)
    classes: tuple[str, ...]  # what 0..K-1 stand for; empty for a value


def present(column: np.ndarray) -> np.ndarray:
    """Where a column of an event table holds a value: bool, same shape (missing: '' for text, nan for floats)."""
    if column.dtype.kind == 'f':
        return np.asarray(~np.isnan(column))
    if column.dtype.kind == 'U':
        return np.asarray(column != '')
    return np.ones(column.shape, bool)


def as_text(value: Any) -> str:
    """A label as text: numbers that are whole lose their decimals (1.0 -> '1'), so that a code reads alike in an
    integer, a float and a text column; nan is ''."""
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return ''
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return str(value)


def unique_sorted(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels in class order: by code point, or by value if every one is an integer ('2' before '10')."""
    found = set(labels)
    if all(INTEGER.fullmatch(v) for v in found):
        return tuple(sorted(found, key=lambda v: (int(v), v)))
    return tuple(sorted(found))


def column(events: Table, name: str) -> np.ndarray:
    """A column of the table. Raises: RequestError with the columns there are."""
    if name not in events:
        raise unknown('column of the event table', name, events)
    return np.asarray(events[name])


def overlapping(events: Table, kind: str, onset: float, duration: float) -> np.ndarray:
    """Rows of the events that are in a window: int [n].

    NeuralBench's rule: starts before the window stops and stops after it starts (both strict: touching is outside).

    Args:
        events: table of one recording.
        kind: event type.
        onset, duration: of the window, s.
    """
    start = column(events, 'onset')
    inside = (start < onset + duration) & (start + column(events, 'duration') > onset)
    return np.flatnonzero(inside & (column(events, 'type') == kind))


def collect(target: Target, events: Table, trigger_row: int, onset: float, duration: float) -> Any:
    """The raw target of one window, as a JSON value.

    Args:
        target: what the task asks for.
        events: table of the window's recording.
        trigger_row: row in `events` of the event that made the window.
        onset, duration: of the window in its recording, s.
    Returns:
        Classes: the trigger's label. StateClasses: labels of all overlapping events of the type (repeats kept).
        Labels: the distinct labels of all overlapping events of the type. Value: a number, with `until` the seconds
        from the window's end to the time in `field` (not clipped). Keystrokes: key labels with onset in
        [onset + core[0], onset + core[1]), in time order.
    Raises:
        RequestError: no such column, or the trigger has no value in it.
    """
    values = column(events, target.field)
    if isinstance(target, Classes | Value):
        value = values[trigger_row]
        if not present(values[trigger_row : trigger_row + 1])[0]:
            where = f'event {trigger_row} (type {as_text(events["type"][trigger_row])!r}, window at {onset:g} s)'
            raise RequestError(f'{where} has no {target.field!r}: it can not trigger a window of this task')
        if isinstance(target, Classes):
            return as_text(value)
        try:
            number = float(value)
        except ValueError:
            raise RequestError(
                f'event {trigger_row}: {target.field!r} is {as_text(value)!r}, expected a number'
            ) from None
        return number - (onset + duration) if target.until else number
    if isinstance(target, Keystrokes):
        start = column(events, 'onset')
        inside = (start >= onset + target.core[0]) & (start < onset + target.core[1]) & present(values)
        rows = np.flatnonzero(inside)
        return [as_text(v) for v in values[rows[np.argsort(start[rows], kind='stable')]]]
    rows = overlapping(events, target.event, onset, duration)
    labels = [as_text(v) for v in values[rows[present(values[rows])]]]
    return labels if isinstance(target, StateClasses) else list(unique_sorted(labels))


def encode(target: Target, raw: Sequence[Any], *, classes: Sequence[str] | None = None) -> Encoded:
    """Targets of all windows as one array.

    Classes are the sorted distinct labels over ALL windows of the data set, whatever their split, as NeuralBench's
    LabelEncoder does; integers sort by value.

    Args:
        target: what the task asks for.
        raw: what `collect` gave, one a window, of every split.
        classes: fixed classes in order, instead of those found (needed for Keystrokes: index = output of the network).
    Returns:
        Classes: int64 [N]. StateClasses: int64 [N], no event = the last class, '(none)'; several events: the class
        with most events, the first of equals. Labels: float32 [N, K] of 0 and 1. Value: float32 [N, 1], clipped.
        Keystrokes: int32 [N, length], padded with the blank.
    Raises:
        RequestError: no window, a label outside the fixed classes, a number that is not finite, too many keys.
    """
    if not len(raw):
        raise RequestError('there is no window to encode targets of: check the trigger and the label of the task')
    if isinstance(target, Value):
        y = np.asarray(raw, np.float64).reshape(len(raw), 1)
        if not np.isfinite(y).all():
            raise RequestError(f'{int((~np.isfinite(y)).sum())} of {len(y)} windows have no finite {target.field!r}')
        return Encoded((y if target.clip is None else np.clip(y, *target.clip)).astype(np.float32), ())
    if isinstance(target, Keystrokes):
        if classes is None:
            raise RequestError('keystrokes need the fixed list of keys: index in the list = output of the network')
        return _keystrokes(target, raw, tuple(classes))
    rows = [[v] for v in raw] if isinstance(target, Classes) else raw
    known = unique_sorted(v for row in rows for v in row) if classes is None else tuple(classes)
    index = {label: i for i, label in enumerate(known)}
    counts = np.zeros((len(rows), len(known) + 1), np.int64)  # last: no event
    for i, row in enumerate(rows):
        for label in row:
            counts[i, _lookup(index, label, target.field)] += 1
    if isinstance(target, Labels):
        return Encoded((counts[:, :-1] > 0).astype(np.float32), known)
    if isinstance(target, Classes):
        return Encoded(counts[:, :-1].argmax(1), known)
    counts[:, -1] = counts[:, :-1].sum(1) == 0
    return Encoded(counts.argmax(1), (*known, '(none)'))


def class_weights(y: np.ndarray, kind: str, *, n_out: int | None = None) -> np.ndarray:
    """Loss weights against class imbalance, from the training windows.

    Args:
        y: int [N] for 'classes' and 'state'; 0/1 [N, K] for 'labels'.
        kind: of the target.
        n_out: number of classes, where the last ones may have no window.
    Returns:
        float32 [K]. Classes: scikit-learn's 'balanced' rule N / (number of observed classes * count), 1 for a class
        without windows. Labels: n_negative / n_positive, 1 for a label without a positive window.
    Raises:
        ValueError: the kind has no classes, or y is empty.
    """
    y = np.asarray(y)
    if not y.size:
        raise ValueError('class weights of no window')
    if kind == 'labels':
        positive = (y > 0).sum(0)
        return np.where(positive > 0, (len(y) - positive) / np.maximum(positive, 1), 1.0).astype(np.float32)
    if kind not in ('classes', 'state'):
        raise ValueError(f'targets of kind {kind!r} have no class weights')
    counts = np.bincount(y, minlength=n_out or 0)
    seen = counts > 0
    return np.where(seen, len(y) / (seen.sum() * np.maximum(counts, 1)), 1.0).astype(np.float32)


def _keystrokes(target: Keystrokes, raw: Sequence[Sequence[str]], classes: tuple[str, ...]) -> Encoded:
    index = {key: i for i, key in enumerate(classes)}
    if len(classes) > target.blank:
        raise RequestError(f'{len(classes)} keys, but output {target.blank} is the blank: at most {target.blank} keys')
    y = np.full((len(raw), target.length), target.blank, np.int32)
    for i, keys in enumerate(raw):
        if len(keys) > target.length:
            raise RequestError(f'window {i} has {len(keys)} keystrokes, more than {target.length} (target.length)')
        y[i, : len(keys)] = [_lookup(index, key, target.field) for key in keys]
    return Encoded(y, classes)


def _lookup(index: dict[str, int], label: str, field: str) -> int:
    if label not in index:
        raise unknown(f'value of {field!r}', label, index)
    return index[label]
