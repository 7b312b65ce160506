"""Units of layers: activations side by side, with what each unit is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jbench.alignment.activations import Limits, check_memory, n_bytes, shapes, stream
from jbench.alignment.image_model import ImageModel
from jbench.alignment.screen import microsaccades, shifted
from jbench.alignment.stimuli import derived
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.alignment.stimuli import StimulusSet

AXES = {3: ('channel', 'channel_y', 'channel_x'), 2: ('token', 'channel'), 1: ('channel',), 0: ()}


class Units(NamedTuple):
    """What units answer to stimuli."""

    values: np.ndarray  # [stimulus, trial, unit] or, of a temporal model, [stimulus, trial, unit, time]
    neuroid: dict[str, np.ndarray]  # columns with a value a unit
    time_bins: tuple[tuple[float, float], ...] = ()
    # columns with a value a stimulus and trial, where trials differ
    presentation: Mapping[str, np.ndarray] = MappingProxyType({})


def layer_units(
    model: ImageModel,
    stimuli: StimulusSet,
    layers: Sequence[str],
    *,
    n_trials: int,
    limits: Limits,
    eye_degrees: float | None = None,
) -> Units:
    """The units of one or several layers.

    Args:
      model: the model.
      stimuli: images, as its screen shows them.
      layers: names; their units lie side by side in this order.
      n_trials: of stochastic models, and of gazes that move.
      limits: memory, kept activations, seed.
      eye_degrees: width of the screen, where the gaze shifts from trial to trial; None: it is still.

    Raises: RequestError; see `activations.activations`.
    """
    trials = n_trials if model.stochastic or eye_degrees is not None else 1
    n_rows, found = len(stimuli) * trials, {k: _unit_shape(model, s) for k, s in shapes(model, layers).items()}
    sizes = n_bytes(found, n_rows * max(1, len(model.time_bins)))
    total = check_memory(model.identifier, sizes, n_rows, limits.memory)
    inner = limits._replace(memory=max(limits.memory - total, *sizes.values()))
    columns = _columns(model, found)
    if eye_degrees is None or trials == 1:
        return Units(_side_by_side(model, stimuli, layers, trials, inner), columns, model.time_bins)
    gaze = microsaccades(trials, 1, eye_degrees)  # in widths of the screen
    values = np.empty(0, np.float32)
    for trial, shift in enumerate(gaze):
        seen = _side_by_side(model, _moved(stimuli, shift), layers, 1, inner)
        values = values if trial else np.empty((len(seen), trials, *seen.shape[2:]), np.float32)
        values[:, trial] = seen[:, 0]
    every = np.tile(gaze, (len(stimuli), 1))
    widths = np.repeat([stimuli.image(i).shape[1] for i in stimuli.ids], trials)[:, None]
    shifts = {'degrees': every * eye_degrees, 'pixels': every * widths}
    presentation = {f'microsaccade_shift_{a}_{u}': v[:, k] for u, v in shifts.items() for k, a in enumerate('xy')}
    return Units(values, columns, model.time_bins, presentation)


def _moved(stimuli: StimulusSet, gaze: np.ndarray) -> StimulusSet:
    """Images shifted by parts of their width; the very same set where there is no shift."""

    def read(stimulus_id: str) -> np.ndarray:
        image = stimuli.image(stimulus_id)
        return shifted(image, gaze * image.shape[1])

    how = f'--gaze {gaze.tolist()}'
    return stimuli if not gaze.any() else derived(stimuli, stimuli.identifier + how, stimuli.table, read, how)


def _side_by_side(
    model: ImageModel, stimuli: StimulusSet, layers: Sequence[str], n_trials: int, limits: Limits
) -> np.ndarray:
    """[stimulus, trial, unit] or, of a temporal model, [stimulus, trial, unit, time]."""
    found = stream(model, stimuli, layers, n_trials=n_trials, limits=limits)
    if len(layers) == 1:
        return _flat(model, next(found)[1])
    n_units = sum(math.prod(_unit_shape(model, shape)) for shape in shapes(model, layers).values())
    out, start = np.empty(0, np.float32), 0
    for _, values in found:
        part = _flat(model, values)
        if not start:
            out = np.empty((*part.shape[:2], n_units, *part.shape[3:]), np.float32)
        out[:, :, start : start + part.shape[2]] = part
        start += part.shape[2]
    return out


def _flat(model: ImageModel, values: np.ndarray) -> np.ndarray:
    """Activations [stimulus, trial, ...] as units; time, where there is some, goes last."""
    n, trials, *shape = values.shape
    if not model.time_bins:
        return values.reshape(n, trials, -1)
    return np.moveaxis(values.reshape(n, trials, shape[0], -1), 2, 3)


def _unit_shape(model: ImageModel, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without time. Raises: RequestError where a temporal model has other times than it says."""
    if not model.time_bins:
        return shape
    if not shape or shape[0] != len(model.time_bins):
        raise RequestError(f'{model.identifier}: a layer is {list(shape)}, expected {len(model.time_bins)} times first')
    return shape[1:]


def _columns(model: ImageModel, found: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """What each unit of layers of these shapes is: its id, number and place; -1 where a layer has no such axis."""
    sizes = [math.prod(shape) for shape in found.values()]
    axes: dict[str, list[np.ndarray]] = {axis: [] for shape in found.values() for axis in AXES.get(len(shape), ())}
    numbers = np.concatenate([np.arange(size) for size in sizes])
    names = np.repeat(list(found), sizes)
    for shape, size in zip(found.values(), sizes, strict=True):
        own = (
            dict(zip(AXES.get(len(shape), ()), np.unravel_index(np.arange(size), shape), strict=True)) if shape else {}
        )
        for axis, places in axes.items():
            places.append(own.get(axis, np.full(size, -1)))
    ids = [f'{model.identifier}.{layer}.{k}' for layer, size in zip(found, sizes, strict=True) for k in range(size)]
    columns = {'neuroid_id': np.array(ids), 'neuroid_num': numbers, 'layer': names}
    return columns | {axis: np.concatenate(places) for axis, places in axes.items()}
