"""A Dask scheduler and its workers as processes of their own, which tests may kill."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from places import ROOT


class Cluster(NamedTuple):
    """What runs."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: subprocess.Popen[bytes]


@contextlib.contextmanager
def running(folder: Path, *more: str, n_workers: int = 2, **env: str) -> Iterator[Cluster]:
    """A scheduler, and workers for one job each.

    Args:
        folder: of their files.
        more: arguments of the workers.
        n_workers: how many.
        env: of the workers, beside ours.
    """
    folder.mkdir(exist_ok=True)
    at = folder / 'scheduler.json'
    where = ['--scheduler-file', str(at), '--no-dashboard']
    started = [_start('dask_scheduler', folder, ['--port', '0', '--host', '127.0.0.1', *where], {})]
    try:
        while not at.exists():
            assert started[0].poll() is None, (folder / 'dask_scheduler.log').read_text()
            time.sleep(0.05)
        how = [
            '--nthreads',
            '1',
            '--nworkers',
            str(n_workers),
            '--local-directory',
            str(folder),
            '--death-timeout',
            '120',
        ]
        started.append(_start('dask_worker', folder, [*where, *how, *more], env))
        yield Cluster(json.loads(at.read_text())['address'], *started)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)


def _start(what: str, folder: Path, argv: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    left = {k: v for k, v in os.environ.items() if not k.startswith(('JBENCH', 'PYTHONSAFEPATH'))}
    with open(folder / f'{what}.log', 'wb') as log:
        return subprocess.Popen(
            [sys.executable, '-m', f'distributed.cli.{what}', *argv],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=left | {'PYTHONPATH': str(ROOT)} | env,
            cwd=folder,  # not where our packages lie, which Python looks at first
        )


def parent_of(pid: int) -> int:
    """The process that started another."""
    return int(Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[1])
