"""Compiled programs kept between runs. jax writes them in place and may crash on a damaged one: each gets a digest."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from jbench import files
from jbench.spec.errors import RequestError

ENTRIES, DIGEST = '*-cache', '.sha256'
ERRORS = r'Error (reading|writing) persistent compilation cache entry'


@contextlib.contextmanager
def kept(folder: Path, say: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Inside, jax keeps compiled programs in `folder`, if its environment says so; a cache of the user's own is left
    alone. Entries that are not what their digest says are removed before jax sees them: the process that wrote them
    was killed, or the disk flipped a bit. What cannot be kept or read is told in one line and costs time alone.

    Yields: a function that gives the entries written so far their digests; the end does so too.
    """
    failed: list[str] = []
    full: list[bool] = []  # whether jax could not write one

    def fail(reason: str) -> None:
        if not failed:
            say(f'compiled programs are not kept ({reason}): the next run compiles them again')
        failed.append(reason)

    def seal() -> None:
        if failed:
            return
        try:
            for entry in folder.glob(ENTRIES):
                if not _digest(entry).exists():
                    files.write_atomic(_digest(entry), files.sha256_file(entry).encode())
        except (RequestError, OSError) as error:  # the disk is full, it is another user's, another process swept
            fail(str(error))

    own = os.environ.get('JAX_COMPILATION_CACHE_DIR') == str(folder.absolute())
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, *rest: object) -> None:
            if 'persistent compilation cache entry' in str(message):
                full.append(str(message).startswith('Error writing'))
                fail(str(message).partition(': ')[2])
            else:
                before(message, *rest)  # type: ignore[arg-type]

        warnings.filterwarnings('always', ERRORS)
        warnings.showwarning = show  # type: ignore[assignment]
        if own:
            _sweep(folder)
        try:
            yield seal if own else lambda: None
        finally:
            if own:
                seal()
            if own and any(full):
                _sweep(folder, everything=True)  # what is left of it takes room that is needed


def _sweep(folder: Path, everything: bool = False) -> None:
    """Remove entries that are not what their digest says, or all."""
    for entry in folder.glob(ENTRIES):
        with contextlib.suppress(OSError):  # another process was faster, or it is another user's
            digest = _digest(entry)
            if everything or not digest.exists() or digest.read_text(errors='replace') != files.sha256_file(entry):
                digest.unlink(missing_ok=True)
                entry.unlink()


def _digest(entry: Path) -> Path:
    return entry.with_name(entry.name + DIGEST)
