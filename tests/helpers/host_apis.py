"""The APIs of hosts over a served folder, in the shapes that their documentation gives: pages, links, sums, tokens.

Each is `(server, asked) -> Fault | None`; its address in `hosts.HOSTS` is `server.url + 'api/'`, that of S3
`server.url`. Pages hold two entries. A file is what the folder serves, at an address that is not the API's.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from serve import Asked, Fault, Server

TOKEN = 'hunter2-secret'  # the one that is right
SIZE = 2  # entries of a page
HEADS = {'main': 'a' * 40, 'v1': 'b' * 40}  # of branches at Hugging Face


def answer(value: Any, **headers: str) -> Fault:
    """A JSON answer."""
    return Fault(body=json.dumps(value).encode(), headers=(('Content-Type', 'application/json'), *headers.items()))


def files(server: Server) -> list[tuple[str, bytes]]:
    """Names under the folder, and contents."""
    found = sorted(p for p in server.folder.rglob('*') if p.is_file())
    return [(str(p.relative_to(server.folder)), p.read_bytes()) for p in found]


def at(server: Server, name: str) -> str:
    return server.url + quote(name)


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git(content: bytes) -> str:
    return hashlib.sha1(b'blob %d\0' % len(content) + content).hexdigest()


def s3(server: Server, asked: Asked) -> Fault | None:
    """ListObjectsV2; a folder is an empty object, and what was uploaded in parts has an ETag with a dash."""
    if asked.query.get('list-type') != '2':
        return None
    bucket, prefix = asked.path.strip('/'), asked.query['prefix']
    entries = [(n.removeprefix(f'{bucket}/'), c) for n, c in files(server) if n.startswith(f'{bucket}/{prefix}')]
    entries = [(f'{prefix}sub/', b''), *entries]
    start = int(asked.query.get('continuation-token', 'at 0').partition(' ')[2])
    more = f'<NextContinuationToken>at {start + SIZE}</NextContinuationToken>' if len(entries) > start + SIZE else ''
    text = ''.join(
        f'<Contents><Key>{n}</Key><Size>{len(c)}</Size>'
        f'<ETag>&quot;{md5(c) + ("-2" if n.endswith("parts.edf") else "")}&quot;</ETag></Contents>'
        for n, c in entries[start : start + SIZE]
    )
    space = 'http://s3.amazonaws.com/doc/2006-03-01/'
    return Fault(
        body=f'<?xml version="1.0"?>\n<ListBucketResult xmlns="{space}">{text}{more}</ListBucketResult>'.encode()
    )


def zenodo(server: Server, asked: Asked) -> Fault | None:
    if asked.path != 'api/records/12':
        return None
    return answer(
        {
            'id': 12,
            'files': [
                {'key': Path(n).name, 'size': len(c), 'checksum': f'md5:{md5(c)}', 'links': {'self': at(server, n)}}
                for n, c in files(server)
            ],
        }
    )


def figshare(server: Server, asked: Asked) -> Fault | None:
    if asked.path != 'api/articles/12/files':
        return None
    page, size = (int(asked.query[k]) for k in ('page', 'page_size'))
    found = [
        {
            'id': k,
            'name': Path(n).name,
            'size': len(c),
            'computed_md5': md5(c),
            'supplied_md5': '',
            'download_url': at(server, n),
        }
        for k, (n, c) in enumerate(files(server), 100)
    ]
    return answer(found[(page - 1) * size : page * size])


def osf(server: Server, asked: Asked) -> Fault | None:
    """Folders have addresses of their own."""
    base = 'api/nodes/abcde/files/osfstorage'
    if not asked.path.startswith(base):
        return None
    folder = asked.path.removeprefix(base).strip('/')
    inside = [(n, c) for n, c in files(server) if folder in ('', n.rpartition('/')[0])]
    folders = sorted({n.partition('/')[0] for n, _ in inside if '/' in n}) if not folder else []
    entries: list[dict[str, Any]] = [
        {
            'attributes': {'kind': 'folder', 'name': f, 'size': None, 'materialized_path': f'/{f}/', 'extra': {}},
            'relationships': {'files': {'links': {'related': {'href': f'{server.url}{base}/{f}/'}}}},
        }
        for f in folders
    ]
    entries += [
        {
            'attributes': {
                'kind': 'file',
                'name': Path(n).name,
                'size': len(c),
                'materialized_path': f'/{n}',
                'extra': {'hashes': {'md5': md5(c), 'sha256': sha256(c)}},
            },
            'links': {'download': at(server, n)},
        }
        for n, c in inside
        if folder or '/' not in n
    ]
    page = int(asked.query.get('page', 1))
    more = f'{server.url}{asked.path}?page={page + 1}' if len(entries) > page * SIZE else None
    return answer({'data': entries[(page - 1) * SIZE : page * SIZE], 'links': {'next': more}})


def hf(server: Server, asked: Asked) -> Fault | None:
    """The next page is in the header Link; a file is a redirect to another address. It has branch main and `v1`, whose
    commits are HEADS."""
    for place, name in (('datasets/o/n', 'main'), ('models/o/n', 'main'), ('models/o/n', 'v1')):
        if asked.path == f'api/api/{place}/revision/{name}':
            return answer({'id': 'o/n', 'sha': HEADS[name], 'siblings': []})
    commits = HEADS.values()
    for start in (f'api/{at}o/n/resolve/{commit}/' for at in ('datasets/', '') for commit in commits):
        if asked.path.startswith(start):
            name = asked.path.removeprefix(start)
            return Fault(status=302, headers=(('Location', at(server, name) + '?Signature=hunter2'),))
    if asked.path not in (
        f'api/api/{place}/o/n/tree/{commit}' for place in ('datasets', 'models') for commit in commits
    ):
        return None
    entries: list[dict[str, Any]] = [{'type': 'directory', 'oid': 'x', 'size': 0, 'path': 'sub'}]
    for n, c in files(server):
        lfs = {'lfs': {'oid': sha256(c), 'size': len(c), 'pointerSize': 134}} if len(c) > 1000 else {}
        entries.append({'type': 'file', 'oid': 'x' if lfs else git(c), 'size': len(c), 'path': n, **lfs})
    start = int(asked.query.get('cursor', 0))
    link = {}
    if len(entries) > start + SIZE:
        link = {'Link': f'<{server.url}{asked.path}?recursive=true&cursor={start + SIZE}>; rel="next"'}
    return answer(entries[start : start + SIZE], **link)


def synapse(server: Server, asked: Asked) -> Fault | None:
    """Every answer asks for the token; a file is a redirect to another address."""
    if not asked.path.startswith('api/entity/'):
        return None
    if asked.token != f'Bearer {TOKEN}':
        return Fault(status=401 if not asked.token else 403)
    found = files(server)
    ids = {f'syn{k}': (n, c) for k, (n, c) in enumerate(found)}
    kind = 'org.sagebionetworks.repo.model.'
    if asked.path.endswith('/children'):
        inside = [(i, n) for i, (n, _) in ids.items() if ('/' in n) == (asked.body['parentId'] == 'synsub')]
        page = [{'id': i, 'name': Path(n).name, 'type': f'{kind}FileEntity'} for i, n in inside]
        if asked.body['parentId'] == 'syn12':
            page.insert(0, {'id': 'synsub', 'name': 'sub', 'type': f'{kind}Folder'})
        start = int(asked.body.get('nextPageToken', 0))
        more = str(start + SIZE) if len(page) > start + SIZE else None
        return answer({'page': page[start : start + SIZE], 'nextPageToken': more})
    name, content = ids[asked.path.split('/')[2]]
    if asked.path.endswith('/file'):
        return Fault(status=307, headers=(('Location', at(server, name) + '?Signature=hunter2'),))
    preview = {'isPreview': True, 'fileName': 'preview.png', 'contentSize': 1, 'contentMd5': md5(b'x')}
    handle = {'fileName': Path(name).name, 'contentSize': len(content), 'contentMd5': md5(content)}
    return answer({'list': [preview, handle]})


def nemar(server: Server, asked: Asked) -> Fault | None:
    if asked.path != 'api/nm000001/latest/manifest.json':
        return None
    entries = []
    for n, c in files(server):
        kind, digest = ('sha256', sha256(c)) if len(c) > 1000 else ('git', git(c))
        entries.append(
            {'path': n, 'size': len(c), 'checksum_algorithm': kind, 'checksum': digest, 'url': at(server, n)}
        )
    return answer(entries)


APIS = {
    's3://bucket/set/': s3,
    'openneuro:ds000001': s3,
    'zenodo:12': zenodo,
    'figshare:12': figshare,
    'osf:nodes/abcde/files/osfstorage': osf,
    'hf:datasets/o/n': hf,
    'hf:models/o/n': hf,
    'synapse:syn12': synapse,
    'nemar:nm000001/latest': nemar,
}
FOLDERS = {'s3': 'bucket/set', 'openneuro': 'openneuro.org/ds000001'}  # of the files in what is served
FLAT = ('zenodo', 'figshare')  # hosts without folders
