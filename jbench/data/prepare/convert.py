"""One recording of a prepared set: read, check, process, cut and store it; what a worker does.

A part is a shard `<recording>.array_record`, and `<recording>.json`, written last, that describes it. Tasks that differ
in windows and targets alone share what is read and filtered: each gets a part of its own.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from jbench import files
from jbench.data import marks, recording
from jbench.data.prepare import amplitude, angles, bad_channels, check_recording, codec
from jbench.data.prepare.check_recording import Converted
from jbench.data.prepare.rows import Rows
from jbench.data.prepare.signal import process
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.source import source_of
from jbench.data.sources import mixture
from jbench.data.windows import chosen, n_samples, starts, triggers, windows
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Angles, SignalSpec, Task
from jbench.targets import collect, of


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


def make(
    task: Task,
    dataset: Dataset,
    ref: RecordingRef,
    folder: Path,
    others: Sequence[tuple[Task, Path]] = (),
    beside: int = 1,
) -> Converted:
    """Read, check, process, cut and store one recording; its part is described by a JSON file written last.

    Args:
        task, dataset: as applied to each other.
        ref: the recording.
        folder: of the parts.
        others: tasks that ask for the same signal, and the folders of their parts. What fails for one of them alone is
            left to its own preparation.
        beside: how many processes do so at once, this one included: they share the disk.
    """
    import mne

    from jbench.data.prepare.by_channel import laid_out

    mne.set_log_level('ERROR')
    warnings.simplefilter('ignore')
    source, reader = _source(ref), source_of(dataset)
    task, others = mixture.asked(task, dataset, ref), [(mixture.asked(t, dataset, ref), at) for t, at in others]
    dataset = mixture.member(dataset, ref)
    try:
        read = reader.read(ref)
        if isinstance(read, Finding):
            return {'findings': [read]}
        if 8 * read.raw.n_times * len(read.raw.ch_names) <= recording.BLOCK:
            read.raw.load_data()  # once, rather than at each look
        read = read._replace(raw=laid_out(read.raw, folder, beside))
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
        whole = _Whole(dataset, ref, read, folder)
        part, data = _process(task, whole)
    except MemoryError as error:
        raise RequestError(f'{ref.where}: memory ran out') from error
    except Exception as error:  # what the events or the filters do not allow
        return {'findings': [check_recording.unfit(ref, error)]}
    facts = {
        'findings': findings,
        'amplitude': loud,
        'odd': loud is not None and not amplitude.within(loud, dataset),  # the others decide
        'source': source,
    }
    made = _store(task, ref, folder, data, part | facts)
    for other, place in others:
        try:
            part, data = _process(other, whole)
        except Exception:  # its own preparation says what
            continue
        _store(other, ref, place, data, part | facts)
    return made


def _store(task: Task, ref: RecordingRef, folder: Path, data: np.ndarray | Rows, part: Converted) -> Converted:
    """Cut and write the windows of a signal [C, T], one at a time, then the description of the part, which is
    returned."""
    path, largest, cuts = folder / f'{ref.name}.array_record', np.float32(0), part['windows']

    def encoded() -> Iterator[bytes]:
        nonlocal largest
        text = {'subject': ref.subject, 'session': ref.session, 'run': ref.run}
        cut = windows(data, task.signal.sfreq, cuts['onset'], task.window, task.signal.baseline)
        for k, (window, target) in enumerate(zip(cut, cuts['target'], strict=True)):
            largest = max(largest, np.abs(window).max())
            yield codec.encode_window(window, k, {**text, 'target': target})

    n_values = len(cuts['onset']) * len(data) * n_samples(task.window.duration, task.signal.sfreq)
    codec.write_shard(path, encoded(), 2 * n_values)
    part |= {'sha256': files.sha256_file(path), 'error_bound': float(largest * codec.ERROR)}
    if of(task.target.kind).measured:  # they may be large, and lie in the shard
        part['windows'] = {k: v for k, v in cuts.items() if k != 'target'}
    files.write_atomic(folder / f'{ref.name}.json', json.dumps(part).encode())
    return part


class _Whole:
    """A checked recording, whose signal is filtered once for all tasks that ask for it."""

    def __init__(self, dataset: Dataset, ref: RecordingRef, read: Recording, folder: Path) -> None:
        self.raw, self.folder = read.raw, folder
        self.channels = recording.data_channels(read.raw, dataset)
        self.seconds = read.raw.n_times / read.raw.info['sfreq']
        self.native = {
            'sfreq': float(read.raw.info['sfreq']),
            'seconds': self.seconds,
            'n_chans': len(self.channels),
            'digest': recording.digest(read),
        }
        self.table = recording.event_table(read, ref, dataset)
        self.is_cropped: bool | None = None  # nothing is known before the first task
        self.ready: tuple[np.ndarray | Rows, tuple[str, ...]] | None = None
        self.name = partial(recording.set_names, subject=ref.subject, dataset=dataset)

    def cropped(self, table: dict[str, np.ndarray], task: Task) -> dict[str, np.ndarray]:
        """The events of a task in the part that it keeps of the recording, which is cut now. Raises: ValueError where
        another task kept another part."""
        spec, before = task.signal.crop, self.is_cropped
        self.is_cropped = spec is not None and task.window.trigger in table['type']
        if before not in (None, self.is_cropped):
            self.is_cropped = before
            raise ValueError('another part of the recording')
        if spec is None or not self.is_cropped:
            return table
        return recording.cropped(table, self.seconds, spec) if before else recording.crop(self.raw, table, spec)

    def signal(self, spec: SignalSpec) -> tuple[np.ndarray | Rows, tuple[str, ...]]:
        """The signal [C, T], and its channels."""
        if self.ready is None:
            data, names = process(self.raw, spec, self.folder)
            self.ready = data, names if spec.regions else self.name(names)
        return self.ready


def _process(task: Task, whole: _Whole) -> tuple[Converted, np.ndarray | Rows]:
    """What is known of a recording before its windows are cut, and its signal [C, T] ready for that."""
    table = whole.cropped(chosen(whole.table, task.window), task)  # chosen by what the whole recording is
    rows = [
        (i, t)
        for i in triggers(table, task.window, task.target)
        for t in starts(float(table['onset'][i]), float(table['duration'][i]), task.window)
    ]
    taken = marks.overlapped(table, task, [t for _, t in rows])
    rows = [row for row, mark in zip(rows, taken, strict=True) if not mark]
    if rows and task.window.duration > whole.raw.n_times / whole.native['sfreq']:
        raise RequestError(f'a window of {task.window.duration:g} s is longer than the recording')
    if of(task.target.kind).measured:
        if whole.ready is not None:
            raise ValueError('the channels of its target were filtered')
        rows, found = angles.known(whole.raw, cast(Angles, task.target), rows, task.window.duration)
    else:
        found = [collect(task.target, table, i, t, task.window.duration) for i, t in rows]
    targets = [json.dumps(value) for value in found]
    data, ch_names = whole.signal(task.signal) if rows else (np.zeros((0, 0), np.float32), ())
    part = {
        'native': whole.native,
        'channels': whole.channels,
        'ch_names': ch_names,
        'events': {k: v.tolist() for k, v in table.items()},
        'n_windows': len(rows),
        **marks.counted(whole.table, taken, task.window.trigger),
        'windows': {'event': [i for i, _ in rows], 'onset': [t for _, t in rows], 'target': targets},
    }
    return part, data
