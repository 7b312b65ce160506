"""Which stream, recording and cell each window belongs to (spec.Stream)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench.events import Table, as_text, column
from jbench.spec.challenges import Stream
from jbench.spec.errors import RequestError


class Places(NamedTuple):
    """Where windows lie; of each, [N]."""

    stream: np.ndarray  # text
    record: np.ndarray  # int, number of the recording
    onset: np.ndarray  # float64, s in it
    cell: np.ndarray  # text: the stream, and the context where there is one

    def of(self, rows: np.ndarray) -> Places:
        """Those of some windows."""
        return Places(*(values[rows] for values in self))


def places(events: Table, windows: Table, spec: Stream, tested: np.ndarray | None = None) -> Places:
    """The places of all windows of a set, in canonical order.

    Args:
        events: the event table, [n] rows.
        windows: columns 'event' (row of the trigger) and 'onset', [N] rows.
        spec: what makes a stream and a cell.
        tested: bool [N], windows that will be streamed: they must be `ordered`.
    Raises: RequestError for an unknown column in `by`; as `ordered`.
    """
    rows = np.asarray(windows['event'])
    stream = _joined([column(events, name)[rows] for name in spec.by])
    context = [events[spec.context][rows]] if spec.context in events else []
    cell = _joined([stream, *context])
    found = Places(stream, np.asarray(events['recording'])[rows], np.asarray(windows['onset'], np.float64), cell)
    if tested is not None:
        ordered(found.of(np.flatnonzero(tested)))
    return found


def ordered(places: Places) -> None:
    """Raises: RequestError where a stream or a recording is interrupted by another, or goes back in time."""
    for what, names in (('stream', places.stream), ('recording', places.record)):
        begins = [k for k in range(len(names)) if not k or names[k] != names[k - 1]]
        if len({str(names[k]) for k in begins}) < len(begins):
            raise RequestError(f'the windows of a {what} must follow one another: another {what} interrupts one')
    same = places.record[1:] == places.record[:-1]
    if (np.diff(places.onset)[same] < 0).any():
        raise RequestError('the windows of a recording must be in the order of their onsets')


def _joined(columns: list[np.ndarray]) -> np.ndarray:
    return np.array(['/'.join(map(as_text, values)) for values in zip(*columns, strict=True)], str)
