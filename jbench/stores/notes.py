"""What machines that share a store tell each other of a cell: that it runs now, and why it failed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from jbench import files
from jbench.spec.errors import RequestError
from jbench.stores import mirror

AGAIN = 120.0  # s after which a process says again that its cell runs
LEAVE = 10.0  # s that the end of a cell waits for what is being said; a store that is away takes longer
RUNS = 600  # s for which a cell counts as running after that was last said: its machine may be gone


def error_of(workdir: Path, key: str) -> Path:
    """Where the error of a cell, or of a job, is kept; --status counts such a cell as failed."""
    return workdir / 'errors' / f'{files.slug(key)}.log'


def keep(workdir: Path, key: str, text: str) -> Path:
    """Keep an error in the work folder and its store; where that is. Raises: RequestError where that is refused."""
    log = files.write_atomic(error_of(workdir, key), text.encode())
    mirror.take(workdir, [log])
    return log


def forget(workdir: Path, key: str, *logs: Path) -> None:
    """Remove the error of an earlier attempt, and what a store has of its logs. Where that is refused they stay,
    without a word: results count more."""
    error = error_of(workdir, key)
    with contextlib.suppress(OSError, RequestError):
        error.unlink(missing_ok=True)
        if store := mirror.of(workdir):
            store.remove([log.relative_to(workdir).as_posix() for log in (error, *logs)])


def bring(workdir: Path, keys: Collection[str]) -> None:
    """Let the errors of cells be here as they are in the store of a work folder; of a folder without store nothing is
    done. Raises: RequestError."""
    store = mirror.of(workdir)
    if store is None:
        return
    logs = {log.relative_to(workdir).as_posix(): log for log in (error_of(workdir, key) for key in keys)}
    here = [name for name, log in logs.items() if log.exists()]  # before the listing: what comes meanwhile stays
    there = mirror.listed(store, 'errors')
    mirror.fetch(store, workdir, {name: facts for name, facts in there.items() if name in logs})
    for name in here:
        if name not in there:
            logs[name].unlink(missing_ok=True)


@contextlib.contextmanager
def running(workdir: Path | None, key: str) -> Iterator[None]:
    """Inside, the store of a work folder says that a cell runs; of a folder without store nothing is done. Faults of
    the store are not told: nothing but what --status shows depends on it."""
    store = mirror.of(workdir)
    if store is None:
        yield
        return
    name, done = f'running/{key}', threading.Event()

    def tell() -> None:
        while not done.is_set():
            with contextlib.suppress(RequestError):
                store.write(name, b'runs')
            done.wait(AGAIN)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(LEAVE)
        with contextlib.suppress(RequestError):
            store.remove([name])


def now_running(workdir: Path) -> set[str]:
    """Keys of the cells of which the store says that they run, on any machine; of a folder without store none.

    A machine that was killed is not seen to be gone for RUNS seconds. Raises: RequestError.
    """
    store = mirror.of(workdir)
    there = store.list('running') if store else {}
    return {PurePosixPath(name).name for name, facts in there.items() if time.time() - facts.time < RUNS}
