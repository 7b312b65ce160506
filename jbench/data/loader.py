"""From a prepared set to batches: windows through grain, held in memory where they fit, streamed otherwise.

The order of training windows is a function of (data seed, epoch) alone, and both ways give the same batches.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jbench.data import cache, fs, records, splits, targets
from jbench.data.recording import EVENT_TYPE
from jbench.data.windows import n_samples
from jbench.spec import RequestError, Signal, Task

DATA_SEED = 33  # the same for every model seed, as published
RESIDENT_BYTES = 4 << 30  # a split up to this size is held in memory
CHUNK_BYTES = 128 << 20  # and at most so much of it goes to the devices at once
CHUNK_BATCHES = 16


@dataclass(frozen=True)
class PreparedSet:
    """A prepared set under one task: its windows with targets and splits, in canonical order."""

    folder: Path
    manifest: dict[str, Any]
    signal: Signal
    clamp: float | None
    kind: str  # of the target
    y: np.ndarray  # [N] int classes, [N, K] labels, or [N, 1] values
    classes: tuple[str, ...]
    ids: np.ndarray  # [N] int64, stable
    subjects: np.ndarray  # [N] text
    split: np.ndarray  # [N] 'train' | 'valid' | 'test' | ''
    warnings: tuple[str, ...]

    def rows(self, *names: str) -> np.ndarray:
        """Window numbers of the named splits, one after the other, each in canonical order."""
        return np.concatenate([np.flatnonzero(self.split == n) for n in names])

    @property
    def n_out(self) -> int:
        """Width of the output layer."""
        return len(self.classes) if self.kind in ('classes', 'state') else self.y.shape[1]


class Chunk(NamedTuple):
    """Up to K batches of B windows, of which n count: x f32 [K, B, C, T], y [K, B, ...], mask and id [K, B]."""

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray
    id: np.ndarray
    n: int


def _overhang(events: dict[str, np.ndarray], windows: dict[str, np.ndarray], duration: float) -> list[str]:
    """A warning where windows run off their recording: what misses is zero."""
    whole = np.isin(events['type'], list(EVENT_TYPE.values()))
    ends = dict(zip(events['recording'][whole].tolist(), events['duration'][whole].tolist(), strict=True))
    last = np.array([ends.get(r, np.inf) for r in events['recording'][windows['event']].tolist()])
    n = int(((windows['onset'] < 0) | (windows['onset'] + duration > last + 1e-6)).sum())
    return [f'{n} of {len(last)} windows run off their recording; what misses is filled with zeros'] if n else []


@functools.cache
def _verify_once(folder: Path, digest: str) -> None:
    """Compare every file with the manifest, once in a process for each manifest."""
    cache.verify(folder)


def open_set(folder: Path, task: Task) -> PreparedSet:
    """Read manifest and index, encode the targets and assign the splits of a task. Raises RequestError if damaged."""
    _verify_once(folder, fs.sha256_file(folder / 'manifest.json') if (folder / 'manifest.json').exists() else '')
    manifest = fs.read_json(folder / 'manifest.json')
    index = fs.read_npz(folder / 'index.npz')
    events = {k[len('event.') :]: v for k, v in index.items() if k.startswith('event.')}
    windows = {k[len('window.') :]: v for k, v in index.items() if k.startswith('window.')}
    encoded = targets.encode(task.target, [json.loads(t) for t in windows['target']])
    excluded = {
        after: [e.subject for e in task.exclude if e.dataset == manifest['dataset'] and e.after_split is after]
        for after in (False, True)
    }
    used = ~np.isin(events['subject'], excluded[False])
    of_event = np.full(len(used), '', dtype='U5')
    of_event[used] = splits.assign({k: v[used] for k, v in events.items()}, task.split)
    of_event[np.isin(events['subject'], excluded[True])] = ''
    split = of_event[windows['event']]
    windows['duration'] = np.full(len(split), task.window.duration)
    for name in ('train', 'valid', 'test'):
        if not (split == name).any():
            raise RequestError(
                f'{manifest["dataset"]}: the {name} part holds no window; its groups have no event that makes one'
            )
    warnings = [
        *manifest['notes'],
        *_overhang(events, windows, task.window.duration),
        *splits.check(events, windows, of_event, task.split),
    ]
    warnings += [
        f'excluded: subject {e.subject}: {e.reason}'
        for e in task.exclude
        if e.dataset == manifest['dataset'] and e.subject in set(events['subject'])
    ]
    kind = 'classes' if task.target.kind == 'state' else task.target.kind
    if kind == 'classes':
        for name in ('train', 'valid', 'test'):
            absent = sorted(set(range(len(encoded.classes))) - set(encoded.y[split == name].tolist()))
            if absent:
                warnings.append(f'{name} holds no window of class {", ".join(encoded.classes[k] for k in absent)}')
    signal = Signal(
        n_chans=len(manifest['ch_names']),
        n_times=n_samples(task.window.duration, task.signal.sfreq),
        sfreq=task.signal.sfreq,
        ch_names=tuple(manifest['ch_names']),
    )
    return PreparedSet(
        folder,
        manifest,
        signal,
        task.signal.clamp,
        kind,
        encoded.y,
        encoded.classes,
        windows['id'],
        events['subject'][windows['event']],
        split,
        tuple(warnings),
    )


def _allow_open_files(n: int) -> None:
    """grain keeps every shard open: raise the soft limit of this process as far as the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Windows:
    """Windows of a prepared set by number: a random-access source for grain, f32 [C, T] on the union of channels."""

    def __init__(self, prepared: PreparedSet, clamp: float | None) -> None:
        import grain

        recordings = prepared.manifest['recordings']
        _allow_open_files(len(recordings))
        paths = [str(prepared.folder / r['shard']) for r in recordings]
        try:
            self._shards = grain.sources.ArrayRecordDataSource(paths)
        except Exception as error:  # whatever the reader says of a damaged shard
            raise RequestError(
                f'{prepared.folder}: a shard is damaged ({error}); remove the folder and run again'
            ) from error
        if len(self._shards) != len(prepared.y):
            raise RequestError(
                f'{prepared.folder}: {len(self._shards)} windows, the manifest says {len(prepared.y)}; '
                'remove the folder and run again'
            )
        place = {c: i for i, c in enumerate(prepared.manifest['ch_names'])}
        self._rows = [np.array([place[c] for c in r['ch_names']]) for r in recordings]
        self._recording = np.repeat(np.arange(len(recordings)), [r['n_windows'] for r in recordings])
        self._shape = (prepared.signal.n_chans, prepared.signal.n_times)
        self._clamp = clamp

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, number: int) -> np.ndarray:
        """Window `number` [C, T]; channels that its recording lacks are zero."""
        window, _ = records.decode_window(self._shards[number])
        out = np.zeros(self._shape, np.float32)
        out[self._rows[self._recording[number]]] = window
        return out if self._clamp is None else np.clip(out, -self._clamp, self._clamp)


def read(prepared: PreparedSet, rows: np.ndarray, clamp: float | None) -> np.ndarray:
    """Windows of the given numbers, f32 [N, C, T], through grain."""
    import grain

    out = np.empty((len(rows), prepared.signal.n_chans, prepared.signal.n_times), np.float32)
    source = Windows(prepared, clamp)
    dataset = grain.MapDataset.source(rows.tolist()).map(source.__getitem__)
    for k, window in enumerate(dataset.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))):
        out[k] = window
    return out


@dataclass(frozen=True)
class View:
    """Some windows of a prepared set, unclamped, read when they are asked for: `view[numbers]` is f32 [N, C, T]."""

    prepared: PreparedSet
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, numbers: Any) -> np.ndarray:
        return read(self.prepared, self.rows[numbers], None)


def order(n: int, epoch: int | None, seed: int = DATA_SEED) -> np.ndarray:
    """Order of n training windows in an epoch: a function of (seed, epoch) alone. None: as they lie."""
    if epoch is None:
        return np.arange(n)
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(n)


def n_batches(n: int, batch_size: int) -> int:
    """Batches of an epoch; the last, partial one is kept."""
    return -(-n // batch_size)


def chunk_batches(signal: Signal, batch_size: int) -> int:
    """How many batches go to the devices at once: known from shapes alone, so that programs compile ahead."""
    return int(min(CHUNK_BATCHES, max(1, CHUNK_BYTES // (batch_size * signal.n_chans * signal.n_times * 4))))


class Loader:
    """Batches of some splits of a prepared set.

    Held in memory if they fit into `resident_bytes`, else read from the shards chunk by chunk. `y` may be replaced
    (shuffled labels in tests).
    """

    def __init__(
        self, prepared: PreparedSet, names: tuple[str, ...], batch_size: int, resident_bytes: int = RESIDENT_BYTES
    ) -> None:
        self.prepared, self.batch_size = prepared, batch_size
        self.rows = prepared.rows(*names)
        self.y = prepared.y[self.rows].astype(np.int32 if prepared.y.dtype.kind == 'i' else np.float32)
        self.chunk = chunk_batches(prepared.signal, batch_size)
        size = len(self.rows) * prepared.signal.n_chans * prepared.signal.n_times * 4
        self._x = read(prepared, self.rows, prepared.clamp) if size <= resident_bytes else None
        self._source = None if self._x is not None else Windows(prepared, prepared.clamp)
        self._buffer = np.zeros((self.chunk * batch_size, *self._shape), np.float32)  # a new one each time costs 10 %

    def __len__(self) -> int:
        return len(self.rows)

    def n_chunks(self) -> int:
        """Chunks of one epoch."""
        return n_batches(n_batches(len(self), self.batch_size), self.chunk)

    def chunks(self, epoch: int | None = None, start: int = 0) -> Iterator[Chunk]:
        """Chunks of an epoch from number `start` on; rows of padding repeat row 0 with mask False.

        `x` is valid until the next chunk is asked for.
        """
        size = self.chunk * self.batch_size
        shuffled = order(len(self), epoch)
        for k in range(start, self.n_chunks()):
            take = shuffled[k * size : (k + 1) * size]
            padded = np.concatenate([take, np.zeros(size - len(take), int)])
            mask = np.arange(size) < len(take)
            shape = (self.chunk, self.batch_size)
            n = n_batches(len(take), self.batch_size)
            yield Chunk(
                self._gather(padded, n).reshape(shape + self._shape),
                self.y[padded].reshape(shape + self.y.shape[1:]),
                mask.reshape(shape),
                self.prepared.ids[self.rows[padded]].reshape(shape),
                n,
            )

    @property
    def _shape(self) -> tuple[int, int]:
        return self.prepared.signal.n_chans, self.prepared.signal.n_times

    def _gather(self, numbers: np.ndarray, n: int) -> np.ndarray:
        """The windows of the first n batches (what follows them in the chunk is never looked at)."""
        used = numbers[: n * self.batch_size]
        if self._x is not None:
            np.take(self._x, used, axis=0, out=self._buffer[: len(used)], mode='clip')  # 'raise' would copy once more
        else:
            self._buffer[: len(used)] = self._stream(self.rows[used])
        return self._buffer

    def _stream(self, rows: np.ndarray) -> np.ndarray:
        """The same windows straight from the shards, through grain."""
        import grain

        assert self._source is not None
        dataset = grain.MapDataset.source(rows.tolist()).map(self._source.__getitem__).batch(len(rows))
        return dataset[0]
