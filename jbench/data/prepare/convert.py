"""One recording of a prepared set: read, check, process, cut and store it; what a worker does.

A part is a shard `<recording>.array_record`, and `<recording>.json`, written last, that describes it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.data import marks, recording
from jbench.data.prepare import amplitude, bad_channels, check_recording, codec
from jbench.data.prepare.check_recording import Converted
from jbench.data.prepare.signal import process
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.source import source_of
from jbench.data.windows import chosen, n_samples, starts, triggers, windows
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Task
from jbench.targets import collect


def _source(ref: RecordingRef) -> list[list[Any]]:
    """What tells whether a recording is still the one that a part was made of."""
    stats = [(p, os.stat(p)) for p in ref.files if os.path.exists(p)]
    return [[os.path.basename(p), s.st_size, s.st_mtime_ns] for p, s in stats] + [list(f) for f in ref.fields]


def finished(ref: RecordingRef, folder: Path) -> Converted | None:
    """The description of a finished part, if its shard is whole and its recording did not change since; one that was
    refused beside the others is read anew, since its reader may have changed."""
    path, shard = folder / f'{ref.name}.json', folder / f'{ref.name}.array_record'
    if not path.exists() or not shard.exists():
        return None
    part: Converted = files.read_json(path)
    if part['source'] != _source(ref) or part.get('odd'):
        return None
    return part if part['sha256'] == files.sha256_file(shard) else None


def make(task: Task, dataset: Dataset, ref: RecordingRef, folder: Path) -> Converted:
    """Read, check, process, cut and store one recording; its part is described by a JSON file written last."""
    import mne

    mne.set_log_level('ERROR')
    warnings.simplefilter('ignore')
    source = _source(ref)
    try:
        read = source_of(dataset).read(ref)
        if isinstance(read, Finding):
            return {'findings': [read]}
        if 8 * read.raw.n_times * len(read.raw.ch_names) <= recording.BLOCK:
            read.raw.load_data()  # once, rather than at each look
        findings, loud = check_recording.examine(read, dataset, ref.where)
        if loud is not None and not amplitude.within(loud, dataset, amplitude.FAR):
            findings.append(amplitude.wrong(loud, dataset, ref.where))  # whatever the others have
        findings += bad_channels.told(read.raw, dataset, task.signal.bads, ref.where)
        if any(f.level == 'fatal' for f in findings):
            return {'findings': findings}
    except (RequestError, MemoryError) as error:
        raise RequestError(f'{ref.where}: {str(error) or "memory ran out"}') from error
    except Exception as error:  # a reader may fail in any way on a broken file: name the file, and check the others
        return {'findings': [check_recording.unreadable(ref, error)]}
    try:
        part, data = _process(task, dataset, ref, read)
    except MemoryError as error:
        raise RequestError(f'{ref.where}: memory ran out') from error
    except Exception as error:  # what the events or the filters do not allow
        return {'findings': [check_recording.unfit(ref, error)]}
    path = folder / f'{ref.name}.array_record'
    largest = _store(task, ref, path, data, part['windows'])
    part |= {
        'findings': findings,
        'amplitude': loud,
        'odd': loud is not None and not amplitude.within(loud, dataset),  # the others decide
        'source': source,
        'sha256': files.sha256_file(path),
        'error_bound': float(largest * codec.ERROR),
    }
    files.write_atomic(folder / f'{ref.name}.json', json.dumps(part).encode())
    return part


def _store(task: Task, ref: RecordingRef, path: Path, data: np.ndarray, cuts: dict[str, list[Any]]) -> np.float32:
    """Cut and write the windows of a signal [C, T], one at a time; returns the largest magnitude in them."""
    largest, onsets = np.float32(0), cuts['onset']

    def encoded() -> Iterator[bytes]:
        nonlocal largest
        text = {'subject': ref.subject, 'session': ref.session, 'run': ref.run}
        cut = windows(data, task.signal.sfreq, onsets, task.window, task.signal.baseline)
        for k, (window, target) in enumerate(zip(cut, cuts['target'], strict=True)):
            largest = max(largest, np.abs(window).max())
            yield codec.encode_window(window, k, {**text, 'target': target})

    n_values = len(onsets) * len(data) * n_samples(task.window.duration, task.signal.sfreq)
    codec.write_shard(path, encoded(), 2 * n_values)
    return largest


def _process(task: Task, dataset: Dataset, ref: RecordingRef, read: Recording) -> tuple[Converted, np.ndarray]:
    """What is known of a recording before its windows are cut, and its signal [C, T] ready for that."""
    raw, channels = read.raw, recording.data_channels(read.raw, dataset)
    native = {
        'sfreq': float(raw.info['sfreq']),
        'seconds': raw.n_times / raw.info['sfreq'],
        'n_chans': len(channels),
        'digest': recording.digest(read),
    }
    table = chosen(recording.event_table(read, ref, dataset), task.window)  # by what the whole recording is
    if task.signal.crop is not None and task.window.trigger in table['type']:
        table = recording.crop(raw, table, task.signal.crop)
    rows = [
        (i, t)
        for i in triggers(table, task.window, task.target)
        for t in starts(float(table['onset'][i]), float(table['duration'][i]), task.window)
    ]
    taken = marks.overlapped(table, task, [t for _, t in rows])
    rows = [row for row, mark in zip(rows, taken, strict=True) if not mark]
    if rows and task.window.duration > raw.n_times / native['sfreq']:
        raise RequestError(f'a window of {task.window.duration:g} s is longer than the recording')
    targets = [json.dumps(collect(task.target, table, i, t, task.window.duration)) for i, t in rows]
    data, ch_names = process(raw, task.signal) if rows else (np.zeros((0, 0), np.float32), ())
    part = {
        'native': native,
        'channels': channels,
        'ch_names': ch_names,
        'events': {k: v.tolist() for k, v in table.items()},
        'n_windows': len(rows),
        **marks.counted(table, taken),
        'windows': {'event': [i for i, _ in rows], 'onset': [t for _, t in rows], 'target': targets},
    }
    return part, data
