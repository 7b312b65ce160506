"""What every stage needs to know of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jbench import processes
from jbench.progress import Interrupted, Progress, StopSignal


class Context(NamedTuple):
    """What every stage needs to know of this run."""

    workdir: Path
    data_dir: Path | None
    progress: Progress
    stop: StopSignal
    if_exists: str  # 'skip' | 'resume' | 'overwrite' | 'fail'
    keep_weights: bool = True  # beside the results
    weights: Mapping[str, Path] = {}
    delete_raw: bool = False  # recordings, once their prepared sets are there

    def guard(self) -> None:
        """Raises Interrupted if a signal asked this process to stop."""
        if self.stop():
            raise Interrupted

    def report(self, what: str, done: int, total: int) -> None:
        """`done` of `total` of a piece of work. Raises: as `guard`."""
        self.guard()
        self.progress.update(what, done, total)

    def asked(self) -> bool:
        """Whether a signal asked any of the processes to stop; while they train, all ask at the same moment."""
        return processes.anywhere(self.stop())

    def guard_all(self) -> None:
        """As `guard`, for all processes together."""
        if self.asked():
            raise Interrupted
