"""Archives unpacked beside themselves: files alone, none outside of the folder, each whole or not there."""

from __future__ import annotations

import contextlib
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from jbench.data.download.file_list import check_name
from jbench.data.download.http import check_space, size_of
from jbench.files import TEMP_SUFFIX, explained, publish
from jbench.spec.errors import RequestError

ENDINGS = ('.zip', '.tar', '.tar.gz', '.tgz')
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError)


class Member(NamedTuple):
    """A file in an archive."""

    name: str  # with '/'
    size: int  # bytes
    read: Callable[[], IO[bytes] | None]


def lacking(archive: Path, pattern: str) -> list[str]:
    """Names of the members like `pattern` that do not lie beside the archive.

    Raises: RequestError for a damaged archive, a name that leads elsewhere, and a file of another size in its place.
    """
    with _members(archive, pattern) as members:
        return [m.name for m in members]


def unpack(archive: Path, pattern: str, report: Callable[[int, int, str], None]) -> None:
    """Unpack the members like `pattern` that are lacking.

    Args:
      archive: a zip or tar file.
      pattern: as of fnmatch.
      report: told of members done and in all, and of the next one.

    Raises: RequestError as `lacking`, for a disk that is too small, and for what only other programs can unpack.
    """
    with _members(archive, pattern) as members:
        check_space(archive.parent, sum(m.size for m in members))
        for k, member in enumerate(members):
            report(k, len(members), f'unpacks {member.name}')
            target = archive.parent / member.name
            part = target.with_name(target.name + TEMP_SUFFIX)
            with explained(target, member.size):
                target.parent.mkdir(parents=True, exist_ok=True)
                source = member.read()
                assert source is not None, 'a file'
                with source, open(part, 'wb') as file:
                    shutil.copyfileobj(source, file)
                publish(part, target)


@contextlib.contextmanager
def _members(archive: Path, pattern: str) -> Iterator[list[Member]]:
    """The members that are lacking, while the archive is open."""
    try:
        with _opened(archive) as found:
            members = [m for m in found if fnmatchcase(m.name, pattern) and '__MACOSX' not in m.name.split('/')]
            for member in members:
                check_name(member.name, str(archive))
            there = [m for m in members if (archive.parent / m.name).exists()]
            other = [m.name for m in there if size_of(archive.parent / m.name) != m.size]
            if other:
                raise RequestError(
                    f'{archive}: {len(other)} of its files lie beside it with another size ({other[0]}); jbench '
                    'replaces no file: move them away, then run again'
                )
            yield [m for m in members if m not in there]
    except DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise RequestError(f'{archive}: cannot be unpacked ({reason}): unpack it there by hand') from error


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[list[Member]]:
    """The files in an archive; links in it, and devices, are left out."""
    opened: Any
    if archive.name.endswith('.zip'):
        with zipfile.ZipFile(archive) as opened:
            entries = [i for i in opened.infolist() if not i.is_dir()]
            yield [Member(i.filename, i.file_size, partial(opened.open, i)) for i in entries]
    else:
        with tarfile.open(archive) as opened:
            files = [i for i in opened if i.isreg()]
            yield [Member(i.name.removeprefix('./'), i.size, partial(opened.extractfile, i)) for i in files]
