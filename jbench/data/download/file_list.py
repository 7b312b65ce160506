"""The files that a list names: what is safe to fetch into a folder, and whether a file is the listed one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from jbench.files import TEMP_SUFFIX
from jbench.spec.errors import RequestError

LOCK, KEPT, BAD = '.download.lock', '.download.json', '.bad'  # names of ours beside the files
KINDS = {'sha256': 'SHA-256', 'md5': 'MD5', 'git': 'SHA-1 of Git', 'size': 'size'}
DIGITS = {'sha256': 64, 'md5': 32, 'git': 40}
_LINE = re.compile(r'([0-9a-f]{64}|[0-9a-f]{40}) [ *]?(?:(\d+) )?(\S.*)')


class File(NamedTuple):
    """A file that a list names."""

    name: str  # under the folder of the dataset, with '/'
    url: str
    size: int | None  # bytes, where the list tells
    kind: str  # of KINDS; 'size': the list has no sum
    digest: str


def file_of(name: str, url: str, size: int, **sums: str) -> File:
    """A file with the first sum that is one of ours; the size alone serves where there is none."""
    kind = next((k for k, v in sums.items() if re.fullmatch(f'[0-9a-f]{{{DIGITS.get(k, 1)}}}', str(v))), 'size')
    return File(name, url, size, kind, sums.get(kind, ''))


def checked(files: list[File], where: str) -> list[File]:
    """The files of a list, if all of them can be fetched into a folder.

    Raises: RequestError for no file, a name that leads out of the folder or is one of ours, and one that stands twice.
    """
    for file in files:
        check_name(file.name, where)
    if not files or len({f.name.casefold() for f in files}) < len(files):
        raise RequestError(f'{where}: expected at least one file, and each of them once')
    return files


def check_name(name: str, where: str) -> None:
    """Raises RequestError unless a name, with '/', is that of a file inside a folder, and none of ours."""
    if not name.isprintable() or re.search(r'[\\:]', name) or {'', '.', '..'} & set(name.split('/')):
        raise RequestError(f'{where}: {name!r} is no name of a file inside a folder')
    if name.endswith((TEMP_SUFFIX, BAD, LOCK, KEPT)):
        raise RequestError(f'{where}: {name!r} is a name that jbench uses itself')


def parse_list(text: str, url: str, where: str) -> list[File]:
    """The files of a list: lines of SHA-256, bytes (optional) and name, as `sha256sum` writes them; each at url + name.

    A sum of 40 digits is that of Git: what names the content of a file in a commit, of which nothing else is known.

    Raises: RequestError for any other line.
    """
    files = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.fullmatch(line)
        if not found:
            raise RequestError(f'{where}: line {number}: expected a SHA-256 and a name, found {line[:80]!r}')
        digest, size, name = found.groups()
        kind = 'git' if len(digest) == DIGITS['git'] else 'sha256'
        files.append(File(name, url + quote(name), int(size) if size else None, kind, digest))
    return checked(files, where)


def digest_of(path: Path, kind: str) -> str:
    """The sum of a file, as hex digits. That of Git covers the word blob and the size too. Raises OSError."""
    sum_ = hashlib.new('sha1' if kind == 'git' else kind)
    if kind == 'git':
        sum_.update(b'blob %d\0' % path.stat().st_size)
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, lambda: sum_).hexdigest()
