"""Prepared sets: read, check, filter, cut and store each recording once; only a manifest means "present".

A set lies in `<workdir>/prepared/<dataset>/<spec hash>-<tree fingerprint>/`: one array-record shard a recording,
`index.npz` (the event table and the windows), TFDS metadata, and `manifest.json`, written last. Its bytes depend on
the recordings, the task and the versions of the libraries alone. While it is being made, finished recordings wait
beside it in `<spec hash>.parts/`, so that an interrupted preparation goes on where it was, and a repaired file costs
no more than itself.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from jbench import files
from jbench.data.discover import find_recordings
from jbench.data.prepare import check_recording
from jbench.data.prepare.check_recording import Converted
from jbench.data.prepare.convert import finished, make
from jbench.data.prepare.tfds_metadata import SPLIT, write_metadata
from jbench.data.prepare.workers import sheltered, workers
from jbench.data.recording import RecordingRef, forbidden
from jbench.data.source import is_own, source_of
from jbench.data.windows import index, possible
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import spec_hash, to_json
from jbench.spec.overrides import override
from jbench.spec.task import Task

PREPARATION = 3  # raise when convert, signal, codec, windows or targets change what is stored
AT_LOAD = (  # fields that act when windows are loaded; so does signal.scaler='train', on a signal stored as by 'none'
    'signal.clamp',
    'signal.factor',
    'target.mapping',
    'target.clip',
    'target.scaled',
    'target.blank',
    'target.length',
)
FACTS = ('device', 'n_chans', 'sfreq', 'seconds', 'event_id', 'event_types', 'n_events', 'amplitude')  # of a dataset
TABLES = ('.tsv', '.csv', '.txt', '.json', '.vmrk')  # files whose corrections may leave their size alone
SMALL = 1 << 20  # bytes of other files that may be tables too
EVERY = 0.5  # s between looks at the stop flag
MEMORY = 300 << 20  # bytes that a worker needs beside its file's fivefold (some readers make float64 of int16)
Progress = Callable[[str, int, int], None]  # (what, done, total); what it raises ends the preparation


def stored_spec(task: Task, dataset: Dataset) -> dict[str, Any]:
    """The part of a task that decides what is stored, and the facts of the dataset that its recordings are held to."""
    task = override(task, 'signal.scaler', 'none') if task.signal.scaler == 'train' else task
    spec: dict[str, Any] = {
        part: {k: v for k, v in to_json(getattr(task, part)).items() if f'{part}.{k}' not in AT_LOAD}
        for part in ('signal', 'window', 'target')
    }
    if task.signal.bads == 'keep':  # a later field: sets of before are good
        del spec['signal']['bads']
    facts = {name: to_json(getattr(dataset, name)) for name in FACTS}
    if (reader := getattr(source_of(dataset), 'VERSION', 1)) != 1:  # a later fact
        facts['reader'] = reader
    if is_own(dataset):
        unread = sorted({e.subject for e in task.exclude if e.dataset == dataset.name and not e.after_split})
        spec |= ({'unread': unread} if unread else {}) | ({'exclude_bad': True} if task.exclude_bad else {})
    return spec | {'code': PREPARATION, 'facts': facts}


def fingerprint(refs: list[RecordingRef]) -> str:
    """Names and fields of the recordings, relative names and sizes of their files, contents of tables and small ones:
    no long signal is read. Raises: RequestError for a file that may not be read."""
    names = [p for r in refs for p in r.files if os.path.exists(p)]
    base = os.path.commonpath(names) if len(names) > 1 else os.path.dirname(names[0]) if names else ''
    tables = [p for p in dict.fromkeys(names) if p.endswith(TABLES) or os.path.getsize(p) <= SMALL]
    try:
        content = {p: files.sha256_file(p) for p in tables if os.path.isfile(p)}
    except PermissionError as error:
        raise forbidden(error) from error
    facts = [(os.path.relpath(p, base), os.path.getsize(p), content.get(p, '')) for p in names]
    return spec_hash([[(r.name, r.fields) for r in refs], facts])[:8]


def locate(
    task: Task, dataset: Dataset, data_dir: Path | None, workdir: Path
) -> tuple[Path | None, list[RecordingRef]]:
    """The folder of a prepared set, and its recordings.

    Without raw files the newest set of the same spec serves (references are then empty); None: no such set.
    """
    refs = readable(task, dataset, find_recordings(dataset, data_dir))
    root, spec = workdir / 'prepared' / dataset.name, spec_hash(stored_spec(task, dataset))
    if refs:
        return root / f'{spec}-{fingerprint(refs)}', refs
    ready = [p for p in root.glob(f'{spec}-*') if (p / 'manifest.json').exists()]
    return (max(ready, key=lambda p: (p / 'manifest.json').stat().st_mtime) if ready else None), []


def readable(task: Task, dataset: Dataset, refs: list[RecordingRef]) -> list[RecordingRef]:
    """The recordings that are read: of a dataset of one's own not those that the task excludes. A published set holds
    all, since other tasks share it. Raises: RequestError where one's own data have no subject of that name."""
    if not is_own(dataset):
        return refs
    mine = [e for e in task.exclude if e.dataset == dataset.name]
    there = {r.subject for r in refs}
    for e in mine if refs else ():
        if e.subject not in there:
            raise unknown(f'subject of {dataset.name} to exclude', e.subject, there)
    out = {e.subject for e in mine if not e.after_split}
    return [r for r in refs if r.subject not in out]


def is_ready(folder: Path) -> bool:
    """True if the set has its manifest and every file in it has the size that the manifest says."""
    return not _lacking(folder)


def _lacking(folder: Path) -> list[str]:
    """Files of a set that are missing, unreadable, or of another size than the manifest says."""
    try:
        listed = files.read_json(folder / 'manifest.json')['files']
    except (FileNotFoundError, NotADirectoryError, RequestError):
        return ['manifest.json']
    return [n for n, f in listed.items() if not (folder / n).exists() or (folder / n).stat().st_size != f['bytes']]


def verify(folder: Path) -> None:
    """Read every file of a set once and compare it with the manifest. Raises RequestError that names a damaged one."""
    remedy = f'remove the folder {folder} and run the same command again: it is prepared anew'
    if not (folder / 'manifest.json').exists():
        raise RequestError(f'{folder}: not a prepared set (it has no manifest.json); {remedy}')
    manifest = files.read_json(folder / 'manifest.json')
    if manifest.pop('digest', None) != spec_hash(manifest):
        raise RequestError(f'{folder}/manifest.json: damaged (its content is not what was written); {remedy}')
    for name, facts in manifest['files'].items():
        found = files.sha256_file(folder / name) if (folder / name).exists() else None
        if found != facts['sha256']:
            what = 'missing' if found is None else 'damaged (its digest is not that of the manifest)'
            raise RequestError(f'{folder}/{name}: {what}; {remedy}')


def prepare(task: Task, dataset: Dataset, folder: Path, refs: list[RecordingRef], progress: Progress) -> None:
    """Make the prepared set in `folder`, or do nothing if it is there. A set that lacks a file is made anew.

    One process works, others wait for it.

    Args:
        task, dataset: as applied to each other.
        folder, refs: from `locate`.
        progress: called about twice a second; what it raises stops the work at once, finished recordings are kept.
    Raises: RequestError with every fault of every recording, or for a disk that cannot be written.
    """
    if is_ready(folder):
        return
    waiting = f'wait for another process that prepares {dataset.name}'
    stem = folder.name.partition('-')[0]
    if task.exclude_bad or task.exclude:  # what is finished serves with and without them
        stem = spec_hash(stored_spec(dataclasses.replace(task, exclude=(), exclude_bad=False), dataset))
    with files.locked(folder.with_name(f'{stem}.lock'), lambda: progress(waiting, 0, len(refs))):
        lacking = _lacking(folder)
        if not lacking:
            return
        if not refs:
            raise RequestError(
                f'{folder}: {", ".join(lacking)} missing or damaged, and no recordings of '
                f'{dataset.name} to prepare it anew; name their folder by --data_dir=DIR'
            )
        if len({r.name for r in refs}) < len(refs):
            names = [r.name for r in refs]
            twice = [r.where for r in refs if names.count(r.name) > 1]
            raise RequestError(f'{dataset.name}: one recording in several files: {", ".join(twice)}; keep one of them')
        again = f' again ({", ".join(lacking)} missing or damaged)' if (folder / 'manifest.json').exists() else ''
        parts, found = files.make_dir(folder.with_name(f'{stem}.parts')), refs
        refs = [r for r in refs if possible(r.fields, task.window)]
        what = f'prepare {dataset.name}{again}'
        try:
            made = _run(task, dataset, parts, refs, lambda done: progress(what, done, len(refs)))
        except BaseException:
            for half in parts.glob('*.tmp*'):  # of workers that were killed
                half.unlink(missing_ok=True)
            raise
        kept, notes = check_recording.judge(dataset, refs, made, exclude_bad=task.exclude_bad and is_own(dataset))
        cut = [(refs[i], made[i]) for i in kept if made[i]['n_windows']]
        if not cut:
            types = sorted({str(t) for p in made for t in p['events']['type']})
            fit = ' that fit window.where' if task.window.where else ''
            raise RequestError(
                f'{dataset.name}: no recording holds an event that makes a window; the task asks for events of type '
                f'{task.window.trigger}{fit}, and there are {", ".join(types) or "none"}'
            )
        _assemble(task, dataset, folder, parts, cut, notes, found)
        shutil.rmtree(parts)


def _run(
    task: Task, dataset: Dataset, folder: Path, refs: list[RecordingRef], progress: Callable[[int], None]
) -> list[Converted]:
    """The parts of all recordings; those that are not there yet are made in parallel."""
    lists: dict[tuple[str, ...], list[str]] = {}
    parts = [_sharing(finished(r, folder), lists) for r in refs]
    todo = [i for i, p in enumerate(parts) if p is None]
    progress(len(refs) - len(todo))
    if todo:
        largest = max((os.path.getsize(p) for i in todo for p in refs[i].files if os.path.exists(p)), default=0)
        with workers(len(todo), MEMORY + 5 * largest) as pool:
            try:
                with sheltered():
                    jobs = {pool.submit(make, task, dataset, refs[i], folder): i for i in todo}
                    pool.submit(int)  # a death is seen only in workers that were there before the last submit
                while jobs:
                    for job in wait(jobs, EVERY, FIRST_COMPLETED).done:
                        parts[jobs.pop(job)] = _sharing(job.result(), lists)
                    progress(len(refs) - len(jobs))
            except BrokenProcessPool:
                done = sum(p is not None for p in parts)
                raise RequestError(
                    f'{dataset.name}: a process that prepared recordings was killed, most likely because memory ran '
                    f'out; {done} of {len(refs)} recordings are done and kept: free memory, then run '
                    'the same command again'
                ) from None
    return [p or {} for p in parts]


def _sharing(part: Converted | None, lists: dict[tuple[str, ...], list[str]]) -> Converted | None:
    """A part whose lists of channels are those of `lists` that equal them: thousands of parts may name thousands."""
    names = {k: part[k] for k in ('channels', 'ch_names') if k in part} if part else {}
    return part and part | {k: lists.setdefault(tuple(v), list(v)) for k, v in names.items()}


def _assemble(
    task: Task,
    dataset: Dataset,
    folder: Path,
    parts: Path,
    kept: list[tuple[RecordingRef, Converted]],
    notes: list[str],
    found: list[RecordingRef],
) -> None:
    """Give the shards their final names, write index, TFDS metadata, and the manifest last."""
    name = dataset.name.lower()
    shards = [f'{name}-{SPLIT}.array_record-{i:05d}-of-{len(kept):05d}' for i in range(len(kept))]
    with files.explained(folder, 1 << 20):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        for shard, (ref, _) in zip(shards, kept, strict=True):
            files.link_or_copy(parts / f'{ref.name}.array_record', folder / shard)
        files.write_atomic(folder / 'index.npz', files.npz_bytes(index([p for _, p in kept])))
        size = sum((folder / s).stat().st_size for s in shards)
        write_metadata(folder, name, [p['n_windows'] for _, p in kept], size)
    ch_names = list(dict.fromkeys(c for _, p in kept for c in p['ch_names']))  # union, in order of first sight
    names = [*shards, 'index.npz', 'features.json', 'dataset_info.json']
    manifest = {
        'schema': 1,
        'dataset': dataset.name,
        'simulated': dataset.simulated,
        'spec': stored_spec(task, dataset),
        'sfreq': task.signal.sfreq,
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
    manifest['digest'] = spec_hash(manifest)
    files.write_atomic(folder / 'manifest.json', json.dumps(manifest, indent=1).encode())
