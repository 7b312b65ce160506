"""A model of images: a function from pixels to the activations of its layers, with what its input looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

LOGITS = 'logits'  # the layer that holds the 1,000 classes of ImageNet, where a model has one
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FILTERS = ('bilinear', 'bicubic')


class Preprocess(NamedTuple):
    """What a model sees of an image: the whole, resized to a square, (value / 255 - mean) / std for each colour."""

    size: int  # pixels
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    filter: str = 'bilinear'  # of Pillow, which averages where an image shrinks; one of FILTERS


class ImageModel(NamedTuple):
    """A pure function from images to activations.

    `apply` takes f32[B, size, size, 3], and a random key for each image, keys[B], where the model is stochastic. It
    gives {layer: [B, ...]}: [B, channel, y, x] of convolutions, [B, token, channel] of transformers, else [B, unit]. A
    temporal model gives [B, time, ...]. A `jax.tree_util.Partial` keeps its weights out of the compiled program. Only
    the layers asked for are computed.
    """

    identifier: str
    layers: tuple[str, ...]  # from the input to the output
    preprocess: Preprocess
    apply: Callable[..., dict[str, Any]]
    digest: str  # sha256 over all that `apply` depends on: code, its version, weights
    stochastic: bool = False
    time_bins: tuple[tuple[float, float], ...] = ()  # of a temporal model: ms from the start of the stimulus


def prepared(image: np.ndarray, how: Preprocess) -> np.ndarray:
    """An image uint8 [h, w, 3] as f32 [size, size, 3]. Raises: RequestError for an unknown filter."""
    if how.filter not in FILTERS:
        raise RequestError(f'unknown filter {how.filter!r} of a preprocess; there are: {", ".join(FILTERS)}')
    if image.shape[:2] != (how.size, how.size):
        pillow = need('PIL.Image', 'resizing images')
        resampling = getattr(pillow.Resampling, how.filter.upper())
        image = np.asarray(pillow.fromarray(image).resize((how.size, how.size), resampling))
    mean, std = np.array(how.mean, np.float32), np.array(how.std, np.float32)
    return (image.astype(np.float32) / np.float32(255) - mean) / std


def check_layers(model: ImageModel, layers: tuple[str, ...]) -> None:
    """Raises: RequestError where the model has no layer of a name."""
    from jbench.spec.errors import unknown

    for layer in layers:
        if layer not in model.layers:
            raise unknown(f'layer of {model.identifier}', layer, model.layers)
