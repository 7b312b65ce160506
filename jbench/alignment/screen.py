"""What a model of a given field of view is shown: stimuli placed on its screen, and shifted by small eye movements."""

from __future__ import annotations

from typing import Literal

import numpy as np

from jbench.alignment.stimuli import StimulusSet, derived
from jbench.spec.errors import RequestError

GRAY = 128  # of the screen around an image
EXTENT = 0.05  # degrees that microsaccades reach
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def place_on_screen(stimuli: StimulusSet, target_degrees: float, source_degrees: float | None = None) -> StimulusSet:
    """The stimuli as a screen of `target_degrees` shows them: cut, or surrounded by gray; pixels are never resampled.

    Args:
      stimuli: images.
      target_degrees: the width of the screen in degrees of visual angle.
      source_degrees: the size of every image in degrees; None where the table has a column `degrees`.

    Returns: the very same set where every size is the target's; else one whose images are placed when they are read.

    Raises: RequestError for no size at all, for both, and for a size that is not positive.
    """
    table = stimuli.table
    if (source_degrees is None) == ('degrees' not in table.columns):
        found = 'neither a column degrees nor source_degrees' if source_degrees is None else 'both of them'
        raise RequestError(
            f'stimulus set {stimuli.identifier}: sizes in degrees must come from one place, found {found}'
        )
    given = table['degrees'].to_numpy(float) if source_degrees is None else np.full(len(table), float(source_degrees))
    if not (np.isfinite(given) & (given > 0)).all() or not (np.isfinite(target_degrees) and target_degrees > 0):
        wrong = next(g for g in [target_degrees, *given.tolist()] if not (np.isfinite(g) and g > 0))
        raise RequestError(f'stimulus set {stimuli.identifier}: a size of {wrong} degrees; give positive numbers')
    if (given == target_degrees).all():
        return stimuli
    degrees = dict(zip(stimuli.ids, given.tolist(), strict=True))
    source = 'None' if source_degrees is None else f'{source_degrees:.2f}'
    suffix = f'--target{target_degrees:.2f}--source{source}'

    def read(stimulus_id: str) -> np.ndarray:
        return placed(stimuli.image(stimulus_id), target_degrees / degrees[stimulus_id])

    table = table.assign(degrees=float(target_degrees))
    return derived(stimuli, stimuli.identifier + suffix, table, read, f'{suffix} {given.tolist()}')


def placed(image: np.ndarray, ratio: float) -> np.ndarray:
    """An image on a screen that is `ratio` times as large: in the middle of gray, or its middle alone.

    Args:
      image: uint8 [height, width, 3].
      ratio: size of the screen over that of the image. Sizes and places are rounded, halves to the even number.
    """
    if ratio == 1:
        return image
    old = np.array(image.shape[:2])
    new = np.rint(ratio * old).astype(int)
    if (new < 1).any():
        raise RequestError(f'an image of {old[1]} by {old[0]} pixels at {ratio:.3g} of its size has no pixels left')
    if ratio < 1:
        top, left = np.rint((old - new) / 2).astype(int)
        return image[top : top + new[0], left : left + new[1]].copy()
    top, left = np.rint((new - old) / 2).astype(int)
    screen = np.full((*new, 3), GRAY, np.uint8)
    screen[top : top + old[0], left : left + old[1]] = image
    return screen


def gray_share(image: np.ndarray) -> float:
    """Pixels that are exactly the screen's gray, over all values of all channels (as the reference's tests count)."""
    return float((image == GRAY).all(-1).sum() / image.size)


def microsaccades(
    n: int, size: int, degrees: float, *, extent: float = EXTENT, path: Literal['even', 'spiral'] = 'even'
) -> np.ndarray:
    """Shifts of the gaze [n, 2]: x and y in pixels, the first zero.

    Args:
      n: how many looks at a stimulus.
      size: pixels of the screen's side.
      degrees: visual angle of that side.
      extent: no shift is larger, degrees.
      path: `even`, points that cover the disc evenly (a sunflower's); `spiral`, the single turn of Brain-Score.

    Raises: RequestError for no look, or a size that is not positive.
    """
    if n < 1 or size < 1 or degrees <= 0:
        raise RequestError(f'microsaccades: {n} looks at {size} pixels in {degrees} degrees; all must be positive')
    k = np.arange(n)
    radius = np.sqrt(k / n) * extent / degrees * size
    angle = k * GOLDEN_ANGLE if path == 'even' else 2 * np.pi * np.sqrt(k / n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def shifted(image: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """An image moved right and down by (x, y) pixels: between pixels linearly, the edge goes on outwards.

    Args:
      image: [height, width, 3] of any number type.
      shift: x, y; fractions of pixels too.

    Returns: the type of the image; of whole numbers rounded.
    """
    moved = image.astype(np.float64)
    for axis, by in ((1, float(shift[0])), (0, float(shift[1]))):
        n = image.shape[axis]
        place = np.arange(n) - by
        before = np.floor(place).astype(int)
        weight = (place - before).reshape([-1 if a == axis else 1 for a in range(3)])
        low, high = (moved.take(np.clip(before + d, 0, n - 1), axis) for d in (0, 1))
        moved = low * (1 - weight) + high * weight
    return (np.rint(moved) if image.dtype.kind in 'ui' else moved).astype(image.dtype)
