"""Assemblies: recorded or computed values with their coordinates, each a checked `xarray.DataArray`.

A coordinate lies on one dimension (or on none) and is no index, except `choice`. The kind of an assembly follows from
its dimensions::

  neuroids    presentation, neuroid[, time_bin]     responses of units, sensors, voxels
  behaviour   presentation                          one answer a trial
              presentation, choice                  probabilities of each answer
  properties  neuroid, neuronal_property            numbers measured of units; edges of histograms in the attributes
  rdms        subject, presentation, paired         dissimilarities of stimuli, per subject
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

Columns = Mapping[str, Any]  # name -> one value a row
KINDS: dict[tuple[str, ...], str] = {
    ('presentation', 'neuroid'): 'neuroids',
    ('presentation', 'neuroid', 'time_bin'): 'neuroids',
    ('presentation',): 'behaviour',
    ('presentation', 'choice'): 'behaviour',
    ('neuroid', 'neuronal_property'): 'properties',
    ('subject', 'presentation', 'paired'): 'rdms',
}
REQUIRED = {  # coordinates by dimension
    'presentation': ('stimulus_id',),
    'neuroid': ('neuroid_id',),
    'time_bin': ('time_bin_start', 'time_bin_end'),
    'choice': ('choice',),
    'neuronal_property': ('property',),
    'subject': ('subject',),
    'paired': (),
}


def neuroids(
    values: Any,
    *,
    presentation: Columns,
    neuroid: Columns,
    time_bins: Sequence[tuple[float, float]] = (),
    stimulus_set: str = '',
    may_miss: bool = False,
) -> DataArray:
    """Responses of units to stimuli.

    Args:
      values: [presentation, neuroid], or [presentation, neuroid, time bin] with `time_bins`.
      presentation: columns with a value a row; `stimulus_id`, and `repetition` where a stimulus comes several times.
      neuroid: columns with a value a unit; `neuroid_id`, and `region`, `subject` where they are known.
      time_bins: start and end of each bin, ms from the start of the stimulus.
      stimulus_set: the identifier of the stimuli.
      may_miss: NaN stands for what was not recorded; else it is refused.

    Raises: RequestError, as `check`.
    """
    dims = ('presentation', 'neuroid', 'time_bin') if len(time_bins) else ('presentation', 'neuroid')
    bins = np.asarray(time_bins, float).reshape(-1, 2)
    times = {'time_bin_start': bins[:, 0], 'time_bin_end': bins[:, 1]} if len(time_bins) else {}
    attrs = {'may_miss': 1} if may_miss else {}
    columns = {'presentation': presentation, 'neuroid': neuroid, 'time_bin': times}
    return make(values, dims, columns, {'stimulus_set': stimulus_set, **attrs})


def behaviour(
    values: Any, *, presentation: Columns, choice: Sequence[str] = (), stimulus_set: str = '', may_miss: bool = False
) -> DataArray:
    """Answers of people, animals or models.

    Args:
      values: [presentation], the answer of each trial; or [presentation, choice], the probability of each answer.
      presentation: columns with a value a trial; `stimulus_id`; where they are known `truth`, `subject`, `condition`.
      choice: the names of the answers, of probabilities alone.
      stimulus_set: the identifier of the stimuli.
      may_miss: as of `neuroids`.

    Raises: RequestError, as `check`.
    """
    dims = ('presentation', 'choice') if len(choice) else ('presentation',)
    columns: dict[str, Columns] = {'presentation': presentation, 'choice': {'choice': choice} if len(choice) else {}}
    return make(values, dims, columns, {'stimulus_set': stimulus_set, **({'may_miss': 1} if may_miss else {})})


def properties(
    values: Any, *, neuroid: Columns, bins: Mapping[str, Sequence[float]], number_of_trials: int, stimulus_set: str = ''
) -> DataArray:
    """Numbers measured of single units; NaN where a unit has none.

    Args:
      values: [neuroid, property], in the order of `bins`.
      neuroid: columns with a value a unit; `neuroid_id`, `region`.
      bins: by property, the edges of its histogram, ascending.
      number_of_trials: repetitions of a stimulus in the measurement.
      stimulus_set: the identifier of the stimuli.

    Raises: RequestError, as `check`.
    """
    edges = {f'{name}_bins': np.asarray(e, float) for name, e in bins.items()}
    columns: dict[str, Columns] = {'neuroid': neuroid, 'neuronal_property': {'property': list(bins)}}
    attrs = {'stimulus_set': stimulus_set, 'may_miss': 1, 'number_of_trials': int(number_of_trials), **edges}
    return make(values, ('neuroid', 'neuronal_property'), columns, attrs)


def rdms(values: Any, *, presentation: Columns, subject: Columns, stimulus_set: str = '') -> DataArray:
    """Dissimilarities of stimuli, a symmetric matrix for each subject.

    Args:
      values: [subject, stimulus, stimulus].
      presentation: columns with a value a stimulus; `stimulus_id`.
      subject: columns with a value a subject; `subject`, and `region` where it is known.
      stimulus_set: the identifier of the stimuli.

    Raises: RequestError, as `check`.
    """
    dims = ('subject', 'presentation', 'paired')
    return make(values, dims, {'presentation': presentation, 'subject': subject}, {'stimulus_set': stimulus_set})


def make(values: Any, dims: tuple[str, ...], columns: Mapping[str, Columns], attrs: Mapping[str, Any]) -> DataArray:
    """An assembly of any kind, checked.

    Args:
      values: array with these dimensions; other arrays than numpy's are kept as they are.
      dims: one of KINDS.
      columns: by dimension, the coordinates.
      attrs: attributes; `stimulus_set` among them.

    Raises: RequestError, as `check`.
    """
    xarray = need('xarray', 'an assembly')
    values = values if hasattr(values, 'shape') else np.asarray(values)
    if len(values.shape) != len(dims):
        found = f'the values have {len(values.shape)} dimensions, expected {len(dims)}: {", ".join(dims)}'
        raise RequestError(f'assembly of {attrs.get("stimulus_set") or "?"}: {found}; arrange them so')
    coords = {}
    for dim, size in zip(dims, values.shape, strict=True):
        for name, column in columns.get(dim, {}).items():
            coords[name] = (dim, plain(column))
            if len(column) != size:
                found = f'coordinate {name!r} has {len(column)} values for {size} of dimension {dim!r}'
                raise RequestError(f'assembly of {attrs.get("stimulus_set") or "?"}: {found}; give one for each')
    assembly: DataArray = xarray.DataArray(values, dims=dims, coords=coords, attrs=dict(attrs))
    return check(assembly)


def plain(column: Any) -> np.ndarray:
    """A column as a numpy array: text as fixed-width text, everything else as numpy takes it."""
    array = np.asarray(column)
    if array.dtype.kind in 'OT' and all(isinstance(v, str) for v in array.ravel().tolist()):
        array = array.astype(str)
    return array


def kind(assembly: DataArray) -> str:
    """What an assembly is: `neuroids`, `behaviour`, `properties` or `rdms`. Raises: RequestError."""
    dims = tuple(map(str, assembly.dims))
    if dims not in KINDS:
        known = '; '.join(', '.join(d) for d in KINDS)
        raise RequestError(
            f'{title(assembly)} has the dimensions {", ".join(dims) or "none"}, expected one of: {known}; transpose it'
        )
    return KINDS[dims]


def title(assembly: DataArray) -> str:
    """How messages call an assembly."""
    return f'assembly {assembly.attrs.get("identifier") or assembly.attrs.get("stimulus_set") or "(no name)"}'


def check(assembly: DataArray) -> DataArray:
    """The same assembly, if it is one.

    Raises: RequestError for other dimensions than those of KINDS, a coordinate that is missing or lies on several
      dimensions, ids that come twice, infinite values, NaN that was not declared, bins that end before they start, and
      a property without ascending edges.
    """
    what, name = kind(assembly), title(assembly)
    for key, coord in assembly.coords.items():
        levels = coord.dtype == object and any(isinstance(v, tuple) for v in coord.values.ravel()[:1])
        if len(coord.dims) > 1 or levels:
            raise RequestError(f'{name}: coordinate {key!r} lies on several dimensions or levels; give each its own')
    for dim in map(str, assembly.dims):
        for required in REQUIRED[dim]:
            if required not in assembly.coords or assembly.coords[required].dims != (dim,):
                there = ', '.join(sorted(str(k) for k, c in assembly.coords.items() if c.dims == (dim,))) or 'none'
                raise RequestError(f'{name}: no coordinate {required!r} on {dim!r} (there: {there}); add it')
    _check_ids(assembly, what)
    _check_values(assembly)
    if 'time_bin' in assembly.dims and not bool((assembly['time_bin_start'] < assembly['time_bin_end']).all()):
        raise RequestError(f'{name}: a time bin ends before it starts; give (start, end) in ms')
    if what == 'properties':
        _check_edges(assembly)
    if what == 'rdms' and assembly.shape[1] != assembly.shape[2]:
        raise RequestError(f'{name}: RDMs of {assembly.shape[1]} by {assembly.shape[2]} stimuli; both must be the same')
    return assembly


def _check_ids(assembly: DataArray, what: str) -> None:
    """Raises: RequestError for an id that comes twice where it must not."""
    unique = [c for c in ('neuroid_id', 'property', 'choice', 'subject') if c in assembly.coords]
    single: dict[str, list[str]] = {c: [c] for c in unique if assembly[c].dims in ((), (_OWN[c],))}
    if what != 'properties' and not (what == 'behaviour' and assembly.ndim == 1):
        repeated = ['stimulus_id', 'repetition'] if 'repetition' in assembly.coords else ['stimulus_id']
        single['stimulus_id'] = repeated
    for key, columns in single.items():
        rows = list(zip(*(np.atleast_1d(assembly[c].values).tolist() for c in columns), strict=True))
        if len(set(rows)) < len(rows):
            seen: set[Any] = set()
            first = next(r for r in rows if r in seen or seen.add(r))  # type: ignore[func-returns-value]
            shown = ', '.join(f'{c} {v!r}' for c, v in zip(columns, first, strict=True))
            remedy = "number its presentations in a coordinate 'repetition'" if key == 'stimulus_id' else 'name it anew'
            raise RequestError(f'{title(assembly)}: {shown} comes several times; {remedy}')


_OWN = {'neuroid_id': 'neuroid', 'property': 'neuronal_property', 'choice': 'choice', 'subject': 'subject'}


def _check_values(assembly: DataArray) -> None:
    """Raises: RequestError for infinite values, and for NaN that is not declared."""
    if assembly.dtype.kind not in 'fc':
        return
    for rows in np.array_split(np.arange(assembly.shape[0]), max(1, assembly.size // 2**24)):  # bounded memory
        values = assembly[rows].values
        if np.isinf(values).any():
            raise RequestError(f'{title(assembly)}: infinite values; leave those rows out, or mark them with NaN')
        if np.isnan(values).any() and not assembly.attrs.get('may_miss'):
            found = f'{int(np.isnan(values).sum())} values are NaN'
            raise RequestError(f'{title(assembly)}: {found}; leave them out, or declare them with may_miss=True')


def _check_edges(assembly: DataArray) -> None:
    """Raises: RequestError for a property without ascending edges of a histogram."""
    for name in assembly['property'].values.tolist():
        edges = np.asarray(assembly.attrs.get(f'{name}_bins', ()), float)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise RequestError(f'{title(assembly)}: property {name!r} needs ascending edges in attribute {name}_bins')
