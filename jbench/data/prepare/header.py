"""What the head of one recording says, asked before any signal is read: its rate and its channels."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from jbench.data.prepare import signal
from jbench.data.recording import Recording, RecordingRef, set_names
from jbench.data.source import source_of
from jbench.spec.dataset import Dataset
from jbench.spec.task import Task

if TYPE_CHECKING:
    import mne


def head(task: Task, dataset: Dataset, ref: RecordingRef) -> mne.io.BaseRaw | None:
    """A recording with the channels that the task picks, called as in its file; None where it cannot be read."""
    import mne

    try:
        with warnings.catch_warnings(), mne.utils.use_log_level('ERROR'):
            warnings.simplefilter('ignore')
            read = source_of(dataset).read(ref)
            if not isinstance(read, Recording):
                return None
            signal.pick(read.raw, task.signal)
    except Exception:  # of any reader: the preparation meets it again, and names every file that has one
        return None
    return read.raw


def channels(task: Task, dataset: Dataset, ref: RecordingRef) -> tuple[str, ...]:
    """Channels of a recording that the task picks, as a prepared set calls them; () where it cannot be read."""
    raw = head(task, dataset, ref)
    return () if raw is None else set_names(raw.ch_names, ref.subject, dataset)
