"""How properties of V1 are measured in a model: receptive fields, firing rates, then the properties of the units that
see the stimulus (Marques, Schrimpf & DiCarlo 2021, bioRxiv).

Responses are arrays [stimulus, unit], stimuli in the order of their table; below zero they count as zero. Every
function is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jbench.alignment.gratings import table
from jbench.alignment.metrics import v1_properties
from jbench.alignment.metrics.v1_properties import LEAST_RATE, Properties
from jbench.spec.errors import RequestError, unknown

BLANK, FIELD, ORIENTATION = 'Marques2020_blank', 'Marques2020_receptive_field', 'Marques2020_orientation'
FREQUENCY, SIZE = 'Marques2020_spatial_frequency', 'Marques2020_size'
TEXTURE = 'FreemanZiemba2013_properties'
FIELD_HEIGHT = 0.05  # of the greatest response of a unit, over which a place counts
NEAR = 0.15  # degrees, a receptive field from the stimulus
SPONTANEOUS = 0.82  # spikes/s, median of neurons of V1
DRIVEN = 33.8  # median of their greatest responses to gratings
GREATEST = 243.1  # of any of them
ROUNDING = 1e-6  # of a response: less over the blank is none
AXES = ('size', 'spatial_frequency', 'orientation', 'phase')

Table = Mapping[str, Sequence[float] | Sequence[str]]
# responses to a set of stimuli, of some units (None: all), in blocks [stimulus, unit] one after the other
Record = Callable[[str, np.ndarray | None], Iterable[np.ndarray]]


class Study(NamedTuple):
    """Recorded neurons whose properties a model is compared with."""

    stimuli: str
    axis: str  # column of the table that `measure` takes the values of
    measure: Callable[[np.ndarray, np.ndarray, np.ndarray], Properties]  # of a grid, a baseline and those values


def _textures(rate: np.ndarray, baseline: np.ndarray, _: np.ndarray) -> Properties:
    return v1_properties.freemanziemba2013(rate, baseline)


STUDIES = {
    'Ringach2002': Study(ORIENTATION, 'orientation', v1_properties.ringach2002),
    'DeValois1982a': Study(ORIENTATION, 'orientation', v1_properties.devalois1982a),
    'DeValois1982b': Study(FREQUENCY, 'spatial_frequency', v1_properties.devalois1982b),
    'Schiller1976c': Study(FREQUENCY, 'spatial_frequency', v1_properties.schiller1976c),
    'Cavanaugh2002a': Study(SIZE, 'radius', v1_properties.cavanaugh2002a),
    'FreemanZiemba2013': Study(TEXTURE, 'family', _textures),
}

# study and property of each benchmark, whose identifier is Marques2020_<this>
BENCHMARKS = {
    'Cavanaugh2002-grating_summation_field': ('Cavanaugh2002a', 'grating_summation_field'),
    'Cavanaugh2002-surround_diameter': ('Cavanaugh2002a', 'surround_diameter'),
    'Cavanaugh2002-surround_suppression_index': ('Cavanaugh2002a', 'surround_suppression_index'),
    'DeValois1982-pref_or': ('DeValois1982a', 'preferred_orientation'),
    'DeValois1982-peak_sf': ('DeValois1982b', 'peak_spatial_frequency'),
    'FreemanZiemba2013-texture_modulation_index': ('FreemanZiemba2013', 'texture_modulation_index'),
    'FreemanZiemba2013-abs_texture_modulation_index': ('FreemanZiemba2013', 'absolute_texture_modulation_index'),
    'FreemanZiemba2013-texture_selectivity': ('FreemanZiemba2013', 'texture_selectivity'),
    'FreemanZiemba2013-texture_sparseness': ('FreemanZiemba2013', 'texture_sparseness'),
    'FreemanZiemba2013-texture_variance_ratio': ('FreemanZiemba2013', 'variance_ratio'),
    'FreemanZiemba2013-max_texture': ('FreemanZiemba2013', 'max_texture'),
    'FreemanZiemba2013-max_noise': ('FreemanZiemba2013', 'max_noise'),
    'Ringach2002-circular_variance': ('Ringach2002', 'circular_variance'),
    'Ringach2002-or_bandwidth': ('Ringach2002', 'bandwidth'),
    'Ringach2002-orth_pref_ratio': ('Ringach2002', 'orthogonal_preferred_ratio'),
    'Ringach2002-or_selective': ('Ringach2002', 'orientation_selective'),
    'Ringach2002-cv_bandwidth_ratio': ('Ringach2002', 'circular_variance_bandwidth_ratio'),
    'Ringach2002-opr_cv_diff': ('Ringach2002', 'orthogonal_preferred_ratio_circular_variance_difference'),
    'Ringach2002-modulation_ratio': ('Ringach2002', 'modulation_ratio'),
    'Ringach2002-max_dc': ('Ringach2002', 'max_dc'),
    'Schiller1976-sf_selective': ('Schiller1976c', 'spatial_frequency_selective'),
    'Schiller1976-sf_bandwidth': ('Schiller1976c', 'spatial_frequency_bandwidth'),
}


class RateMap(NamedTuple):
    """From responses of a model to firing rates: slope x response + offset, spikes/s."""

    slope: float
    offset: float


class Measurement(NamedTuple):
    """Properties of a model, and what became of its units."""

    properties: Properties  # `units` are those of the model; no values where no unit has any
    notes: tuple[str, ...]


def model_properties(study: str, record: Record, *, tables: Mapping[str, Table] | None = None) -> Measurement:
    """Properties of the units of a model that see the stimuli of a study and respond to them.

    Args:
        study: of STUDIES.
        record: gives responses to the blank, the receptive-field, the orientation set and the stimuli of the study, by
            identifier. All units are asked for with the first two alone.
        tables: of sets of stimuli that are no gratings, by identifier: position_y, position_x, type, family, sample.
    Raises:
        RequestError: no such study, responses of another shape, tables that are no grid.
    """
    if study not in STUDIES:
        raise unknown('study of V1', study, STUDIES)
    name, axis, measure = STUDIES[study]
    every = {key: (tables or {}).get(key) or table(key) for key in (BLANK, FIELD, ORIENTATION, name)}
    blank = _whole(record(BLANK, None), BLANK, 1)[0]
    fields = receptive_fields(record(FIELD, None), blank, every[FIELD])

    def recorded(key: str) -> tuple[np.ndarray, np.ndarray]:
        units = near(fields, place(every[key]))
        n = len(every[key]['position_y'])
        return units, _whole(record(key, units), key, n) if len(units) else np.zeros((n, 0))

    units, responses = recorded(ORIENTATION)
    rates = rate_map(responses, blank[units], every[ORIENTATION]) if len(units) else None
    if name != ORIENTATION:
        units, responses = recorded(name)
    if rates is None or not len(units):
        what = 'responds to gratings more than to a blank' if len(units) else 'has its receptive field at the stimuli'
        return Measurement(Properties({}, units[:0]), (f'none of {len(blank)} units {what}',))
    rate = firing_rates(responses, rates)
    ordered = grid(rate, every[name]) if name != TEXTURE else _ordered(rate, every[name], ('type', 'family', 'sample'))
    found = measure(ordered, firing_rates(blank[units], rates), np.unique(np.asarray(every[name][axis])))
    note = f'{len(units)} of {len(blank)} units see the stimuli, {len(found.units)} of them respond'
    return Measurement(found._replace(units=units[found.units]), (note,))


def receptive_fields(blocks: Iterable[np.ndarray], blank: np.ndarray, stimuli: Table) -> np.ndarray:
    """Centre of the receptive field of each unit: the centroid of the greatest responses over the blank at each place
    that exceed a twentieth of the greatest of all.

    Args:
        blocks: responses to gratings at a grid of places, [stimulus, unit] one after the other.
        blank: response to a blank, [unit].
        stimuli: position_y and position_x of each, degrees.
    Returns:
        Degrees, [unit, (y, x)]; nan of units that respond nowhere.
    Raises:
        RequestError: the places are no grid, or stimuli are missing.
    """
    y, row = np.unique(np.asarray(stimuli['position_y'], float), return_inverse=True)
    x, column = np.unique(np.asarray(stimuli['position_x'], float), return_inverse=True)
    cell = row * len(x) + column
    if len(np.unique(cell)) != len(y) * len(x):
        raise RequestError(f'receptive fields: {len(y)} x {len(x)} places, but not all of them have a stimulus')
    greatest = np.zeros((len(y) * len(x), len(blank)), np.result_type(blank))
    n = 0
    for block in blocks:
        _check(block, FIELD, (min(len(block), len(cell) - n), len(blank)))
        for k, response in zip(cell[n : n + len(block)], block, strict=True):
            np.maximum(greatest[k], response - blank, out=greatest[k])
        n += len(block)
    if n != len(cell):
        raise RequestError(f'{FIELD}: responses to {n} stimuli, expected {len(cell)}')
    greatest[greatest <= FIELD_HEIGHT * greatest.max(0)] = 0
    weights = greatest.reshape(len(y), len(x), -1)
    with np.errstate(invalid='ignore', divide='ignore'):
        by_axis = [weights.sum(1 - k, dtype=np.float64) for k in range(2)]
        centre = [np.arange(len(w)) @ w / w.sum(0) for w in by_axis]
    return np.stack([np.interp(at, np.arange(len(v)), v) for at, v in zip(centre, (y, x), strict=True)], 1)


def near(fields: np.ndarray, at: np.ndarray, *, within: float = NEAR) -> np.ndarray:
    """Units whose receptive field lies within some degrees of a place; those without one are not near."""
    return np.flatnonzero(np.linalg.norm(fields - at, axis=1) <= within)


def place(stimuli: Table) -> np.ndarray:
    """The one place (y, x) of all stimuli.

    Raises:
        RequestError: there are several.
    """
    places = np.unique(np.stack([np.asarray(stimuli[f'position_{k}'], float) for k in 'yx'], 1), axis=0)
    if len(places) != 1:
        raise RequestError(f'stimuli of a property lie at {len(places)} places, expected one')
    return np.asarray(places[0])


def rate_map(responses: np.ndarray, blank: np.ndarray, stimuli: Table) -> RateMap | None:
    """The map that takes the median response to a blank to 0.82 spikes/s and that to the best grating to 33.8, over
    the units that respond to gratings.

    Args:
        responses: to gratings of several orientations, at least 0, [stimulus, unit].
        blank: response to a blank, [unit].
        stimuli: table of the gratings.
    Returns:
        None where no unit responds.
    """
    best = grid(responses, stimuli).mean(-1).reshape(len(blank), -1).max(1)
    above = best - blank
    if above.max() <= ROUNDING * np.abs(best).max():
        return None
    units = above > LEAST_RATE / GREATEST * above.max()
    spontaneous, driven = (float(np.median(v[units])) for v in (blank, best))
    if driven <= spontaneous:
        return None
    slope = (DRIVEN - SPONTANEOUS) / (driven - spontaneous)
    return RateMap(slope, SPONTANEOUS - slope * spontaneous)


def firing_rates(responses: np.ndarray, rates: RateMap) -> np.ndarray:
    """Firing rates of responses, spikes/s, at least 0."""
    return np.maximum(rates.slope * responses + rates.offset, 0)


def grid(responses: np.ndarray, stimuli: Table) -> np.ndarray:
    """Responses to gratings, put in order.

    Args:
        responses: [stimulus, unit].
        stimuli: radius, spatial_frequency, orientation and phase of each.
    Returns:
        [unit, size, spatial frequency, orientation, phase], sizes in the order of radii at each spatial frequency.
    Raises:
        RequestError: not each combination is there once.
    """
    frequency, radius = (np.asarray(stimuli[name], float) for name in ('spatial_frequency', 'radius'))
    size = np.zeros(len(radius), int)
    for f in np.unique(frequency):
        rows = frequency == f
        size[rows] = np.unique(radius[rows], return_inverse=True)[1]
    return _ordered(responses, {**stimuli, 'size': size.tolist()}, AXES)


def _ordered(responses: np.ndarray, stimuli: Table, names: Sequence[str]) -> np.ndarray:
    """[stimulus, unit] -> [unit, *axes], the axes having ascending values."""
    axes = [np.unique(np.asarray(stimuli[name]), return_inverse=True) for name in names]
    shape, places = tuple(len(values) for values, _ in axes), tuple(place for _, place in axes)
    order = np.ravel_multi_index(places, shape)
    if not np.array_equal(np.sort(order), np.arange(np.prod(shape))):
        sizes = ', '.join(f'{n} of {name}' for name, n in zip(names, shape, strict=True))
        raise RequestError(f'{len(order)} stimuli of {sizes}: expected each combination once')
    return responses[np.argsort(order)].T.reshape(-1, *shape)


def _whole(blocks: Iterable[np.ndarray], name: str, n: int) -> np.ndarray:
    """Blocks of responses as one array, at least 0, checked."""
    found = np.concatenate(list(blocks))
    _check(found, name, (n, found.shape[-1]))
    return np.maximum(found, 0)


def _check(found: np.ndarray, name: str, shape: tuple[int, int]) -> None:
    """Raise unless responses have a shape and are finite."""
    if found.shape != shape or not np.isfinite(found).all():
        n, n_units = shape
        raise RequestError(f'{name}: responses {found.shape}, expected [{n} stimuli, {n_units} units], all finite')
