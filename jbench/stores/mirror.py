"""The copy of a store on this machine: a folder like any other, in which commands work."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from jbench import files
from jbench.spec.errors import RequestError
from jbench.stores import address
from jbench.stores.remote import Facts, Remote, at_once, opened

MARKER = '.store'  # says which store a folder is the copy of


def local(given: str | os.PathLike[str], flag: str) -> Path:
    """The folder in which a command works: the given one; of a store its copy, which is made.

    Args:
        given: a folder, or an address as `s3://bucket/folder`.
        flag: what gave it, for messages.
    Raises: RequestError as `address.parse`, or where the copy cannot be written.
    """
    text = os.fspath(given)
    if not address.is_address(text):
        return Path(text)
    store = address.parse(text, flag)
    home = store.copy
    if not (home / MARKER).exists():
        files.write_atomic(home / MARKER, json.dumps({'url': store.url}).encode())
    return home


def of(folder: Path | None) -> Remote | None:
    """The store whose copy a folder is; None for any other folder."""
    if folder is None:
        return None
    if not os.path.isfile(folder / MARKER):  # nor where the folder may not be looked at
        return None
    return opened(files.read_json(folder / MARKER)['url'], os.getpid())


def name(folder: str | os.PathLike[str]) -> str:
    """What a command on any machine calls a folder: of a copy the address of its store."""
    store = of(Path(folder))
    return os.fspath(folder) if store is None else store.url


def file(given: str | os.PathLike[str], flag: str) -> Path:
    """A small file that is given by its path or its address; of a store its copy, brought now.

    Raises: FileNotFoundError; RequestError.
    """
    text = os.fspath(given)
    if not address.is_address(text):
        return Path(text)
    folder, _, last = text.rstrip('/').rpartition('/')
    home = local(folder, flag)
    store = of(home)
    content = store.read(last) if store else None
    if content is None:
        raise FileNotFoundError(text)
    return files.write_atomic(home / last, content)


def bring(
    workdir: Path,
    *folders: str,
    wanted: Callable[[str], bool] = lambda name: True,
    report: Callable[[int], object] = lambda done: None,
) -> None:
    """Bring files of a store into its copy, those that are not there as they are in the store, JSON after the others;
    of a folder that is no copy nothing.

    Args:
        workdir: the copy.
        folders: below it, as `results` or `plans`; all that lies there.
        wanted: which files, by their names.
        report: called with the number of files that came; what it raises ends the work.
    """
    store = of(workdir)
    if store is not None:
        fetch(store, workdir, {n: facts for n, facts in listed(store, *folders).items() if wanted(n)}, report)


def listed(store: Remote, *folders: str) -> dict[str, Facts]:
    """All files of some folders of a store that may become files of its copy."""
    listings: list[dict[str, Facts]] = []
    at_once([functools.partial(_listed, store, folder, listings) for folder in folders])
    return {n: facts for listing in listings for n, facts in listing.items() if inside(n)}


def fetch(
    store: Remote, workdir: Path, there: dict[str, Facts], report: Callable[[int], object] = lambda done: None
) -> None:
    """Let the copy have some files of a store, as they are there; JSON after the others."""
    lacking = [
        (n, functools.partial(store.fetch, n, workdir / n, facts))
        for n, facts in there.items()
        if not facts.same(workdir / n)
    ]
    for told in (False, True):  # which says that the others are there
        at_once([call for n, call in lacking if n.endswith('.json') == told], report)


def take(workdir: Path, paths: Iterable[Path]) -> None:
    """Put files of a copy into its store, in the place of what is there; of a folder that is no copy nothing."""
    store = of(workdir)
    if store is not None:
        at_once([functools.partial(store.write, p.relative_to(workdir).as_posix(), p) for p in paths])


def inside(name: str) -> bool:
    """Whether a name of a store is one that may become a file of its copy: it leads nowhere else."""
    parts = name.split('/')
    return not name.startswith('/') and '..' not in parts and MARKER not in parts and '\\' not in name


def refuse(folder: Path | None, what: str) -> None:
    """Raises: RequestError where a folder is the copy of a store, which `what` does not serve."""
    store = of(folder)
    if store is not None:
        raise RequestError(f'{what} works in a folder, not in {store.url}: name one, then copy it there')


def _listed(store: Remote, folder: str, listings: list[dict[str, Facts]]) -> None:
    listings.append(store.list(folder))
