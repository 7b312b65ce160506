"""Rows and units of assemblies: averages, repetitions, regions, reliable units, other orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment.assembly import check, plain, title
from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

    from jbench.alignment.stimuli import StimulusSet


def average_repetitions(assembly: DataArray) -> DataArray:
    """Mean over repetitions, NaN skipped: one row for each combination of the other presentation coordinates.

    Rows come out sorted by those coordinates, the first coordinate first, as the reference sorts them. Attributes and
    single precision are kept; sums are in double. Without a coordinate `repetition` the rows are sorted all the same.
    """
    order, start = _groups(assembly)
    values = assembly.values[order]
    dtype = values.dtype if values.dtype.kind == 'f' else np.dtype(float)
    n_given = np.add.reduceat(
        ~np.isnan(values) if values.dtype.kind == 'f' else np.ones_like(values, bool), start, 0, int
    )
    total = np.add.reduceat(np.nan_to_num(values, copy=False) if values.dtype.kind == 'f' else values, start, 0, float)
    with np.errstate(invalid='ignore'):
        mean = (total / n_given).astype(dtype)
    kept = assembly.isel(presentation=order[start]).drop_vars('repetition', errors='ignore')
    return kept.copy(data=mean)


def _groups(assembly: DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Rows sorted by all presentation coordinates but `repetition`, and where each group starts among them."""
    names = [str(k) for k, c in assembly.coords.items() if c.dims == ('presentation',) and k != 'repetition']
    codes = np.stack([np.unique(assembly[k].values, return_inverse=True)[1].ravel() for k in names])
    order = np.lexsort(codes[::-1])
    return order, np.flatnonzero(np.r_[True, (np.diff(codes[:, order]) != 0).any(0)])


def trials(assembly: DataArray) -> np.ndarray:
    """Single presentations, [repetition, presentation, neuroid] or with time bins after that; NaN where there is none.

    Presentations come in the order of `average_repetitions`, repetitions ascending by their coordinate.

    Raises: RequestError for an assembly without a coordinate `repetition`.
    """
    if 'repetition' not in assembly.coords:
        raise RequestError(f"{title(assembly)} has no coordinate 'repetition': its repetitions are averaged already")
    order, start = _groups(assembly)
    which, row = np.unique(assembly['repetition'].values, return_inverse=True)
    group = np.repeat(np.arange(len(start)), np.diff([*start, len(order)]))
    dtype = assembly.dtype if assembly.dtype.kind == 'f' else float
    padded = np.full((len(which), len(start), *assembly.shape[1:]), np.nan, dtype)
    padded[row.ravel()[order], group] = assembly.values[order]
    return padded


def region(assembly: DataArray, name: str) -> DataArray:
    """The units of one region, `V4`. Raises: RequestError where there are none."""
    return with_value(assembly, 'region', name)


def with_value(assembly: DataArray, coordinate: str, value: Any) -> DataArray:
    """What has this value of a coordinate: `('subject', 'PE')`, `('condition', 'c50')`. Raises: RequestError."""
    if coordinate not in assembly.coords or len(assembly[coordinate].dims) != 1:
        raise RequestError(
            f'{title(assembly)} has no coordinate {coordinate!r}: {", ".join(map(str, assembly.coords))}'
        )
    (kept,) = np.nonzero(assembly[coordinate].values == value)
    if not len(kept):
        there = ', '.join(map(str, np.unique(assembly[coordinate].values)[:20]))
        raise RequestError(f'{title(assembly)} has no {coordinate} {value!r}; there: {there}')
    return assembly.isel({assembly[coordinate].dims[0]: kept})


def reliable(assembly: DataArray, above: float = 0.3) -> DataArray:
    """The units whose coordinate `reliability` lies above a threshold, not at it. Raises: RequestError for none."""
    if 'reliability' not in assembly.coords:
        raise RequestError(
            f"{title(assembly)} has no coordinate 'reliability' on 'neuroid'; add one before this filter"
        )
    reliability = assembly['reliability'].values
    (kept,) = np.nonzero(reliability > above)
    if not len(kept):
        best = f'the best has {np.nanmax(reliability):.3g}' if np.isfinite(reliability).any() else 'all are NaN'
        raise RequestError(f'{title(assembly)}: no unit has a reliability above {above} ({best}); lower the threshold')
    return assembly.isel(neuroid=kept)


def in_order(assembly: DataArray, stimulus_ids: Sequence[str]) -> DataArray:
    """The presentations of these stimuli, in this order. Raises: RequestError for ids that are absent or ambiguous."""
    ids = assembly['stimulus_id'].values.tolist()
    if len(set(ids)) < len(ids):
        raise RequestError(f'{title(assembly)} has several rows for a stimulus; average its repetitions first')
    where = {stimulus: row for row, stimulus in enumerate(ids)}
    absent = [s for s in stimulus_ids if s not in where]
    if absent:
        raise RequestError(f'{title(assembly)} has no row for {_few(absent)}; give it all stimuli that are asked for')
    rows = [where[s] for s in stimulus_ids]
    kept = assembly.isel(presentation=rows)
    return kept.isel(paired=rows) if 'paired' in assembly.dims else kept


def subset(assembly: DataArray, other: DataArray) -> DataArray:
    """The presentations whose stimuli `other` has too, in the order of `assembly`."""
    (rows,) = np.nonzero(np.isin(assembly['stimulus_id'].values, other['stimulus_id'].values))
    return assembly.isel(presentation=rows)


def flatten_time(assembly: DataArray) -> DataArray:
    """Time bins as further units, the bins of a unit side by side; one bin, from the first start to the last end.

    `recording_time` says the start of the bin that a unit came from; ids become `id@start`.

    Raises: RequestError for an assembly without time bins.
    """
    if 'time_bin' not in assembly.dims:
        raise RequestError(f'{title(assembly)} has no time bins to flatten')
    n_rows, n_units, n_bins = assembly.shape
    starts = assembly['time_bin_start'].values
    unit, time = np.repeat(np.arange(n_units), n_bins), np.tile(starts, n_units)
    columns = {str(k): (c.dims, c.values) for k, c in assembly.coords.items() if 'time_bin' not in c.dims}
    columns = {k: (d, v[unit]) if d == ('neuroid',) else (d, v) for k, (d, v) in columns.items()}
    ids = [f'{i}@{t:g}' for i, t in zip(columns['neuroid_id'][1].tolist(), time.tolist(), strict=True)]
    columns |= {'neuroid_id': (('neuroid',), np.array(ids)), 'recording_time': (('neuroid',), time)}
    columns['time_bin_start'] = (('time_bin',), starts[:1])
    columns['time_bin_end'] = (('time_bin',), assembly['time_bin_end'].values[-1:])
    values = assembly.values.reshape(n_rows, n_units * n_bins, 1)
    made: DataArray = need('xarray', 'an assembly').DataArray(values, columns, assembly.dims, attrs=assembly.attrs)
    return check(made)


def with_stimuli(assembly: DataArray, stimuli: StimulusSet) -> DataArray:
    """The columns of the stimuli as coordinates of the presentations, by `stimulus_id`; those that are there stay.

    Raises: RequestError where a stimulus of the assembly is not in the set.
    """
    row = {stimulus: k for k, stimulus in enumerate(stimuli.ids)}
    ids = assembly['stimulus_id'].values.tolist()
    absent = [i for i in dict.fromkeys(ids) if i not in row]
    if absent:
        found = f'stimulus set {stimuli.identifier} has no {_few(absent)}'
        raise RequestError(f'{title(assembly)}: {found}; give the set that was shown, or leave these rows out')
    rows = [row[i] for i in ids]
    new = [c for c in stimuli.table.columns if c not in assembly.coords]
    added = {str(c): ('presentation', plain(stimuli.table[c].to_numpy()[rows])) for c in new}
    return assembly.assign_coords(added).assign_attrs(stimulus_set=stimuli.identifier)


def _few(names: Sequence[Any]) -> str:
    more = f' and {len(names) - 3} more' if len(names) > 3 else ''
    return ', '.join(map(repr, names[:3])) + more
