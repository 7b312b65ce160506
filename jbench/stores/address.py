"""What a folder in an object store is called, and where its copy on this machine lies."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from jbench import files
from jbench.spec.errors import MissingExtraError, RequestError

PACKAGES = {
    's3': 's3fs',
    'gs': 'gcsfs',
    'az': 'adlfs',
}  # they refuse a second writer: `Remote.write_absent`
EXAMPLES = 's3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER'
SERVERS = (  # variables that say which server a name belongs to
    'AWS_ENDPOINT_URL',
    'AWS_ENDPOINT_URL_S3',
    'FSSPEC_S3_ENDPOINT_URL',
    'STORAGE_EMULATOR_HOST',
    'AZURE_STORAGE_ACCOUNT_NAME',
)
ACCOUNT = ('accountname', 'blobendpoint', 'endpointsuffix')  # of AZURE_STORAGE_CONNECTION_STRING, the same of it


class Address(NamedTuple):
    """A folder in an object store."""

    protocol: str
    path: str  # bucket/folder

    @property
    def url(self) -> str:
        """As a person types it."""
        return f'{self.protocol}://{self.path}'

    @property
    def copy(self) -> Path:
        """The folder of its copy on this machine; not made here."""
        where = [self.url, *(os.environ.get(name, '') for name in SERVERS), *_account()]
        digest = hashlib.sha256('\n'.join(where).encode()).hexdigest()[:12]
        return copies() / f'{files.slug(self.path)}-{digest}'


def _account() -> list[str]:
    """Which account of Azure a connection string names, without what gives access to it; [] without such a string."""
    pairs = (part.partition('=') for part in os.environ.get('AZURE_STORAGE_CONNECTION_STRING', '').split(';'))
    found = {name.strip().lower(): text.partition('?')[0].rstrip('/') for name, _, text in pairs}
    return [f'{name}={found[name]}' for name in ACCOUNT if found.get(name)]


def copies() -> Path:
    """Where copies of stores lie: $JBENCH_CACHE, else ~/.cache/jbench."""
    given = os.environ.get('JBENCH_CACHE')
    return Path(given).absolute() if given else Path.home() / '.cache' / 'jbench'


def is_address(text: str) -> bool:
    """Whether a word names a store (or something like it, as with one slash) and no folder."""
    return '://' in text or text.startswith(tuple(f'{name}:/' for name in PACKAGES))


def parse(text: str, flag: str) -> Address:
    """The store that `--flag=text` names.

    Raises: RequestError for an unknown kind, one slash, no bucket, or credentials in the word, which is not shown then;
        MissingExtraError where its package is not installed.
    """
    protocol, _, path = text.partition('://')
    if '@' in text or '?' in text:
        raise RequestError(
            f'{flag}: an address with {"@" if "@" in text else "?"} may hold credentials, which come from the '
            f'environment alone; expected {EXAMPLES}'
        )
    if '://' not in text:
        raise RequestError(f'{flag}={text}: lacks a slash (a pathlib.Path drops it: give text); expected {EXAMPLES}')
    if protocol not in PACKAGES:
        raise RequestError(f'{flag}={text}: unknown kind of store {protocol!r}; expected a folder, {EXAMPLES}')
    if not path.strip('/') or path.startswith('/'):
        raise RequestError(f'{flag}={text}: names no bucket; expected {EXAMPLES}')
    path = path.rstrip('/')
    if '//' in path or {'.', '..'} & {*path.split('/')}:
        raise RequestError(f'{flag}={text}: no such folder; expected {EXAMPLES}')
    if find_spec(PACKAGES[protocol]) is None:
        raise MissingExtraError(PACKAGES[protocol], 'cloud', f'{flag}={text}')
    return Address(protocol, path)
