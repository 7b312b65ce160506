"""Gratings that properties of V1 are measured with (Marques, Schrimpf & DiCarlo 2021, bioRxiv), from their parameters.

A round patch of a sine grating of full contrast on gray, 672 pixels for 12 degrees. Places are degrees down and right
of the centre: a patch lies 0.5 degrees off it on either axis, but where receptive fields are mapped.
"""

from __future__ import annotations

import hashlib
import itertools
from functools import cache
from typing import NamedTuple

import numpy as np

from jbench.alignment import stimuli
from jbench.spec.errors import RequestError, unknown

DEGREES = 12.0
PIXELS = 672
BLANK_PIXELS = 448
GRAY = 128
PLACE = 0.5
RADII = 2 ** np.linspace(-2.25, 3.25, 12) / 2
FREQUENCIES = 2 ** np.linspace(-1.375, 3.875, 22)
ORIENTATIONS = np.arange(0, 180, 15.0)
PHASES = np.arange(0, 360, 45.0)
CYCLES = (2, 3, 4)  # across the patch, where tuning for orientation is measured


class Grating(NamedTuple):
    """One patch: degrees, and cycles per degree. Light changes along the orientation, clockwise from the right."""

    position_y: float
    position_x: float
    contrast: float
    radius: float
    spatial_frequency: float
    orientation: float
    phase: float


class Sweep(NamedTuple):
    """A set of stimuli: each place with each size and frequency, orientation and phase, the last changing fastest."""

    places: tuple[float, ...]  # on either axis
    sizes: tuple[tuple[float, float], ...]  # radius, spatial frequency
    orientations: tuple[float, ...]
    phases: tuple[float, ...]


def _sweep(places: np.ndarray, sizes: list[tuple[float, float]], orientations: np.ndarray, phases: np.ndarray) -> Sweep:
    """A sweep of plain numbers."""
    radii = tuple((float(radius), float(frequency)) for radius, frequency in sizes)
    return Sweep(tuple(places.tolist()), radii, tuple(orientations.tolist()), tuple(phases.tolist()))


HERE = np.array([PLACE])
COARSE = FREQUENCIES[4:17:4]  # four, an octave apart
SWEEPS = {
    'Marques2020_blank': None,
    'Marques2020_receptive_field': _sweep(np.linspace(-2.5, 2.5, 21), [(1 / 6, 3)], ORIENTATIONS[::3], PHASES[::4]),
    'Marques2020_orientation': _sweep(HERE, [(n / 2 / f, f) for n in CYCLES for f in COARSE], ORIENTATIONS, PHASES),
    'Marques2020_spatial_frequency': _sweep(
        HERE, list(itertools.product((0.75, 2.25), FREQUENCIES)), ORIENTATIONS[::2], PHASES
    ),
    'Marques2020_size': _sweep(HERE, list(itertools.product(RADII, COARSE)), ORIENTATIONS[::2], PHASES),
}


@cache
def gratings(name: str) -> tuple[Grating, ...]:
    """Stimuli of a set, in order; none of the blank.

    Args:
        name: of SWEEPS.
    Raises:
        RequestError: there is no such set.
    """
    if name not in SWEEPS:
        raise unknown('set of gratings', name, SWEEPS)
    sweep = SWEEPS[name]
    if sweep is None:
        return ()
    every = itertools.product(sweep.places, sweep.places, sweep.sizes, sweep.orientations, sweep.phases)
    return tuple(Grating(y, x, 1.0, *size, orientation, phase) for y, x, size, orientation, phase in every)


def table(name: str) -> dict[str, list[str] | list[float]]:
    """The table of a set of stimuli, by column: stimulus_id ('0', '1', ...), degrees, and the fields of Grating.

    Args:
        name: of SWEEPS.
    Raises:
        RequestError: there is no such set.
    """
    rows = gratings(name)
    n = max(len(rows), 1)
    columns: dict[str, list[str] | list[float]] = {'stimulus_id': list(map(str, range(n))), 'degrees': [DEGREES] * n}
    if rows:
        columns |= dict(zip(Grating._fields, map(list, zip(*rows, strict=True)), strict=True))
    return columns


def stimulus_set(name: str) -> stimuli.StimulusSet:
    """A set of stimuli, drawn as they are asked for. Its digest is of the parameters.

    Args:
        name: of SWEEPS.
    Raises:
        RequestError: there is no such set.
    """
    rows = gratings(name)

    def digest(stimulus_id: str) -> str:
        what = rows[int(stimulus_id)] if rows else 'blank'
        return hashlib.sha256(f'{DEGREES} degrees, {PIXELS} pixels, {what}'.encode()).hexdigest()

    return stimuli.make(name, table(name), lambda stimulus_id: image(name, stimulus_id), digest)


def image(name: str, stimulus_id: str) -> np.ndarray:
    """A stimulus.

    Args:
        name: of SWEEPS.
        stimulus_id: its number.
    Returns:
        uint8 [y, x, 3].
    Raises:
        RequestError: there is no such stimulus.
    """
    rows = gratings(name)
    if stimulus_id not in map(str, range(max(len(rows), 1))):
        raise RequestError(f'{name}: no stimulus {stimulus_id!r}, expected 0 to {max(len(rows), 1) - 1}')
    gray = np.full((BLANK_PIXELS, BLANK_PIXELS), GRAY, np.uint8) if not rows else draw(rows[int(stimulus_id)])
    return np.repeat(gray[:, :, None], 3, 2)


def draw(grating: Grating) -> np.ndarray:
    """A grating, uint8 [y, x]: values are cut to whole numbers, not rounded, and the edge belongs to the patch."""
    degrees = (np.arange(PIXELS) - PIXELS / 2) / (PIXELS / DEGREES)
    light = np.full((PIXELS, PIXELS), GRAY, np.uint8)
    within = [  # of the rows and of the columns, those that the patch may reach
        slice(*np.searchsorted(degrees, (place - 2 * grating.radius, place + 2 * grating.radius)))
        for place in (grating.position_y, grating.position_x)
    ]
    x, y = np.meshgrid(degrees[within[1]] - grating.position_x, degrees[within[0]] - grating.position_y)
    turn, phase = (angle / 180 * np.pi for angle in (grating.orientation, grating.phase))
    along = x * np.cos(turn) + y * np.sin(turn)
    wave = np.sin(along * grating.spatial_frequency * 2 * np.pi + phase) * grating.contrast
    patch = x**2 + y**2 <= grating.radius**2
    light[*within][patch] = ((wave[patch] + 1) / 2 * 255).astype(np.uint8)
    return light
