"""Prepared sets: read, check, filter, cut and store each recording once; only a manifest means "present".

A set lies in `<workdir>/prepared/<dataset>/<spec hash>-<tree fingerprint>/`: one array-record shard a recording,
`index.npz` (the event table and the windows), TFDS metadata, and `manifest.json`, written last. Its bytes depend on
the recordings, the task and the versions of the libraries alone. While it is being made, finished recordings wait
beside it in `<spec hash>.parts/`, so that an interrupted preparation goes on where it was, and a repaired file costs
no more than itself.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from jbench import files
from jbench.data.discover import find_recordings, refuse_absent
from jbench.data.prepare import band, check_recording, raw_files
from jbench.data.prepare.assemble import assemble
from jbench.data.prepare.check_recording import Converted
from jbench.data.prepare.convert import finished, make
from jbench.data.prepare.raw_files import fingerprint
from jbench.data.prepare.siblings import Other, Shared, held, same_signal
from jbench.data.prepare.workers import n_workers, sheltered, workers
from jbench.data.recording import RecordingRef
from jbench.data.source import is_own, source_of
from jbench.data.sources import mixture
from jbench.data.windows import possible
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import spec_hash, to_json
from jbench.spec.overrides import override
from jbench.spec.task import Task
from jbench.stores import sets

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
EVERY = 0.5  # s between looks at the stop flag
MEMORY = 300 << 20  # bytes that a worker needs beside its file's fivefold (some readers make float64 of int16)
IN_PIECES = ('.edf', '.bdf', '.gdf', '.fif', '.eeg', '.fdt', '.cnt', '.sqd', '.con', '.meg4')  # however large
CHANNEL = 4 << 30  # bytes that a worker needs at most for these: one channel of 24 h at 512 Hz, while it is filtered
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
    if task.window.jitter is None:  # likewise
        del spec['window']['jitter']
    if task.signal.reference == 'none':
        del spec['signal']['reference']
    if not task.signal.regions:
        del spec['signal']['regions']
    if differ := mixture.differences(task, dataset):
        spec['members'] = to_json(differ)
    facts = {name: to_json(getattr(dataset, name)) for name in FACTS}
    if (reader := getattr(source_of(dataset), 'VERSION', 1)) != 1:  # a later fact
        facts['reader'] = reader
    if is_own(dataset):
        unread = sorted({e.subject for e in task.exclude if e.dataset == dataset.name and not e.after_split})
        spec |= ({'unread': unread} if unread else {}) | ({'exclude_bad': True} if task.exclude_bad else {})
    return spec | {'code': PREPARATION, 'facts': facts}


def locate(
    task: Task, dataset: Dataset, data_dir: Path | None, workdir: Path
) -> tuple[Path | None, list[RecordingRef]]:
    """The folder of a prepared set, and its recordings.

    Without raw files the newest set of the same spec serves (references are then empty); None: no such set. Where some
    were deleted on request, the set that was made of all of them serves. Of a mixture serves, too, what was made of
    those members that are there, and of others (references are then empty).

    Raises: RequestError for a member that is not there, where no set serves.
    """
    found = find_recordings(dataset, data_dir)
    refs, lacking = readable(task, dataset, found), mixture.lacking(dataset, found)
    root, spec = workdir / 'prepared' / dataset.name, spec_hash(stored_spec(task, dataset))
    if refs and not lacking:
        folder = root / f'{spec}-{fingerprint(refs)}'
        if data_dir is None or is_ready(folder):
            return folder, refs
        before = [root / f'{spec}-{mark}' for mark in raw_files.served(data_dir / dataset.name, refs)]
        if dataset.source == mixture.__name__:
            before = raw_files.sets_of(dataset, root.glob(f'{spec}-*'), data_dir, refs)
        return next(filter(is_ready, before), folder), refs
    sets.look(workdir, dataset.name)
    if ready := raw_files.sets_of(dataset, root.glob(f'{spec}-*'), data_dir, refs):
        return ready[0], []
    places = [(one, (data_dir or Path('<data_dir>')) / one.name) for one in lacking]
    for one, place in places:
        raw_files.refuse_rest(task, dataset, one, place, refs)
    if places:
        refuse_absent(dataset, *places[0])
    return None, []


def readable(task: Task, dataset: Dataset, refs: list[RecordingRef]) -> list[RecordingRef]:
    """The recordings that are read: of a dataset of one's own not those that the task excludes. A published set holds
    all, since other tasks share it. Raises: RequestError where one's own data have no subject of that name."""
    if not is_own(dataset):
        return refs
    mine = [e for e in task.exclude if e.dataset == dataset.name]
    there = {r.subject for r in refs}
    for e in mine if refs and not mixture.lacking(dataset, refs) else ():
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


def prepare(
    task: Task,
    dataset: Dataset,
    folder: Path,
    refs: list[RecordingRef],
    progress: Progress,
    others: Sequence[Other] = (),
    root: Path | None = None,
) -> None:
    """Make the prepared set in `folder`, or do nothing if it is there. A set that lacks a file is made anew.

    One process works, others wait for it.

    Args:
        task, dataset: as applied to each other.
        folder, refs: from `locate`.
        progress: called about twice a second; what it raises stops the work at once, finished recordings are kept.
        others: further tasks on this dataset, as applied to it. Those that share the signal get their parts of each
            recording that is read here, so that it is read and filtered once; each is then prepared as this one.
        root: the folder of the dataset, whose recordings nobody deletes meanwhile.
    Raises: RequestError with every fault of every recording, or for a disk that cannot be written.
    """
    if is_ready(folder):
        return
    waiting = f'wait for another process that prepares {dataset.name}'
    stem = _stem(task, dataset, folder)
    wait_on = partial(progress, waiting, 0, len(refs))
    places = [(one, root.with_name(one.name)) for one in mixture.parts(dataset)] if root else []
    with raw_files.read([place for _, place in places], wait_on), files.locked(lock_of(task, dataset, folder), wait_on):
        lacking = _lacking(folder)
        if not lacking:
            return
        for one, place in places:
            raw_files.refuse_rest(task, dataset, one, place, refs)
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
        members = raw_files.of_members(dataset, refs)
        refs = [r for r in refs if possible(r.fields, mixture.asked(task, dataset, r).window)]
        what = f'prepare {dataset.name}{again}'
        try:
            near = [(o, f) for o in others if (f := o.folder) and not is_ready(f) and same_signal(task, o.task)]
            with held((o, f.with_name(_stem(o.task, dataset, f))) for o, f in near) as shared:
                made = _run(task, dataset, parts, refs, shared, lambda done: progress(what, done, len(refs)))
        except BaseException:
            for half in parts.glob('*.tmp*'):  # of workers that were killed
                half.unlink(missing_ok=True)
            raise
        kept, notes = check_recording.judge(dataset, refs, made, exclude_bad=task.exclude_bad and is_own(dataset))
        cut = [(refs[i], made[i]) for i in kept if made[i]['n_windows']]
        notes += band.told(task.signal, [part['native']['sfreq'] for _, part in cut])
        if not cut:
            types = sorted({str(t) for p in made for t in p['events']['type']})
            fit = ' that fit window.where' if task.window.where else ''
            raise RequestError(
                f'{dataset.name}: no recording holds an event that makes a window; the task asks for events of type '
                f'{task.window.trigger}{fit}, and there are {", ".join(types) or "none"}'
            )
        assemble(stored_spec(task, dataset), dataset, folder, parts, cut, notes, found, members)
        shutil.rmtree(parts)


def lock_of(task: Task, dataset: Dataset, folder: Path) -> Path:
    """The file whose lock is held by the process that makes a set."""
    return folder.with_name(f'{_stem(task, dataset, folder)}.lock')


def _stem(task: Task, dataset: Dataset, folder: Path) -> str:
    """What the lock and the parts of a set are called by: what is finished serves with and without what is left out."""
    if not (task.exclude_bad or task.exclude):
        return folder.name.partition('-')[0]
    return spec_hash(stored_spec(dataclasses.replace(task, exclude=(), exclude_bad=False), dataset))


def _run(
    task: Task,
    dataset: Dataset,
    folder: Path,
    refs: list[RecordingRef],
    shared: Sequence[Shared],
    progress: Callable[[int], None],
) -> list[Converted]:
    """The parts of all recordings; those that are not there yet are made in parallel."""
    lists: dict[tuple[str, ...], list[str]] = {}
    parts = [_sharing(finished(r, folder), lists) for r in refs]
    todo = [i for i, p in enumerate(parts) if p is None]
    progress(len(refs) - len(todo))
    if todo:
        each = needed(refs[i] for i in todo)
        more = {i: [(s.task, s.parts) for s in shared if s.lacks(refs[i])] for i in todo}
        n = n_workers(len(todo), each)
        with workers(n, each) as pool:
            try:
                with sheltered():
                    jobs = {pool.submit(make, task, dataset, refs[i], folder, more[i], n): i for i in todo}
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


def needed(refs: Iterable[RecordingRef]) -> int:
    """Bytes of memory that a worker needs for the largest of some recordings."""
    return MEMORY + max((_held(p) for r in refs for p in r.files if os.path.exists(p)), default=0)


def _held(path: str) -> int:
    """Bytes of memory that a file may take while it is prepared."""
    size = 5 * os.path.getsize(path)
    return min(size, CHANNEL) if path.lower().endswith(IN_PIECES) else size


def _sharing(part: Converted | None, lists: dict[tuple[str, ...], list[str]]) -> Converted | None:
    """A part whose lists of channels are those of `lists` that equal them: thousands of parts may name thousands."""
    names = {k: part[k] for k in ('channels', 'ch_names') if k in part} if part else {}
    return part and part | {k: lists.setdefault(tuple(v), list(v)) for k, v in names.items()}
