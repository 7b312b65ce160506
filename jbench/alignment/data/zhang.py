"""ZhangDesimone7: 132 single units of macaque IT, 7 objects at 3 places, about 20 trials of each.

Units were recorded one after another: a repetition of one unit has nothing to do with the same repetition of another.
A unit with fewer trials than others has NaN for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jbench.alignment import assembly as make
from jbench.alignment import stimuli
from jbench.alignment.data.arrays import read_arrays
from jbench.alignment.data.sources import find
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

N_TRIALS, N_UNITS, START, STOP = 55433, 132, -500, 500  # ms from the start of the stimulus
LABELS: dict[str, tuple[int, ...]] = {
    'site': (N_TRIALS,),
    'object_id': (N_TRIALS,),
    'position_id': (N_TRIALS,),
    'object_names': (7,),
    'position_names': (3,),
    'site_name': (N_UNITS,),
    'site_session': (N_UNITS,),
}
NO_IMAGES = 'the pictures are not in this collection; decode the objects, or use recorded features'


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Counts in bins of 50 ms (`counts`) or 10 ms (`rasters`) from -500 to 500 ms. Raises: RequestError."""
    if which == 'rasters':
        bins = [(t, t + 10) for t in range(START, STOP, 10)]
        return _arranged(*counted(data_dir, bins), bins)
    shapes = {'counts': (N_TRIALS, 20), 'bin_start_ms': (20,), **LABELS}
    found = read_arrays(find('ZhangDesimone7', data_dir, 'counts_50ms.npz'), shapes)
    return _arranged(found['counts'], found, [(t, t + 50) for t in found['bin_start_ms'].tolist()])


def counted(data_dir: Path, bins: Sequence[tuple[int, int]]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Spikes of each trial in bins of one's own, from the rasters.

    Args:
      data_dir: the folder of the collections.
      bins: start and end in ms, within -500 to 500; they may overlap.

    Returns: counts [trial, bin] int16, and the labels of trials and units.

    Raises: RequestError.
    """
    if any(not START <= a < b <= STOP for a, b in bins):
        raise RequestError(f'ZhangDesimone7: bins {list(bins)[:3]}, expected (start, end) within {START} to {STOP} ms')
    shapes = {'spikes_packed': (N_TRIALS, 125), **LABELS}
    found = read_arrays(find('ZhangDesimone7', data_dir, 'raster_1ms_packed.npz'), shapes)
    spikes = np.unpackbits(found.pop('spikes_packed'), axis=1)
    counts = [spikes[:, a - START : b - START].sum(1, dtype=np.int16) for a, b in bins]
    return np.stack(counts, 1), found


def _arranged(
    counts: np.ndarray, found: dict[str, np.ndarray], bins: Sequence[tuple[int, int]]
) -> tuple[stimuli.StimulusSet, DataArray]:
    """Trials of single units as [object at place x repetition, unit, bin]."""
    condition = found['object_id'].astype(int) * 3 + found['position_id']
    repetition = _running(found['site'].astype(int) * 21 + condition)
    n = repetition.max() + 1
    values = np.full((21 * n, N_UNITS, len(bins)), np.nan, np.float32)
    values[condition * n + repetition, found['site']] = counts
    objects, places = found['object_names'].tolist(), found['position_names'].tolist()
    table = {
        'stimulus_id': [f'{o}.{p}' for o in objects for p in places],
        'image_label': [o for o in objects for _ in places],
        'position': [p for _ in objects for p in places],
    }
    presentation = {name: np.repeat(column, n) for name, column in table.items()}
    presentation['repetition'] = np.tile(np.arange(n), 21)
    neuroid = {'neuroid_id': found['site_name'], 'region': ['IT'] * N_UNITS, 'session': found['site_session']}
    made = make.neuroids(values, presentation=presentation, neuroid=neuroid, time_bins=bins, may_miss=True)
    return stimuli.absent('ZhangDesimone7', table, NO_IMAGES), made


def _running(group: np.ndarray) -> np.ndarray:
    """For each row, how many rows of its group come before it."""
    order = np.argsort(group, kind='stable')
    ordered = group[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    running = np.empty(len(group), int)
    running[order] = np.arange(len(group)) - np.repeat(first, np.diff([*first, len(group)]))
    return running
