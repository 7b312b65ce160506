"""HMAX: simple and complex cells in two stages (Riesenhuber & Poggio 1999), with the sizes of Serre et al. (2007).

    grey image, 128 x 128 pixels
    S1  Gabor filters of 16 sizes and 4 orientations: |response| over the norm of the pixels under the filter
    C1  the larger of two neighbouring sizes, then the largest of windows that overlap by half: 8 bands
    S2  each band beside templates of 4, 8, 12 and 16 positions: exp(-|difference|^2 / (2 (n/4)^2)), as in Mutch & Lowe
        (2008), for each template of n x n x 4
    C2  the largest S2 response of each template, over all positions and bands

The templates of the papers are cut out of C1 responses to photographs. These are cut out of responses to noise with the
amplitude spectrum of photographs, 1/f, drawn from the seed: nothing is downloaded, and nothing is learned from images.
"""

from __future__ import annotations

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial

from jbench.alignment.candidates.parts import max_pool
from jbench.alignment.image_model import ImageModel, Preprocess
from jbench.models.layers.blocks import PRECISION

SIZE = 128  # pixels
PADDED = 168  # with zeros around: more than the largest filter reaches, and fast to transform
DARK = 0.02  # the least norm under a filter: where all is black nothing is divided by 0
GREY = (0.299, 0.587, 0.114)  # ITU-R 601
GABORS = (  # width in pixels, sigma, wavelength (Serre et al. 2007, table 1)
    (7, 2.8, 3.5),
    (9, 3.6, 4.6),
    (11, 4.5, 5.6),
    (13, 5.4, 6.8),
    (15, 6.3, 7.9),
    (17, 7.3, 9.1),
    (19, 8.2, 10.3),
    (21, 9.2, 11.5),
    (23, 10.2, 12.7),
    (25, 11.3, 14.1),
    (27, 12.3, 15.4),
    (29, 13.4, 16.8),
    (31, 14.6, 18.2),
    (33, 15.8, 19.7),
    (35, 17.0, 21.2),
    (37, 18.2, 22.8),
)
ORIENTATIONS, ASPECT = 4, 0.3
POOLS = (8, 10, 12, 14, 16, 18, 20, 22)  # windows of the bands, in pixels
TEMPLATES = (4, 8, 12, 16)  # their widths, in positions of C1
EACH = 100  # templates of a width
CUT_FROM = 1  # the band
LAYERS = ('s1', 'c1', 's2', 'c2')


def gabors(width: int, sigma: float, wavelength: float) -> np.ndarray:
    """Filters [orientation, width, width] with mean 0 and norm 1 inside a circle, 0 outside it."""
    place = np.arange(width) - width // 2
    y, x = np.meshgrid(place, place, indexing='ij')
    inside = np.hypot(x, y) <= width / 2
    out = []
    for k in range(ORIENTATIONS):
        angle = k * np.pi / ORIENTATIONS
        along, across = x * np.cos(angle) + y * np.sin(angle), -x * np.sin(angle) + y * np.cos(angle)
        wave = np.exp(-(along**2 + (ASPECT * across) ** 2) / (2 * sigma**2)) * np.cos(2 * np.pi * along / wavelength)
        wave = np.where(inside, wave - wave[inside].mean(), 0)
        out.append(wave / np.linalg.norm(wave))
    return np.stack(out).astype(np.float32)


def _correlated(x: jax.Array, kernels: jax.Array) -> jax.Array:
    """x [b, y, x, c] with kernels [n, k, k, c] where they lie within it -> [b, y, x, n]."""
    form = ('NHWC', 'OHWI', 'NHWC')
    return lax.conv_general_dilated(x, kernels, (1, 1), 'VALID', dimension_numbers=form, precision=PRECISION)


def spectra(kernels: np.ndarray) -> np.ndarray:
    """Of kernels [n, k, k], k odd, what the spectrum of an image with zeros around is multiplied with: [n, 168, 85]."""
    k = kernels.shape[1]
    wide = np.zeros((len(kernels), PADDED, PADDED))
    wide[:, :k, :k] = kernels
    return np.conj(np.fft.rfft2(np.roll(wide, (-(k // 2), -(k // 2)), (1, 2)))).astype(np.complex64)


def _s1(grey: jax.Array) -> list[jax.Array]:
    """Of grey images [b, 128, 128], for each size [b, 128, 128, orientation]."""

    def filtered(spectrum: jax.Array, kernels: np.ndarray) -> jax.Array:
        found = jnp.fft.irfft2(spectrum[:, None] * spectra(kernels), (PADDED, PADDED))
        return jnp.moveaxis(found[:, :, :SIZE, :SIZE], 1, -1)

    around, out = ((0, 0), (0, PADDED - SIZE), (0, PADDED - SIZE)), []
    plain, power = (jnp.fft.rfft2(jnp.pad(v, around)) for v in (grey, grey**2))
    for row in GABORS:
        kernels = gabors(*row)
        norm = jnp.sqrt(jnp.maximum(filtered(power, np.abs(kernels).sum(0, keepdims=True) > 0), DARK**2))
        out.append(jnp.abs(filtered(plain, kernels)) / norm)
    return out


def _c1(s1: list[jax.Array]) -> list[jax.Array]:
    """For each band [b, y, x, orientation]."""
    pairs = zip(s1[::2], s1[1::2], strict=True)
    return [max_pool(jnp.maximum(a, b), n, n // 2) for n, (a, b) in zip(POOLS, pairs, strict=True)]


def _s2(c1: list[jax.Array], templates: dict[str, jax.Array]) -> list[list[jax.Array]]:
    """For each width of templates, for each band that is wide enough [b, y, x, template]."""
    out = []
    for width in TEMPLATES:
        kernels = templates[f'width_{width}']
        ones, own = jnp.ones((1, width, width, ORIENTATIONS)), (kernels**2).sum((1, 2, 3))
        here = []
        for band in c1:
            if band.shape[1] >= width:
                apart = _correlated(band**2, ones) - 2 * _correlated(band, kernels) + own
                here.append(jnp.exp(-jnp.maximum(apart, 0) / (2 * (width / 4) ** 2)))
        out.append(here)
    return out


def _hmax(templates: dict[str, jax.Array], images: jax.Array) -> dict[str, jax.Array]:
    """Activations of images [b, 128, 128, 3]."""
    b = len(images)
    s1 = _s1(images @ jnp.asarray(GREY, images.dtype))
    c1 = _c1(s1)
    s2 = _s2(c1, templates)
    return {
        's1': jnp.moveaxis(jnp.concatenate(s1, -1), -1, 1),
        'c1': jnp.concatenate([band.reshape(b, -1) for band in c1], 1),
        's2': jnp.concatenate([band.reshape(b, -1) for bands in s2 for band in bands], 1),
        'c2': jnp.concatenate([jnp.stack([x.max((1, 2)) for x in bands]).max(0) for bands in s2], 1),
    }


def noise(n: int, rng: np.random.Generator) -> np.ndarray:
    """Grey images [n, 128, 128] from 0 to 1 whose amplitudes fall with the frequency."""
    steps = np.fft.fftfreq(SIZE)
    radius = np.hypot(steps[:, None], steps)
    radius[0, 0] = np.inf  # no mean
    images = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, SIZE, SIZE))) / radius).real
    low, high = images.min((1, 2), keepdims=True), images.max((1, 2), keepdims=True)
    return ((images - low) / (high - low)).astype(np.float32)


def templates(seed: int) -> dict[str, np.ndarray]:
    """Templates of each width, [template, width, width, orientation], a place of one of 25 images each."""
    rng = np.random.default_rng(seed)
    found = np.asarray(jax.jit(lambda x: _c1(_s1(x))[CUT_FROM])(noise(25, rng)))
    out = {}
    for width in TEMPLATES:
        images = rng.integers(len(found), size=EACH)
        rows, columns = rng.integers(found.shape[1] - width + 1, size=(2, EACH))
        cut = [found[i, r : r + width, c : c + width] for i, r, c in zip(images, rows, columns, strict=True)]
        out[f'width_{width}'] = np.stack(cut)
    return out


def hmax(seed: int = 0) -> ImageModel:
    """Layers `s1` [b, 64, 128, 128], `c1` and `s2` [b, units], `c2` [b, 400]; templates come from the seed."""
    digest = hashlib.sha256(f'hmax version 1 seed {seed}'.encode()).hexdigest()
    return ImageModel('hmax', LAYERS, Preprocess(SIZE), Partial(_hmax, templates(seed)), digest)
