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
from jbench.data.sources import mixture
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.identity import spec_hash
from jbench.spec.task import Task

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


def of_members(dataset: Dataset, refs: list[RecordingRef]) -> dict[str, str]:
    """The fingerprint of what is there of each member of a mixture, as of that dataset alone; {} of any other."""
    if dataset.source != mixture.__name__:
        return {}
    return {
        one.name: fingerprint([mixture.own(refs[i]) for i in mine]) for one, mine in mixture.by_member(dataset, refs)
    }


def sets_of(dataset: Dataset, folders: Iterable[Path], data_dir: Path | None, refs: list[RecordingRef]) -> list[Path]:
    """Of some sets those that serve what is there of a mixture, the newest first: nothing is new, nothing has changed,
    and what is not there went on request, or its member is not there at all. Of any other dataset, where nothing is
    there, all. One that does not say of what it was made serves where no file is."""
    manifests = [p / 'manifest.json' for p in folders if (p / 'manifest.json').exists()]
    newest = [p.parent for p in sorted(manifests, key=lambda p: -p.stat().st_mtime)]
    if not refs:
        return newest
    left = {one: [mixture.own(refs[i]) for i in mine] for one, mine in mixture.by_member(dataset, refs)}
    marks = {
        one.name: {fingerprint(own), *(served(data_dir / one.name, own) if data_dir else ())}
        for one, own in left.items()
    }
    made = {p: _made_of(p) for p in newest}
    filed = any(ref.files for ref in refs)
    return [p for p, of in made.items() if (all(of.get(n) in m for n, m in marks.items()) if of else not filed)]


def _made_of(folder: Path) -> dict[str, str]:
    """What a set says that `of_members` told; {} where it does not, or its manifest is damaged."""
    try:
        return dict(files.read_json(folder / 'manifest.json').get('members', {}))
    except RequestError:
        return {}


def refuse_rest(task: Task, dataset: Dataset, one: Dataset, root: Path, refs: list[RecordingRef]) -> None:
    """Raises: RequestError where a recording of `one` (of a mixture a member) that a task reads was deleted on request,
    or is being: its set would lack it."""
    from jbench.data.windows import possible  # with numpy, which --list does without

    called, window = f'{one.name}.' * (one != dataset), mixture.asked_of(task, dataset, one).window
    gone = note(root).get('deleted', {})
    there = {r.name for r in refs if all(map(os.path.lexists, r.files))}
    reads = [f'{called}{n}' for n, fields in gone.items() if possible(tuple((k, v) for k, v in fields), window)]
    if lost := [n for n in reads if n not in there]:
        more = f' and {len(lost) - 1} more' if lost[1:] else ''
        raise RequestError(
            f'{dataset.name}: no set in this work folder serves {task.full_name}, and of its recordings '
            f'{lost[0]}{more} went by --delete_raw_after: use the work folder of that time, or remove '
            f'{root}/{NOTE} and fetch them again with --download'
        )
