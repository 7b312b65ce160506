"""Cowley2023: spike counts of macaque V4 in 100 ms, per image; natural images, in one session those of Bashivan 2019.

Images and responses correspond by the order of the sorted names of the images. Session 201016 has repetitions but no
images, three others images but averages alone.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jbench.alignment import assembly as make
from jbench.alignment import stimuli
from jbench.alignment.data.arrays import read_arrays
from jbench.alignment.data.sources import find
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

SOURCE = 'Cowley2023'


class Session(NamedTuple):
    """What a session holds."""

    monkey: str
    n_units: int
    n_images: int
    repetitions: bool  # single presentations are there
    images: bool


SESSIONS = {
    '190923': Session('WE', 33, 1200, repetitions=False, images=True),
    '201025': Session('PE', 89, 1200, repetitions=False, images=True),
    '210225': Session('PE', 55, 1200, repetitions=False, images=True),
    '210325': Session('PE', 50, 640, repetitions=True, images=True),
    '201016': Session('PE', 82, 600, repetitions=True, images=False),
}


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """A session: counts of single presentations where they are there, else their means. Raises: RequestError."""
    session = SESSIONS[which]
    images = _images(data_dir, which) if session.images else _no_images(which)
    ids = np.array(images.ids)
    units = np.arange(session.n_units)
    neuroid = {
        'neuroid_id': [f'{session.monkey}.{which}.{u}' for u in units],
        'region': ['V4'] * len(units),
        'subject': [session.monkey] * len(units),
        'session': [which] * len(units),
    }
    if not session.repetitions:
        means = _means(data_dir, which)
        made = make.neuroids(means.T, presentation={'stimulus_id': ids}, neuroid=neuroid)
        return images, made
    counts = _counts(data_dir, which)
    image, repetition = np.nonzero(~np.isnan(counts[0]))  # a repetition is there for all units or for none
    presentation = {'stimulus_id': ids[image], 'repetition': repetition}
    return images, make.neuroids(counts[:, image, repetition].T, presentation=presentation, neuroid=neuroid)


def _means(data_dir: Path, which: str) -> np.ndarray:
    """Mean counts [unit, image], float32."""
    session = SESSIONS[which]
    path = find(SOURCE, data_dir, f'responses_avg_{which}.npz', *_upstream('responses_repeat_averaged', which))
    if path.suffix == '.npz':
        return read_arrays(path, {'mean_counts': (session.n_units, session.n_images)})['mean_counts']
    return _published(path, (session.n_units, session.n_images))


def _counts(data_dir: Path, which: str) -> np.ndarray:
    """Counts [unit, image, repetition], float32; NaN where there is no such repetition."""
    session = SESSIONS[which]
    shape = (session.n_units, session.n_images, 10)
    path = find(SOURCE, data_dir, f'responses_raw_{which}.npz', *_upstream('responses_raw', which))
    if path.suffix == '.npy':
        return _published(path, shape)
    counts = read_arrays(path, {'counts': shape})['counts']
    return np.where(counts < 0, np.float32(np.nan), counts.astype(np.float32))


def _published(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """An array as published, float64 there. Raises: RequestError for another shape."""
    try:
        found: np.ndarray = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise RequestError(f'{path}: not a readable npy ({error}); fetch the file again') from error
    if found.shape != shape:
        raise RequestError(f'{path}: shape {found.shape}, expected {shape}; fetch the file again')
    return found.astype(np.float32)


def _upstream(folder: str, which: str) -> list[str]:
    return [f'{folder}/responses_{which}.npy', f'data_V4_responses/{folder}/responses_{which}.npy']


def _images(data_dir: Path, which: str) -> stimuli.StimulusSet:
    """The images, 112 by 112."""
    file = f'images_{which}.zip'
    path = find(SOURCE, data_dir, file, f'images/{file}', f'data_V4_responses/images/{file}')
    with zipfile.ZipFile(path) as archive:
        names = sorted(n for n in archive.namelist() if n.endswith('.jpg'))
        files = {Path(n).stem: archive.read(n) for n in names}  # 4 MB; decoded when they are asked for
    if len(names) != SESSIONS[which].n_images:
        raise RequestError(f'{path}: {len(names)} images, expected {SESSIONS[which].n_images}; fetch the file again')

    def read_image(stimulus_id: str) -> np.ndarray:
        return stimuli.decode(files[stimulus_id], f'{path}, {stimulus_id}')

    def digest_of(stimulus_id: str) -> str:
        return hashlib.sha256(files[stimulus_id]).hexdigest()

    return stimuli.make(f'Cowley2023.{which}', {'stimulus_id': list(files)}, read_image, digest_of)


def _no_images(which: str) -> stimuli.StimulusSet:
    ids = [f'image{k + 1:04d}' for k in range(SESSIONS[which].n_images)]
    why = 'its authors published no images of this session; use session 210325, which has images and repetitions'
    return stimuli.absent(f'Cowley2023.{which}', {'stimulus_id': ids}, why)
