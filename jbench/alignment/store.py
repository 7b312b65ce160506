"""Assemblies and stimuli packaged into a content-addressed store, and loaded from it with every digest checked.

A store is a folder or a URL of fsspec:

  objects/ab/ab12...    netCDF files, tables, images, texts and manifests, under their own SHA-256
  assemblies/NAME.json  which manifest the name of an assembly stands for
  stimuli/NAME.json     and that of a stimulus set

Objects are written before the name that leads to them, so a set is whole or absent. A name stands for one content for
good: another content needs another name.
"""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jbench.alignment import blobs, netcdf, tables
from jbench.alignment.assembly import check, kind, title
from jbench.alignment.extra import need
from jbench.alignment.stimuli import Stimulus, StimulusSet, decode
from jbench.files import slug, write_atomic
from jbench.spec.errors import RequestError, unknown

if TYPE_CHECKING:
    from xarray import DataArray

SCHEMA = 1
ASSEMBLIES, STIMULI = 'assemblies', 'stimuli'


class Packaged(NamedTuple):
    """What lies under a name."""

    assembly: DataArray | None  # None: stimuli alone
    stimuli: StimulusSet | None  # None: an assembly that only names its stimuli
    sha256: str  # of the manifest: it pins everything


def package(
    what: DataArray | StimulusSet, store: str | Path, *, identifier: str = '', stimuli: StimulusSet | None = None
) -> str:
    """Put an assembly or a stimulus set into a store.

    Args:
      what: the assembly or the stimuli.
      store: a folder, or a URL of fsspec.
      identifier: its name there; by default its own.
      stimuli: those of an assembly, packaged with it; not needed where the store has them already.

    Returns: the SHA-256 of its manifest, for a table of sets.

    Raises: RequestError for what `assembly.check` refuses, missing stimuli, other stimuli than the assembly names, a
      name that stands for another content, and a store that cannot be written.
    """
    at = blobs.place(store)
    if isinstance(what, StimulusSet):
        return _publish(at, STIMULI, identifier or what.identifier, _stimuli_manifest(at, what))
    name = identifier or str(what.attrs.get('identifier', ''))
    if not name:
        raise RequestError(f'{title(what)} has no name: give identifier=, or an attribute identifier')
    check(what)
    shown = str(what.attrs.get('stimulus_set', ''))
    if stimuli is not None:
        _fits(what, stimuli)
        package(stimuli, store)
        shown = stimuli.identifier
    elif kind(what) != 'properties':  # those only name their stimuli
        _fits(what, _stored_stimuli(at, what, shown))
    data, layout = netcdf.write(what)
    manifest = {
        'digest': netcdf.digest(what),
        'file': blobs.put(at, data),
        'layout': layout,
        'counts': dict(zip(map(str, what.dims), what.shape, strict=True)),
        'stimuli': _pointer(at, STIMULI, shown) or None,
    }
    return _publish(at, ASSEMBLIES, name, manifest)


def load(identifier: str, store: str | Path, *, sha256: str = '') -> Packaged:
    """What lies under a name; values of an assembly, and each stimulus, are read when they are asked for.

    Args:
      identifier: the name of an assembly, else that of a stimulus set.
      store: a folder, or a URL of fsspec.
      sha256: of the manifest, as `package` returned it: another one is refused.

    Raises: RequestError for an unknown name, and for objects that are missing or have another SHA-256.
    """
    at = blobs.place(store)
    found = _pointer(at, ASSEMBLIES, identifier) or _pointer(at, STIMULI, identifier)
    if not found:
        raise unknown(f'set in store {at.shown}', identifier, names(store))
    if sha256 and found != sha256:
        remedy = 'the store holds another version: use the store that it was taken from, or take the new number over'
        raise RequestError(f'{identifier}: manifest {found[:12]}..., expected {sha256[:12]}...; {remedy}')
    return _open(at, identifier, found)


def names(store: str | Path) -> list[str]:
    """Every name in a store, of assemblies and of stimuli."""
    at = blobs.place(store)
    files = [f'{folder}/{file}' for folder in (ASSEMBLIES, STIMULI) for file in blobs.names(at, folder)]
    return sorted({pointer['identifier'] for pointer in map(partial(_read_pointer, at), files) if pointer})


def verify(identifier: str, store: str | Path) -> dict[str, Any]:
    """Read everything under a name, check it, and say what it is.

    Returns: SHA-256 of the manifest, digest of the content, counts, number of stimuli.

    Raises: RequestError, as `load`, and where the content does not have its digest.
    """
    at, found = blobs.place(store), load(identifier, store)
    manifest = _manifest(at, identifier, found.sha256)
    if found.assembly is not None:
        digest = netcdf.digest(check(found.assembly))
        found.assembly.close()
        if digest != manifest['digest']:
            raise RequestError(f'{identifier} in {at.shown}: its values have changed; package it again')
    if found.stimuli is not None:
        for stimulus_id in found.stimuli.ids:
            found.stimuli.read(stimulus_id)
    n_stimuli = 0 if found.stimuli is None else len(found.stimuli)
    return {'digest': manifest['digest'], 'counts': manifest['counts'], 'sha256': found.sha256, 'stimuli': n_stimuli}


def write_test(identifier: str, store: str | Path, path: str | Path) -> Path:
    """Write a small pytest file that fails when a packaged set is not there, not whole, or not the same.

    Raises: RequestError, as `verify`.
    """
    facts = verify(identifier, store)
    lines = ''.join(f'    {key!r}: {facts[key]!r},\n' for key in sorted(facts))
    return write_atomic(path, _TEST.format(identifier=identifier, store=str(store), lines=lines).encode())


_TEST = '''"""{identifier}: packaged, whole, and what it was. Written by jbench.alignment.store.write_test."""

import os

from jbench.alignment import store

STORE = os.environ.get('JBENCH_STORE') or {store!r}
EXPECTED = {{
{lines}}}


def test_the_set_is_there_whole_and_the_same():
    assert store.verify({identifier!r}, STORE) == EXPECTED
'''


# ---- assemblies and their stimuli ----


def _fits(assembly: DataArray, stimuli: StimulusSet) -> None:
    """Raises: RequestError where the stimuli are not those of an assembly."""
    digest = assembly.attrs.get('stimulus_set_digest', stimuli.digest)
    if digest != stimuli.digest:
        found = f'stimulus set {stimuli.identifier} has digest {stimuli.digest[:12]}..., expected {digest[:12]}...'
        raise RequestError(f'{title(assembly)}: {found}; give the stimuli that were shown')
    if 'stimulus_id' not in assembly.coords:
        return
    absent = sorted(set(assembly['stimulus_id'].values.tolist()) - set(stimuli.ids))
    if absent:
        found = f'{len(absent)} of its stimuli are not in {stimuli.identifier}, {absent[0]!r} first'
        raise RequestError(f'{title(assembly)}: {found}; give the set that was shown, or leave these rows out')


def _stored_stimuli(at: blobs.Place, assembly: DataArray, name: str) -> StimulusSet:
    """The stimuli of an assembly, in the store already. Raises: RequestError."""
    pointer = _pointer(at, STIMULI, name)
    found = _open(at, name, pointer).stimuli if pointer else None
    if found is None:
        said = f'its stimulus set {name!r} is not in store {at.shown}' if name else 'it names no stimulus set'
        raise RequestError(f'{title(assembly)}: {said}; give it with stimuli=')
    return found


def _stimuli_manifest(at: blobs.Place, stimuli: StimulusSet) -> dict[str, Any]:
    """Put a table and every stimulus into the store."""
    csv, dtypes = tables.to_csv(stimuli.table, stimuli.identifier)
    files = []
    for stimulus_id in stimuli.ids:
        stimulus = stimuli.read(stimulus_id)
        files.append([blobs.put(at, _file(stimulus)), 'txt' if isinstance(stimulus, str) else 'png'])
    return {
        'name': stimuli.identifier,
        'digest': stimuli.digest,
        'table': blobs.put(at, csv),
        'dtypes': dtypes,
        'files': files,
        'counts': {'stimuli': len(stimuli)},
    }


def _file(stimulus: Stimulus) -> bytes:
    """A stimulus as a file: PNG, which loses nothing, or UTF-8."""
    if isinstance(stimulus, str):
        return stimulus.encode()
    buffer = io.BytesIO()
    need('PIL.Image', 'writing images').fromarray(stimulus).save(buffer, 'PNG')
    return buffer.getvalue()


def _open(at: blobs.Place, name: str, sha256: str) -> Packaged:
    """What a manifest describes."""
    manifest = _manifest(at, name, sha256)
    if 'table' in manifest:
        table = tables.from_csv(blobs.get(at, manifest['table'], f'table of {name}'), manifest['dtypes'])
        files = dict(zip(table['stimulus_id'].tolist(), manifest['files'], strict=True))

        def read(stimulus_id: str) -> Stimulus:
            of, suffix = files[stimulus_id]
            data = blobs.get(at, of, f'stimulus {stimulus_id!r} of {name}')
            return data.decode() if suffix == 'txt' else decode(data, f'stimulus {stimulus_id!r} of {name}')

        return Packaged(None, StimulusSet(manifest['name'], table, read, manifest['digest']), sha256)
    source = blobs.opened(at, manifest['file'], f'assembly {name}')
    stimuli = _open(at, f'stimuli of {name}', manifest['stimuli']).stimuli if manifest['stimuli'] else None
    return Packaged(netcdf.read(source, manifest['layout']), stimuli, sha256)


# ---- names ----


def _publish(at: blobs.Place, folder: str, name: str, manifest: dict[str, Any]) -> str:
    """Keep a manifest and let a name stand for it. Raises: RequestError where the name stands for another content."""
    file = f'{folder}/{slug(name)}.json'
    old = _read_pointer(at, file)
    if old and (old['identifier'] != name or old['digest'] != manifest['digest']):
        found = f'{file} stands for {old["identifier"]!r} with another content'
        raise RequestError(f'store {at.shown}: {found}; choose another identifier, or remove the old name')
    sha256 = blobs.put(at, _json(manifest | {'schema': SCHEMA, 'identifier': name}))
    pointer = {'identifier': name, 'digest': manifest['digest'], 'manifest': sha256}
    if old != pointer:
        blobs.write(at, file, _json(pointer))
    return sha256


def _pointer(at: blobs.Place, folder: str, name: str) -> str:
    """The SHA-256 of the manifest that a name stands for; empty for an unknown name."""
    pointer = _read_pointer(at, f'{folder}/{slug(name)}.json') if name else None
    return str(pointer['manifest']) if pointer and pointer['identifier'] == name else ''


def _read_pointer(at: blobs.Place, file: str) -> dict[str, Any] | None:
    data = blobs.read(at, file)
    if data is None:
        return None
    try:
        pointer: dict[str, Any] = json.loads(data)
        return {key: pointer[key] for key in ('identifier', 'digest', 'manifest')}
    except (ValueError, KeyError, TypeError) as error:
        raise RequestError(
            f'store {at.shown}: {file} is damaged ({error}); remove it and package the set again'
        ) from error


def _manifest(at: blobs.Place, name: str, sha256: str) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(blobs.get(at, sha256, f'manifest of {name}'))
    if manifest['schema'] != SCHEMA:
        raise RequestError(f'{name} in {at.shown} has schema {manifest["schema"]}, known is {SCHEMA}; upgrade jbench')
    return manifest


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()  # keys in their order: that of attributes is kept
