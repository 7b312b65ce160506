"""Which layer stands for a region: principal components of layers, and a choice by a score on other data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jbench.alignment.activations import LIMITS, Limits, stream
from jbench.alignment.image_model import ImageModel
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.alignment.stimuli import StimulusSet

COMPONENTS = 1000
CHUNK = 2**22  # numbers that are held in double precision at once


class Components(NamedTuple):
    """A projection on principal components: centred, not whitened."""

    mean: np.ndarray  # [feature]
    axes: np.ndarray  # [component, feature], of length 1; the largest entry of each is positive
    variance: np.ndarray  # [component], along each, ddof 1


class Choice(NamedTuple):
    """The layer that a region got, and why."""

    region: str
    layer: str
    scores: tuple[tuple[str, float], ...]  # of every layer that was tried, on the data of the choice
    stimuli: str  # digest of the set that it was chosen on: a score on the same set is no test


def components(x: np.ndarray, n: int = COMPONENTS) -> Components | None:
    """Principal components of features, by the smaller of their two Gram matrices, which is summed in double precision.

    Args:
        x: [row, feature].
        n: how many at most. Rows say no more than `row - 1`; directions without variance are left out.

    Returns: None where there are no more than `n` features: they are left as they are.

    Raises: RequestError for fewer than two rows, or features that do not vary.
    """
    rows, features = x.shape
    if features <= n:
        return None
    if rows < 2:
        raise RequestError(f'principal components of {features} features need at least 2 images, got {rows}')
    mean = x.mean(0, dtype=np.float64)
    gram = _gram(x, mean)
    values, vectors = np.linalg.eigh(gram)
    kept = [k for k in np.argsort(values)[::-1][:n] if values[k] > values[-1] * 1e-10 * rows]
    if not kept or values[-1] <= 0:
        raise RequestError(f'principal components: {features} features are the same for all {rows} images')
    values, vectors = values[kept], vectors[:, kept]
    axes = vectors.T if rows > features else _axes(x, mean, vectors / np.sqrt(values))
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))
    return Components(mean.astype(x.dtype), axes.astype(x.dtype), values / (rows - 1))


def project(x: np.ndarray, found: Components | None) -> np.ndarray:
    """Features [row, feature] as [row, component]; None leaves them as they are."""
    return x if found is None else (x - found.mean) @ found.axes.T


def _gram(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Of centred rows: [row, row] where there are fewer rows than features, else [feature, feature]."""
    rows, features = x.shape
    wide = rows <= features
    total = np.zeros((min(rows, features),) * 2)
    step = max(1, CHUNK // (rows if wide else features))
    for start in range(0, features if wide else rows, step):
        here = slice(start, start + step)
        part = x[:, here] - mean[here] if wide else (x[here] - mean).T
        total += part @ part.T
    return total


def _axes(x: np.ndarray, mean: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Axes [component, feature] of weights [row, component], a part of the features after the other."""
    out = np.empty((weights.shape[1], x.shape[1]), x.dtype)
    step = max(1, CHUNK // len(x))
    for start in range(0, x.shape[1], step):
        here = slice(start, start + step)
        out[:, here] = weights.T @ (x[:, here] - mean[here])
    return out


def choose_layer(
    model: ImageModel,
    region: str,
    layers: Sequence[str],
    stimuli: StimulusSet,
    score: Callable[[np.ndarray], float],
    *,
    fitted_on: StimulusSet | None = None,
    limits: Limits = LIMITS,
) -> Choice:
    """The layer with the highest score on data that are kept apart from the test.

    Args:
        model: the model.
        region: `V1`, `V2`, `V4`, `IT`.
        layers: names to try; the first of equals is chosen.
        stimuli: of the separate data.
        score: features [stimulus, component] in the order of `stimuli` -> how well they predict the region.
        fitted_on: images that the components of each layer are fitted on; None: `stimuli`.
        limits: memory, kept files, seed.

    Raises: RequestError where no layer gets a score, and as `activations.stream`.
    """
    scores = []
    images = fitted_on or stimuli
    shown = stream(model, stimuli, layers, limits=limits)
    fitting = shown if images is stimuli else stream(model, images, layers, limits=limits)
    for layer, values in shown:
        x = flat(values)
        fit = x if fitting is shown else flat(next(fitting)[1])
        scores.append((layer, float(score(project(x, components(fit))))))
    known = [(layer, value) for layer, value in scores if not math.isnan(value)]
    if not known:
        tried = ', '.join(layers)
        raise RequestError(f'{model.identifier}: no layer for {region}: the score of each is NaN (tried: {tried})')
    best = max(known, key=lambda pair: pair[1])[0]
    return Choice(region, best, tuple(scores), stimuli.digest)


def flat(values: np.ndarray) -> np.ndarray:
    """Activations [stimulus, trial, ...] as features [stimulus, feature], the mean over trials."""
    mean = values[:, 0] if values.shape[1] == 1 else values.mean(1)
    return mean.reshape(len(mean), -1)
