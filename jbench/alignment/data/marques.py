"""Marques2020: numbers measured of single neurons in macaque V1, in five older studies.

Of Cavanaugh 2002, De Valois 1982 and Schiller 1976 the counts of the published histograms are known: a neuron gets the
middle of its bin (on the scale of the study), one without a value NaN. What a histogram says comes out exactly; which
values belong to one neuron is not known. Of Ringach 2002 and Freeman, Ziemba 2013 the values of each neuron are read
from the assemblies that github.com/brain-score/brainio_collection held at commit 9222355c.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment import assembly as make
from jbench.alignment import stimuli
from jbench.alignment.data.sources import find, missing
from jbench.alignment.extra import need
from jbench.files import read_json
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

SOURCE = 'Marques2020'
ASSEMBLIES = {
    'Ringach2002': 'assy_shapley_Ringach2002.nc',
    'FreemanZiemba2013_V1_properties': 'assy_movshon_FreemanZiemba2013_V1_properties.nc',
}
PUBLISHED = (
    'the counts of its histograms were never published; get {file} from github.com/brain-score/brainio_collection at '
    'commit 9222355c51e6a7025bce13525ca0210bb4ddf031 (brainio_collection/) and put it there'
)
NO_IMAGES = 'the gratings and textures are not in this collection; gratings are drawn from the published parameters'


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """The properties of one study. Raises: RequestError."""
    if which in ASSEMBLIES:
        return _read_assembly(data_dir, ASSEMBLIES[which])
    path = find(SOURCE, data_dir, 'property_histograms.json')
    try:
        study = read_json(path)[which]
        columns = {name: _values(p) for name, p in study['properties'].items()}
        bins = {name: p['bins']['edges'] for name, p in study['properties'].items()}
        n_neurons = study.get('n_neurons') or max(map(len, columns.values()))
        values = np.full((n_neurons, len(columns)), np.nan)
        for k, column in enumerate(columns.values()):
            values[: len(column), k] = column
        n_trials = int(study['number_of_trials'])
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(f'{path}: not the expected histograms of {which} ({error}); fetch it again') from error
    return _properties(values, bins, n_trials, study['stimuli'])


def _values(histogram: dict[str, Any]) -> np.ndarray:
    """The middle of its bin for each neuron that is counted; exactly 0 and 1 of a property that is one of both."""
    edges, counts = np.asarray(histogram['bins']['edges'], float), np.asarray(histogram['hist'], int)
    if len(counts) != len(edges) - 1 or counts.sum() != histogram['n']:
        raise ValueError(f'{len(counts)} bins with {counts.sum()} neurons for {len(edges)} edges, {histogram["n"]}')
    middles = {
        'linear': (edges[1:] + edges[:-1]) / 2,
        'log2': np.sqrt(edges[1:] * edges[:-1]) if (edges > 0).all() else edges[1:],
        'binary 0/1': np.arange(len(counts), dtype=float),
    }
    return np.repeat(middles[histogram['sample_scale']], counts)


def _read_assembly(data_dir: Path, file: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Values of each neuron, as the older collection of Brain-Score had them; its `bandwith` is `bandwidth` here."""
    try:
        path = find(SOURCE, data_dir, file)
    except RequestError as error:
        if not str(error).startswith('data missing'):
            raise
        raise missing(SOURCE, data_dir, [file], PUBLISHED.format(file=file)) from error
    xarray = need('xarray', 'reading netCDF')
    need('h5netcdf', 'reading netCDF')
    with xarray.open_dataarray(path, engine='h5netcdf') as opened:
        names = opened['neuronal_property_'].values.tolist()
        bins = {n.replace('bandwith', 'bandwidth'): opened.attrs[f'{n}_bins'].tolist() for n in names}
        values, n_trials = opened.values, int(opened.attrs['number_of_trials'])
    return _properties(values, bins, n_trials, 'Marques2020_orientation' if 'Ringach' in file else 'FreemanZiemba2013')


def _properties(
    values: np.ndarray, bins: dict[str, Any], n_trials: int, shown: str
) -> tuple[stimuli.StimulusSet, DataArray]:
    neuroid = {'neuroid_id': [str(k) for k in range(len(values))], 'region': ['V1'] * len(values)}
    made = make.properties(values, neuroid=neuroid, bins=bins, number_of_trials=n_trials)
    return stimuli.absent(shown, {'stimulus_id': ['all']}, NO_IMAGES), made
