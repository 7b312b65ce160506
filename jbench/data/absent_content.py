"""Files of which only the name is here: clones of DataLad, git-annex or git-LFS whose content was not fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from jbench.spec.errors import RequestError

if TYPE_CHECKING:  # which imports numpy
    from jbench.data.recording import RecordingRef

ANNEX, LFS = 'a DataLad or git-annex clone', 'git-LFS pointers'
FETCH = {ANNEX: 'cd {} && datalad get . (or: git annex get .)', LFS: 'cd {} && git lfs pull'}
LARGEST = 1024  # bytes of a file that stands for another
LFS_START = b'version https://git-lfs.github.com/spec/'
NAMED = 3  # files in the message


def whole(refs: list[RecordingRef]) -> list[RecordingRef]:
    """The recordings whose files all have their content."""
    absent = {path for ref in refs for path in ref.files if _stands_for(path)}
    return [ref for ref in refs if not absent.intersection(ref.files)] if absent else refs


def refuse(root: Path, paths: Iterable[str]) -> None:
    """Raises: RequestError in one line where files of a dataset are names without content.

    Args:
        root: folder of the dataset.
        paths: of the files that are to be read.
    """
    known = dict.fromkeys(paths)
    absent = {path: kind for path in known if (kind := _stands_for(path))}
    if not absent:
        return
    names = [os.path.relpath(path, root) for path in list(absent)[:NAMED]]
    more = f' and {len(absent) - NAMED} more' if len(absent) > NAMED else ''
    kinds = [kind for kind in FETCH if kind in absent.values()]
    ways = '; '.join(FETCH[kind].format(quote(str(root))) for kind in kinds)
    raise RequestError(
        f'{root}: {len(absent)} of {len(known)} files are here by name alone ({" and ".join(kinds)} without content): '
        f'{", ".join(names)}{more}; fetch what they stand for: {ways}'
    )


def below(root: Path) -> Iterator[str]:
    """The paths of all files in a folder and its folders, less those of git."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ('.git', '.datalad'))
        yield from (os.path.join(folder, name) for name in sorted(names) if not name.startswith('.git'))


def _stands_for(path: str) -> str | None:
    """What a file belongs to that holds no content of its own: a link of git-annex that leads nowhere, or a small text
    in the place of the content (on disks without links, and of git-LFS); None for any other."""
    try:
        if os.path.islink(path) and not os.path.exists(path):
            return ANNEX if _annexed(os.readlink(path).replace('\\', '/')) else None
        if os.path.getsize(path) > LARGEST or not os.path.isfile(path):
            return None
        with open(path, 'rb') as file:
            text = file.read(LARGEST)
    except OSError:  # whoever reads it says so
        return None
    if text.startswith(LFS_START):
        return LFS
    return ANNEX if text.count(b'\n') < 2 and _annexed(text.decode(errors='replace')) else None


def _annexed(text: str) -> bool:
    """Whether a link, or a text in its place, leads to a file of git-annex."""
    return text.startswith('/annex/objects/') or '.git/annex/objects/' in text
