"""Tasks that differ in windows and targets alone: while the set of one is made, the others get their parts of each
recording, which is so read and filtered once. Nothing but these parts, which they need anyway, takes any disk."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from jbench import files
from jbench.data.prepare.convert import finished
from jbench.data.recording import RecordingRef
from jbench.data.windows import possible
from jbench.spec.task import Task


class Other(NamedTuple):
    """A further task on a dataset, and what `build_set.locate` gives for it."""

    task: Task
    folder: Path | None
    refs: list[RecordingRef]


class Shared(NamedTuple):
    """A set that gets parts while that of another task is made."""

    task: Task
    parts: Path
    refs: set[RecordingRef]

    def lacks(self, ref: RecordingRef) -> bool:
        """Whether it needs a part of this recording."""
        return ref in self.refs and finished(ref, self.parts) is None


def same_signal(task: Task, other: Task) -> bool:
    """Whether two tasks cut their windows from one signal."""
    signals = [
        dataclasses.replace(
            t.signal,
            scaler='none' if t.signal.scaler == 'train' else t.signal.scaler,  # acts at load, as the last two do
            baseline=None,  # of windows
            clamp=None,
            factor=1.0,
        )
        for t in (task, other)
    ]
    return signals[0] == signals[1]


@contextlib.contextmanager
def held(sets: Iterable[tuple[Other, Path]]) -> Iterator[list[Shared]]:
    """Inside: those of some sets that no other process prepares are locked; each comes with what its lock and its parts
    are called by."""

    def busy() -> None:
        raise BlockingIOError

    with contextlib.ExitStack() as stack:
        shared = []
        for other, stem in sets:
            try:
                stack.enter_context(files.locked(f'{stem}.lock', busy))
            except BlockingIOError:
                continue
            parts = files.make_dir(f'{stem}.parts')
            shared.append(Shared(other.task, parts, {r for r in other.refs if possible(r.fields, other.task.window)}))
        yield shared
