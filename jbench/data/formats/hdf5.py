"""Recordings in HDF5 files, read when they are asked for: channel by channel, stretch by stretch."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import mne
import numpy as np

from jbench.spec.errors import MissingExtraError

Row = tuple[str, int | None]  # a table [T] of the file, or one [C, T] and a row of it


def require() -> None:
    """Raises: MissingExtraError without h5py."""
    if find_spec('h5py') is None:
        raise MissingExtraError('h5py', 'hdf5', 'reading HDF5')


class Hdf5Raw(mne.io.BaseRaw):
    """A recording of MNE whose channel k is `rows[k]` of an HDF5 file, times `unit`, V (or the unit of its device).

    Args:
        path: of the file.
        info: as many channels as rows.
        rows: where each channel is.
        n_times: samples.
        unit: what 1 in the file is.
    """

    def __init__(self, path: str, info: mne.Info, rows: Sequence[Row], n_times: int, unit: float = 1.0) -> None:
        extras = [{'path': path, 'rows': list(rows), 'unit': unit}]
        super().__init__(info, False, (0,), (n_times - 1,), [None], extras, verbose='ERROR')

    def _read_segment_file(
        self, data: np.ndarray, idx: Any, fi: int, start: int, stop: int, cals: Any, mult: np.ndarray | None
    ) -> None:
        import h5py

        extra = self._raw_extras[fi]
        numbers = np.arange(len(extra['rows']))[idx]
        into = data if mult is None else np.empty((len(numbers), data.shape[1]))
        stop = start + data.shape[1]
        with h5py.File(extra['path'], 'r') as file:
            wanted = [extra['rows'][k] for k in numbers.tolist()]
            for name in dict.fromkeys(name for name, _ in wanted):
                mine = [k for k, (n, _) in enumerate(wanted) if n == name]
                rows = [row for k in mine if (row := wanted[k][1]) is not None]
                if not rows:
                    into[mine] = file[name][start:stop]
                else:  # from the first to the last: h5py is slow at rows that are picked one by one
                    first = min(rows)
                    into[mine] = file[name][first : max(rows) + 1, start:stop][[row - first for row in rows]]
        into *= extra['unit']
        if mult is not None:
            data[:] = mult @ into
