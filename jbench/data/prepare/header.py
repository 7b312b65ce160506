"""What the head of one recording says, asked before any signal is read: its rate and its channels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

from jbench.data.prepare import signal
from jbench.data.recording import Recording, RecordingRef, set_names
from jbench.data.source import source_of
from jbench.spec.dataset import Dataset
from jbench.spec.task import SignalSpec


class Head(NamedTuple):
    """What is known of a recording before it is read."""

    sfreq: float  # Hz
    ch_names: tuple[str, ...]  # that are picked, as a prepared set calls them


ReadHead = Callable[[SignalSpec, Dataset, RecordingRef], Head | None]


def head(spec: SignalSpec, dataset: Dataset, ref: RecordingRef) -> Head | None:
    """The head of a recording; None where it cannot be read."""
    import mne

    try:
        with warnings.catch_warnings(), mne.utils.use_log_level('ERROR'):
            warnings.simplefilter('ignore')
            read = source_of(dataset).read(ref)
            if not isinstance(read, Recording):
                return None
            signal.pick(read.raw, spec)
    except Exception:  # of any reader: the preparation meets it again, and names every file that has one
        return None
    return Head(float(read.raw.info['sfreq']), set_names(read.raw.ch_names, ref.subject, dataset))


def remembered() -> ReadHead:
    """`head`, that looks at each recording once for each choice of channels."""
    seen: dict[tuple[object, ...], Head | None] = {}

    def look(spec: SignalSpec, dataset: Dataset, ref: RecordingRef) -> Head | None:
        key = (tuple(spec.picks), spec.bads, dataset.name, ref)
        if key not in seen:
            seen[key] = head(spec, dataset, ref)
        return seen[key]

    return look
