"""Geirhos2021: which of 16 classes people, and four networks, chose for each image, in 17 experiments.

`na` as an answer means none; it counts as wrong. Conditions are texts; two that are the same number are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment import assembly as make
from jbench.alignment import stimuli
from jbench.alignment.data.sources import find
from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import DataArray

CATEGORIES = (
    *('airplane', 'bear', 'bicycle', 'bird', 'boat', 'bottle', 'car', 'cat', 'chair', 'clock', 'dog', 'elephant'),
    *('keyboard', 'knife', 'oven', 'truck'),
)
EXCLUDED: dict[str, tuple[str, ...]] = {  # conditions that the published scores leave out: unchanged, or at chance
    'colour': ('cr',),
    'contrast': ('c100', 'c03', 'c01'),
    'eidolonI': ('1-10-10', '64-10-10', '128-10-10'),
    'eidolonII': ('1-3-10', '32-3-10', '64-3-10', '128-3-10'),
    'eidolonIII': ('1-0-10', '16-0-10', '32-0-10', '64-0-10', '128-0-10'),
    'false-colour': ('true',),
    'high-pass': ('inf', '0.55', '0.45', '0.4'),
    'low-pass': ('0', '15', '40'),
    'phase-scrambling': ('0', '150', '180'),
    'power-equalisation': ('0',),
    'rotation': ('0',),
    'uniform-noise': ('0.0', '0.6', '0.9'),
}
MODELS = ('resnet50', 'bagnet33', 'simclr-resnet50x1', 'swag-vit-l16-in1k')
NO_IMAGES = (
    'the images are under the terms of ImageNet and not in this collection; score recorded choices, or get the '
    'archives of github.com/bethgelab/model-vs-human'
)
NO_TRIALS = 'get them from github.com/bethgelab/model-vs-human (networks at commit 93ee6766) and put them there'
_COLUMNS = ['object_response', 'category', 'condition', 'image_key', 'trial']


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Trials of one experiment, `sketch` of people, `models/sketch` of networks. Raises: RequestError."""
    experiment = which.removeprefix('models/')
    people = which == experiment
    file = 'human_trials.parquet' if people else 'model_trials.parquet'
    path = find('Geirhos2021', data_dir, file, f'raw-data/{experiment}')
    trials = (_published if path.is_dir() else _trials)(path, 'subj' if people else 'model', people)
    trials = trials[trials['experiment'].astype(str) == experiment]
    presentation: dict[str, Any] = {
        'stimulus_id': trials['image_key'].astype(str).to_numpy(str),
        'truth': trials['category'].astype(str).to_numpy(str),
        'condition': trials['condition'].astype(str).to_numpy(str),
        'subject': trials['subj' if people else 'model'].astype(str).to_numpy(str),
        'trial': trials['trial'].to_numpy(),
    }
    if people:
        presentation |= {'session': trials['session'].to_numpy(), 'response_time': trials['rt'].to_numpy()}
    chosen = trials['object_response'].astype(str).to_numpy(str)
    table = {k: presentation[k] for k in ('stimulus_id', 'truth', 'condition')} | {'image_label': presentation['truth']}
    shown = need('pandas', 'a stimulus set').DataFrame(table).drop_duplicates('stimulus_id')
    shown = shown.sort_values('stimulus_id').reset_index(drop=True)
    return stimuli.absent(f'Geirhos2021.{experiment}', shown, NO_IMAGES), make.behaviour(
        chosen, presentation=presentation
    )


def _trials(path: Path, who: str, people: bool) -> DataFrame:
    """The table of trials. Raises: RequestError where columns are missing."""
    need('pyarrow', 'reading parquet files')
    found = need('pandas', 'reading parquet files').read_parquet(path)
    absent = {who, 'experiment', *_COLUMNS, *(('session', 'rt') if people else ())} - set(found.columns)
    if absent:
        raise RequestError(f'{path}: no column {", ".join(sorted(absent))}; fetch the file again')
    table: DataFrame = found
    return table


def _published(folder: Path, who: str, people: bool) -> DataFrame:
    """The same from the CSV files of one experiment, as they were published. Raises: RequestError."""
    pandas = need('pandas', 'reading CSV files')
    paths = sorted(p for p in folder.glob('*.csv') if ('_subject-' in p.name) == people)
    if not paths:
        kind = f'{folder.name}_subject-*.csv' if people else f'{folder.name}_resnet50_session-1.csv and others'
        raise RequestError(f'data missing: Geirhos2021 needs {kind} under {folder}; {NO_TRIALS}')
    parts = [
        pandas.read_csv(p, dtype=str, keep_default_na=False)
        .rename(columns=str.lower)
        .assign(**{who: p.name.removeprefix(f'{folder.name}_').partition('_session')[0]})
        for p in paths
    ]
    table: DataFrame = pandas.concat(parts, ignore_index=True)
    absent = {'session', 'rt', 'imagename', *_COLUMNS} - {'image_key'} - set(table.columns)
    if absent:
        raise RequestError(f'{folder}: no column {", ".join(sorted(absent))} in {paths[0].name}; fetch the files again')
    last = folder.name in ('cue-conflict', 'edge', 'silhouette')
    names = table['imagename'].tolist()
    keys = [n.rpartition('_')[2] if last else n.split('_', 3)[-1] for n in names]  # behind trial, experiment, person
    numbers = pandas.to_numeric(table['rt'], errors='coerce').astype('float32')
    made: DataFrame = table.assign(
        experiment=folder.name,
        image_key=keys,
        condition=table['condition'].replace({'NaN': '0', '': '0'}),
        rt=numbers,
        trial=table['trial'].astype('int16'),
        session=table['session'].astype('int8'),
    )
    return made


def scored(assembly: DataArray) -> DataArray:
    """The trials of the conditions that published scores are about: EXCLUDED is left out."""
    experiment = assembly.attrs['stimulus_set'].removeprefix('Geirhos2021.')
    left_out = {_number(c) for c in EXCLUDED.get(experiment, ())}
    conditions = assembly['condition'].values.tolist()
    return assembly.isel(presentation=np.array([_number(c) not in left_out for c in conditions]))


def _number(condition: str) -> float | str:
    """A condition as a number where it is one: `0.0` is `0`."""
    try:
        return float(condition)
    except ValueError:
        return condition
