"""What a worker of a Dask cluster does: it runs jobs, and looks around. Imports nothing of Dask when it is imported.

Dask tells a worker nothing when a job must stop, so the client says so to the process: `leave`.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench.grid import process
from jbench.grid.job import Job
from jbench.spec.errors import RequestError
from jbench.stores import address, mirror
from jbench.version import __version__

STAYS = ('running', 'paused')  # states of a worker; in all others it leaves, and Dask starts its jobs elsewhere
_left: set[str] = set()  # runs that are told to leave, in this process


class Sight(NamedTuple):
    """What a worker sees."""

    host: str
    jbench: str  # its version
    python: str  # its version
    sees: bool  # the file that was asked for
    why: str = ''  # it does not: what the store said


def look(path: str) -> Sight:
    """What this worker is, and whether it sees a file, which may be one of a store."""
    sees, why = False, ''
    try:
        sees = _sees(path)
    except RequestError as error:
        why = str(error)
    return Sight(socket.gethostname(), __version__, platform.python_version(), sees, why)


def _sees(path: str) -> bool:
    """Whether there is a file, two folders deep in the store where it is one of a store. Raises: RequestError."""
    if not address.is_address(path):
        return Path(path).is_file()
    url, *name = path.rsplit('/', 2)
    store = mirror.of(mirror.local(url, '--workdir'))
    return store is not None and store.facts('/'.join(name)) is not None


def work(job: Job, log: str, run: str, devices: Sequence[Mapping[str, str]] = ()) -> int:
    """Run a job to its end in a process of its own, unless its run was told to leave, or this worker leaves.

    Args:
        job: what runs.
        log: where its words go; one of a store is written in the copy here, and put there where the job fails.
        run: name of the run of the engine that it belongs to.
        devices: environments of which each shows one accelerator of this machine, where workers must share them out.

    Returns: as `process.run`. Raises: RequestError where the log cannot be written.
    """
    if run in _left:
        return process.SAVED
    from distributed import get_worker

    here, more = get_worker(), dict[str, str]()
    undo_environment()
    if devices:
        more |= devices[int(here.name) % len(devices)] if job.devices else {'JAX_PLATFORMS': 'cpu'}
    home, own = None, Path(log)
    if address.is_address(log):
        url, *name = log.rsplit('/', 2)
        home = mirror.local(url, '--workdir')
        own = home.joinpath(*name)
    status = process.run(job, own, lambda: run in _left or here.status.name not in STAYS, more)
    if home and status not in (0, process.SAVED):
        with contextlib.suppress(RequestError):
            mirror.take(home, [own])
    return status


def leave(run: str) -> None:
    """Tell all jobs of a run here to save and to leave; those that come later do not begin."""
    _left.add(run)


def undo_environment() -> None:
    """Take back what Dask puts into the environment of its workers (one thread of BLAS, fixed hashes): a job has that
    of a command which is typed, else its bits would differ. A value other than Dask's stays."""
    import dask

    given = {**dask.config.get('distributed.nanny.pre-spawn-environ', {}), 'PYTHONHASHSEED': 6640}
    for name, value in given.items():
        if os.environ.get(name) == str(value):
            os.environ.pop(name, None)  # another thread may have done so


def dask_setup(worker: Any) -> None:
    """Of a worker that a command started on its own machine: Ctrl-C in the terminal is for the command alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
