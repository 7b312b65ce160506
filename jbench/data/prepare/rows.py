"""A table of numbers on disk, row after row: what is made channel by channel, and then read moment by moment."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files

HELD = 1 << 28  # bytes of a signal that are held in memory; a larger one waits on disk
STRETCH = 1 << 26  # bytes that are read at once


class Rows:
    """Numbers [C, T] in a file without a name, which ends with its process; `rows[:, a:b]` is an array.

    One stretch is held in memory, so that what is read goes on from there without the disk.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], dtype: Any) -> None:
        """Raises: RequestError for a folder that cannot be written."""
        self.folder, self.shape, self.dtype = folder, shape, np.dtype(dtype)
        self.nbytes = shape[0] * shape[1] * self.dtype.itemsize
        with files.explained(folder, self.nbytes):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (open as long as the table is)
        self._start, self._held = 0, np.zeros((shape[0], 0), self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __deepcopy__(self, memo: object) -> Rows:
        return self  # as an open file is

    def __setitem__(self, numbers: Sequence[int], values: np.ndarray) -> None:
        """Whole rows; their values are rounded to the type of the table."""
        for k, row in zip(numbers, values, strict=True):
            self.write(k, 0, row)

    def __getitem__(self, at: tuple[slice, slice]) -> np.ndarray:
        """All rows of a stretch [C, b - a]; what begins a little before the last one costs no new look."""
        start, stop, _ = at[1].indices(self.shape[1])
        if start >= stop:
            return np.zeros((len(self), 0), self.dtype)
        if not self._start <= start < stop <= self._start + self._held.shape[1]:
            n = max(1, STRETCH // max(1, self.nbytes // max(1, self.shape[1])))
            self._start = max(0, start - n // 8)
            stretch = np.empty((len(self), min(self.shape[1], max(stop, self._start + n)) - self._start), self.dtype)
            for k, row in enumerate(stretch):
                self.read(k, self._start, row)
            self._held = stretch
        return self._held[:, start - self._start : stop - self._start]

    def write(self, number: int, start: int, values: np.ndarray) -> None:
        """Part of a row, one value at least. Raises: RequestError where the disk is full."""
        with files.explained(self.folder, self.nbytes):
            self._file.seek((number * self.shape[1] + start) * self.dtype.itemsize)
            self._file.write(np.ascontiguousarray(values, self.dtype).data.cast('B'))

    def read(self, number: int, start: int, out: np.ndarray) -> None:
        """Part of a row into `out`, contiguous, of the same type, and not empty. Raises: RequestError, as `write`."""
        with files.explained(self.folder, self.nbytes):  # what is still to be written
            self._file.seek((number * self.shape[1] + start) * self.dtype.itemsize)
        view = out.data.cast('B')
        if self._file.readinto(view) != view.nbytes:
            raise EOFError(f'row {number} was not written')
