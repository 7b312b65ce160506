"""A folder served on this machine, with faults on demand and the API of a host (host_apis.py) in front of it, and
the command on a dataset that is fetched from there.

As a program: `python tests/helpers/serve.py DATASET URL ARGUMENTS...` runs jbench with the files of DATASET at URL, and
their sums in the list `SHA256SUMS.txt` that lies (or is served) beside them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

from jbench import run
from jbench.plan import select
from jbench.spec.dataset import Dataset, Download

SUMS = 'SHA256SUMS.txt'


@dataclasses.dataclass(frozen=True)
class Fault:
    """What goes wrong in one answer; several may go wrong at once."""

    status: int | None = None  # instead of 200 or 206, with the status' number as body
    headers: tuple[tuple[str, str], ...] = ()  # in addition, or instead of the right ones
    body: bytes | None = None  # instead of the file
    drop: int | None = None  # the connection ends after so many bytes of the body
    hang: int | None = None  # nothing more comes after so many bytes, until the server ends
    ranges: bool = True  # False: every answer brings the whole file


class Asked(NamedTuple):
    """A request to an API."""

    path: str
    query: dict[str, str]
    body: Any  # what was posted, as JSON; None for GET
    token: str  # the header Authorization


Api = Callable[['Server', Asked], 'Fault | None']  # the answer, or None: a file of the folder is


class Server:
    """What a server was asked, and where it is."""

    def __init__(self, folder: Path, script: Mapping[str, list[Fault]], api: Api) -> None:
        self.folder, self.api = folder, api
        self.script = {name: list(faults) for name, faults in script.items()}  # first answer first; then no fault
        self.asked: list[tuple[str, int]] = []  # name, first byte
        self.tokens: list[tuple[str, str]] = []  # name, header Authorization where there was one
        self.hanging, self.ended = threading.Event(), threading.Event()
        self.url = ''

    def starts(self, name: str) -> list[int]:
        """The first byte of each request for a file."""
        return [start for asked, start in self.asked if asked == name]

    def content(self, name: str) -> bytes | None:
        """The bytes of a file; those of the list are made where it does not lie there."""
        path = self.folder / name
        if name == SUMS and not path.exists():
            return sums(self.folder).encode()
        return path.read_bytes() if path.is_file() else None


def sums(folder: Path) -> str:
    """The SHA-256 of every file of a folder, as PhysioNet lists them."""
    files = sorted(p for p in folder.rglob('*') if p.is_file() and not p.name.startswith('.'))
    return ''.join(f'{hashlib.sha256(p.read_bytes()).hexdigest()} {p.relative_to(folder)}\n' for p in files)


@contextlib.contextmanager
def serving(
    folder: Path,
    script: Mapping[str, list[Fault]] | None = None,
    certificate: Path | None = None,
    api: Api = lambda server, asked: None,
) -> Iterator[Server]:
    """Serve a folder at `server.url`, over TLS with a certificate (a PEM file with its key)."""
    server = Server(folder, script or {}, api)
    http = ThreadingHTTPServer(('127.0.0.1', 0), type('Handler', (_Handler,), {'server_': server}))
    http.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        http.socket = context.wrap_socket(http.socket, server_side=True)
    server.url = f'{"https" if certificate else "http"}://127.0.0.1:{http.server_port}/'
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        http.shutdown()
        thread.join()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True  # else each answer waits 40 ms
    server_: Server

    def do_GET(self) -> None:
        path, _, query = self.path.partition('?')
        name, token = unquote(path.lstrip('/')), self.headers.get('Authorization', '')
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if token:
            self.server_.tokens.append((name, token))
        asked = re.fullmatch(r'bytes=(\d+)-', self.headers.get('Range', ''))
        start = int(asked[1]) if asked else 0
        self.server_.asked.append((name, start))
        faults = self.server_.script.get(name, [])
        question = Asked(name, {k: v[0] for k, v in parse_qs(query).items()}, json.loads(body or b'null'), token)
        self.answer(name, start, faults.pop(0) if faults else self.server_.api(self.server_, question) or Fault())

    do_POST = do_GET

    def answer(self, name: str, start: int, fault: Fault) -> None:
        whole = self.server_.content(name) if fault.body is None else fault.body
        start = start if fault.ranges else 0
        right = 404 if whole is None else 200 if not start else 206 if start < len(whole) else 416
        status = fault.status or right
        body = whole[start:] if whole is not None and status in (200, 206) else str(status).encode()
        headers = {'Content-Length': str(len(body))}
        if status == 206 and whole is not None:
            headers['Content-Range'] = f'bytes {start}-{len(whole) - 1}/{len(whole)}'
        self.send_response(status)
        for header in (headers | dict(fault.headers)).items():  # '' leaves one out
            if header[1]:
                self.send_header(*header)
        self.end_headers()
        for end in (fault.drop, fault.hang):
            body = body if end is None else body[:end]
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)
            if fault.hang is not None:
                self.server_.hanging.set()
                self.server_.ended.wait()
        if fault.drop is not None or fault.hang is not None or 'Content-Length' in dict(fault.headers):
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Quiet."""


def redirected(name: str, url: str) -> Dataset:
    """A known dataset whose files, and their list, are at another place."""
    return dataclasses.replace(select.find_dataset(name), download=Download(url=url))


def main(argv: list[str]) -> int:
    """The command, with one dataset redirected."""
    name, url, *rest = argv
    dataset = redirected(name, url)
    known = select.datasets()
    before, known[dataset.name] = known[dataset.name], dataset
    try:
        return run.main(rest)
    finally:
        known[dataset.name] = before  # for the tests that follow in this process


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
