"""The process that an archive is tried in (trial.py), and what is said to it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from jbench.spec.errors import RequestError

SCRIPT = Path(__file__).with_name('trial.py')


class Process:
    """An archive in a process of its own."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        assert running.stdin is not None and running.stdout is not None
        self._running, self._to, self._from = running, running.stdin, running.stdout
        self.torch = str(self._reply()[0])  # its version

    def ask(self, do: str, *arrays: np.ndarray, **given: Any) -> tuple[Any, list[np.ndarray]]:
        """What a command of `trial.Tried` says, and the arrays that it gives. Raises: RequestError where it fails."""
        try:
            shapes = [[a.dtype.str, a.shape] for a in arrays]
            self._to.write(json.dumps({'do': do, 'arrays': shapes, 'given': given}).encode() + b'\n')
            for array in arrays:
                self._to.write(array.tobytes())
            self._to.flush()
        except BrokenPipeError:
            raise self._ended() from None
        return self._reply()

    def _reply(self) -> tuple[Any, list[np.ndarray]]:
        line = self._from.readline()
        if not line:
            raise self._ended()
        reply = json.loads(line)
        if 'error' in reply:
            raise RequestError(f'the archive fails in a fresh process: {reply["error"]}')
        return reply['said'], [_array(self._from, *shape) for shape in reply['arrays']]

    def _ended(self) -> RequestError:
        status = self._running.wait()
        return RequestError(f'the archive fails in a fresh process, which ended with status {status}')


def _array(stream: IO[bytes], kind: str, shape: list[int]) -> np.ndarray:
    return np.frombuffer(stream.read(np.dtype(kind).itemsize * math.prod(shape)), kind).reshape(shape)


@contextmanager
def trying(folder: Path, track: str) -> Iterator[Process]:
    """A fresh process with the archive in `folder`, ended behind the body. Raises: RequestError where it fails."""
    command = [sys.executable, '-P', '-s', '-E', '-W', 'ignore', str(SCRIPT), str(folder), track]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        try:
            yield Process(running)
        finally:
            with suppress(BrokenPipeError):
                running.communicate()
