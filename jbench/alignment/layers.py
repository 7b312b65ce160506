"""Which layer stands for a region: principal components of layers, and a choice by a score on other data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jbench.alignment.activations import LIMITS, Limits, activations, stream
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


def reduced(model: ImageModel, layers: Sequence[str], fitted_on: StimulusSet, *, limits: Limits = LIMITS) -> ImageModel:
    """The same model whose layers give their principal components, at most 1000: [B, component].

    Args:
        model: the model.
        layers: names; others, and layers with no more than 1000 units, stay as they are.
        fitted_on: images that the components are fitted on.
        limits: memory, kept files, seed.

    Raises: RequestError for a temporal model, and as `components` and `activations.stream`.
    """
    if model.time_bins:
        raise RequestError(f'{model.identifier}: principal components of a temporal model are not defined')
    return _projected(model, {k: components(flat(v)) for k, v in stream(model, fitted_on, layers, limits=limits)})


def _projected(model: ImageModel, found: Mapping[str, Components | None]) -> ImageModel:
    from jax.tree_util import Partial

    kept = {layer: (c.mean, c.axes) for layer, c in found.items() if c is not None}
    whole = hashlib.sha256(f'{model.digest} components'.encode())
    for layer in sorted(kept):
        whole.update(layer.encode() + kept[layer][0].tobytes() + kept[layer][1].tobytes())
    apply = model.apply if isinstance(model.apply, Partial) else Partial(model.apply)
    return model._replace(apply=Partial(_reduced, apply, kept), digest=whole.hexdigest()) if kept else model


def _reduced(apply: Callable[..., dict[str, Any]], found: Mapping[str, Any], *inputs: Any) -> dict[str, Any]:
    import jax.numpy as jnp

    out = dict(apply(*inputs))
    for layer, (mean, axes) in found.items():
        out[layer] = jnp.matmul(out[layer].reshape(len(out[layer]), -1) - mean, axes.T, precision='highest')
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
    for layer, values in stream(model, fitted_on or stimuli, layers, limits=limits):
        found = components(flat(values))
        if fitted_on is None:
            x = project(flat(values), found)
        else:
            x = flat(activations(_projected(model, {layer: found}), stimuli, layer, limits=limits))
        scores.append((layer, float(score(x))))
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
