"""An S3 server as a process of its own (moto's), and a proxy in front of it that does what networks and busy stores do.

As a program: the server, on a port of its choice, which it prints; it ends with its standard input.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

BUCKET = 'bucket'
KEY, SECRET = 'AKIAJBENCHTESTKEY', 'secret/of+the+tests/which+nobody+prints'
ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>{}</Message></Error>'


@dataclasses.dataclass
class Fault:
    """What goes wrong with some requests."""

    method: str = ''  # of the requests; '': any
    text: str = ''  # in their address
    n: int = 1  # how many; -1: all
    status: int = 0  # instead of the answer
    code: str = ''  # of the error, as S3 calls it
    cut: int = -1  # the connection ends after so many bytes of the body
    lost: bool = False  # the request is done, and its answer is lost
    flip: bool = False  # a bit of the body is another one
    before: Callable[[], object] | None = None  # called before the request is passed on


class Proxy:
    """The address of a server behind a bad line."""

    def __init__(self, url: str) -> None:
        self.server, self.faults = url, list[Fault]()
        self.asked: list[tuple[str, str]] = []  # method, address
        self._lock = threading.Lock()
        self.url = ''

    def fault(self, method: str, path: str) -> Fault | None:
        """What goes wrong with a request."""
        with self._lock:
            self.asked.append((method, path))
            for fault in self.faults:
                if fault.n and fault.method in ('', method) and fault.text in path:
                    fault.n -= 1
                    return fault
        return None


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The address of a server with the empty bucket BUCKET."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        make(url, BUCKET)
        yield url
    finally:
        process.communicate()


def make(url: str, path: str, content: bytes = b'') -> None:
    """Make a bucket, or a file in one."""
    _ask(url, 'PUT', path, content)


def content(url: str, path: str) -> bytes:
    """What a file of a bucket holds."""
    return _ask(url, 'GET', path)


def names(url: str, prefix: str = '') -> list[str]:
    """The files of BUCKET."""
    text = _ask(url, 'GET', f'{BUCKET}?list-type=2&max-keys=1000&prefix={prefix}').decode()
    return [part.partition('</Key>')[0] for part in text.split('<Key>')[1:]]


def _ask(url: str, method: str, path: str, body: bytes | None = None) -> bytes:
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    line.request(
        method, f'/{path}', body, {'Authorization': 'AWS4-HMAC-SHA256 Credential=x/y/us-east-1/s3/aws4_request'}
    )
    answer = line.getresponse()
    found = answer.read()
    line.close()
    assert answer.status < 300, (path, answer.status, found)
    return found


def machine(url: str, cache: Path) -> dict[str, str]:
    """The environment of a machine that knows the server and has a cache of its own."""
    others = ('JBENCH', 'AWS_', 'PYTHONSAFEPATH')
    env = {k: v for k, v in os.environ.items() if not k.startswith(others)}
    return env | {
        'AWS_ENDPOINT_URL': url,
        'AWS_ACCESS_KEY_ID': KEY,
        'AWS_SECRET_ACCESS_KEY': SECRET,
        'AWS_DEFAULT_REGION': 'us-east-1',
        'AWS_EC2_METADATA_DISABLED': 'true',
        'JBENCH_CACHE': str(cache),
        'NPROC': '2',
        'PYTHONPATH': str(Path(__file__).parents[2]),
    }


@contextlib.contextmanager
def badly(url: str) -> Iterator[Proxy]:
    """A bad line to a server; `faults` says what goes wrong."""
    proxy = Proxy(url)

    class Line(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
            fault = proxy.fault(self.command, self.path)
            if fault and fault.before:
                fault.before()
            if fault and fault.status:
                text = ERROR.format(fault.code, 'told by the test').encode()
                self.answer(fault.status, [('Content-Type', 'application/xml')], text)
                return
            line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            line.request(self.command, self.path, body, dict(self.headers))
            there = line.getresponse()
            content = there.read()
            line.close()
            if fault and fault.lost:
                self.close_connection = True
                return
            if fault and fault.flip:
                content = bytes([content[0] ^ 1]) + content[1:]
            self.answer(there.status, there.getheaders(), content, fault.cut if fault else -1)

        def answer(self, status: int, headers: list[tuple[str, str]], content: bytes, cut: int = -1) -> None:
            self.send_response_only(status)
            length = str(len(content))
            for name, value in headers:
                if name.lower() == 'content-length' and self.command == 'HEAD':
                    length = value
                elif name.lower() not in ('content-length', 'transfer-encoding', 'connection'):
                    self.send_header(name, value)
            self.send_header('Content-Length', length)
            self.end_headers()
            if cut >= 0:
                content, self.close_connection = content[:cut], True
            if self.command != 'HEAD':
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = pass_on

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(('127.0.0.1', 0), Line)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy.url = f'http://127.0.0.1:{server.server_port}'
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


if __name__ == '__main__':
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
    moto.start()
    print('http://{}:{}'.format(*moto.get_host_and_port()), flush=True)
    sys.stdin.read()
    moto.stop()
