"""Where an interrupted seed goes on, on another machine: its saves are in the store until it is done."""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from jbench.progress import Interrupted, say
from jbench.spec.errors import RequestError
from jbench.stores import mirror
from jbench.stores.remote import Remote, at_once

LAST = 'sha256.json'  # of a save, as train.checkpoint has it: without it a save did not end
Place = TypeVar('Place', Path, PurePosixPath)


@contextlib.contextmanager
def shared(workdir: Path, key: str, *, fresh: bool) -> Iterator[None]:
    """Around the training of a cell: its saves in the store of the work folder are here inside, and an interruption
    puts its last ones there. Once it is done they go. Of a folder without store nothing is done.

    Args:
        workdir, key: `<workdir>/checkpoints/<key>/` holds the saves.
        fresh: nothing goes on from earlier saves, which are removed.
    """
    store = mirror.of(workdir)
    if store is None:
        yield
        return
    folder = f'checkpoints/{key}'
    if fresh:
        store.remove(store.list(folder))
    else:
        _bring(store, workdir, folder)
    try:
        yield
    except Interrupted:
        try:
            _take(store, workdir, folder)
        except RequestError as error:
            say(f'jbench: {error}; the checkpoint stays in {workdir / folder}')
        raise
    try:
        store.remove(store.list(folder))
    except RequestError as error:  # the seeds are done all the same
        say(f'jbench: {error}; old checkpoints stay in {store.url}/{folder}')


def forget(workdir: Path, keys: Sequence[str], seeds: Sequence[int]) -> None:
    """Remove the saves of seeds of cells, here and in the store of the work folder. Raises: RequestError."""
    store, folders = mirror.of(workdir), [f'checkpoints/{key}/seed{seed}' for key in keys for seed in seeds]
    if store is not None:
        known = {PurePosixPath(folder) for folder in folders}
        store.remove([n for n in store.list('checkpoints') if known & {*PurePosixPath(n).parents}])
    for folder in folders:
        shutil.rmtree(workdir / folder, ignore_errors=True)


def _bring(store: Remote, workdir: Path, folder: str) -> None:
    """The last save of each seed, unless one as late is here."""
    there = store.list(folder)
    for save in _newest(PurePosixPath(name).parent for name in there if name.endswith(f'/{LAST}')):
        here = [int(p.parent.name) for p in (workdir / save.parent).glob(f'*/{LAST}') if p.parent.name.isdigit()]
        if here and max(here) >= int(save.name):
            continue
        names = [n for n in there if PurePosixPath(n).is_relative_to(save) and mirror.inside(n)]
        last = f'{save}/{LAST}'
        at_once([functools.partial(store.fetch, n, workdir / n, there[n]) for n in names if n != last])
        store.fetch(last, workdir / last, there[last])


def _take(store: Remote, workdir: Path, folder: str) -> None:
    """The last save of each seed, in the place of earlier ones."""
    there = store.list(folder)
    for save in _newest(p.parent for p in (workdir / folder).rglob(f'*/{LAST}')):
        name = save.relative_to(workdir).as_posix()
        mirror.take(workdir, [p for p in save.rglob('*') if p.is_file() and p != save / LAST])
        mirror.take(workdir, [save / LAST])
        older = PurePosixPath(name).parent
        store.remove(
            n for n in there if PurePosixPath(n).is_relative_to(older) and not PurePosixPath(n).is_relative_to(name)
        )


def _newest(saves: Iterable[Place]) -> list[Place]:
    """Of saves of the same seed, or part of it, the last one."""
    found: dict[Place, Place] = {}
    for save in saves:
        if save.name.isdigit():
            found[save.parent] = max(save, found.get(save.parent, save), key=lambda p: int(p.name))
    return list(found.values())
