"""The files of recordings: how a prepared set knows them, and which were deleted once it was made (delete_raw.py)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from jbench import files
from jbench.data.recording import RecordingRef, forbidden
from jbench.spec.identity import spec_hash

TABLES = ('.tsv', '.csv', '.txt', '.json', '.vmrk')  # files whose corrections may leave their size alone
SMALL = 1 << 20  # bytes of other files that may be tables too
NOTE = '.jbench_deleted.json'  # in the folder of a dataset: recordings that were deleted on request


def fingerprint(refs: list[RecordingRef]) -> str:
    """Names and fields of the recordings, relative names and sizes of their files, contents of tables and small ones:
    no long signal is read. Raises: RequestError for a file that may not be read."""
    names = [p for r in refs for p in r.files if os.path.exists(p)]
    base = os.path.commonpath(names) if len(names) > 1 else os.path.dirname(names[0]) if names else ''
    tables = [p for p in dict.fromkeys(names) if p.endswith(TABLES) or os.path.getsize(p) <= SMALL]
    try:
        content = {p: files.sha256_file(p) for p in tables if os.path.isfile(p)}
    except PermissionError as error:
        raise forbidden(error) from error
    facts = [(os.path.relpath(p, base), os.path.getsize(p), content.get(p, '')) for p in names]
    return spec_hash([[(r.name, r.fields) for r in refs], facts])[:8]


def note(root: Path) -> dict[str, Any]:
    """What was deleted of a dataset: `deleted`, the fields of recordings by their names; `sets`, by the fingerprint of
    all recordings that were there, what a fingerprint of each alone was; `files`, names of those that may still have to
    go. {} for nothing.
    """
    path = root / NOTE
    return dict(files.read_json(path)) if path.exists() else {}


def note_down(root: Path, refs: list[RecordingRef], deleted: list[RecordingRef], paths: list[str]) -> None:
    """Write, before they go, which recordings of those that are there will be deleted, and their files."""
    before = note(root)
    found = {fingerprint(refs): {r.name: fingerprint([r]) for r in refs}} if refs else {}
    gone = dict(sorted((before.get('deleted', {}) | {r.name: r.fields for r in deleted}).items()))
    names = [os.path.relpath(p, root) for p in paths]
    _write(root, {'schema': 1, 'deleted': gone, 'sets': before.get('sets', {}) | found, 'files': names})


def note_end(root: Path) -> None:
    """Write that all files went."""
    _write(root, note(root) | {'files': []})


@contextlib.contextmanager
def held(root: Path | None, waiting: Callable[[], object], *, alone: bool) -> Iterator[None]:
    """Hold the recordings of a dataset, to delete them (alone) or to read them, beside others who do; waits while that
    cannot be, as `files.locked`. Nothing is written, and where folders cannot be locked (some network disks), nothing
    is held."""
    if root is None or not root.is_dir() or not os.access(root, os.R_OK):
        yield
        return
    descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while not _try_hold(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
            waiting()
            time.sleep(0.5)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def read(roots: Iterable[Path], waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the recordings of several datasets, to read them."""
    with contextlib.ExitStack() as stack:
        for root in roots:
            stack.enter_context(held(root, waiting, alone=False))
        yield


def _try_hold(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no such locks there
        return True
    return True


def _write(root: Path, content: dict[str, Any]) -> None:
    files.write_atomic(root / NOTE, json.dumps(content, indent=1).encode())


def served(root: Path, refs: list[RecordingRef]) -> list[str]:
    """Fingerprints of all recordings, as they were before some were deleted, with which those that are left go: none
    has changed, and none is new."""
    known = note(root)
    gone = set(known.get('deleted', ()))

    def same(ref: RecordingRef, was: dict[str, str]) -> bool:
        return ref.name in was and (ref.name in gone or was[ref.name] == fingerprint([ref]))

    return [mark for mark, was in known.get('sets', {}).items() if all(same(r, was) for r in refs)]
