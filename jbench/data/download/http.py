"""One file from one URL into a part file, over whatever a network does: the only module that opens a connection.

The part grows by what arrives and is never shorter than what the host has shown to have; whether it is the right file
its checksum says, elsewhere. A certificate that is not trusted is an error, and no switch makes it less.
"""

from __future__ import annotations

import contextlib
import email.utils
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests

from jbench.spec.errors import RequestError

Progress = Callable[[int, int | None], None]  # bytes of the file that are here, and all of them where that is known
CHUNK = 1 << 16  # bytes
TIMEOUT = (20.0, 60.0)  # s, to connect and between two bytes
WAITS = (1.0, 4.0, 15.0, 60.0)  # s before each further attempt that follows one without progress
LONGEST_WAIT = 300.0  # s that a host may ask for
NO_URL = (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema)
PASSING = (408, 429, 500, 502, 503, 504)  # statuses that may pass
N_REDIRECTS = 5


class Answer(NamedTuple):
    """What an API says."""

    body: bytes
    following: str  # address of the next page, as its header Link tells; '' for none


class Refused(RequestError):
    """The host answers with a status that does not pass."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class _Passing(Exception):
    """A fault that may pass, and the least number of seconds to wait."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


def receive(
    session: requests.Session, url: str, part: Path, size: int | None, progress: Progress, say: Callable[[str], None]
) -> None:
    """Add to `part` what it lacks of the file at `url`, in any number of attempts that bring it forward.

    Args:
      session: connections that are kept open between files.
      url: http or https; a redirect is followed to https or the same scheme alone.
      part: what earlier runs left of the file, or nothing.
      size: bytes that the file should have, where that is known.
      progress: called as bytes come.
      say: told of every fault that is waited for.

    Raises: RequestError for a fault that cannot pass, or does not within the waits; OSError where `part` cannot be
      written.
    """
    failures = 0
    while size is None or size_of(part) < size:
        before = size_of(part)
        try:
            return _attempt(session, url, part, size, progress)
        except _Passing as fault:
            failures = 0 if size_of(part) > before else failures + 1
            _wait_out(url, fault, failures, say)


def ask(session: requests.Session, url: str, say: Callable[[str], None], body: Any = None) -> Answer:
    """The whole answer of an API: to GET, or to POST of `body` as JSON. Waits and raises as `receive` does."""
    failures = 0
    while True:
        try:
            with _open(session, url, 0, body) as response:
                return Answer(b''.join(_chunks(response)), response.links.get('next', {}).get('url', ''))
        except _Passing as fault:
            failures += 1
            _wait_out(url, fault, failures, say)


def _wait_out(url: str, fault: _Passing, failures: int, say: Callable[[str], None]) -> None:
    """Wait before the next attempt. Raises RequestError where there is none: `failures` in a row are too many."""
    if failures > len(WAITS) or fault.wait > LONGEST_WAIT:
        asked = f' (the host asks to wait {fault.wait:.0f} s)' if fault.wait else ''
        raise RequestError(f'{public(url)}: {fault}{asked}; run the same command again later') from fault
    wait = max(WAITS[max(failures - 1, 0)], fault.wait)
    say(f'{public(url)}: {fault}; the next attempt begins in {wait:.0f} s')
    time.sleep(wait)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def check_space(folder: Path, needed: int) -> None:
    """Raises RequestError where the disk of `folder` has fewer than `needed` bytes left."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        remedy = 'free space there, or choose another --data_dir'
        raise RequestError(f'{folder}: {needed} bytes needed, {free} free; {remedy}, then run again')


def public(text: str) -> str:
    """A URL, or a text with URLs, without what may be secret: user names, passwords, queries."""
    return re.sub(r'\?[^\s\'")]+', '?***', re.sub(r'//[^/\s@]+@', '//***@', text))


def _attempt(session: requests.Session, url: str, part: Path, size: int | None, progress: Progress) -> None:
    """Add to `part` what one answer brings. Raises _Passing, or RequestError for an answer that is not the file."""
    got = size_of(part)
    with _open(session, url, got) as response:
        if response.status_code == 416:
            return  # nothing follows what is here: the checksum decides
        if response.status_code == 200:
            got = 0  # the file from its start, whether that was asked for or not
        total = _total(response, got, part)
        if size is not None and total not in (None, size):
            raise RequestError(f'{public(url)}: {total} bytes at the host, {size} in the list')
        check_space(part.parent, (total or got) - got)
        chunks = _chunks(response)
        chunk = next(chunks, b'')
        if got == 0:
            _check_start(chunk, public(url), response.headers.get('Content-Type', ''))
        with open(part, 'ab' if got else 'wb') as file:
            while chunk:
                got += len(chunk)
                if size is not None and got > size:
                    raise RequestError(f'{public(url)}: the host sends more than the {size} bytes in the list')
                file.write(chunk)
                file.flush()
                progress(got, total or size)
                chunk = next(chunks, b'')
    if got < (total or size or 0):
        raise _Passing(f'{got} of {total or size} bytes came')


def _open(session: requests.Session, url: str, start: int, body: Any = None) -> requests.Response:
    """The answer to a request for all bytes from `start` on, or to a `body`. Raises _Passing, or RequestError for a
    refusal."""
    method = 'GET' if body is None else 'POST'
    headers = {'User-Agent': 'jbench', 'Accept-Encoding': 'identity', **({'Range': f'bytes={start}-'} if start else {})}
    for _ in range(N_REDIRECTS + 1):
        try:
            response = session.request(
                method, url, headers=headers, json=body, stream=True, timeout=TIMEOUT, allow_redirects=False
            )
        except requests.exceptions.SSLError as error:
            raise RequestError(f'{public(url)}: no trusted connection: {_said(error)}') from error
        except NO_URL as error:
            raise RequestError(f'{public(url)}: {_said(error)}') from error
        except OSError as error:
            raise _Passing(_said(error)) from error
        status = response.status_code
        if status in (200, 206) or (status == 416 and start):
            return response
        response.close()
        if status in PASSING:
            raise _Passing(f'{status} {response.reason}', _wait(response.headers.get('Retry-After', '')))
        if not response.is_redirect:
            raise Refused(f'{public(url)}: {status} {response.reason}', status)
        try:
            target = urljoin(url, response.headers['Location'])
            allowed = urlsplit(target).scheme in ('https', urlsplit(url).scheme)
        except ValueError as error:
            raise RequestError(f'{public(url)}: leads to what is no address ({error})') from error
        if not allowed:
            raise RequestError(f'{public(url)}: refused to follow it to {public(target)}')
        url = target
    raise RequestError(f'{public(url)}: more than {N_REDIRECTS} redirects')


def _said(error: BaseException) -> str:
    """What the innermost error says, without secrets."""
    while error.args and isinstance(inner := getattr(error.args[0], 'reason', error.args[0]), BaseException):
        error = inner
    return public(str(error.args[0] if error.args and isinstance(error.args[0], str) else error))


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """The bytes of an answer as they come. Raises _Passing where they break off or stop."""
    try:
        yield from response.iter_content(CHUNK)
    except requests.RequestException as error:
        raise _Passing(_said(error)) from error


def _total(response: requests.Response, start: int, part: Path) -> int | None:
    """Bytes of the whole file, as the answer states. Raises _Passing for a part that does not continue ours."""
    if response.status_code == 200:
        length = response.headers.get('Content-Length', '')
        return int(length) if length.isdecimal() else None
    found = re.fullmatch(r'bytes (\d+)-\d+/(\d+)', response.headers.get('Content-Range', ''))
    if found is None or int(found[1]) != start:
        part.unlink(missing_ok=True)
        raise _Passing('the host sends another part than it was asked for')
    return int(found[2])


def _check_start(first: bytes, shown: str, kind: str) -> None:
    """Refuse an empty body, and a page for people. Raises RequestError."""
    if not first:
        raise RequestError(f'{shown}: the host sends 0 bytes')
    if kind.startswith('text/html') or first[:512].lstrip().lower().startswith((b'<!doctype', b'<html')):
        line = next(iter(first[:512].decode(errors='replace').strip().splitlines()), '')
        raise RequestError(f'{shown}: the host sends a web page instead of the file: {line[:80]!r}')


def _wait(text: str) -> float:
    """Seconds of a Retry-After header: a number, or a date; 0 for anything else."""
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


@contextlib.contextmanager
def offline(refused: list[str]) -> Iterator[None]:
    """Whatever this process would ask of other machines fails inside, and the host is added to `refused`.

    For packages that fetch what they do not find, where only what is there may be read.
    """
    look_up, plain = socket.getaddrinfo, socket.socket.connect

    def refuse(host: object, *args: object, **options: object) -> Any:
        refused.append(host.decode() if isinstance(host, bytes) else str(host))
        raise OSError(f'{refused[-1]} is not asked: jbench reads what is there')

    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            refuse(address[0])
        plain(self, address)

    socket.getaddrinfo, socket.socket.connect = refuse, connect  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        socket.getaddrinfo, socket.socket.connect = look_up, plain  # type: ignore[method-assign]
