"""What every engine does with jobs: the longest first, each after what it needs, to the end or until a signal.

An engine is a `Place`: how a job is started there and watched. All else is here, and the same for all of them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from jbench import files
from jbench.grid.job import Job, n_cells
from jbench.grid.process import SAVED
from jbench.progress import Progress
from jbench.spec.errors import RequestError
from jbench.stores import mirror, notes

LOOK = 0.2  # s that a place waits for an end, between looks at signals
SOME = 1  # exit status of a job of which some cells failed
LAST = 4  # lines of a log that are shown of a job that failed
TAIL = 1 << 14  # bytes of a log that are kept beside the errors of other cells


class LostError(Exception):
    """A place cannot be reached any more: what runs there saves itself or goes on, and so does the same command."""


class Place(Protocol):
    """Where jobs run."""

    def has_room(self, job: Job) -> bool:
        """Whether a job may start now, beside those that run; where none runs, always."""

    def start(self, job: Job, log: Path) -> None:
        """Start a job whose words go to `log`; returns at once. Raises: LostError."""

    def ended(self, seconds: float) -> Mapping[str, int]:
        """Exit statuses, by key, of jobs that ended since the last call; waits up to `seconds` for one.

        Of a job that was killed: 128 + the number of the signal. Raises: LostError.
        """

    def stop(self) -> None:
        """Tell all jobs that run to save and to leave; returns at once, and `ended` gives them later."""


class Grid(NamedTuple):
    """What engines need beside the jobs."""

    workdir: Path
    progress: Progress
    stop: Callable[[], bool]  # whether a signal asked to stop
    finished: Callable[[Job], bool] = lambda job: False  # such a job is not run, and counts as well ended
    begin: Callable[[], object] = lambda: None  # called once a place is there, before its first job


class Outcome(NamedTuple):
    """How jobs ended."""

    statuses: dict[str, int]  # exit statuses by key; jobs that never began are not among them
    interrupted: bool  # the same command goes on


def run(jobs: Sequence[Job], place: Place, grid: Grid) -> Outcome:
    """Run jobs to their end; one that fails is told with the last lines of its log, and does not stop the others.

    Args:
        jobs: in any order; one whose `after` is none of them waits for nothing. Where some sets of a job are not made,
            those that wait for it begin all the same.
        place: where they run.
        grid: folders, progress, signals, and what is finished already.

    Raises: RequestError where a log cannot be written; what `grid.begin` raises.
    """
    grid.begin()
    keys = {job.key for job in jobs}
    waiting = ordered(job if job.after in keys else job._replace(after='') for job in jobs)
    running: dict[str, Job] = {}
    statuses: dict[str, int] = {}
    told = lost = False
    while running or (waiting and not told):
        if grid.stop() and not told:
            told = True
            place.stop()
        try:
            if not told:
                waiting = _start(waiting, running, statuses, place, grid)
            _tell(len(jobs), running, statuses, grid.progress)
            if not running and (told or not waiting):
                break
            for key, status in place.ended(LOOK).items():
                statuses[key] = status
                if status and not told:
                    _failed(running[key], status, grid)
                if n_cells(running.pop(key)) > 1 and status == SOME:  # what needs a set that is not there says so
                    waiting = [job._replace(after='') if job.after == key else job for job in waiting]
        except LostError as error:
            grid.progress.say(f'jbench: {error}')
            lost = True
            break
    _tell(len(jobs), running, statuses, grid.progress)
    grid.progress.finish(CELLS, _count(len(jobs), {}, statuses))
    return Outcome(statuses, told or lost or SAVED in statuses.values())


def ordered(jobs: Iterable[Job]) -> list[Job]:
    """Jobs by what is to be waited for, at least, from their start on: their own seconds and those of the longest that
    follows; equal ones as they came."""
    given = list(jobs)
    behind: dict[str, float] = {}
    for job in given:
        behind[job.after] = max(behind.get(job.after, 0.0), job.seconds)
    return sorted(given, key=lambda job: -(job.seconds + behind.get(job.key, 0.0)))


def exit_status(jobs: Sequence[Job], outcome: Outcome) -> int:
    """That of the command, as without an engine: 0 all done; 1 some failed; 2 all refused; 75 interrupted."""
    if outcome.interrupted:
        return SAVED
    needed = {job.after for job in jobs}  # whose cells tell how it ended
    ends = [outcome.statuses.get(job.key, 1) for job in jobs if job.key not in needed]
    return 2 if ends and set(ends) == {2} else int(any(ends))


def log_of(workdir: Path, job: Job) -> Path:
    """Where the words of a job go."""
    return workdir / 'logs' / f'{files.slug(job.key)}.log'


CELLS = 'jobs'  # what the bar is called


def _start(
    waiting: list[Job], running: dict[str, Job], statuses: dict[str, int], place: Place, grid: Grid
) -> list[Job]:
    """Start what may run now; the jobs that still wait."""
    left = []
    for job in waiting:
        needed = statuses.get(job.after) if job.after else 0
        if needed is None:
            left.append(job)
        elif needed:
            statuses[job.key] = needed if needed in (2, SAVED) else 1
            grid.progress.say(f'not run: {job.title}')
            if needed != SAVED:
                why = notes.error_of(grid.workdir, job.after)
                _note(job, [f'not run, because {job.after} failed: {why}'], grid)
        elif grid.stop() or not place.has_room(job):
            left.append(job)
        elif grid.finished(job):
            statuses[job.key] = 0
        else:
            log = log_of(grid.workdir, job)
            notes.forget(grid.workdir, job.key, log)
            place.start(job, log)
            running[job.key] = job
    return left


def _failed(job: Job, status: int, grid: Grid) -> None:
    """Tell of a job that failed."""
    log = log_of(grid.workdir, job)
    if status == SAVED:
        grid.progress.say(f'stopped, and saved: {job.title}')
        return
    _bring(job, log, grid)
    lines = tail(log)
    grid.progress.say('\n  '.join([f'failed: {job.title}: {reason(status)}; {log} ends:', *lines[-LAST:]]))
    if not notes.error_of(grid.workdir, job.key).exists():  # else the cell has said more
        _note(job, [reason(status), *lines], grid)


def _bring(job: Job, log: Path, grid: Grid) -> None:
    """Bring what a job that failed on another machine left in the store: its error, and its log."""
    name = log.relative_to(grid.workdir).as_posix()
    try:
        notes.bring(grid.workdir, [job.key])
        mirror.bring(grid.workdir, 'logs', wanted=lambda there: there == name)
    except RequestError as error:
        grid.progress.say(f'jbench: {error}')


def _note(job: Job, lines: Sequence[str], grid: Grid) -> None:
    """Keep an error, which --status finds."""
    try:
        notes.keep(grid.workdir, job.key, '\n'.join([*lines, '']))
    except RequestError as error:
        grid.progress.say(f'jbench: {error}')


def reason(status: int) -> str:
    """An exit status that is not 0, in words."""
    if status <= 128:
        return f'exit status {status}'
    try:
        name = signal.Signals(status - 128).name
    except ValueError:
        return f'exit status {status}'
    return f'killed by {name}' + (', most likely because memory ran out' if name == 'SIGKILL' else '')


def tail(log: Path) -> list[str]:
    """The last lines of a log that say something; [] where there is none."""
    try:
        with open(log, 'rb') as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            text = file.read().decode(errors='replace')
    except OSError:
        return []
    return [''.join(c if c.isprintable() else '?' for c in line) for line in text.splitlines() if line.strip()]


def _tell(n_jobs: int, running: Mapping[str, Job], statuses: Mapping[str, int], progress: Progress) -> None:
    """How many have ended, so far."""
    if len(statuses) < n_jobs:
        progress.update(CELLS, len(statuses), n_jobs, _count(n_jobs, running, statuses).partition(' ')[2])


def _count(n_jobs: int, running: Mapping[str, Job], statuses: Mapping[str, int]) -> str:
    """`3/4 1 running, 1 failed`."""
    failed = sum(map(bool, statuses.values()))
    facts = [f'{len(running)} running'] * bool(running) + [f'{failed} not well ended'] * bool(failed)
    return f'{len(statuses)}/{n_jobs} {", ".join(facts)}'.strip()
