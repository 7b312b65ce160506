"""Finished parts become a prepared set: shards, index, TFDS metadata, and the manifest last."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from jbench import files
from jbench.data.prepare import codec
from jbench.data.prepare.check_recording import Converted
from jbench.data.prepare.tfds_metadata import SPLIT, write_metadata
from jbench.data.recording import RecordingRef
from jbench.data.sources import mixture
from jbench.data.windows import index
from jbench.spec.dataset import Dataset
from jbench.spec.identity import spec_hash
from jbench.targets.packed import integers

IN_INDEX = 1 << 30  # bytes of memory that all targets of a set may take, to be in its index


def assemble(
    spec: dict[str, Any],
    dataset: Dataset,
    folder: Path,
    parts: Path,
    kept: list[tuple[RecordingRef, Converted]],
    notes: list[str],
    found: list[RecordingRef],
    members: dict[str, str],
) -> None:
    """Give the shards their final names, write index, TFDS metadata, and the manifest last.

    Args:
        spec: what decides what is stored.
        dataset: its facts.
        folder: of the set.
        parts: folder of the finished parts.
        kept: the recordings that make windows, and their parts.
        notes: what every result of the set must say.
        found: all recordings that lay there.
        members: of a mixture what they are of (`raw_files.of_members`).
    Raises: RequestError for a disk that cannot be written.
    """
    name = dataset.name.lower().replace(mixture.JOINED, '_')  # TFDS takes letters, digits and '_'
    shards = [f'{name}-{SPLIT}.array_record-{i:05d}-of-{len(kept):05d}' for i in range(len(kept))]
    with files.explained(folder, 1 << 20):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        for shard, (ref, _) in zip(shards, kept, strict=True):
            files.link_or_copy(parts / f'{ref.name}.array_record', folder / shard)
        files.write_atomic(folder / 'index.npz', files.npz_bytes(index(_with_targets(parts, kept))))
        size = sum((folder / s).stat().st_size for s in shards)
        write_metadata(folder, name, [p['n_windows'] for _, p in kept], size)
    ch_names = list(dict.fromkeys(c for _, p in kept for c in p['ch_names']))  # union, in order of first sight
    names = [*shards, 'index.npz', 'features.json', 'dataset_info.json']
    manifest = {
        'schema': 1,
        'dataset': dataset.name,
        'simulated': dataset.simulated,
        'spec': spec,
        'sfreq': spec['signal']['sfreq'],
        'ch_names': ch_names,
        'notes': notes,
        'n_windows': sum(p['n_windows'] for _, p in kept),
        'error_bound': max(p['error_bound'] for _, p in kept),
        'found': [r.subject for r in found],  # the subject of every recording that lay there
        'subjects': {'present': list(dict.fromkeys(r.subject for r, _ in kept)), 'declared': dataset.n_subjects},
        'recordings': [
            {
                'subject': r.subject,
                'session': r.session,
                'run': r.run,
                'shard': s,
                'ch_names': None if p['ch_names'] == ch_names else p['ch_names'],  # None: as in the set
                'n_windows': p['n_windows'],
                **p['native'],
            }
            for s, (r, p) in zip(shards, kept, strict=True)
        ],
        'files': {f: {'bytes': (folder / f).stat().st_size, 'sha256': files.sha256_file(folder / f)} for f in names},
    }
    if members:
        manifest['members'] = members
    manifest['digest'] = spec_hash(manifest)
    files.write_atomic(folder / 'manifest.json', json.dumps(manifest, indent=1).encode())


def _with_targets(parts: Path, kept: list[tuple[RecordingRef, Converted]]) -> list[Converted]:
    """The parts with their targets, those of channels read from their shards; without any where all of them together
    are large: they are then read with the windows."""
    lacking = [ref for ref, p in kept if 'target' not in p['windows']]
    if not lacking:
        return [p for _, p in kept]
    paths = {ref.name: parts / f'{ref.name}.array_record' for ref in lacking}
    one = integers(json.loads(codec.targets_of(paths[lacking[0].name], 1)[0]))
    if 4 * one.size * sum(p['n_windows'] for _, p in kept) > IN_INDEX:
        return [{**p, 'windows': {k: v for k, v in p['windows'].items() if k != 'target'}} for _, p in kept]
    found = {name: codec.targets_of(path) for name, path in paths.items()}
    return [{**p, 'windows': {'target': found.get(ref.name), **p['windows']}} for ref, p in kept]
