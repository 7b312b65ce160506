"""How much of the stores lies on this machine: prepared sets, of which the least recently used go first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from jbench import files
from jbench.spec.errors import RequestError
from jbench.stores import address

LIMIT = '50GB'  # where $JBENCH_CACHE_SIZE says nothing: all prepared sets of the full suite have some 35 GB
STAY = ('manifest.json', 'index.npz', 'stimuli.npz')  # of a set that went: what is known of it, for little room
UNITS = {'': 1, 'K': 10**3, 'M': 10**6, 'G': 10**9, 'T': 10**12}


def limit() -> int:
    """Bytes that prepared sets of stores may take on this machine. Raises: RequestError for what is no size."""
    text = os.environ.get('JBENCH_CACHE_SIZE') or LIMIT
    found = re.fullmatch(r'([0-9.]+) *([KMGT]?)B?', text.strip().upper())
    try:
        return int(float(found[1]) * UNITS[found[2]]) if found else int('')
    except ValueError:
        raise RequestError(f'JBENCH_CACHE_SIZE={text}: expected a size, as 50GB') from None


@contextlib.contextmanager
def used(folder: Path) -> Iterator[None]:
    """Inside, the set in `folder` stays, and it counts as used now."""
    with files.explained(folder, 0):
        folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(_mark(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def room(needed: Callable[[], int], what: str, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Inside, the bytes that are `needed` may be brought for `what`: one process of this machine at a time does so, and
    what another one brought meanwhile is no longer needed. Sets that nobody uses go for them, the least recently used
    first.

    Raises: RequestError where those in use leave too little; what `waiting` raises, called while another brings.
    """
    most = limit()
    with files.locked(address.copies() / '.lock', waiting):
        sets = sorted((m.stat().st_mtime, m) for m in address.copies().glob('*/prepared/*/.*.use'))
        sizes = {m: sum(p.stat().st_size for p in _shards(_folder(m))) for _, m in sets}
        total, need = sum(sizes.values()), needed()
        for _, mark in sets:
            if total + need > most and sizes[mark] and _evict(mark):
                total -= sizes[mark]
        if total + need > most:
            raise RequestError(
                f'{what}: {need} bytes are to be copied to {address.copies()}, which may hold {most} bytes of prepared '
                f'sets, and {total} are in use; JBENCH_CACHE_SIZE=SIZE allows more, JBENCH_CACHE=DIR names another disk'
            )
        yield


def remove(folder: Path) -> bool:
    """Remove a set, with all that is known of it, unless somebody uses it; whether it went."""
    with _alone(_mark(folder)) as alone:
        if alone:
            shutil.rmtree(folder)
    return alone


def _evict(mark: Path) -> bool:
    """Remove the shards of a set unless somebody uses it; whether they went."""
    with _alone(mark) as alone:
        for path in _shards(_folder(mark)) if alone else ():
            path.unlink(missing_ok=True)
    return alone


@contextlib.contextmanager
def _alone(mark: Path) -> Iterator[bool]:
    """Inside, nobody begins to use a set; False where somebody uses it."""
    with open(mark, 'ab') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _mark(folder: Path) -> Path:
    """The file whose lock users of a set hold, and whose time is that of its last use."""
    return folder.with_name(f'.{folder.name}.use')


def _folder(mark: Path) -> Path:
    return mark.with_name(mark.name[1:].removesuffix('.use'))


def _shards(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.name not in STAY] if folder.is_dir() else []
