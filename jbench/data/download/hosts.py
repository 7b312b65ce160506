"""What hosts say that they have: from the address of a dataset to its files, one small function a host.

Written after the public documentation of each. A list gives every file a name, a URL, its bytes and a sum where the
host tells one. A token is read from the environment, sent to the API of its own host alone, and never shown.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit
from xml.etree import ElementTree

import requests

from jbench.data.download.file_list import File, checked, file_of, parse_list
from jbench.data.download.http import Answer, ask, public
from jbench.spec.dataset import Download
from jbench.spec.errors import RequestError

HOSTS = {  # where each is asked, with '/' at the end
    'figshare': 'https://api.figshare.com/v2/',
    'hf': 'https://huggingface.co/',
    'nemar': 'https://data.nemar.org/',
    'osf': 'https://api.osf.io/v2/',
    's3': 'https://s3.amazonaws.com/',  # bucket in the path: names with a dot have no certificate of their own
    'synapse': 'https://repo-prod.prod.sagebase.org/repo/v1/',
    'zenodo': 'https://zenodo.org/api/',
}
TOKENS = {'hf': 'HF_TOKEN', 'osf': 'OSF_TOKEN', 'synapse': 'SYNAPSE_AUTH_TOKEN'}  # variables of the environment
HOST_LIST = 'SHA256SUMS.txt'  # PhysioNet publishes one in the folder of each project
COMMIT = re.compile('[0-9a-f]{40}')
PAGE = 1000  # files that are asked for at once

Ask = Callable[..., Answer]  # (url, body to post)


def list_files(place: Download, session: requests.Session, say: Callable[[str], None]) -> list[File]:
    """Every file at an address (spec.Download), as its host lists them; a page that is asked for twice is an error.

    Raises: RequestError where the host refuses, fails, or answers in another form than its documentation says.
    """
    scheme, _, rest = place.url.partition(':')
    asked: set[str] = set()

    def once(url: str, body: Any = None) -> Answer:
        if (key := f'{url} {json.dumps(body)}') in asked:
            raise ValueError('the same page twice')
        asked.add(key)
        return ask(session, url, say, body)

    base = place.url if scheme in ('http', 'https') else HOSTS['s3' if scheme == 'openneuro' else scheme]
    try:
        files = checked(_sums(once, base) if base == place.url else LISTS[scheme](once, rest), public(place.url))
        insecure = [f for f in files if urlsplit(f.url).scheme not in ('https', urlsplit(base).scheme)]
    except RequestError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, ElementTree.ParseError) as error:
        reason = f'{type(error).__name__}: {error}'
        raise RequestError(
            f'{public(place.url)}: its host answers in a form that jbench does not know ({reason})'
        ) from error
    if insecure:
        raise RequestError(
            f'{public(place.url)}: {insecure[0].name} is said to be at {public(insecure[0].url)}, not at https'
        )
    return files


def check_address(place: Download) -> None:
    """Raises RequestError for an address that is of no host here."""
    scheme = place.url.partition(':')[0]
    if scheme not in (*LISTS, 'http', 'https') or (scheme.startswith('http') and not place.url.endswith('/')):
        hosts = ', '.join(f'{name}:' for name in LISTS)
        raise RequestError(f'{public(place.url)}: expected the address of a folder, https://.../, or of {hosts}')


# ---- tokens ----


def token(url: str) -> str:
    """The user's token for the host of an address; '' without one. Raises RequestError for what cannot be sent."""
    name = TOKENS.get(url.partition(':')[0], '')
    found = os.environ.get(name, '').strip() if name else ''
    if not re.fullmatch(r'[!-~]*', found):
        raise RequestError(f'{name}: expected a token of ASCII letters, digits and signs, without spaces')
    return found


def signed(place: Download) -> requests.Session:
    """A session that sends the user's token, if there is one, to the API of the host and to no other address."""
    session, found = requests.Session(), token(place.url)
    base = HOSTS.get(place.url.partition(':')[0], '')

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if str(request.url).startswith(base):
            request.headers['Authorization'] = f'Bearer {found}'
        return request

    session.auth = sign if found and base else None
    return session


def remedy(place: Download, status: int) -> str:
    """What to do where a host refuses: words to add to its error."""
    if status == 404:
        return '; it is not there (any more): look at the page of the dataset, and tell the authors of jbench'
    name = TOKENS.get(place.url.partition(':')[0])
    if status not in (401, 403) or not name:
        return ''
    if token(place.url):
        return (
            f'; the host refuses the token in {name}: it must be valid, and its account have accepted the terms there'
        )
    return f'; accept the terms at the host, with an account there, and set {name} to a token of that account'


# ---- one function a host ----


def _sums(ask: Ask, url: str) -> list[File]:
    """A folder with a list of SHA-256 sums (PhysioNet)."""
    return parse_list(ask(url + HOST_LIST).body.decode(errors='replace'), url, public(url + HOST_LIST))


def _s3(ask: Ask, rest: str) -> list[File]:
    """`//bucket/prefix/`, anonymous: ListObjectsV2. The ETag of what came in one part is its MD5 (an open bucket has
    no keys of its own); of several parts it is no sum."""
    bucket, _, prefix = rest.lstrip('/').partition('/')
    files, more = [], {'list-type': '2', 'prefix': prefix}
    while more:
        page = ElementTree.fromstring(ask(f'{HOSTS["s3"]}{bucket}?{urlencode(more)}').body)
        space = page.tag.partition('}')[0] + '}' if page.tag.startswith('{') else ''
        for entry in page.iter(f'{space}Contents'):
            key, size, etag = (str(entry.findtext(space + k)) for k in ('Key', 'Size', 'ETag'))
            if not key.endswith('/'):  # a folder
                url = f'{HOSTS["s3"]}{bucket}/{quote(key)}'
                files.append(file_of(key.removeprefix(prefix), url, int(size), md5=etag.strip('"')))
        token = page.findtext(f'{space}NextContinuationToken')
        more = {**more, 'continuation-token': token} if token else {}
    return files


def _openneuro(ask: Ask, rest: str) -> list[File]:
    """`ds000000`: its bucket holds the newest version of each dataset, without the history."""
    return _s3(ask, f'openneuro.org/{rest}/')


def _zenodo(ask: Ask, rest: str) -> list[File]:
    """`7413650`, a record."""
    files = []
    for entry in json.loads(ask(f'{HOSTS["zenodo"]}records/{rest}').body)['files']:
        kind, _, digest = entry['checksum'].partition(':')  # md5:0123...
        files.append(file_of(entry['key'], entry['links']['self'], entry['size'], **{kind: digest}))
    return files


def _figshare(ask: Ask, rest: str) -> list[File]:
    """`4244171`, an article. A name that stands twice has the number of its file before it, as in the archive of all
    files that Figshare gives."""
    found: list[dict[str, Any]] = []
    while len(found) % PAGE == 0:
        query = urlencode({'page': len(found) // PAGE + 1, 'page_size': PAGE})
        page = json.loads(ask(f'{HOSTS["figshare"]}articles/{rest}/files?{query}').body)
        if not page:
            break
        found += page
    times = Counter(e['name'].casefold() for e in found)
    names = [e['name'] if times[e['name'].casefold()] == 1 else f'{e["id"]}_{e["name"]}' for e in found]
    return [
        file_of(name, e['download_url'], e['size'], md5=e['computed_md5']) for name, e in zip(names, found, strict=True)
    ]


def _osf(ask: Ask, rest: str) -> list[File]:
    """`nodes/q3zws/files/osfstorage`, the storage of a project, or `files/86qa2`, one file: pages, and folders."""
    query = '?page%5Bsize%5D=100'
    files, urls = [], [f'{HOSTS["osf"]}{rest}/{query}']
    while urls:
        page = json.loads(ask(urls.pop()).body)
        data = page['data']
        for entry in data if isinstance(data, list) else [data]:
            facts = entry['attributes']
            if facts['kind'] == 'folder':
                urls.append(entry['relationships']['files']['links']['related']['href'] + query)
            else:
                sums = facts['extra']['hashes']
                name = facts['materialized_path'].lstrip('/')
                files.append(file_of(name, entry['links']['download'], facts['size'], sha256=sums['sha256']))
        if following := (page.get('links') or {}).get('next'):
            urls.append(following)
    return files


def _hf(ask: Ask, rest: str) -> list[File]:
    """`datasets/owner/name` or `models/owner/name`, with `@revision` or of branch main: sums are SHA-256 of files in
    LFS, Git's of others. A branch moves, so that its files are those of its newest commit, which their URLs name."""
    rest, _, revision = rest.partition('@')
    if not COMMIT.fullmatch(revision):
        revision = json.loads(ask(f'{HOSTS["hf"]}api/{rest}/revision/{quote(revision or "main")}').body)['sha']
        if not COMMIT.fullmatch(revision):
            raise ValueError(f'no commit: {revision}')
    files, url = [], f'{HOSTS["hf"]}api/{rest}/tree/{revision}?recursive=true'
    while url:
        answer = ask(url)
        for entry in json.loads(answer.body):
            if entry['type'] == 'file':
                lfs = entry.get('lfs')
                sums = {'sha256': lfs['oid']} if lfs else {'git': entry['oid']}
                at = f'{HOSTS["hf"]}{rest.removeprefix("models/")}/resolve/{revision}/{quote(entry["path"])}'
                files.append(file_of(entry['path'], at, (lfs or entry)['size'], **sums))
        url = answer.following
    return files


def _synapse(ask: Ask, rest: str) -> list[File]:
    """`syn50614194`, a project or folder: its children, page by page, and the handle of each file."""
    base, files = f'{HOSTS["synapse"]}entity/', []
    folders: list[tuple[str, str, str | None]] = [(rest, '', None)]
    while folders:
        parent, path, more = folders.pop()
        body = {'parentId': parent, 'includeTypes': ['folder', 'file'], **({'nextPageToken': more} if more else {})}
        answer = json.loads(ask(f'{base}children', body).body)
        for child in answer['page']:
            if child['type'].endswith('Folder'):
                folders.append((child['id'], f'{path}{child["name"]}/', None))
                continue
            handles = json.loads(ask(f'{base}{child["id"]}/filehandles').body)['list']
            handle = next(h for h in handles if not h.get('isPreview'))
            at = f'{base}{child["id"]}/file'
            files.append(file_of(path + handle['fileName'], at, handle['contentSize'], md5=handle['contentMd5']))
        if answer.get('nextPageToken'):
            folders.append((parent, path, answer['nextPageToken']))
    return files


def _nemar(ask: Ask, rest: str) -> list[File]:
    """`nm000104/latest`, a version: its manifest."""
    url = f'{HOSTS["nemar"]}{rest}/manifest.json'
    return [
        file_of(e['path'], urljoin(url, e['url']), e['size'], **{e['checksum_algorithm']: e['checksum']})
        for e in json.loads(ask(url).body)
    ]


LISTS: dict[str, Callable[[Ask, str], list[File]]] = {
    'figshare': _figshare,
    'hf': _hf,
    'nemar': _nemar,
    'openneuro': _openneuro,
    'osf': _osf,
    's3': _s3,
    'synapse': _synapse,
    'zenodo': _zenodo,
}
