"""Long recordings laid out channel by channel on disk: a filter that sees the whole of a channel holds that one alone.

Files hold all channels of a moment beside each other: whoever reads one channel reads them all. A recording that is
larger than memory should hold is therefore read once, in pieces of time, and written channel after channel; the numbers
stay those that MNE reads, bit by bit. The copy has no name and ends with its process.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import mne
import numpy as np

from jbench.data import recording
from jbench.data.prepare.rows import Rows

LARGE = 1 << 31  # bytes of samples (float64): what is larger is laid out, and read once rather than once a block
SCRATCH = 16 << 30  # bytes of disk at most; where channels are more than that, they are laid out in groups
LEAST = 1 << 12  # samples of a piece


def laid_out(raw: mne.io.BaseRaw, folder: Path, beside: int = 1) -> mne.io.BaseRaw:
    """The recording itself where it is small, in memory, or cannot be read in pieces; else one that reads the same
    samples from a copy in `folder`, laid out by channels. `beside`: how many processes lay out recordings there, which
    share its room. Raises: RequestError where the disk is full.
    """
    if raw.preload or 8 * raw.n_times * len(raw.ch_names) <= LARGE or not _in_pieces(raw):
        return raw
    return ByChannel(raw, _Channels(raw, folder, beside))


def is_laid_out(raw: mne.io.BaseRaw) -> bool:
    """Whether a recording is larger than memory should hold, and lies on disk by channels."""
    return isinstance(raw, ByChannel) and not raw.preload


def _in_pieces(raw: mne.io.BaseRaw) -> bool:
    """Whether samples do not depend on the stretch that is read: not where MNE resamples some channels of a file (EDF
    with several rates), nor where channels are mixed while they are read (rounding)."""
    if getattr(raw, '_projector', None) is not None or getattr(raw, '_comp', None) is not None:
        return False
    for extra, picked in zip(raw._raw_extras, raw._read_picks, strict=True):
        rates = isinstance(extra, dict) and {'n_samps', 'max_samp', 'sel'} <= extra.keys()  # EDF, BDF, GDF
        if rates and (np.asarray(extra['n_samps'])[np.asarray(extra['sel'])[picked]] != extra['max_samp']).any():
            return False
    return True


class _Channels:
    """The samples of a recording by channel: as many channels as the disk may hold at once, a group after the other."""

    def __init__(self, raw: mne.io.BaseRaw, folder: Path, beside: int) -> None:
        self.raw, n = raw, len(raw.ch_names)
        room = min(SCRATCH, shutil.disk_usage(folder).free // (2 * beside))
        self.rows = Rows(folder, (max(1, min(n, room // (8 * raw.n_times))), raw.n_times), np.float64)
        self.group = range(0)
        self.replaced: dict[int, tuple[Rows, int]] = {}  # channel -> its new samples

    def __deepcopy__(self, memo: object) -> _Channels:
        return self

    def read(self, channel: int, start: int, out: np.ndarray) -> None:
        """Samples of one channel from `start` on into `out` f64 [T]."""
        rows, row = self.replaced.get(channel, (self.rows, -1))
        if row < 0:
            if channel not in self.group:
                self._lay_out(channel)
            row = channel - self.group.start
        rows.read(row, start, out)

    def free(self) -> None:
        """Give the disk of the copy back; what is read later is copied again, a channel at a time."""
        self.rows, self.group = Rows(self.rows.folder, (1, self.raw.n_times), np.float64), range(0)

    def _lay_out(self, channel: int) -> None:
        """Copy the group that holds a channel."""
        first = channel - channel % len(self.rows)
        group = range(first, min(first + len(self.rows), len(self.raw.ch_names)))
        self.group = range(0)  # until it is whole
        for start, stop in pieces(self.raw):
            for row, values in enumerate(self.raw.get_data(list(group), start, stop)):
                self.rows.write(row, start, values)
        self.group = group


class ByChannel(mne.io.BaseRaw):
    """A recording of MNE that reads its samples from `_Channels`."""

    def __init__(self, raw: mne.io.BaseRaw, channels: _Channels) -> None:
        firsts, lasts = raw._first_samps, raw._last_samps  # of each file: MNE resamples one after the other
        before = [0, *np.cumsum(lasts - firsts + 1)]
        extras = [{'channels': channels, 'offset': int(n - first)} for n, first in zip(before, firsts, strict=False)]
        files = [None] * len(firsts)
        super().__init__(raw.info.copy(), False, firsts, lasts, files, extras, verbose='ERROR')
        self._annotations, self._cropped_samp = raw.annotations.copy(), raw._cropped_samp

    def _read_segment_file(
        self, data: np.ndarray, idx: Any, fi: int, start: int, stop: int, cals: Any, mult: np.ndarray | None
    ) -> None:
        channels: _Channels = self._raw_extras[fi]['channels']
        start += self._raw_extras[fi]['offset']
        numbers = np.arange(len(channels.raw.ch_names))[idx]
        into = data if mult is None else np.empty((len(numbers), data.shape[1]))
        for out, k in zip(into, numbers.tolist(), strict=True):
            channels.read(k, start, out)
        if mult is not None:
            data[:] = mult @ into


def pieces(raw: mne.io.BaseRaw) -> list[tuple[int, int]]:
    """Stretches of samples, all channels of which fit into BLOCK."""
    n = max(LEAST, recording.BLOCK // (8 * max(1, len(raw.ch_names))))
    return [(k, min(k + n, raw.n_times)) for k in range(0, raw.n_times, n)]


def interpolate(raw: mne.io.BaseRaw) -> None:
    """What MNE interpolates for the bad channels of a laid-out recording, piece by piece: at each moment it is a
    weighted sum of other channels (equal to that of the whole recording but for rounding, 1e-12 of the largest)."""
    channels: _Channels = raw._raw_extras[0]['channels']
    bad, source = list(raw.info['bads']), channels.raw
    rows = Rows(channels.rows.folder, (len(bad), source.n_times), np.float64)
    for start, stop in pieces(source):
        piece = mne.io.RawArray(source.get_data(None, start, stop), raw.info.copy(), verbose='ERROR')
        piece.interpolate_bads(reset_bads=False, verbose='ERROR')
        for row, name in enumerate(bad):
            rows.write(row, start, piece.get_data([name])[0])
    channels.replaced |= {source.ch_names.index(name): (rows, row) for row, name in enumerate(bad)}
    raw.info['bads'] = []


def combined(raw: mne.io.BaseRaw, names: list[str], weights: np.ndarray) -> mne.io.BaseRaw:
    """A recording of the channels `names`, each a weighted sum of all channels of `raw`.

    Args:
        raw: V; one that is laid out is summed piece by piece, into another copy on disk, any other one in memory.
        names: of those channels of `raw` that the sums take the places of.
        weights: f64 [names, C].
    """
    if not is_laid_out(raw):
        out = raw.copy().pick(names).load_data()
        order = [names.index(name) for name in out.ch_names]
        out._data[:] = weights[order] @ raw.get_data()
        return out
    channels: _Channels = raw._raw_extras[0]['channels']
    source, numbers = channels.raw, [channels.raw.ch_names.index(name) for name in raw.ch_names]
    channels.free()  # it holds what is mixed, and may hold some channels at a time: the files are read
    rows = Rows(channels.rows.folder, (len(names), source.n_times), np.float64)
    for start, stop in pieces(source):
        x = source.get_data(raw.ch_names, start, stop)
        for k in set(numbers) & channels.replaced.keys():  # interpolated
            channels.read(k, start, x[numbers.index(k)])
        for row, values in enumerate(weights @ x):
            rows.write(row, start, values)
    channels.replaced |= {source.ch_names.index(name): (rows, row) for row, name in enumerate(names)}
    return raw.pick(names)
