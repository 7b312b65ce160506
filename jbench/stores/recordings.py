"""Recordings in a store (`--data_dir=s3://...`): a plan needs names, sizes and small tables; only what is prepared here
is brought whole."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

from jbench import files
from jbench.stores import mirror
from jbench.stores.remote import Facts, Remote, at_once, marked

TABLES = ('.tsv', '.csv', '.txt', '.json', '.vmrk')  # brought at once, as other files up to SMALL: those whose content
SMALL = 1 << 20  # tells one set of recordings from another (data.prepare.build_set)
NAME_ALONE = 0  # time of a file of which only name and size are here: 1970
Report = Callable[[str, int, int], object]  # (what, done, total); what it raises ends the work


@functools.cache
def look(data_dir: Path | None, folder: str) -> None:
    """Let a folder of the recordings hold the names, the sizes and the small files of what the store has there, once in
    a process; copies of what it has no more go. Nothing is done where no store belongs to `data_dir`."""
    store = mirror.of(data_dir)
    if store is None or data_dir is None:
        return
    copies = [p for p in (data_dir / folder).rglob('*') if p.is_file() and (marked(p) or _is_stand_in(p))]
    small, there = [], _listed(store, folder)
    for path in copies:
        if path.relative_to(data_dir).as_posix() not in there:
            _remove(path, data_dir)
    for name, facts in there.items():
        path = data_dir / name
        if facts.same(path):
            continue
        if facts.size <= SMALL or name.endswith(TABLES):
            small.append(functools.partial(store.fetch, name, path, facts))
        elif not (path.exists() and path.stat().st_size == facts.size and _is_stand_in(path)):
            _stand_in(path, facts)
    at_once(small)


def fill(data_dir: Path | None, folder: str, report: Report = lambda what, done, total: None) -> None:
    """Bring all files of a folder whole. Nothing is done where no store belongs to `data_dir`.

    Raises: RequestError for a store that does not answer, or a full disk.
    """
    store = mirror.of(data_dir)
    if store is None or data_dir is None:
        return
    there = _listed(store, folder)
    lacking = [name for name, facts in there.items() if not facts.same(data_dir / name)]
    what = f'copy {folder} from {store.url}'
    calls = [functools.partial(store.fetch, name, data_dir / name, there[name]) for name in lacking]
    at_once(calls, lambda done: report(what, done, len(calls)))


def _listed(store: Remote, folder: str) -> dict[str, Facts]:
    return {name: facts for name, facts in store.list(folder).items() if mirror.inside(name)}


def _remove(path: Path, data_dir: Path) -> None:
    """Remove a file, and the folders that are empty then: a store has none."""
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == data_dir or any(folder.iterdir()):
            break
        folder.rmdir()


def _is_stand_in(path: Path) -> bool:
    return path.stat().st_mtime == NAME_ALONE


def _stand_in(path: Path, facts: Facts) -> None:
    """A file of the size of another, which takes no room and cannot be read for it."""
    files.make_dir(path.parent)
    with files.explained(path, 0):
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o200)
        os.truncate(descriptor, facts.size)
        os.close(descriptor)
        os.utime(path, (NAME_ALONE, NAME_ALONE))
