"""Outputs of networks that Brain-Score's own tests read: probabilities of 24 objects, activations of one image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.alignment import assembly as make
from jbench.alignment import stimuli
from jbench.alignment.data.sources import find
from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

FILES = {'alexnet-units': 'alexnet-rgb-None.nc', 'alexnet-pca': 'alexnet-rgb-1000.nc'}
NO_IMAGES = 'the images are not in this collection'


def read(data_dir: Path, which: str) -> tuple[stimuli.StimulusSet, DataArray]:
    """Probabilities of `alexnet`, `resnet18`, `resnet34`; activations `alexnet-units`, `alexnet-pca`.

    Raises: RequestError.
    """
    path = find('BrainScoreTestAssemblies', data_dir, FILES.get(which, f'{which}-probabilities.nc'))
    opened = _open(path)
    if which not in FILES:
        ids = opened['image_id'].values.tolist()
        choice = opened['choice_'].values.tolist()
        made = make.behaviour(opened.values, presentation={'stimulus_id': ids}, choice=choice)
        return stimuli.absent('objectome-240', {'stimulus_id': ids}, NO_IMAGES), made
    ids = [Path(p).name for p in opened['stimulus_path'].values.tolist()]
    layers, numbers = opened['layer'].values.tolist(), opened['neuroid_id'].values.tolist()
    names = [f'{layer}.{number}' for layer, number in zip(layers, numbers, strict=True)]
    neuroid = {'neuroid_id': names, 'layer': layers}
    made = make.neuroids(opened.values, presentation={'stimulus_id': ids}, neuroid=neuroid)
    return stimuli.absent('rgb', {'stimulus_id': ids}, NO_IMAGES), made


def _open(path: Path) -> Any:
    """The one array of a netCDF file, in memory. Raises: RequestError."""
    need('h5netcdf', 'reading netCDF')
    xarray = need('xarray', 'reading netCDF')
    try:
        with xarray.open_dataarray(path, engine='h5netcdf') as opened:
            return opened.load()
    except (OSError, ValueError) as error:
        raise RequestError(f'{path}: not a readable netCDF file ({error}); fetch it again') from error
