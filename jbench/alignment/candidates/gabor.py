"""Energy of log-Gabor filters and coarse colour: complex cells of V1 (Field 1987; Adelson & Bergen 1985).

grey image, 56 x 56 pixels
-> filters in the frequency domain: exp(-ln(f/f0)^2 / (2 s^2)) exp(-(a - a0)^2 / (2 t^2)), on one side of it alone,
   so that the magnitude of the response is the energy of a pair of even and odd filters
   f0 = .05, .1, .2, .35 cycles a pixel, s = .55; a0 = 0 to 7 eighths of a half turn, t = a twelfth
-> magnitude, mean over blocks of 8 x 8 pixels: [32, 7, 7]
and beside it the colour image at 7 x 7: [3, 7, 7].
"""

from __future__ import annotations

import hashlib
import math

import jax
import jax.numpy as jnp
import numpy as np

from jbench.alignment.image_model import ImageModel, Preprocess

SIZE, BLOCK = 56, 8  # pixels
FREQUENCIES = (0.05, 0.1, 0.2, 0.35)  # cycles a pixel
ORIENTATIONS = 8
WIDTH_FREQUENCY, WIDTH_ANGLE = 0.55, math.pi / 12
GREY = (0.299, 0.587, 0.114)  # ITU-R 601


def filters() -> np.ndarray:
    """Gains [frequency * orientation, 56, 56] at the frequencies of `numpy.fft.fft2`."""
    steps = np.fft.fftfreq(SIZE)
    radius = np.hypot(steps[:, None], steps)
    angle = np.arctan2(steps[:, None], steps)
    radius[0, 0] = 1
    out = []
    for f0 in FREQUENCIES:
        radial = np.exp(-(np.log(radius / f0) ** 2) / (2 * WIDTH_FREQUENCY**2))
        radial[0, 0] = 0  # mean luminance
        for k in range(ORIENTATIONS):
            away = np.angle(np.exp(1j * (angle - k * math.pi / ORIENTATIONS)))
            out.append(radial * np.exp(-(away**2) / (2 * WIDTH_ANGLE**2)))
    return np.stack(out)


def _energy(images: jax.Array) -> dict[str, jax.Array]:
    """Activations of images [b, 56, 56, 3]."""
    b, n = len(images), SIZE // BLOCK
    spectrum = jnp.fft.fft2(images @ jnp.asarray(GREY, images.dtype))
    gains = jnp.asarray(filters(), images.dtype)
    energy = jnp.abs(jnp.fft.ifft2(spectrum[:, None] * gains))
    pooled = energy.reshape(b, -1, n, BLOCK, n, BLOCK).mean((3, 5))
    colour = jnp.moveaxis(jax.image.resize(images, (b, n, n, 3), 'linear'), -1, 1)
    return {'energy': jnp.concatenate([pooled, colour], 1)}


def gabor(seed: int = 0) -> ImageModel:
    """Layer `energy` [b, 35, 7, 7]: 32 filters, then red, green, blue. Nothing is drawn from the seed."""
    digest = hashlib.sha256(b'gabor version 1').hexdigest()
    return ImageModel('gabor', ('energy',), Preprocess(SIZE), _energy, digest)
