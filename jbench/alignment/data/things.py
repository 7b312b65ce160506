"""THINGS: where 1,854 objects lie in the space of odd-one-out judgements; the dot product is their similarity.

The few values a little below zero are zero here, as the model that made them has none.
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

N = 1854
NO_IMAGES = 'only the names of the objects are in this collection; use recorded features'


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """The embedding of 49 or 66 dimensions, with what each is called. Raises: RequestError."""
    shapes = {f'emb{which}': (N, int(which)), f'labels{which}': (int(which),), 'unique_id': (N,)}
    found = read_arrays(find('THINGS', data_dir, 'spose_embeddings.npz'), shapes)
    neuroid = {'neuroid_id': [str(k) for k in range(int(which))], 'label': found[f'labels{which}']}
    table = {'stimulus_id': found['unique_id'].tolist()}
    made = make.neuroids(np.maximum(found[f'emb{which}'], 0), presentation=table, neuroid=neuroid)
    return stimuli.absent('THINGS', table, NO_IMAGES), made
