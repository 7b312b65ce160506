"""Prepared sets: read, check, filter, cut and store each recording once; only a manifest means "present".

A set lies in `<workdir>/prepared/<dataset>/<spec hash>-<tree fingerprint>/`: one array-record shard a recording,
`index.npz` (the event table and the windows), TFDS metadata, and `manifest.json`, written last. While it is being
made, finished recordings wait in `parts/`, so an interrupted preparation goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal as signals
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from jbench.data import fs, records
from jbench.data.recording import Finding, Recording, RecordingRef, check, digest
from jbench.data.signal import process
from jbench.data.targets import collect
from jbench.data.windows import starts, triggers, windows
from jbench.spec import Dataset, RequestError, Task, spec_hash, to_json

PREPARATION = 1  # raise when the code below, signal.py, windows.py or records.py changes what is stored
SHIFT = 20  # id of a window = recording << 20 | window
Progress = Callable[[str, int, int], None]  # (what, done, total)
EVENT_TYPE = {'eeg': 'Eeg', 'meg': 'Meg', 'emg': 'Emg', 'fmri': 'Fmri'}  # the event that covers a whole recording


def find_recordings(dataset: Dataset, data_dir: Path | None) -> list[RecordingRef]:
    """What lies on the machine, from the file tree alone; [] if nothing does."""
    if dataset.source is None:
        return []
    root = (data_dir / dataset.name) if data_dir else Path('absent')
    if not dataset.simulated and not root.is_dir():
        return []
    return import_module(dataset.source).recordings(dataset, root)


def stored_spec(task: Task) -> dict[str, Any]:
    """The part of a task that decides what is stored (the clamp is applied when windows are loaded)."""
    signal = {k: v for k, v in to_json(task.signal).items() if k != 'clamp'}
    return {'signal': signal, 'window': to_json(task.window), 'target': to_json(task.target), 'code': PREPARATION}


def fingerprint(refs: list[RecordingRef]) -> str:
    """Relative names and sizes of the files: nothing is read."""
    names = [p for r in refs for p in r.files if os.path.exists(p)]
    base = os.path.commonpath(names) if len(names) > 1 else os.path.dirname(names[0]) if names else ''
    return spec_hash([[r.name for r in refs], [(os.path.relpath(p, base), os.path.getsize(p)) for p in names]])[:8]


def locate(task: Task, dataset: Dataset, data_dir: Path | None, workdir: Path) -> tuple[Path | None, list[RecordingRef]]:
    """The folder of a prepared set, and its recordings.

    Without raw files the newest complete set of the same spec serves (references are then empty); None: no such set.
    """
    refs = find_recordings(dataset, data_dir)
    root, spec = workdir / 'prepared' / dataset.name, spec_hash(stored_spec(task))
    if refs:
        return root / f'{spec}-{fingerprint(refs)}', refs
    ready = [p for p in root.glob(f'{spec}-*') if (p / 'manifest.json').exists()]
    return (max(ready, key=lambda p: (p / 'manifest.json').stat().st_mtime) if ready else None), []


def is_ready(folder: Path) -> bool:
    """True if the set has its manifest and every file in it has the size that the manifest says."""
    if not (folder / 'manifest.json').exists():
        return False
    files = fs.read_json(folder / 'manifest.json')['files']
    return all((folder / n).exists() and (folder / n).stat().st_size == f['bytes'] for n, f in files.items())


def prepare(task: Task, dataset: Dataset, folder: Path, refs: list[RecordingRef], progress: Progress) -> None:
    """Make the prepared set in `folder`, or do nothing if it is there.

    One process works, others wait for it. Raises RequestError with every finding of every recording.
    """
    if is_ready(folder):
        return
    fs.make_dir(folder / 'parts')
    with fs.locked(folder.with_suffix('.lock')):
        if is_ready(folder):
            return
        fs.make_dir(folder / 'parts')
        parts = _run(task, dataset, folder / 'parts', refs, progress)
        kept, notes = _judge(dataset, refs, parts)
        _assemble(task, dataset, folder, kept, notes)
        shutil.rmtree(folder / 'parts')


def _run(task: Task, dataset: Dataset, parts: Path, refs: list[RecordingRef], progress: Progress) -> list[dict[str, Any]]:
    """Prepare every recording that is not yet among the parts, in parallel processes that never import jax."""
    todo = [r for r in refs if _part(parts, r) is None]
    done = len(refs) - len(todo)
    progress(f'prepare {dataset.name}', done, len(refs))
    failed: dict[str, dict[str, Any]] = {}
    with _workers(len(todo)) as pool:
        jobs = {pool.submit(_prepare_one, task, dataset, ref, str(parts)): ref for ref in todo}
        try:
            for job in as_completed(jobs):
                part = job.result()
                if part['fatal']:
                    failed[jobs[job].name] = part
                done += 1
                progress(f'prepare {dataset.name}', done, len(refs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [failed.get(r.name) or _part(parts, r) or {} for r in refs]


@contextlib.contextmanager
def _workers(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned workers with one numerical thread each; they ignore Ctrl-C and end with their parent."""
    limits = {k: '1' for k in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')}
    before = {k: os.environ.get(k) for k in limits}
    os.environ.update(limits)
    n = max(1, min(n_jobs, len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1))
    try:
        with ProcessPoolExecutor(n, mp_context=multiprocessing.get_context('spawn'), initializer=_start_worker) as pool:
            yield pool
    finally:
        for k, v in before.items():
            os.environ.pop(k, None) if v is None else os.environ.__setitem__(k, v)


def _start_worker() -> None:
    signals.signal(signals.SIGINT, signals.SIG_IGN)
    signals.signal(signals.SIGTERM, signals.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def _part(parts: Path, ref: RecordingRef) -> dict[str, Any] | None:
    """The description of a finished part, if its shard is whole."""
    path = parts / f'{ref.name}.json'
    if not path.exists():
        return None
    part = fs.read_json(path)
    shard = parts / f'{ref.name}.array_record'
    whole = shard.exists() and fs.sha256_file(shard) == part['sha256']
    return part if whole else None


def _prepare_one(task: Task, dataset: Dataset, ref: RecordingRef, folder: str) -> dict[str, Any]:
    """Read, check, process, cut and store one recording; its part is described by a JSON file written last."""
    import mne

    mne.set_log_level('ERROR')
    where = ref.files[0] if ref.files else f'{dataset.name}/{ref.name}'
    try:
        recording = import_module(dataset.source or '').read(ref)
    except Exception as error:  # a reader may fail in any way on a broken file: name the file, and check the others
        recording = Finding(where, 'the file must be readable', f'{type(error).__name__}: {error}', 'a whole recording',
                            'the file may be damaged: fetch it again')
    findings = [recording] if isinstance(recording, Finding) else check(recording, dataset, where)
    if any(f.level == 'fatal' for f in findings):
        return {'fatal': True, 'findings': [list(f) for f in findings]}
    native = {'sfreq': float(recording.raw.info['sfreq']), 'seconds': recording.raw.n_times / recording.raw.info['sfreq'],
              'n_chans': len(recording.raw.get_channel_types(picks='data')), 'digest': digest(recording)}
    table = event_table(recording, ref, dataset)
    try:
        rows = [(i, t) for i in triggers(table, task.window, task.target)
                for t in starts(float(table['onset'][i]), float(table['duration'][i]), task.window)]
    except ValueError as error:
        finding = Finding(where, 'events must make windows', str(error), 'as the task says', 'check the event file')
        return {'fatal': True, 'findings': [list(finding)]}
    targets = [json.dumps(collect(task.target, table, i, t, task.window.duration)) for i, t in rows]
    data, ch_names = process(recording.raw, task.signal)
    x = windows(data, task.signal.sfreq, [t for _, t in rows], task.window, task.signal.baseline)
    return _write_part(Path(folder), ref, x, {
        'fatal': False, 'findings': [list(f) for f in findings], 'native': native, 'ch_names': list(ch_names),
        'events': {k: v.tolist() for k, v in table.items()}, 'n_windows': len(rows),
        'windows': {'event': [i for i, _ in rows], 'onset': [t for _, t in rows], 'target': targets},
        'error_bound': float(np.abs(x).max() / (2 * records.INT16)) if len(x) else 0.0,
    })


def event_table(recording: Recording, ref: RecordingRef, dataset: Dataset) -> dict[str, np.ndarray]:
    """All events of one recording in canonical order, the one that covers it whole included.

    Rows by onset, then longest first; label columns are text, '' where a row has none.
    """
    events, raw = recording.events, recording.raw
    n = len(events['onset'])
    onset = np.concatenate([[0.0], events['onset']])
    duration = np.concatenate([[raw.n_times / raw.info['sfreq']], events['duration']])
    table = {'onset': onset, 'duration': duration,
             'type': np.concatenate([[EVENT_TYPE[dataset.device]], events['type']]).astype(str)}
    for name in events:
        if name not in table:
            table[name] = np.concatenate([[''], events[name].astype(str)])
    for name, value in (('subject', ref.subject), ('session', ref.session), ('run', ref.run), *ref.fields):
        own = table.get(name, np.full(n + 1, ''))
        table[name] = np.where(own == '', value, own).astype(str)
    order = np.lexsort((-duration, onset))
    return {k: v[order] for k, v in table.items()}


def _write_part(folder: Path, ref: RecordingRef, x: np.ndarray, part: dict[str, Any]) -> dict[str, Any]:
    """The shard (ids within the recording; the text columns make it readable alone), then its description."""
    from array_record.python.array_record_module import ArrayRecordWriter

    path = folder / f'{ref.name}.array_record'
    temp = path.with_suffix(f'.tmp{os.getpid()}')
    with fs.explained(temp, x.nbytes // 2):
        writer = ArrayRecordWriter(str(temp), 'group_size:1,uncompressed')
        for k, window in enumerate(x):
            text = {'subject': ref.subject, 'session': ref.session, 'run': ref.run, 'target': part['windows']['target'][k]}
            writer.write(records.encode_window(window, k, text))
        writer.close()
        os.replace(temp, path)
    part['sha256'] = fs.sha256_file(path)
    fs.write_atomic(folder / f'{ref.name}.json', json.dumps(part).encode())
    return part


def _judge(dataset: Dataset, refs: list[RecordingRef], parts: list[dict[str, Any]]) -> tuple[list, list[str]]:
    """The recordings to keep, and what the result must say. Raises RequestError listing every fatal finding.

    A deviation from the declared facts is a partial dataset if all recordings share it; a file that alone differs
    from the others is refused. A recording that stands under two names is kept once.
    """
    findings = [[Finding(*f) for f in p['findings']] for p in parts]
    deviations = [{(f.rule, f.found) for f in fs_ if f.level == 'deviation'} for fs_ in findings]
    usual = max(deviations, key=deviations.count)
    refused = [f for fs_ in findings for f in fs_
               if f.level == 'fatal' or (f.level == 'deviation' and (f.rule, f.found) not in usual)]
    if refused:
        shown = '\n'.join(f'  {f}' for f in refused)
        raise RequestError(f'{dataset.name}: {len(refused)} findings in {len(refs)} recordings (all were checked):\n{shown}')
    notes = sorted({f'partial: {f.rule}: found {f.found}, declared {f.expected}' for fs_ in findings for f in fs_
                    if f.level == 'deviation'})
    notes += [f'{f.rule}: {f.where.rsplit("/", 1)[-1]}: {f.found}' for fs_ in findings for f in fs_ if f.level == 'note']
    kept, seen = [], {}
    for ref, part in zip(refs, parts, strict=True):
        first = seen.setdefault(part['native']['digest'], ref)
        if first is not ref:
            name = dict(ref.fields).get('record', ref.run)
            notes.append(f'duplicate: recording {name} of subject {ref.subject} equals that of subject {first.subject}, '
                         'sample for sample; kept once')
        elif part['n_windows']:
            kept.append((ref, part))
    if not kept:
        raise RequestError(f'{dataset.name}: no recording holds an event that makes a window; check task and event types')
    return kept, notes


def _assemble(task: Task, dataset: Dataset, folder: Path, kept: list, notes: list[str]) -> None:
    """Give the shards their final names, write index, TFDS metadata, and the manifest last."""
    from jbench.data.tfds import write_metadata

    name = dataset.name.lower()
    shards = [f'{name}-all.array_record-{i:05d}-of-{len(kept):05d}' for i in range(len(kept))]
    for shard, (ref, _) in zip(shards, kept, strict=True):
        fs.link_or_copy(folder / 'parts' / f'{ref.name}.array_record', folder / shard)
    fs.write_atomic(folder / 'index.npz', fs.npz_bytes(_index([p for _, p in kept])))
    write_metadata(folder, name, [p['n_windows'] for _, p in kept], sum((folder / s).stat().st_size for s in shards))
    ch_names = list(dict.fromkeys(c for _, p in kept for c in p['ch_names']))  # union, in order of first sight
    files = [*shards, 'index.npz', 'features.json', 'dataset_info.json']
    manifest = {
        'schema': 1, 'dataset': dataset.name, 'simulated': dataset.simulated, 'spec': stored_spec(task),
        'sfreq': task.signal.sfreq, 'ch_names': ch_names, 'notes': notes,
        'n_windows': sum(p['n_windows'] for _, p in kept),
        'error_bound': max(p['error_bound'] for _, p in kept),
        'subjects': {'present': list(dict.fromkeys(r.subject for r, _ in kept)), 'declared': dataset.n_subjects},
        'recordings': [{'subject': r.subject, 'session': r.session, 'run': r.run, 'shard': s, 'ch_names': p['ch_names'],
                        'n_windows': p['n_windows'], **p['native']}
                       for s, (r, p) in zip(shards, kept, strict=True)],
        'files': {f: {'bytes': (folder / f).stat().st_size, 'sha256': fs.sha256_file(folder / f)} for f in files},
    }
    fs.write_atomic(folder / 'manifest.json', json.dumps(manifest, indent=1).encode())


def _index(parts: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """The event table (`event.<column>`) and the windows (`window.<column>`) of the whole set."""
    columns = list(dict.fromkeys(c for p in parts for c in p['events']))
    out: dict[str, np.ndarray] = {}
    sizes = [len(p['events']['onset']) for p in parts]
    out['event.recording'] = np.repeat(np.arange(len(parts)), sizes)
    for c in columns:
        out[f'event.{c}'] = np.concatenate([p['events'].get(c, [''] * n) for p, n in zip(parts, sizes, strict=True)])
    first = np.cumsum([0, *sizes[:-1]])
    out['window.event'] = np.concatenate([f + np.array(p['windows']['event'], int) for f, p in zip(first, parts, strict=True)])
    out['window.onset'] = np.concatenate([p['windows']['onset'] for p in parts])
    out['window.target'] = np.concatenate([p['windows']['target'] for p in parts])
    out['window.id'] = np.concatenate([(i << SHIFT) + np.arange(p['n_windows']) for i, p in enumerate(parts)])
    return out
