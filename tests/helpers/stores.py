"""A store in the memory of a test, and machines that see it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jbench import files
from jbench.stores import address, mirror, remote

COUNT = itertools.count()


@contextlib.contextmanager
def in_memory(tmp_path: Path) -> Iterator[Machines]:
    """An empty store that every machine of a test sees. fsspec looks before it writes to it, which is enough for one
    writer at a time."""
    import fsspec

    bucket = f'bucket{next(COUNT)}'
    fsspec.filesystem('memory').makedirs(f'{bucket}/run')
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(address.PACKAGES, 'memory', 'fsspec')
        yield Machines(f'memory://{bucket}/run', tmp_path, patch)


class Machines:
    """Caches that lie apart, and one store."""

    def __init__(self, url: str, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
        self.url, self._tmp_path, self._patch = url, tmp_path, patch

    def on(self, name: str) -> Path:
        """The copy on a machine, which is the one of the test from now on."""
        self._patch.setenv('JBENCH_CACHE', str(self._tmp_path / name))
        return mirror.local(self.url, '--workdir')

    def names(self, folder: str = '') -> list[str]:
        """The files of the store."""
        return sorted(self.store().list(folder))

    def store(self) -> Any:
        """The store."""
        return mirror.of(mirror.local(self.url, '--workdir'))


def result(home: Path, seed: int = 33, npz: bytes = b'predictions', **fields: Any) -> Path:
    """A result as far as stores look at it."""
    import hashlib

    told = {'seed': seed, 'status': 'done', 'prepared_hash': 'p', 'headline': {'value': 0.5}, 'date': '2026-01-01'}
    told |= {'predictions_sha256': hashlib.sha256(npz).hexdigest(), 'machine': {'processor': 'x'}, **fields}
    files.write_atomic(home / f'seed{seed}.npz', npz)
    return files.write_atomic(home / f'seed{seed}.json', json.dumps(told).encode())


def prepared(folder: Path, n: int = 3, size: int = 1000, make: bytes = b'a') -> Path:
    """A prepared set as far as stores look at it."""
    import hashlib

    from jbench.spec.identity import spec_hash

    contents = {f'x.array_record-{k:05d}': make * size for k in range(n)} | {'index.npz': b'index'}
    listed = {}
    for name, content in contents.items():
        files.write_atomic(folder / name, content)
        listed[name] = {'bytes': len(content), 'sha256': hashlib.sha256(content).hexdigest()}
    manifest: dict[str, Any] = {'dataset': folder.parent.name, 'files': listed}
    manifest['digest'] = spec_hash(manifest)
    files.write_atomic(folder / 'manifest.json', json.dumps(manifest, indent=1).encode())
    return folder


def writes_once(store: remote.Remote, tmp_path: Path) -> None:
    """What every store promises: the first of two writers wins, and what is there is found, fetched, removed."""
    assert store.write_absent('a/x.json', b'first') and not store.write_absent('a/x.json', b'second')
    assert store.read('a/x.json') == b'first'
    facts = store.facts('a/x.json')
    assert store.list('a') == {'a/x.json': facts} and facts.size == 5 and facts.time
    store.fetch('a/x.json', tmp_path / 'x', facts)
    assert facts.same(tmp_path / 'x')
    (tmp_path / 'y').write_bytes(b'file')
    store.write('y', tmp_path / 'y')
    store.remove(['a/x.json', 'none'])
    assert set(store.list()) == {'y', remote.PROOF} and store.read('a/x.json') is None
