"""The image itself, 28 x 28 pixels in colour: the least that a model must be better than."""

from __future__ import annotations

import hashlib

import jax
import jax.numpy as jnp

from jbench.alignment.image_model import ImageModel, Preprocess


def _pixels(images: jax.Array) -> dict[str, jax.Array]:
    return {'pixels': jnp.moveaxis(images, -1, 1)}


def pixels(seed: int = 0) -> ImageModel:
    """Layer `pixels` [b, 3, 28, 28]. Nothing is drawn from the seed."""
    digest = hashlib.sha256(b'pixels version 1').hexdigest()
    return ImageModel('pixels', ('pixels',), Preprocess(28), _pixels, digest)
