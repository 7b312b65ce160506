"""Kriegeskorte92: 92 images of objects; RDMs of human and monkey IT, of similarity judgements, and of models.

Dissimilarity is 1 - Pearson in IT; distance in an arrangement in behaviour, not of one scale over people.
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

N = 92
SHAPES: dict[str, tuple[int, ...]] = {
    'images': (N, 175, 175, 3),
    'category': (N,),
    'is_human': (N,),
    'is_face': (N,),
    'is_animal': (N,),
    'is_natural': (N,),
    'rdm_monkeyIT': (N * (N - 1) // 2,),
    'rdm_humanIT_subj_sess': (4, 2, N, N),
    'humanIT_names': (4, 2),
    'rdm_behaviour': (16, N, N),
    'rdm_models': (8, N, N),
    'model_names': (8,),
}


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """The images, and RDMs of `human`, `human_sessions`, `monkey`, `behaviour` or `models`. Raises: RequestError."""
    found = read_arrays(find('Kriegeskorte92', data_dir, 'kriegeskorte92.npz'), SHAPES)
    ids = [f'image{k + 1:02d}' for k in range(N)]
    marks = {name: found[name].astype(bool) for name in SHAPES if name.startswith('is_')}
    table = {'stimulus_id': ids, 'image_label': found['category'], **marks}
    images = stimuli.of_arrays('Kriegeskorte92', table, list(found['images']))
    rdms, subject = _rdms(found, which)
    return images, make.rdms(rdms, presentation={'stimulus_id': ids}, subject=subject)


def _rdms(found: dict[str, np.ndarray], which: str) -> tuple[np.ndarray, dict[str, list[str]]]:
    """RDMs [subject, image, image], and what is known of the subjects."""
    if which == 'monkey':
        square = np.zeros((1, N, N))
        above = np.triu_indices(N, 1)
        square[0][above] = square[0].T[above] = found['rdm_monkeyIT']
        return square, {'subject': ['monkeys'], 'region': ['IT']}
    if which == 'behaviour':
        return found['rdm_behaviour'], {'subject': [f'subject{k + 1:02d}' for k in range(16)]}
    if which == 'models':
        return found['rdm_models'], {'subject': found['model_names'].tolist()}
    people = [name.split(' | ')[1] for name in found['humanIT_names'][:, 0].tolist()]
    both = found['rdm_humanIT_subj_sess']
    if which == 'human':
        return both.astype(float).mean(1), {'subject': people, 'region': ['IT'] * 4}
    names = [f'{p}.{s}' for p in people for s in (1, 2)]
    by = {'person': [p for p in people for _ in (1, 2)], 'session': ['1', '2'] * 4}
    return both.reshape(8, N, N), {'subject': names, **by, 'region': ['IT'] * 8}
