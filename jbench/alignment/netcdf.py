"""Assemblies as netCDF files, and back bit for bit.

A netCDF file has no truth values, no lists in attributes and one kind of text. So what it cannot say is said beside it
in a layout of plain values (dtypes, attributes), and an assembly that would not come back the same is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment.assembly import title
from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

Layout = dict[str, Any]  # JSON values
PLAIN = {'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8'}  # that a netCDF file holds as they are
STAND_IN = {'b1': 'u1', 'f2': 'u2', 'M8': 'i8', 'm8': 'i8'}  # bits of the first as numbers of the second


def digest(assembly: DataArray) -> str:
    """SHA-256 over dimensions, types, values, coordinates, attributes and name: the same on every machine.

    Raises: RequestError for attributes that are no plain values.
    """
    content = hashlib.sha256(json.dumps(_layout(assembly), sort_keys=True).encode())
    for values in [assembly.values, *(assembly.coords[k].values for k in sorted(map(str, assembly.coords)))]:
        if values.dtype.kind in 'UO':
            content.update(json.dumps(values.tolist(), default=repr).encode())
        else:
            content.update(np.ascontiguousarray(values).tobytes())
    return content.hexdigest()


def write(assembly: DataArray) -> tuple[bytes, Layout]:
    """An assembly as the bytes of a netCDF file, and its layout.

    Raises: RequestError for what would not come back the same: other types than numbers, truth values, times and text;
      attributes that are no plain values.
    """
    xarray = need('xarray', 'writing netCDF')
    need('h5netcdf', 'writing netCDF')
    layout = _layout(assembly)
    columns = {str(k): (c.dims, _storable(c.values, str(k), assembly)) for k, c in assembly.coords.items()}
    values = _storable(assembly.values, 'values', assembly)
    dataset = xarray.Dataset({layout['values']: (assembly.dims, values)}, columns)
    numbers = values.size and values.ndim and values.dtype.kind != 'U'
    encoding = {layout['values']: {'zlib': True, 'complevel': 4}} if numbers else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'assembly.nc'
        try:
            dataset.to_netcdf(path, engine='h5netcdf', encoding=encoding)
        except ValueError as error:  # text with a zero byte
            raise RequestError(f'{title(assembly)} cannot be stored: {error}; store plain numbers and text') from error
        back = read(path, layout)
        same = digest(back) == digest(assembly)
        back.close()
        if not same:
            raise RequestError(f'{title(assembly)} would not come back the same; store plain numbers and text in it')
        return path.read_bytes(), layout


def read(source: Any, layout: Layout) -> DataArray:
    """The assembly of a netCDF file; its values are read when they are asked for.

    Args:
      source: a path, or a file object in memory.
      layout: as `write` gave it.
    """
    xarray = need('xarray', 'reading netCDF')
    need('h5netcdf', 'reading netCDF')
    raw = xarray.open_dataset(source, engine='h5netcdf', mask_and_scale=False, decode_times=False)
    coords = {}
    for name in layout['order']:
        about = layout['coords'][name]
        coords[name] = (tuple(about['dims']), _as_was(raw[name].values, about['dtype']))
    values = raw[layout['values']].reset_coords(drop=True).drop_vars(layout['order'], errors='ignore')
    if values.dtype.str != layout['dtype']:
        values = values.copy(data=_as_was(values.values, layout['dtype']))
    made: DataArray = values.assign_coords(coords).rename(layout['name']).drop_encoding()
    made.attrs = _unpacked(layout['attrs'])
    made.set_close(raw.close)
    return made


def _layout(assembly: DataArray) -> Layout:
    """What a netCDF file does not say."""
    coords = {str(k): {'dims': list(map(str, c.dims)), 'dtype': c.dtype.str} for k, c in assembly.coords.items()}
    name = 'values'
    while name in coords:
        name += '_'
    return {
        'dims': list(map(str, assembly.dims)),
        'dtype': assembly.dtype.str,
        'coords': coords,
        'order': list(coords),  # of coordinates: averages are sorted by it
        'attrs': _packed(dict(assembly.attrs), title(assembly)),
        'name': assembly.name,
        'values': name,
    }


def _storable(values: np.ndarray, name: str, assembly: DataArray) -> np.ndarray:
    """Values as a netCDF file holds them. Raises: RequestError for a type that it cannot hold."""
    stand_in = STAND_IN.get(values.dtype.str[1:3])
    if stand_in:
        return values.view(stand_in)
    if values.dtype.kind == 'U' or values.dtype.str[1:] in PLAIN:
        return values
    raise RequestError(f'{title(assembly)}: {name} of type {values.dtype} cannot be stored; make it numbers or text')


def _as_was(values: np.ndarray, dtype: str) -> np.ndarray:
    """The inverse of `_storable`."""
    if dtype[1:3] in STAND_IN:
        return np.ascontiguousarray(values).view(dtype)
    return np.asarray(values).astype(dtype)


def _packed(value: Any, where: str) -> Any:
    """Plain values as JSON has them, with marks where it does not. Raises: RequestError."""
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, float):
        return {'float': repr(value)}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in 'biufU':
        if value.dtype.kind != 'f':
            return {'array': value.tolist(), 'dtype': value.dtype.str, 'shape': list(value.shape)}
        return {
            'array': [v.hex() for v in value.ravel().tolist()],
            'dtype': value.dtype.str,
            'shape': list(value.shape),
        }
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_packed(v, where) for v in value]}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {'dict': {k: _packed(v, where) for k, v in value.items()}}
    raise RequestError(
        f'{where}: attribute value {value!r:.60} ({type(value).__name__}) cannot be stored; make it plain'
    )


def _unpacked(value: Any) -> Any:
    """The inverse of `_packed`."""
    if not isinstance(value, dict):
        return value
    if 'array' in value:
        dtype, shape = np.dtype(value['dtype']), tuple(value['shape'])
        numbers = [float.fromhex(v) for v in value['array']] if dtype.kind == 'f' else value['array']
        return np.array(numbers, dtype).reshape(shape)[()]
    if 'float' in value:
        return float(value['float'])
    if 'dict' in value:
        return {k: _unpacked(v) for k, v in value['dict'].items()}
    kind = list if 'list' in value else tuple
    return kind(_unpacked(v) for v in value[kind.__name__])
