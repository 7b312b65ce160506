"""Units of layers: activations side by side, with what each unit is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jbench.alignment.activations import Limits, check_memory, n_bytes, shapes, stream
from jbench.alignment.image_model import ImageModel
from jbench.alignment.screen import microsaccades, shifted
from jbench.alignment.stimuli import content_digest, derived

if TYPE_CHECKING:
    from jbench.alignment.stimuli import StimulusSet

AXES = {3: ('channel', 'channel_y', 'channel_x'), 2: ('token', 'channel'), 1: ('channel',), 0: ()}


class Units(NamedTuple):
    """What units answer to stimuli."""

    values: np.ndarray  # [stimulus, trial, unit] or, of a temporal model, [stimulus, trial, unit, time]
    neuroid: dict[str, np.ndarray]  # columns with a value a unit
    time_bins: tuple[tuple[float, float], ...] = ()
    presentation: dict[str, np.ndarray] = {}  # columns with a value a stimulus and trial, of trials that differ


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
    total = check_memory(model, layers, len(stimuli) * trials, limits.memory)
    largest = max(n_bytes(model, layers, len(stimuli) * trials).values())
    inner = limits._replace(memory=max(limits.memory - total, largest))
    columns = _columns(model, layers)
    if eye_degrees is None or trials == 1:
        return Units(_side_by_side(model, stimuli, layers, trials, inner), columns, model.time_bins)
    moved = [_moved(stimuli, eye_degrees, t, trials) for t in range(trials)]
    values = np.concatenate([_side_by_side(model, s, layers, 1, inner) for s in moved], 1)
    widths = np.repeat([stimuli.image(i).shape[1] for i in stimuli.ids], trials)
    degrees = np.tile(
        microsaccades(trials, 1, 1 / eye_degrees) if False else _gaze(trials, eye_degrees), (len(stimuli), 1)
    )
    shifts = {f'microsaccade_shift_{axis}_degrees': degrees[:, k] for k, axis in enumerate('xy')}
    shifts |= {f'microsaccade_shift_{axis}_pixels': degrees[:, k] / eye_degrees * widths for k, axis in enumerate('xy')}
    return Units(values, columns, model.time_bins, shifts)
