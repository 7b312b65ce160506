"""Spatial before temporal filters, with the exact batch statistics of what the temporal ones would have given.

Axis letters: b batch, c channel, f and g features, t time, k tap.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models.layers.blocks import PRECISION, BatchNorm, Moments, add_devices
from jbench.models.layers.filters import fast_length, fir
from jbench.models.model import Batch


def lag_sums(x: jax.Array, n_taps: int, pad: tuple[int, int]) -> dict[str, jax.Array]:
    """What `lag_moments` needs of windows x [b, c, t]; it depends on each window alone, so it is computed once.

    With z = x - centre (one number a window), and z_padded its rows with `pad` zeros before and after:

    Returns: lag_centre [b]; lag_trace [b, t], the sum of z over channels; lag_products [b, k (k + 1) / 2], the sums
    over channels and outputs s of z_padded[s + i] * z_padded[s + j] for the taps i <= j.

    The products come without the shifted signals, which would be k times the data. Summed over ALL shifts they depend
    on the lag j - i alone (one FFT); the shifts that are no outputs touch only the first and the last k - 1 samples of
    the padded row, and are subtracted along the diagonals of two small Gram matrices.
    """
    t = x.shape[-1]
    n_out = t + sum(pad) - n_taps + 1
    centre = x.mean((1, 2))
    z = x - centre[:, None, None]
    length = fast_length(t + n_taps)  # room for lags < n_taps without wrap-around
    spectrum = jnp.fft.rfft(z.astype(jnp.promote_types(z.dtype, jnp.float32)), length)
    every = jnp.fft.irfft((spectrum.real**2 + spectrum.imag**2).sum(1), length)[:, :n_taps]
    padded = jnp.pad(z, ((0, 0), (0, 0), pad))
    edges = padded[..., : n_taps - 1], padded[..., n_out:]
    first, last = (jnp.einsum('bci,bcj->bij', e, e, precision=PRECISION) for e in edges)
    tap, lag = np.arange(n_taps)[:, None], np.arange(n_taps)[None, :]

    def diagonals(gram: jax.Array) -> jax.Array:
        return jnp.pad(gram, ((0, 0), (0, 1), (0, n_taps + 1)))[:, tap, tap + lag]  # [i, lag] = gram[i, i + lag], or 0

    before, after = diagonals(first), diagonals(last)
    before = jnp.cumsum(before, axis=1) - before  # samples before tap i: never the left factor of that tap
    after = jnp.cumsum(after[:, ::-1], axis=1)[:, ::-1]  # samples beyond the last output of tap i
    i, j = np.triu_indices(n_taps)
    return {
        'lag_centre': centre,
        'lag_trace': z.sum(1),
        'lag_products': (every[:, None] - before - after)[:, i, j - i],
    }


def lag_moments(
    sums: Batch, mask: jax.Array, n_chans: int, n_taps: int, pad: tuple[int, int], axis_name: str | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean [k] and biased covariance [k, k] of the k samples that a padded convolution sees at once; their number.

    Over all channels and outputs of the rows where mask [b] is true. A filter w [k] applied to all of them has mean
    w.mean and variance w' covariance w, without being applied. Both depend on the data alone (`lag_sums`), so no
    gradient flows into them. Offsets: a padded row is c * inside + z_padded, where c is the mean of all data and
    `inside` is 1 on its samples and 0 on the padding; the three parts of the covariance are added, so that no large
    numbers cancel.
    """
    centres, traces, products = (
        jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), lax.stop_gradient(a), 0)
        for a in (sums['lag_centre'], sums['lag_trace'], sums['lag_products'])
    )
    t = traces.shape[1]
    n_out = t + sum(pad) - n_taps + 1
    centre, n = add_devices((centres.sum(), mask.sum().astype(centres.dtype)), axis_name)
    at_least_one = jnp.maximum(n, 1)
    centre = centre / at_least_one
    shift = jnp.where(mask, centres - centre, 0)  # z of the whole batch is z of a window plus its shift
    parts = traces.sum(0), shift @ traces, products.sum(0), shift.sum(), (shift**2).sum()
    trace, shifted, product, shift_1, shift_2 = add_devices(parts, axis_name)

    window = np.arange(n_taps)[:, None] + np.arange(n_out)[None, :]  # [k, s] -> sample of the padded row
    ones = np.pad(np.ones(t), pad)[window]
    inside, both = (jnp.asarray(a, trace.dtype) for a in (ones, ones @ ones.T))
    i, j = np.triu_indices(n_taps)
    place = np.zeros((n_taps, n_taps), int)
    place[i, j] = place[j, i] = np.arange(len(i))

    def cross(row: jax.Array, weights: jax.Array) -> jax.Array:
        """weights [k, s] times the shifts of a padded row [t], plus the transpose."""
        found = jnp.matmul(weights, jnp.pad(row, pad)[window].T, precision=PRECISION)
        return found + found.T

    rows = at_least_one * n_chans
    product = product[place] + cross(shifted, inside) + n_chans * shift_2 * both
    varying = (trace + n_chans * shift_1) / rows
    mean_inside, mean_varying = jnp.asarray(ones.mean(1), trace.dtype), jnp.pad(varying, pad)[window].mean(1)
    covariance = product / (rows * n_out) - jnp.outer(mean_varying, mean_varying)
    covariance += centre * cross(varying, (inside - mean_inside[:, None]) / n_out)
    covariance += centre**2 * jnp.asarray(np.cov(ones, bias=True), trace.dtype)
    return centre * mean_inside + mean_varying, covariance, n * n_chans * n_out


def filtered_moments(batch: Batch, taps: jax.Array, pad: tuple[int, int], axis_name: str | None) -> Moments:
    """Moments of the filters taps [f, k] of all channels of x [b, c, t], which are never filtered.

    A batch may carry what they need of each window (`lag_sums`).
    """
    x, k = batch['x'], taps.shape[1]
    sums = batch if 'lag_products' in batch else lag_sums(x, k, pad)
    mean, covariance, n = lag_moments(sums, batch['mask'], x.shape[1], k, pad, axis_name)
    var = jnp.einsum('fk,kl,fl->f', taps, covariance, taps, precision=PRECISION)
    return Moments(jnp.matmul(taps, mean, precision=PRECISION), jnp.maximum(var, 0), n)


def mix(x: jax.Array, spatial: jax.Array) -> jax.Array:
    """Weighted sums of the channels of x [b, c, t] by spatial [g, c]: [g, b, t].

    A product for each window, in this order of factors: one for all of them, or the other order, would move single
    samples of the whole batch, before or after.
    """
    each = jnp.broadcast_to(spatial, (len(x), *spatial.shape))
    return jnp.matmul(each, x, precision=PRECISION).swapaxes(0, 1)


def temporal_spatial(
    batch: Batch, temporal: jax.Array, spatial: jax.Array, norm: BatchNorm, pad: tuple[int, int], *, train: bool
) -> jax.Array:
    """Temporal filters [f, k], batch norm and spatial filters [f * d, c] of x [b, c, t]: [f * d, b, s].

    Spatial filter g weighs the channels of the output of temporal filter g // d (a grouped convolution). Nothing
    non-linear stands between them, so the spatial filters go first, and the tensor [b, f, c, s] of the literal order
    never exists. The statistics of `norm` over it come from the data (`filtered_moments`); evaluation needs none.
    """
    f = len(temporal)
    gain, offset = norm.fold(filtered_moments(batch, temporal, pad, norm.axis_name) if train else None)
    mixed = mix(batch['x'], spatial)
    g, b, t = mixed.shape
    h = fir(mixed.reshape(f, g // f * b, t), temporal * gain[:, None], pad).reshape(g, b, -1)
    # The offset of a temporal filter reaches the output through each spatial filter's sum of weights.
    return h + (jnp.repeat(offset, g // f) * spatial.sum(1))[:, None, None]
