"""From a prepared set to batches: windows held in memory where they fit, streamed from their shards otherwise.

The order of training windows is a function of (data seed, epoch) alone, and both ways give the same batches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from jbench.data.load.prepared_set import PreparedSet
from jbench.data.load.targets_of_set import plain, with_windows
from jbench.data.prepare.workers import free_memory
from jbench.spec.model import Signal
from jbench.targets.packed import Packed

Compute = Callable[
    [np.ndarray], Mapping[str, Any]
]  # (x f32 [B, C, T]) -> arrays [B, ...] that depend on a window alone
DATA_SEED = 33  # the same for every model seed, as published
CHUNK_BYTES = 128 << 20  # and at most so much of it goes to the devices at once
CHUNK_BATCHES = 16


class Chunk(NamedTuple):
    """Up to K batches of B windows, of which n count: x f32 [K, B, C, T], y [K, B, ...], mask and id [K, B].

    `extra` [K, B, ...] is what `Loader.carry` asked for, and 'channel_mask' bool [K, B, C] where the loader has one.
    """

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray
    id: np.ndarray
    n: int
    extra: dict[str, np.ndarray]


def order(n: int, epoch: int | None, seed: int = DATA_SEED, weights: np.ndarray | None = None) -> np.ndarray:
    """Order of n training windows in an epoch: a function of (seed, epoch) alone. None: as they lie.

    With weights [n], n of them are drawn with replacement, each in proportion to its weight.
    """
    if epoch is None:
        return np.arange(n)
    rng = generator(epoch, seed)
    if weights is None:
        return rng.permutation(n)
    edges = np.cumsum(weights, dtype=np.float64)
    return np.searchsorted(edges, rng.random(n) * edges[-1], side='right')


def generator(epoch: int, seed: int = DATA_SEED) -> np.random.Generator:
    """What draws the order of an epoch."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch]))


def n_batches(n: int, batch_size: int) -> int:
    """Batches of an epoch; the last, partial one is kept."""
    return -(-n // batch_size)


def chunk_batches(signal: Signal, batch_size: int) -> int:
    """How many batches go to the devices at once: known from shapes alone, so that programs compile ahead."""
    return int(min(CHUNK_BATCHES, max(1, CHUNK_BYTES // (batch_size * signal.n_chans * signal.n_times * 4))))


def _aligned(*shape: int) -> np.ndarray:
    """Zeros, f32, at an address that jax on a CPU computes on in place (a multiple of 64); others it copies first."""
    n_bytes = 4 * math.prod(shape)
    raw = np.zeros(n_bytes + 63, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + n_bytes].view(np.float32).reshape(shape)


class Loader:
    """Batches of some splits of a prepared set, or of windows of given numbers.

    Held in memory if that takes at most `resident_bytes` (by default a quarter of the memory that is free), else read
    from the shards: the same batches. A thread makes the next chunk, of this epoch or the one after it, while the
    caller computes. `y` may be replaced before that (shuffled labels in tests).

    `sampler` (y, epoch, batch size -> numbers of windows) says what an epoch is, in the place of a random order. With
    `channel_mask`, chunks carry which channels the recording of each window has.
    """

    def __init__(
        self,
        prepared: PreparedSet,
        parts: tuple[str, ...] | np.ndarray,
        batch_size: int,
        resident_bytes: int | None = None,
        sampler: Callable[[np.ndarray, int, int], np.ndarray] | None = None,
        *,
        channel_mask: bool = False,
    ) -> None:
        self.prepared, self.batch_size, self._sampler = prepared, batch_size, sampler
        self.rows = parts if isinstance(parts, np.ndarray) else prepared.rows(*parts)
        self.y = prepared.y[self.rows]
        self._order: tuple[int | None, np.ndarray] | None = None  # of the epoch that came last
        self.chunk = chunk_batches(prepared.signal, batch_size)
        self._shards = prepared.shards(prepared.clamp)
        self._channels = self._shards.channel_mask(self.rows) if channel_mask else None
        window, size = (prepared.signal.n_chans, prepared.signal.n_times), self.chunk * batch_size
        numbers = math.prod(window) + (self.y.shape[1] if isinstance(self.y, Packed) else 0)  # of a window
        fits = 4 * len(self) * numbers <= (free_memory() // 4 if resident_bytes is None else resident_bytes)
        self._x = _aligned(self.n_chunks() * size, *window) if fits else None  # whole chunks, as they lie
        if self._x is not None:
            self.y = self._read(np.arange(len(self)), self._x[: len(self)])
            self._x[len(self) : n_batches(len(self), batch_size) * batch_size] = self._x[:1]
        self._buffers = itertools.cycle([_aligned(size, *window) for _ in range(2)])
        self._compute: Compute = lambda x: {}
        self._extra: dict[str, np.ndarray] | None = None  # what was computed of the windows that are `_known`
        self._known = np.zeros(len(self), bool)
        self._thread = ThreadPoolExecutor(1)
        self._ahead: dict[tuple[int | None, int], Future[Chunk]] = {}  # the chunk that is being made, by epoch, number

    def __len__(self) -> int:
        return len(self.rows)

    def n_chunks(self) -> int:
        """Chunks of one epoch."""
        return n_batches(n_batches(len(self), self.batch_size), self.chunk)

    def carry(self, compute: Compute) -> None:
        """Let chunks carry `compute`'s arrays, computed when a window comes for the first time and kept."""
        if compute is not self._compute:
            wait(self._ahead.values())  # the thread may still write what the old one computes
            self._compute, self._extra, self._ahead = compute, None, {}
            self._known[:] = False

    def chunks(self, epoch: int | None = None, start: int = 0) -> Iterator[Chunk]:
        """Chunks of an epoch from number `start` on; rows of padding repeat row 0 with mask False.

        `x` is valid until the next chunk of this loader is asked for: by then, whatever jax computes from it must be
        ready (block on it), since on a CPU it computes on this very memory.

        Raises: RequestError that names a damaged shard; what else the thread met.
        """
        for k in range(start, self.n_chunks()):
            chunk = (self._ahead.pop((epoch, k), None) or self._make(epoch, k)).result()
            after = (epoch, k + 1) if k + 1 < self.n_chunks() else (None if epoch is None else epoch + 1, 0)
            self._ahead = {after: self._make(*after)}
            yield chunk

    def _make(self, epoch: int | None, k: int) -> Future[Chunk]:
        """Let the thread make a chunk in the buffer that the caller does not hold."""
        return self._thread.submit(self._chunk, epoch, k, next(self._buffers))

    def _chunk(self, epoch: int | None, k: int, x: np.ndarray) -> Chunk:
        """Chunk k of an epoch in the buffer x, of which what follows the last batch is never looked at."""
        shape = (self.chunk, self.batch_size)
        first, size = k * len(x), len(x)
        take = self._taken(epoch)[first : first + size]
        numbers = np.concatenate([take, np.zeros(size - len(take), int)])
        n = n_batches(len(take), self.batch_size)
        used = numbers[: n * self.batch_size]
        if self._x is None:
            y = _padded(self._read(used, x[: len(used)]), size)
        elif epoch is None:
            x = self._x[first : first + size]
        else:
            np.take(self._x, used, axis=0, out=x[: len(used)], mode='clip')  # 'raise' would copy once more
        if isinstance(self.y, np.ndarray):
            y = self.y[numbers]
        extra, y = self._carried(x[: len(used)], used), self.prepared.learnt(y)
        extra = extra if self._channels is None else extra | {'channel_mask': self._channels[numbers]}
        return Chunk(
            x.reshape(shape + x.shape[1:]),
            y.reshape(shape + y.shape[1:]),
            (np.arange(size) < len(take)).reshape(shape),
            self.prepared.ids[self.rows[numbers]].reshape(shape),
            n,
            {k: _padded(v, size).reshape(shape + v.shape[1:]) for k, v in extra.items()},
        )

    def _read(self, numbers: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Read windows into x f32 [N, C, T]; their targets, which may lie with them, are returned."""
        if not with_windows(self.y, self.prepared.folder):
            self._shards.read(self.rows[numbers], x)
            return np.asarray(self.y[numbers])
        texts = [''] * len(numbers)
        self._shards.read(self.rows[numbers], x, texts)
        y = np.empty((len(numbers), self.y.shape[1]), np.float32)
        self.y.unpack(plain(texts), y)
        return y

    def _taken(self, epoch: int | None) -> np.ndarray:
        if self._order is None or self._order[0] != epoch:
            if self._sampler is None or epoch is None:
                self._order = (epoch, order(len(self), epoch))
            else:
                self._order = (epoch, self._sampler(self.y, epoch, self.batch_size))
        return self._order[1]

    def _carried(self, x: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The computed arrays of whole batches x; kept if those of all windows take a quarter of the free memory."""
        if self._extra is not None and self._known[numbers].all():
            return {k: v[numbers] for k, v in self._extra.items()}
        parts = [self._compute(x[i : i + self.batch_size]) for i in range(0, len(x), self.batch_size)]
        found = {k: np.concatenate([np.asarray(p[k]) for p in parts]) for k in parts[0]}
        if self._extra is None and sum(v[:1].nbytes for v in found.values()) * len(self) <= free_memory() // 4:
            self._extra = {k: np.empty((len(self), *v.shape[1:]), v.dtype) for k, v in found.items()}
        if self._extra is not None:
            for k, v in found.items():
                self._extra[k][numbers] = v
            self._known[numbers] = True
        return found


def _padded(a: np.ndarray, n: int) -> np.ndarray:
    """n rows: those of a, then zeros."""
    return np.concatenate([a, np.zeros((n - len(a), *a.shape[1:]), a.dtype)]) if len(a) < n else a
