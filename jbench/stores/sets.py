"""Prepared sets in a store: `<set>/manifest.json`, written last, and its shards in `<set>/<digest of the manifest>/`.

So two machines that prepare one set at once, with libraries that do not give the same bytes, cannot mix their shards;
the manifest that came first counts. A set that was copied there as it lies in a work folder serves, too.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.spec.errors import RequestError
from jbench.stores import cache, mirror
from jbench.stores.remote import Facts, Remote, at_once

MANIFEST = 'manifest.json'
FIRST = cache.STAY[1:]  # what is read of a set before its shards
BESIDE = ('stimuli.npz',)  # what a manifest does not list
Report = Callable[[str, int, int], object]  # (what, done, total); what it raises ends the work


class Found(NamedTuple):
    """A whole set in a store."""

    content: bytes  # of its manifest
    manifest: dict[str, Any]
    names: dict[str, tuple[str, Facts]]  # of its files, and of those beside them: what the store calls each


@functools.cache
def look(workdir: Path, dataset: str) -> None:
    """Bring the manifests of all sets of a dataset, once in a process, so that a plan knows them. Of a folder without
    store nothing is done."""

    def wanted(name: str) -> bool:
        return name.endswith(f'/{MANIFEST}') and name.count('/') == 3 and not (workdir / name).exists()

    mirror.bring(workdir, f'prepared/{dataset}', wanted=wanted)


def stored(workdir: Path, folder: Path) -> bool:
    """Whether a prepared set is whole in the store of a work folder; its small files are in `folder` then.

    Raises: RequestError for a store that does not answer, or while another process reads another make of the set.
    """
    store = mirror.of(workdir)
    found = _find(store, workdir, folder) if store else None
    if store is None or found is None:
        return False
    manifest = folder / MANIFEST
    other = manifest.exists() and manifest.read_bytes() != found.content
    if other and not cache.remove(folder):  # the first that was written counts
        raise RequestError(
            f'{folder}: {store.url} has another make of this set, and a process here reads this one; run the same '
            'command again once that process has ended'
        )
    for name, (there, facts) in found.names.items():
        if name in FIRST and not facts.same(folder / name):
            store.fetch(there, folder / name, facts, found.manifest['files'].get(name, {}).get('sha256', ''))
    if not manifest.exists():
        files.write_atomic(manifest, found.content)
    return True


def take(workdir: Path, folder: Path, report: Report = lambda what, done, total: None) -> None:
    """Put a prepared set into the store of a work folder unless it is there; where another make of it came first, that
    one takes its place. Of a folder without store nothing is done."""
    store = mirror.of(workdir)
    if store is None:
        return
    found, root = _find(store, workdir, folder), folder.relative_to(workdir).as_posix()
    if found is None:
        broken = store.read(f'{root}/{MANIFEST}')  # of a set that lacks files, where there is one
        text = (folder / MANIFEST).read_bytes()
        manifest = json.loads(text)
        names = list(manifest['files'])
        what = f'copy {manifest["dataset"]} to {store.url}'
        puts = [functools.partial(store.write, f'{root}/{manifest["digest"]}/{n}', folder / n) for n in names]
        at_once(puts, lambda done: report(what, done, len(puts)))
        if broken and _find(store, workdir, folder) is None and store.read(f'{root}/{MANIFEST}') == broken:
            store.remove([f'{root}/{MANIFEST}'])
        if not store.write_absent(f'{root}/{MANIFEST}', text) and not stored(workdir, folder):
            raise RequestError(f'{store.url}/{root}: another machine writes this set; run the same command again')
        found = _find(store, workdir, folder)
    elif found.content != (folder / MANIFEST).read_bytes():
        stored(workdir, folder)
    for name in BESIDE:
        there = found.names.get(name) if found else None
        if (folder / name).exists() and not (there and there[1].same(folder / name)):
            store.write(f'{root}/{name}', folder / name)
            if (facts := store.facts(f'{root}/{name}')) is not None:
                facts.mark(folder / name)
    with cache.used(folder):  # it may go from now on
        pass


@contextlib.contextmanager
def here(workdir: Path, folder: Path, report: Report = lambda what, done, total: None) -> Iterator[None]:
    """Inside, a prepared set is whole in `folder`: each shard that is not there came from the store of the work folder,
    and has the digest of the manifest. Of a folder without store nothing is done.

    Raises: RequestError where the store lacks it, a shard has another digest, or the cache is too small.
    """
    store = mirror.of(workdir)
    if store is None:
        yield
        return
    with cache.used(folder):
        if _lacking(folder):
            found = _find(store, workdir, folder)
            if found is None:
                where = f'{store.url}/{folder.relative_to(workdir)}'
                raise RequestError(f'{where}: it is not whole, there or here; run the same command again')
            what = f'copy {found.manifest["dataset"]} from {store.url}'
            sizes = {name: facts['bytes'] for name, facts in found.manifest['files'].items()}

            def needed() -> int:
                return sum(sizes[name] for name in _lacking(folder))

            with cache.room(needed, what, lambda: report(f'wait for another process to {what}', 0, 1)):
                calls = [functools.partial(_fetch, store, found, n, folder) for n in _lacking(folder)]
                at_once(calls, lambda done: report(what, done, len(calls)))
        yield


def _fetch(store: Remote, found: Found, name: str, folder: Path) -> None:
    there, facts = found.names[name]
    store.fetch(there, folder / name, facts, found.manifest['files'][name]['sha256'])


def _find(store: Remote, workdir: Path, folder: Path) -> Found | None:
    """A set of a store that has all its files, each of the size that the manifest says; None for any other."""
    root = folder.relative_to(workdir).as_posix()
    content = store.read(f'{root}/{MANIFEST}') or b''
    try:
        manifest = json.loads(content)
        sizes = {name: facts['bytes'] for name, facts in manifest['files'].items()}
        own = f'{root}/{manifest["digest"]}'
    except (KeyError, TypeError, ValueError):
        return None
    listing = store.list(root)
    names: dict[str, tuple[str, Facts]] = {}
    for name in (*sizes, *BESIDE):
        for there in (f'{own}/{name}', f'{root}/{name}'):
            facts = listing.get(there)
            if name not in names and facts and sizes.get(name, facts.size) == facts.size and '/' not in name:
                names[name] = there, facts
    return Found(content, manifest, names) if sizes.keys() <= names.keys() else None


def _lacking(folder: Path) -> list[str]:
    """Files of a set that are not here, by its manifest."""
    listed = files.read_json(folder / MANIFEST)['files']
    return [n for n, f in listed.items() if not (folder / n).exists() or (folder / n).stat().st_size != f['bytes']]
