"""Haxby2001: one person, one slice through ventral temporal cortex, 12 runs, 8 categories and rest.

One slice, not the mask of the published accuracies: numbers are not comparable with those. Labels are as shown, without
a shift for the haemodynamic response. Neighbouring volumes depend on each other: split by run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jbench.alignment import assembly as make
from jbench.alignment import stimuli
from jbench.alignment.data.arrays import read_arrays
from jbench.alignment.data.sources import find

if TYPE_CHECKING:
    from xarray import DataArray

N_VOLUMES, SECONDS = 1452, 2.5  # of a volume
SHAPES = {'bold': (N_VOLUMES, 40, 20), 'mask': (40, 20), 'labels': (N_VOLUMES,), 'chunks': (N_VOLUMES,)}
NO_IMAGES = 'only the categories of the pictures are in this collection; decode them, or use recorded features'


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Every volume as measured (`volumes`), or a mean for each category and run (`blocks`). Raises: RequestError."""
    found = read_arrays(find('Haxby2001', data_dir, 'sub001_slice_vt_mask530.npz'), SHAPES)
    volumes, labels, run = found['bold'][:, found['mask']].astype(np.float32), found['labels'], found['chunks']
    row, column = np.nonzero(found['mask'])
    neuroid = {
        'neuroid_id': [f'{r}.{c}' for r, c in zip(row.tolist(), column.tolist(), strict=True)],
        'region': ['VT'] * len(row),
        'row': row,
        'column': column,
    }
    if which == 'volumes':
        repetition = np.empty(N_VOLUMES, int)
        for label in np.unique(labels):
            repetition[labels == label] = np.arange((labels == label).sum())
        seconds = np.concatenate([np.arange((run == r).sum()) * SECONDS for r in np.unique(run)])
        presentation = {'stimulus_id': labels, 'repetition': repetition, 'run': run, 'time': seconds}
        made = make.neuroids(volumes, presentation=presentation, neuroid=neuroid)
    else:
        means, category, of_run = blocks(volumes.astype(float), labels, run)
        presentation = {'stimulus_id': category, 'repetition': of_run}
        made = make.neuroids(means, presentation=presentation, neuroid=neuroid)
    table = {'stimulus_id': np.unique(made['stimulus_id'].values).tolist()}
    return stimuli.absent(f'Haxby2001.{which}', table, NO_IMAGES), made


def blocks(volumes: np.ndarray, labels: np.ndarray, run: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of the volumes of a category in a run, each run detrended and z-scored by its own rest.

    Args:
      volumes: [volume, voxel], in time.
      labels: [volume], `rest` among them.
      run: [volume].

    Returns: means [run x category, voxel], categories and runs of its rows.
    """
    from scipy.signal import detrend

    means, category, of_run = [], [], []
    for r in np.unique(run).tolist():
        signal, shown = detrend(volumes[run == r], axis=0), labels[run == r]
        rest = signal[shown == 'rest']
        deviation = rest.std(0)
        scaled = (signal - rest.mean(0)) / np.where(deviation > 0, deviation, 1)
        for label in sorted(set(shown.tolist()) - {'rest'}):
            means.append(scaled[shown == label].mean(0))
            category.append(label)
            of_run.append(r)
    return np.stack(means), np.array(category), np.array(of_run)
