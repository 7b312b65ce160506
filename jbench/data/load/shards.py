"""Windows of a prepared set by number, read by grain from its array-record shards.

Records are read one by one, and each is decoded while it is warm. Reading many at once, or by several threads, is
slower: fresh memory has to be found for them, and the threads wait for the interpreter's lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jbench.data.load.protocols import LEFT_OUT
from jbench.data.prepare import codec
from jbench.data.prepare.signal import statistics
from jbench.data.recording import BLOCK
from jbench.spec.errors import RequestError
from jbench.spec.task import SplitSpec

OTHER_FILES = 256  # that a process has open besides shards
READERS = 3  # that may have all shards open at once: train, valid, test
UNREADABLE = (OSError, RuntimeError, ValueError, IndexError)  # what array_record and the decoder say of damage


class _Shard(NamedTuple):
    """A shard as grain takes it, so that it opens the file when something is read from it, and not to count."""

    filename: str
    skip: int
    take: int
    examples_in_shard: int


class Scale(NamedTuple):
    """Centre and spread of each recording and channel, f32 [R, C, 1]; 0 and 1 for a channel that it lacks. A channel of
    infinite spread is read as zeros."""

    centre: np.ndarray
    spread: np.ndarray


class Shards:
    """Windows of a prepared set by number, f32 [C, T] on the union of its channels: less the centre and divided by the
    spread of their recording if `scale` is given, times `factor`, then clamped to ±`clamp` if that is given. Channels
    that fail, bool [C] by number of the window, are zero."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, Any],
        clamp: float | None,
        scale: Scale | None = None,
        factor: float = 1.0,
        failing: Mapping[int, np.ndarray] | None = None,
        readers: int = READERS,
    ) -> None:
        import grain

        recordings, union = manifest['recordings'], manifest['ch_names']
        _allow_open_files(len(recordings), readers)
        self._paths = [folder / r['shard'] for r in recordings]
        counts = [r['n_windows'] for r in recordings]
        self._source = grain.sources.ArrayRecordDataSource(
            [_Shard(str(p), 0, n, n) for p, n in zip(self._paths, counts, strict=True)]
        )
        self._ends = np.cumsum(counts)
        place = {c: i for i, c in enumerate(union)}
        self._channels = [
            np.array([place[c] for c in r['ch_names']], int) if r['ch_names'] not in (None, union) else None
            for r in recordings
        ]
        self._n_chans, self._clamp, self._scale, self._factor = len(union), clamp, scale, np.float32(factor)
        self._failing = failing or {}

    def read(self, numbers: np.ndarray, out: np.ndarray, texts: list[str] | None = None) -> None:
        """Read windows `numbers` [N] into out f32 [N, C, T], and the targets that lie with them into `texts` [N].

        Raises: RequestError that names a damaged shard.
        """
        shards = np.searchsorted(self._ends, numbers, 'right')
        plain = self._scale is None and self._factor == 1
        for i in np.argsort(numbers, kind='stable').tolist():  # in the order in which they lie on the disk
            shard = int(shards[i])
            if (channels := self._channels[shard]) is not None and not len(channels):
                out[i] = 0  # of another unit
                continue
            with self._explained(shard):
                record = self._source[int(numbers[i])]
                codec.decode_into(record, channels, self._clamp if plain else None, out[i])
                if texts is not None:
                    texts[i] = codec.target_of(record)
            if self._scale is not None:
                out[i] -= self._scale.centre[shard]
                out[i] /= self._scale.spread[shard]
            if not plain:
                out[i] *= self._factor
                if self._clamp is not None:
                    np.clip(out[i], -self._clamp, self._clamp, out=out[i])
            if (gone := self._failing.get(int(numbers[i]))) is not None:
                out[i, gone] = 0

    def targets(self, numbers: np.ndarray) -> list[str]:
        """The targets that lie with windows `numbers` [N]. Raises: as `read`."""
        shards, found = np.searchsorted(self._ends, numbers, 'right'), [''] * len(numbers)
        for i in np.argsort(numbers, kind='stable').tolist():
            with self._explained(int(shards[i])):
                found[i] = codec.target_of(self._source[int(numbers[i])])
        return found

    @contextlib.contextmanager
    def _explained(self, shard: int) -> Iterator[None]:
        """Raises RequestError that names the shard in which something cannot be read."""
        path = self._paths[shard]
        try:
            yield
        except UNREADABLE as error:
            if os.strerror(errno.EMFILE) in str(error):
                raise RequestError(f'{path}: {error}; allow more open files (ulimit -n)') from error
            raise RequestError(
                f'{path}: damaged ({error}); remove the folder {path.parent} and run the same command again: it is '
                'prepared anew'
            ) from error

    def channel_mask(self, numbers: np.ndarray) -> np.ndarray:
        """Which channels the recordings of windows `numbers` [N] have, bool [N, C]; windows are zero at the others."""
        there = np.ones((len(self._channels), self._n_chans), bool)
        for mine, channels in zip(there, self._channels, strict=True):
            if channels is not None:
                mine[:] = np.isin(np.arange(self._n_chans), channels)
        return there[np.searchsorted(self._ends, numbers, 'right')]


def of_unit(manifest: dict[str, Any], split: SplitSpec, recording: np.ndarray, part: np.ndarray) -> dict[str, Any]:
    """The manifest of a set without the channels that a unit lacks altogether, where a split learns each unit by
    itself: contacts in the brain of other people. Recordings of other units are left without channels.

    Args:
        manifest: of the prepared set.
        split: `within` says what a unit is.
        recording: int [N], the number of each window's recording.
        part: [N], '' for windows of other units.
    """
    mine = set(recording[part != ''].tolist())
    if not getattr(split, 'within', '') or not mine:
        return manifest
    union, recordings = manifest['ch_names'], manifest['recordings']
    own = [(r['ch_names'] or union) if k in mine else [] for k, r in enumerate(recordings)]
    used = {name for names in own for name in names}
    if len(used) == len(union):
        return manifest
    narrowed = [{**r, 'ch_names': names} for r, names in zip(recordings, own, strict=True)]
    return {**manifest, 'ch_names': [name for name in union if name in used], 'recordings': narrowed}


def scale_by_training_part(
    folder: Path, manifest: dict[str, Any], split: np.ndarray, subjects: np.ndarray, n_times: int
) -> Scale:
    """Median and 25-75 % range of each recording and channel, over the windows that `_fitted_on` says: those that
    train, wherever there are some. No label is looked at. Channels of the recording that those windows lack become
    zeros.

    Args:
        folder, manifest: of the prepared set.
        split: [N] part of each window, as the recipe asks for it.
        subjects: text [N].
        n_times: samples of a window.
    """
    shards, n_chans = Shards(folder, manifest, None), len(manifest['ch_names'])
    scale = Scale(*np.zeros((2, len(manifest['recordings']), n_chans, 1), np.float32))
    window, counts = np.empty((1, n_chans, n_times), np.float32), [r['n_windows'] for r in manifest['recordings']]
    ends = np.cumsum(counts)
    has = shards.channel_mask(ends - counts)  # of recordings
    there = np.repeat(has, counts, 0)  # of windows
    for r, recording in enumerate(manifest['recordings']):
        if recording['ch_names'] == []:  # of another unit: nobody reads it
            scale.spread[r] = 1
            continue
        rows = _fitted_on(np.arange(ends[r] - counts[r], ends[r]), split, subjects, there)
        step = max(1, BLOCK // (8 * len(rows) * n_times))
        for block in (slice(c, c + step) for c in range(0, n_chans, step)):
            x = np.empty((len(window[0, block]), len(rows), n_times))
            for k in range(len(rows)):
                shards.read(rows[k : k + 1], window)
                x[:, k] = window[0, block]
            scale.centre[r, block], scale.spread[r, block] = statistics(x.reshape(len(x), -1), 'robust')
        scale.spread[r, has[r] & ~there[rows].all(0)] = np.inf
        scale.centre[r, ~has[r]], scale.spread[r, ~has[r]] = 0, 1
    return scale


def _fitted_on(every: np.ndarray, split: np.ndarray, subjects: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The windows whose signals scale a recording.

    - Some of its own train: those.
    - Some of its own were to train, and few_shot drew none of them: those that train of the same subject, in recordings
      that have all of its channels, if there are such. Neither what was left out nor what tests is looked at.
    - None was ever to train (its subject or session is new to the network): all of its own. So would whoever meets a
      new recording, as signals are there before answers are.

    Args:
        every: numbers of the windows of the recording.
        split, subjects: [N] of each window.
        there: bool [N, C], which channels each window has.
    """
    if len(trained := every[split[every] == 'train']):
        return trained
    left_out = every[split[every] == LEFT_OUT]
    if not len(left_out):
        return every
    drawn = np.flatnonzero((split == 'train') & np.isin(subjects, subjects[left_out]))
    alike = (there[drawn] >= there[every[0]]).all(1)
    return drawn[alike] if alike.any() else drawn


def _allow_open_files(n: int, readers: int) -> None:
    """grain keeps shards open: raise the limit of this process. Raises RequestError where the system forbids that."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = readers * n + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError) as error:
        raise RequestError(
            f'{n} recordings need {wanted} open files, the system allows {hard}; raise it (ulimit -Hn {wanted})'
        ) from error
