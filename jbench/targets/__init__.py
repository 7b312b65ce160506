"""What a window is to be predicted as, and how answers are scored: one module a kind of target.

Two steps, so that the classes of a task are known only once every window of a data set is: `collect` gives one small
JSON value a window (label text, list of labels, number); `encode` maps all of them to `y`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.events import Table
from jbench.spec.errors import RequestError
from jbench.spec.task import Target
from jbench.targets.angles import ANGLES
from jbench.targets.classes import CLASSES, STATE
from jbench.targets.contrast import MOMENT, NEXT
from jbench.targets.embedding import EMBEDDING
from jbench.targets.hidden import HIDDEN
from jbench.targets.keystrokes import KEYSTROKES
from jbench.targets.kind import Encoded, Kind
from jbench.targets.labels import LABELS
from jbench.targets.packed import Packed
from jbench.targets.value import VALUE

KINDS = {
    'classes': CLASSES,
    'state': STATE,
    'labels': LABELS,
    'value': VALUE,
    'embedding': EMBEDDING,
    'keystrokes': KEYSTROKES,
    'angles': ANGLES,
    'moment': MOMENT,
    'next': NEXT,
    'hidden': HIDDEN,
}


def of(kind: str) -> Kind:
    """What is known of a kind of target. Raises: ValueError with those there are."""
    if kind not in KINDS:
        raise ValueError(f'no metrics for targets of kind {kind!r}; there are {", ".join(KINDS)}')
    return KINDS[kind]


def collect(target: Target, events: Table, trigger_row: int, onset: float, duration: float) -> Any:
    """The raw target of one window, as a JSON value.

    Args:
        target: what the task asks for.
        events: table of the window's recording.
        trigger_row: row in `events` of the event that made the window.
        onset, duration: of the window in its recording, s.
    Raises:
        RequestError: no such column, or the trigger has no value in it; no event that shows the stimulus.
    """
    return of(target.kind).collect(target, events, trigger_row, onset, duration)


def encode(target: Target, raw: Sequence[Any], *, classes: Sequence[str] | None = None) -> Encoded:
    """Targets of all windows as one array.

    Classes are the sorted distinct labels over ALL windows of the data set, whatever their split, as NeuralBench's
    LabelEncoder does; integers sort by value.

    Args:
        target: what the task asks for.
        raw: what `collect` gave, one a window, of every split.
        classes: fixed classes in order, instead of those found.
    Raises:
        RequestError: no window, a label outside the fixed classes, a number that is not finite, too many keys.
    """
    if not len(raw):
        raise RequestError('there is no window to encode targets of: check the trigger and the label of the task')
    return of(target.kind).encode(target, raw, classes)


def some(y: Any, most: int = 256) -> np.ndarray:
    """Targets as an array, for a picture: of packed ones at most so many, evenly."""
    return np.asarray(y[:: -(-len(y) // most)] if isinstance(y, Packed) and len(y) else y)


def scaling(y: np.ndarray, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and population sd of each column of y [N, K], float64 [K] each; 1 for an sd of 0. counts [N]: how often
    each row occurs."""
    y = np.asarray(y, np.float64)
    mean = np.average(y, axis=0, weights=counts)
    sd = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts))
    return mean, np.where(sd > 0, sd, 1.0)
