"""KarITneuron: one site of macaque IT, 640 images shown 63 times; rates against a baseline, so below zero at times."""

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

N, TIMES = 640, 63


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Every presentation. Raises: RequestError."""
    del which
    found = read_arrays(find('KarITneuron', data_dir, 'sample_it_neuron.npz'), {'rates': (N, TIMES)})
    ids = [f'image{k + 1:03d}' for k in range(N)]
    presentation = {'stimulus_id': np.repeat(ids, TIMES), 'repetition': np.tile(np.arange(TIMES), N)}
    neuroid = {'neuroid_id': ['0'], 'region': ['IT']}
    made = make.neuroids(found['rates'].reshape(-1, 1), presentation=presentation, neuroid=neuroid)
    return stimuli.absent('KarITneuron', {'stimulus_id': ids}, 'its images were not published with the neuron'), made
