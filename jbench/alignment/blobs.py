"""Bytes under their own SHA-256, in a folder or at any URL that fsspec knows."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, NamedTuple

from jbench.alignment.extra import need
from jbench.files import sha256_file, write_atomic
from jbench.spec.errors import RequestError


class Place(NamedTuple):
    """A folder, or what fsspec opens."""

    shown: str  # in messages
    root: str
    remote: Any  # a file system of fsspec; None for a folder


def place(store: str | Path) -> Place:
    """Where things lie.

    Args:
      store: a folder, or a URL such as `s3://bucket/path`, `gs://...`, `memory://...`.

    Raises: RequestError for a URL whose protocol is unknown or needs a package that is not there.
    """
    if '://' not in str(store):
        return Place(str(store), str(store), None)
    fsspec = need('fsspec', f'a store at {store}')
    try:
        remote, root = fsspec.core.url_to_fs(str(store))
    except (ValueError, ImportError) as error:
        raise RequestError(f'store {store}: {error}; name a folder or another URL') from error
    return Place(str(store), root.rstrip('/'), remote)


def read(at: Place, name: str) -> bytes | None:
    """The bytes under a name, None where there are none. Raises: RequestError where they cannot be read."""
    try:
        if at.remote is None:
            return (Path(at.root) / name).read_bytes()
        found: bytes = at.remote.cat_file(f'{at.root}/{name}')
        return found
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RequestError(f'store {at.shown}: cannot read {name}: {error}; see that it can be reached') from error


def write(at: Place, name: str, data: bytes) -> None:
    """Put bytes under a name: whole or not at all in a folder and in object stores. Raises: RequestError."""
    if at.remote is None:
        write_atomic(Path(at.root) / name, data)
        return
    try:
        at.remote.makedirs(f'{at.root}/{name}'.rpartition('/')[0], exist_ok=True)
        at.remote.pipe_file(f'{at.root}/{name}', data)
    except OSError as error:
        raise RequestError(f'store {at.shown}: cannot write {name}: {error}; see that it may be written') from error


def names(at: Place, folder: str) -> list[str]:
    """Names of the files directly in a folder of the place."""
    if at.remote is None:
        return sorted(p.name for p in (Path(at.root) / folder).glob('*') if p.is_file() and not p.name.startswith('.'))
    try:
        return sorted(p.rpartition('/')[2] for p in at.remote.ls(f'{at.root}/{folder}', detail=False))
    except FileNotFoundError:
        return []


def put(at: Place, data: bytes) -> str:
    """Keep bytes under their SHA-256, which is returned; what is there, and whole, stays."""
    sha256 = hashlib.sha256(data).hexdigest()
    if read(at, _name(sha256)) != data:
        write(at, _name(sha256), data)
    return sha256


def get(at: Place, sha256: str, what: str) -> bytes:
    """The bytes of this SHA-256.

    Args:
      at: the place.
      sha256: of the bytes.
      what: what they are, for messages.

    Raises: RequestError where they are not there, or are others.
    """
    data = read(at, _name(sha256))
    _check(at, '' if data is None else hashlib.sha256(data).hexdigest(), sha256, what)
    return data or b''


def opened(at: Place, sha256: str, what: str) -> Path | io.BytesIO:
    """The same to read from piece by piece: the file in a folder, else a copy in memory. Raises: RequestError."""
    if at.remote is not None:
        return io.BytesIO(get(at, sha256, what))
    path = Path(at.root) / _name(sha256)
    _check(at, sha256_file(path) if path.is_file() else '', sha256, what)
    return path


def _check(at: Place, found: str, sha256: str, what: str) -> None:
    if not found:
        raise RequestError(f'store {at.shown}: {what} is missing ({_name(sha256)}); package it again, or copy it there')
    if found != sha256:
        remedy = f'{_name(sha256)} is damaged: package the set again, or copy that file anew'
        raise RequestError(f'store {at.shown}: {what} has sha256 {found[:12]}..., expected {sha256[:12]}...; {remedy}')


def _name(sha256: str) -> str:
    return f'objects/{sha256[:2]}/{sha256}'
