"""Features of an encoder that stays as it is, computed once for each window and kept in the form of a prepared set.

They lie in `<workdir>/features/<hash>`: array-record shards of windows [d, 1], and a manifest that is written last. The
hash is of the numbers of the encoder (without its head), its name and version, the prepared set, how its windows are
read, which of them, and the feature: every probe, seed and rate that asks for the same finds them. Shards that are
there stay when the work was interrupted.

Each window is kept with a scale for each feature (data/prepare/codec.py): as float32 but for its last bits.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jbench import files, processes
from jbench.context import Context
from jbench.data.load.loader import Loader, chunk_batches
from jbench.data.load.prepared_set import PreparedSet, digest
from jbench.data.prepare import codec
from jbench.models.foundation import probes
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.identity import spec_hash
from jbench.spec.recipe import DEFAULT
from jbench.train import parallel

SHARD = 1024  # windows, or those of one chunk where these are more: what an interruption costs at most
FORMAT = 1


class Encoder(NamedTuple):
    """An encoder with its numbers."""

    title: str  # what messages call it
    name: str  # with its options
    version: int
    bare: Variables  # without its head, and what the feature does not rest on
    whole: Variables
    program: Callable[[], Callable[..., Any]]  # compiled when it is first asked for
    batch_size: int
    channel_mask: bool  # whether it asks for one
    precision: str = DEFAULT.precision
    feature: str = probes.FEATURE  # what of it, in words
    places: str = ''  # digest of the places of electrodes that it goes by


def ready(data: PreparedSet, encoder: Encoder, context: Context) -> PreparedSet:
    """The windows of a set that are in some part, as an encoder answers them: the same set, of d channels and one
    sample. They are computed if they are not there.

    Raises: RequestError for features that are no numbers, a full disk; Interrupted.
    """
    rows = np.flatnonzero(data.split != '')
    facts = _facts(data, encoder, rows)
    folder = context.workdir / 'features' / spec_hash(facts)
    with processes.locked(folder / '.lock', context.guard_all):
        there = processes.first() and _whole(folder, context)
        if not bool(processes.agreed(np.array(there))):
            _write(data, encoder, rows, (folder, facts), context)
        context.guard_all()  # here all processes meet: the manifest is there
    manifest = files.read_json(folder / 'manifest.json')
    return dataclasses.replace(
        data,
        folder=folder,
        manifest=manifest,
        signal=probes.features(len(manifest['ch_names'])),
        clamp=None,
        scale=None,
        factor=1.0,
        mask_channels=0.0,
        y=data.y[rows],
        ids=data.ids[rows],
        subjects=data.subjects[rows],
        split=data.split[rows],
        groups=None if data.groups is None else data.groups[rows],
        places=None if data.places is None else data.places.of(rows),
    )


def _facts(data: PreparedSet, encoder: Encoder, rows: np.ndarray) -> dict[str, Any]:
    """All that the features depend on."""
    scale = () if data.scale is None else tuple(data.scale)
    failing = (data.mask_channels, _sha256((data.split == 'test',))) if data.mask_channels else ()
    return {
        'format': FORMAT,
        'encoder': numbers(encoder.bare),
        'model': [encoder.name, encoder.version],
        'feature': encoder.feature,
        'prepared': digest(data.folder),
        'read': [data.clamp, data.factor, _sha256(scale), *failing],
        'windows': _sha256((rows.astype(np.int64),)),
        **({'precision': encoder.precision} if encoder.precision != DEFAULT.precision else {}),
        **({'places': encoder.places} if encoder.places else {}),
    }


def numbers(variables: Variables) -> str:
    """SHA-256 of variables: paths, types, shapes and values."""
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    found = hashlib.sha256()
    for path, leaf in sorted(leaves, key=lambda pair: jax.tree_util.keystr(pair[0])):
        array = np.asarray(leaf)
        found.update(f'{jax.tree_util.keystr(path)} {array.dtype} {array.shape}'.encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _sha256(arrays: tuple[np.ndarray, ...]) -> str:
    return hashlib.sha256(b''.join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def _whole(folder: Path, context: Context) -> bool:
    """Whether all features are there as they were written; what is damaged is removed, and said."""
    try:
        manifest = files.read_json(folder / 'manifest.json')
    except FileNotFoundError:
        return False
    damaged = [
        path
        for path, r in ((folder / r['shard'], r) for r in manifest['recordings'])
        if not path.is_file() or files.sha256_file(path) != r['sha256']
    ]
    if damaged:
        context.progress.say(f'{damaged[0]}: damaged, these features are computed again')
        for path in (folder / 'manifest.json', *damaged):
            path.unlink(missing_ok=True)
    return not damaged


def _write(
    data: PreparedSet, encoder: Encoder, rows: np.ndarray, where: tuple[Path, dict[str, Any]], context: Context
) -> None:
    """Encode the shards that are not there, then say what all of them are."""
    folder, facts = where
    chunk = chunk_batches(data.signal, encoder.batch_size) * encoder.batch_size
    size = max(SHARD // chunk, 1) * chunk
    shards: list[dict[str, Any]] = []
    what = f'{encoder.title} features'
    for first in range(0, len(rows), size):
        context.guard_all()
        context.progress.update(what, first, len(rows))
        part = rows[first : first + size]
        path = folder / f'features-{first:07d}-{len(part):05d}.array_record'  # of other batches others
        shards.append({'shard': path.name, 'n_windows': len(part), 'ch_names': None})
        if not bool(processes.agreed(np.array(path.is_file()))):
            x = _encoded(data, encoder, part, context)
            if processes.first():
                codec.write_shard(path, _records(x, data, part), 6 * x.size)
    context.progress.update(what, len(rows), len(rows))
    if processes.first():
        for shard in shards:
            shard['sha256'] = files.sha256_file(folder / shard['shard'])
        from array_record.python.array_record_module import ArrayRecordReader

        reader = ArrayRecordReader(str(folder / shards[0]['shard']), 'readahead_buffer_size:0')
        width = int(codec.decode(reader.read([0])[0])['shape'][0])
        names = [str(i) for i in range(width)]
        manifest = {'about': facts, 'ch_names': names, 'recordings': shards, 'n_windows': len(rows)}
        files.write_atomic(folder / 'manifest.json', json.dumps(manifest).encode())


def _encoded(data: PreparedSet, encoder: Encoder, rows: np.ndarray, context: Context) -> np.ndarray:
    """Features f32 [N, d] of windows. Raises: RequestError where they are no numbers."""
    loader = Loader(data, rows, encoder.batch_size, channel_mask=encoder.channel_mask)
    x = parallel.outputs(encoder.program(), encoder.whole, loader.chunks(), len(loader), context.guard_all)
    if not np.isfinite(x).all():
        bad = int(data.ids[rows[np.flatnonzero(~np.isfinite(x).all(1))[0]]])
        raise RequestError(f'{encoder.title}: the features of window {bad} are not finite; are its weights damaged?')
    return x


def _records(x: np.ndarray, data: PreparedSet, rows: np.ndarray) -> Iterator[bytes]:
    for window, row in zip(x, rows.tolist(), strict=True):
        yield codec.encode_window(window[:, None], int(data.ids[row]), {'subject': str(data.subjects[row])})
