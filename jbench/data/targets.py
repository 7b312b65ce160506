"""What a window is to be predicted as: read from the events at preparation, encoded as an array at load.

Two steps, so that the classes of a task are known only once every window of a data set is: `collect` gives one small
JSON value a window (label text, list of labels, number); `encode` maps all of them to `y`. Of a stimulus both say only
its name: its embedding comes from `encoders.py`, one for all windows that show it.

An event table is a dict of equally long numpy columns. A missing value is '' in a text column and nan in a float
column; an integer column has none missing (where some rows lack a number, the column is text).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.data.events import Table, as_text, column, overlapping, present, unique_sorted
from jbench.data.stimuli import encoders
from jbench.metrics.keystrokes import NONE
from jbench.spec.errors import RequestError, unknown
from jbench.spec.task import Classes, Embedding, Keystrokes, Labels, StateClasses, Target, Value


class Encoded(NamedTuple):
    """Targets of all windows of a data set."""

    y: np.ndarray  # int64 [N] | float32 [N, K] (labels), [N, 1] (value) | int32 [N, length] (keystrokes)
    classes: tuple[str, ...]  # what 0..K-1 stand for (of an embedding: the stimuli); empty for a value
    groups: tuple[str, ...] = ()  # of each window: what is to be retrieved (embedding)


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
        from the window's end to the time in `field` (not clipped). Keystrokes: key labels of the events of the
        type with onset in [onset + core[0], onset + core[1]), in time order; with `held`, where there is one, also
        those that last into it. Embedding: [name of the stimulus, group].
    Raises:
        RequestError: no such column, or the trigger has no value in it; no event that shows the stimulus.
    """
    if isinstance(target, Embedding):
        return _stimulus(target, events, trigger_row, onset, duration)
    values = column(events, target.field)
    if isinstance(target, Classes | Value):
        value = values[trigger_row]
        _require(values, trigger_row, events, target.field, onset)
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
        inside = (start >= onset + target.core[0]) & (start < onset + target.core[1])
        keys = (column(events, 'type') == target.event) & present(values)
        if target.held and (inside & keys).any():
            stop = start + column(events, 'duration')
            inside = (start < onset + target.core[1]) & (stop > onset + target.core[0])
        rows = np.flatnonzero(inside & keys)
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
        classes: fixed classes in order, instead of those found.
    Returns:
        Classes: int64 [N]. StateClasses: int64 [N], no event = the last class, '(none)'; several events: the class
        with most events, the first of equals. Labels: float32 [N, K] of 0 and 1. Value: float32 [N, 1], clipped.
        Keystrokes: int32 [N, length], padded with NONE; its classes are the keys, outputs without one ('') and
        '(blank)'. Embedding: int64 [N], number of the stimulus among `classes`.
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
    if isinstance(target, Embedding):
        names, number = np.unique([name for name, _ in raw], return_inverse=True)
        return Encoded(number.astype(np.int64), tuple(names.tolist()), tuple(group for _, group in raw))
    if isinstance(target, Classes) and target.mapping:
        return _mapped(target, raw)
    rows = [[v] for v in raw] if isinstance(target, Classes) else raw
    known = unique_sorted(v for row in rows for v in row) if classes is None else tuple(classes)
    if isinstance(target, Keystrokes):
        return _keystrokes(target, raw, known)
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


def scaling(y: np.ndarray, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and population sd of each column of y [N, K], float64 [K] each; 1 for an sd of 0. counts [N]: how often
    each row occurs."""
    y = np.asarray(y, np.float64)
    mean = np.average(y, axis=0, weights=counts)
    sd = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts))
    return mean, np.where(sd > 0, sd, 1.0)


def _stimulus(target: Embedding, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """Name and group of the stimulus of a window. A sound or film is named with the part of it that the window has."""
    row = trigger_row
    if target.event:
        shown = overlapping(events, target.event, onset, duration)
        shown = shown[present(column(events, target.field)[shown])]
        if not len(shown):
            raise RequestError(f'window at {onset:g} s: no {target.event} event with a {target.field!r} overlaps it')
        row = int(shown[0])
    name, group = column(events, target.field), column(events, target.group)
    _require(name, row, events, target.field, onset)
    owner = trigger_row if present(group[trigger_row : trigger_row + 1])[0] else row
    _require(group, owner, events, target.group, onset)
    text = as_text(name[row])
    if encoders.find(target.encoder).timed:
        text = encoders.part_name(text, onset - float(events['onset'][row]), duration)
    return [text, as_text(group[owner])]


def _require(values: np.ndarray, row: int, events: Table, field: str, onset: float) -> None:
    """Raises: RequestError where an event has no value in a column."""
    if not present(values[row : row + 1])[0]:
        where = f'event {row} (type {as_text(events["type"][row])!r}, window at {onset:g} s)'
        raise RequestError(f'{where} has no {field!r}: it can not trigger a window of this task')


def _mapped(target: Classes, raw: Sequence[str]) -> Encoded:
    """Classes as a mapping says; a class is called by all labels that are mapped to it."""
    index = dict(target.mapping)
    y = np.array([_lookup(index, label, target.field) for label in raw], np.int64)
    names = ['|'.join(label for label, k in target.mapping if k == n) for n in range(max(index.values()) + 1)]
    return Encoded(y, tuple(names))


def _keystrokes(target: Keystrokes, raw: Sequence[Sequence[str]], keys: tuple[str, ...]) -> Encoded:
    index = {key: i for i, key in enumerate(keys)}
    if len(keys) > target.blank:
        raise RequestError(f'{len(keys)} keys, but output {target.blank} is the blank: at most {target.blank} keys')
    y = np.full((len(raw), target.length), NONE, np.int32)
    for i, pressed in enumerate(raw):
        if len(pressed) > target.length:
            raise RequestError(f'window {i} has {len(pressed)} keystrokes, more than {target.length} (target.length)')
        y[i, : len(pressed)] = [_lookup(index, key, target.field) for key in pressed]
    return Encoded(y, (*keys, *[''] * (target.blank - len(keys)), '(blank)'))


def _lookup(index: dict[str, int], label: str, field: str) -> int:
    if label not in index:
        raise unknown(f'value of {field!r}', label, index)
    return index[label]
