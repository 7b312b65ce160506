"""An event table: a dict of equally long numpy columns, and questions that are asked of it.

A missing value is '' in a text column and nan in a float column; an integer column has none missing (where some rows
lack a number, the column is text).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from jbench.spec.errors import unknown

Table = Mapping[str, np.ndarray]
SHIFT = 20  # id of a window = recording << 20 | its number there
INTEGER = re.compile(r'[+-]?[0-9]+')


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
