"""Whether a file is whole enough to be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jbench.data.recording import Finding

if TYPE_CHECKING:
    pass


def check_file(path: str, start: tuple[bytes, ...] = (), end: bytes = b'') -> Finding | None:
    """Refuse a file that cannot be what its name says: empty, a web page, other bytes at its start or end."""
    with open(path, 'rb') as f:
        head = f.read(512)
        f.seek(max(0, f.seek(0, 2) - len(end)))
        tail = f.read()
    text = head.lstrip().lower()
    if not head:
        return Finding(path, 'the file must not be empty', '0 bytes', 'a recording', 'fetch the file again')
    if text.startswith((b'<!doctype', b'<html', b'<?xml')):
        shown = head.decode(errors='replace').strip().splitlines()[0][:60]
        return Finding(
            path,
            'the file must be a recording',
            f'a web page ({shown!r})',
            'data',
            'the download got an error page: fetch the file again',
        )
    if start and not head.startswith(start):
        return Finding(
            path,
            'the file must begin as its format does',
            repr(head[:8])[1:],
            ' or '.join(repr(s)[1:] for s in start),
            'fetch the file again',
        )
    if tail != end:
        return Finding(
            path,
            'the file must end as its format does',
            f'bytes {tail.hex()}',
            f'bytes {end.hex()}',
            'the file is truncated: fetch it again',
        )
    return None
