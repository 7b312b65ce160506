"""Jobs as futures of a Dask cluster: a window of them, so that the scheduler holds few however many there are."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jbench.grid import worker
from jbench.grid.engine import Grid, LostError
from jbench.grid.job import Job, again
from jbench.grid.process import SAVED
from jbench.spec.errors import RequestError
from jbench.stores import mirror

if TYPE_CHECKING:
    from distributed import Client, Future

KILLERS = 1  # times that a job begins again at which four workers died
AGAIN = 20  # times that a job begins again after its machine was taken away
TAKEN_AWAY = (SAVED, 128 + signal.SIGTERM)  # statuses of a job that others than we stopped, as a queue does
EVERY = 2.0  # s between looks at the workers
SILENCE = 60.0  # s without any worker after which that is said
LOOK = 0.005  # s between looks at what has ended


class Offer(NamedTuple):
    """What the workers of a cluster have."""

    slots: int  # jobs at once, as far as threads tell
    devices: int  # most that one worker offers as the resource GPU; 0: none offers any
    memory: int  # bytes; most that one worker offers as the resource MEMORY; 0: none offers any
    environments: tuple[Mapping[str, str], ...] = ()  # of workers that share the accelerators of this machine
    shared: int = 0  # bytes that all workers have together; 0: each has its own


class Futures:
    """A `Place`: a window of futures on a cluster, of which each is one job and gives one number."""

    def __init__(self, client: Client, offer: Offer, grid: Grid) -> None:
        from distributed import as_completed

        self._client, self._offer, self._grid = client, offer, grid
        self._run = secrets.token_hex(4)  # tells our jobs from those of others, and of earlier runs
        self._done = as_completed([], loop=client.loop, with_results=True, raise_errors=False)
        self._jobs: dict[str, tuple[Job, Path]] = {}  # by key of the future
        self._futures: dict[str, Future] = {}
        self._begun = Counter[str]()  # times, by key of the job
        self._killed = Counter[str]()  # times that it killed its workers, by key of the job
        self._ranks: dict[str, int] = {}  # the order in which they were given, by key of the job
        self._stopping = False
        self._looked = self._seen = time.monotonic()

    def has_room(self, job: Job) -> bool:
        """Whether the window takes a job: twice what the workers do at once, so that none waits, and a cluster that
        grows with its queue does grow; of workers that share their memory no more than what it holds, but for one."""
        held = sum(other.memory for other, _ in self._jobs.values())
        fits = not (self._offer.shared and self._jobs) or held + job.memory <= self._offer.shared
        return fits and self.count() < 2 * self._offer.slots + 2

    def count(self) -> int:
        """How many jobs the scheduler has of us."""
        return len(self._futures)

    def start(self, job: Job, log: Path) -> None:
        """Submit a job; those that were submitted first begin first. Raises: LostError."""
        if self._client.status != 'running':
            raise _lost()
        self._begun[job.key] += 1
        most = self._offer.shared or self._offer.memory
        if job.memory > most > 0:
            self._grid.progress.say(
                f'{job.title} is expected to take {job.memory / 1e9:.1f} GB, more than the {most / 1e9:.1f} GB there '
                'are; it runs with no other job beside it'
            )
        key = f'job-{job.key}-{self._run}-{self._begun[job.key]}'
        turn = job if self._begun[job.key] == 1 else again(job)
        workdir = self._grid.workdir.absolute()
        there = f'{mirror.name(workdir)}/{log.absolute().relative_to(workdir).as_posix()}'  # as a worker calls it
        what = (worker.work, turn, there, self._run, self._offer.environments)
        asked = resources(job, self._offer)
        first = self._ranks.setdefault(job.key, -len(self._ranks))
        future = self._client.submit(*what, key=key, pure=False, priority=first, resources=asked)
        self._jobs[key], self._futures[key] = (job, log), future
        self._done.add(future)

    def ended(self, seconds: float) -> Mapping[str, int]:
        """Exit statuses of jobs that ended since the last call; waits up to `seconds` for one. Raises: LostError."""
        until, found = time.monotonic() + seconds, dict[str, int]()
        while not found and time.monotonic() < until:
            self._look()
            for future, result in self._done.next_batch(block=False):
                del self._futures[future.key]
                job, log = self._jobs.pop(future.key)
                if future.status in ('lost', 'cancelled') and not self._stopping:
                    future.release()
                    raise _lost()
                status = self._status(job, future.status, result)
                future.release()
                if status is None:
                    self.start(job, log)
                else:
                    found[job.key] = status
            time.sleep(LOOK)
        return found

    def stop(self) -> None:
        """Tell all workers, and take back what has not begun."""
        self._stopping = True
        with contextlib.suppress(LostError):  # `ended` says so
            self._tell()

    def close(self) -> None:
        """Leave the cluster; jobs that still run there are told to save."""
        if self._futures and self._client.status == 'running':
            self.stop()

    def _status(self, job: Job, state: str, result: Any) -> int | None:
        """The exit status of a job whose future ended; None: it begins again."""
        if self._stopping and state != 'finished':
            return SAVED
        if state == 'finished':
            more = not self._stopping and self._begun[job.key] <= AGAIN
            return None if more and result in TAKEN_AWAY else int(result)
        error = result[1] if isinstance(result, tuple) else result
        if type(error).__name__ == 'KilledWorker':  # four workers died at this job
            self._killed[job.key] += 1
            if self._killed[job.key] <= KILLERS:
                return None
            error = f'{4 * self._killed[job.key]} workers died while it ran, the last one {error.last_worker.address}'
        self._grid.progress.say(f'jbench: {job.title}: {error}')
        return 2 if isinstance(error, RequestError) else 1

    def _look(self) -> None:
        """Now and then: how many workers there are; while stopping, that those who came late hear of it."""
        now = time.monotonic()
        if now < self._looked + EVERY:
            return
        self._looked = now
        with _reached():
            if self._client.status != 'running':
                raise _lost()
            slots = sum(self._client.nthreads().values())
            if self._stopping:
                self._tell()
        if slots or not self._futures:
            self._seen = now
        elif now > self._seen + SILENCE:
            self._seen = now
            self._grid.progress.say('no worker is there; waiting for one (Ctrl-C: what was done stays)')
        self._offer = self._offer._replace(slots=max(1, slots))

    def _tell(self) -> None:
        """Tell the workers to leave; cancel what none of them has."""
        with _reached():
            self._client.run(worker.leave, self._run, on_error='ignore')
            held = {key for keys in self._client.processing().values() for key in keys}
            self._client.cancel([f for key, f in self._futures.items() if key not in held])


def resources(job: Job, offer: Offer) -> dict[str, float]:
    """What a job asks of a worker, of what workers offer at all; never more memory than the largest has."""
    asked = {'GPU': job.devices if offer.devices else 0, 'MEMORY': min(job.memory, offer.memory)}
    return {name: float(n) for name, n in asked.items() if n}


@contextlib.contextmanager
def _reached() -> Iterator[None]:
    """Inside: a scheduler that does not answer is a LostError."""
    try:
        yield
    except (OSError, TimeoutError, AttributeError) as error:  # a closed client has no scheduler
        raise _lost() from error


def _lost() -> LostError:
    return LostError('the scheduler is lost; what runs there saves itself or ends')
