"""Which files of a host are wanted, by its list, and where that list is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import requests

from jbench.data.download import hosts
from jbench.data.download.file_list import KEPT, File, checked, parse_list
from jbench.data.source import source_of
from jbench.files import read_json, write_atomic
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError


def list_of(dataset: Dataset, place: Download, folder: Path) -> Path:
    """Where the list of a dataset's files at a place is: beside its source module, or what was kept of its host's."""
    if not place.registered:
        return folder / KEPT
    path = Path(source_of(dataset).__file__).with_name(place.registered)
    if not path.is_file():
        raise RequestError(f'{path}: no such list of sums; put it there, or leave out `registered`')
    return path


def kept(place: Download, path: Path) -> list[File]:
    """The wanted files of a list; [] where there is none yet, or that of another address."""
    if place.registered:
        return _wanted(place, parse_list(path.read_text(), place.url, str(path)), str(path))
    if not path.exists():
        return []
    try:
        url, lines = read_json(path)
        files = checked([File(*line) for line in lines], str(path)) if url == place.url else []
    except RequestError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise RequestError(f'{path}: no list of files; remove it, and run the same command again') from error
    return _wanted(place, files, str(path)) if files else []


def asked(session: requests.Session, place: Download, path: Path, say: Callable[[str], None]) -> list[File]:
    """The wanted files, as the host lists them; the list is kept."""
    files = hosts.list_files(place, session, say)
    text = ',\n'.join(json.dumps(file) for file in files)
    write_atomic(path, f'[{json.dumps(place.url)}, [\n{text}\n]]\n'.encode())
    return _wanted(place, files, str(path))


def _wanted(place: Download, files: list[File], where: str) -> list[File]:
    """Raises RequestError where the list has none of those that are wanted."""
    patterns = place.files.split('|')
    wanted = [
        f for f in files if any(fnmatchcase(f.name, p) for p in patterns) and not fnmatchcase(f.name, place.without)
    ]
    if not wanted:
        raise RequestError(f'{where}: names no file like {place.files}')
    return wanted


def check_known(name: str, files: list[File], sha256: str) -> None:
    """Raises RequestError where the list of a host has another SHA-256 for a file than is known ('': none is)."""
    for file in files if sha256 else ():
        if file.kind == 'sha256' and file.digest != sha256:
            raise RequestError(
                f'{name}: the host lists another file (SHA-256 {file.digest}) than jbench knows ({sha256}); nothing '
                'was fetched. Tell the authors of jbench, or take the file as your own: --weights=FILE'
            )


def places_of(dataset: Dataset) -> tuple[Download, ...]:
    """Where a dataset that can be fetched is: one place, or several. Raises RequestError for one that has no list."""
    assert dataset.download is not None, 'can_fetch'
    for place in dataset.download.also:
        if not place.registered or place.also:
            raise RequestError(f'{dataset.name}: {place.url}, a further place, needs `registered`, and none beside it')
    return dataset.download, *dataset.download.also
