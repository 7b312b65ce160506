"""Bonner81: one person's responses to 81 categories of objects in 7 regions, and two sets of features of them.

Responses are means over ten pictures of a category, without repetitions: no ceiling can be computed.
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

SHAPES = {
    'betas': (81, 696),
    'conditions': (81,),
    'roi_index': (696,),
    'roi_names': (7,),
    'alexnet_pc20': (81, 20),
    'word2vec_pc30': (81, 30),
}
NO_IMAGES = 'only the names of the categories are in this collection; use its recorded features'


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Responses of all voxels, with the region of each. Raises: RequestError."""
    del which
    found = read_arrays(find('Bonner81', data_dir, 'bonner81_roi.npz'), SHAPES)
    neuroid = {'neuroid_id': [str(k) for k in range(696)], 'region': found['roi_names'][found['roi_index'] - 1]}
    table = {'stimulus_id': found['conditions'].tolist()}
    made = make.neuroids(found['betas'], presentation=table, neuroid=neuroid)
    return stimuli.absent('Bonner81', table, NO_IMAGES), made


def features(data_dir: str | Path) -> dict[str, dict[str, np.ndarray]]:
    """Recorded features, `alexnet` (20 components) and `word2vec` (30): by name, stimulus_id -> vector.

    Raises: RequestError.
    """
    found = read_arrays(find('Bonner81', data_dir, 'bonner81_roi.npz'), SHAPES)
    named = {'alexnet': 'alexnet_pc20', 'word2vec': 'word2vec_pc30'}
    ids = found['conditions'].tolist()
    return {name: dict(zip(ids, found[key], strict=True)) for name, key in named.items()}
