"""A Dask scheduler and its workers as processes of their own, which tests may kill, and a line that they may cut."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from places import ROOT


class Cluster(NamedTuple):
    """What runs."""

    address: str
    scheduler: subprocess.Popen[bytes]


@contextlib.contextmanager
def running(folder: Path, *more: str, n_workers: int = 2, **env: str) -> Iterator[Cluster]:
    """A scheduler, and workers for one job each.

    Args:
        folder: of their files.
        more: arguments of the workers.
        n_workers: how many; 0: none, and `working` starts them.
        env: of the workers, beside ours.
    """
    folder.mkdir(exist_ok=True)
    at = folder / 'scheduler.json'
    where = ['--port', '0', '--host', '127.0.0.1', '--scheduler-file', str(at), '--no-dashboard']
    scheduler = _start('dask_scheduler', folder, where, {})
    with _ended(scheduler):
        while not at.exists():
            assert scheduler.poll() is None, (folder / 'dask_scheduler.log').read_text()
            time.sleep(0.05)
        address = json.loads(at.read_text())['address']
        workers = working(folder, address, *more, n_workers=n_workers, **env)
        with workers if n_workers else contextlib.nullcontext():
            yield Cluster(address, scheduler)


@contextlib.contextmanager
def working(folder: Path, address: str, *more: str, n_workers: int = 1, **env: str) -> Iterator[None]:
    """Workers of the scheduler at an address; arguments as of `running`."""
    folder.mkdir(exist_ok=True)
    how = ['--nthreads', '1', '--nworkers', str(n_workers), '--local-directory', str(folder), '--death-timeout', '120']
    with _ended(_start('dask_worker', folder, [address, '--no-dashboard', *how, *more], env)):
        yield


class Line(NamedTuple):
    """A line to a scheduler."""

    address: str  # of its near end
    cut: Callable[[], None]  # ends all connections through it; it takes no others


@contextlib.contextmanager
def line(address: str) -> Iterator[Line]:
    """A line to the scheduler at an address, which a test may cut."""
    host, port = address.removeprefix('tcp://').split(':')
    near_end = socket.create_server(('127.0.0.1', 0))
    held = [near_end]

    def carry(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def take() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = near_end.accept()[0], socket.create_connection((host, int(port)))
                held.extend((near, far))
                for way in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=way, daemon=True).start()

    def cut() -> None:
        for end in held:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=take, daemon=True).start()
    try:
        yield Line(f'tcp://127.0.0.1:{near_end.getsockname()[1]}', cut)
    finally:
        cut()
        for end in held:
            end.close()


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Afterwards the process has ended."""
    try:
        yield
    finally:
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
