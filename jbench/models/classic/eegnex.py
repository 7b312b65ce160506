"""EEGNeX: two temporal convolutions, a spatial one, two dilated ones.

Chen, Teng, Chen, Pan & Geyer (2024). Toward reliable signals decoding for electroencephalogram: a benchmark study to
EEGNeX. Biomedical Signal Processing and Control 87, 105475. doi:10.1016/j.bspc.2023.105475

The function computed is that of braindecode 1.8 `EEGNeX` with its defaults, for x [B, C, T]; "same" padding:

    8 temporal filters (64) -> BN -> convolution 8 -> 32 (64) -> BN -> 2 spatial filters of each (C weights, norm <= 1)
    -> BN -> ELU -> mean of 4 -> dropout .5 -> convolution 64 -> 32 (16, dilation 2) -> BN
    -> convolution 32 -> 8 (16, dilation 4) -> BN -> ELU -> mean of 8 -> dropout .5
    -> linear, its rows of norm <= 0.25

Parameters: 528 + 16448 + 64 C + 128 + 32832 + 4112 + n (8 L + 1), L = floor((floor((T+2)/4) + 2) / 8). At (C, T, n) =
(8, 480, 12): 56012. It is not among NeuralBench's networks.

braindecode's faults, kept: both means see one zero before and after the signal and count it, so the first and the last
value are too small by a quarter and an eighth; no activation between the last two convolutions.

How it is computed. Up to the spatial filters everything is linear once the statistics are known, so these go first: 64
signals instead of 32 C (the literal order spends 96 % of its time in the second convolution, over all channels). Both
temporal convolutions and the norm between them are then one filter of 127 samples, except that the second convolution
sees zeros, not filtered signal, beyond the ends of the window: the first 31 and the last 32 samples are small matrices
of their own, and the offset of the norm gives a constant that varies near the ends (`_joined`). The statistics of the
second norm, of a tensor [B, 32, C, T] that never exists, follow exactly from the same filters and from the moments of
the data that they see: 127 neighbouring samples anywhere, the 95 first, the 94 last. Same values, gradients and running
statistics as the literal order.
"""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters, spatial_first
from jbench.models.layers.blocks import Moments
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.model import Signal

FIRST, SECOND, PER_SECOND = 8, 32, 2
N_SPATIAL = SECOND * PER_SECOND
TAPS, PAD = 64, (31, 32)
BOTH = 2 * TAPS - 1  # samples that both temporal convolutions see
DILATED_TAPS, DILATIONS = 16, (2, 4)
POOLS = (4, 8)
MAX_NORM, LINEAR_MAX_NORM = 1.0, 0.25
MIN_TIMES = POOLS[0] * (POOLS[1] - 2) - 2  # 22: one value is left after both means


def n_pooled(n_times: int) -> int:
    """Samples L that reach the linear layer."""
    return ((n_times + 2) // POOLS[0] + 2) // POOLS[1]


def _outputs(t: int) -> tuple[np.ndarray, np.ndarray]:
    """The outputs of the second convolution that differ in what they see, and how many are like each.

    Every one of a window shorter than the taps; else the first 31, one of the middle, the last 32.
    """
    if t < TAPS:
        return np.arange(t), np.ones(t)
    before, after = PAD
    each = np.concatenate([np.arange(before + 1), np.arange(t - after, t)])
    return each, np.where(each == before, t - TAPS + 1, 1)


class _Edge(NamedTuple):
    """Outputs with filters of their own, near an end of the window."""

    outputs: slice  # of `_outputs`
    seen: slice  # samples of the window that they see
    column: int  # of the first of these, among the samples from 62 before the first output on


def _edges(t: int) -> list[_Edge]:
    before, after = PAD
    if t < TAPS:
        return [_Edge(slice(0, t), slice(0, t), 2 * before)]
    first, last = min(t, 2 * before + 1 + after), min(t, 2 * before + after)
    return [
        _Edge(slice(0, before), slice(0, first), 2 * before),
        _Edge(slice(before + 1, TAPS), slice(t - last, t), 2 * before + after - last),
    ]


class _Filters(NamedTuple):
    """Both temporal convolutions and the norm between as one filter for each of `_outputs`."""

    taps: jax.Array  # [g, o, 127]; output o sees the samples from o - 62 on
    constant: jax.Array  # [g, o]

    def matrix(self, edge: _Edge) -> jax.Array:
        """What the outputs of an edge make of the samples that they see: [g, outputs, samples]."""
        columns = slice(edge.column, edge.column + edge.seen.stop - edge.seen.start)
        return filters.shifted(self.taps[:, edge.outputs])[..., columns]

    def middle(self) -> jax.Array:
        """The filter [g, 127] of all outputs that see no end."""
        return self.taps[:, PAD[0]]


def _joined(t: int, first: jax.Array, offset: jax.Array, second: jax.Array) -> _Filters:
    """The filters first [f, k] with `offset` [f] added to their output, then second [g, f, k].

    The second convolution sees zeros beyond the ends of the window, not what the first would give there: near them some
    of its taps do not count.
    """
    outputs, _ = _outputs(t)
    middle = outputs[:, None] + np.arange(TAPS) - PAD[0]  # what each tap of the second convolution falls on
    counts = jnp.asarray((middle >= 0) & (middle < t), first.dtype)
    pairs = jnp.einsum('gfj,fi->gji', second, first, precision=blocks.PRECISION)
    each = filters.shifted(pairs)[..., :BOTH]  # [g, j, i + j]
    constant = jnp.einsum('gfj,f->gj', second, offset, precision=blocks.PRECISION)
    return _Filters(
        jnp.einsum('oj,gjm->gom', counts, each, precision=blocks.PRECISION),
        jnp.matmul(constant, counts.T, precision=blocks.PRECISION),
    )


def _sample_moments(x: jax.Array, mask: jax.Array, axis_name: str | None) -> tuple[jax.Array, jax.Array]:
    """Mean [t] and biased covariance [t, t] of the samples of x [b, c, t], over channels and rows of the mask."""
    x = jnp.where(mask[:, None, None], lax.stop_gradient(x), 0)
    total, rows = blocks.add_devices((x.sum((0, 1)), mask.sum().astype(x.dtype)), axis_name)
    n = jnp.maximum(rows, 1) * x.shape[1]
    centred = jnp.where(mask[:, None, None], x - total / n, 0).reshape(-1, x.shape[2])
    return total / n, blocks.add_devices(jnp.matmul(centred.T, centred, precision=blocks.PRECISION), axis_name) / n


def _moments(batch: Batch, joined: _Filters, axis_name: str | None) -> Moments:
    """Moments of the output of both convolutions over channels and times: those of each output, and between them."""
    x, mask = batch['x'], batch['mask']
    _, c, t = x.shape
    means, variances = [], []
    for edge in _edges(t):
        mean, covariance = _sample_moments(x[..., edge.seen], mask, axis_name)
        matrix = joined.matrix(edge)
        means.append(jnp.matmul(matrix, mean, precision=blocks.PRECISION))
        variances.append(jnp.einsum('gon,nm,gom->go', matrix, covariance, matrix, precision=blocks.PRECISION))
    if t >= TAPS:
        middle = spatial_first.filtered_moments({'x': x, 'mask': mask}, joined.middle(), PAD, axis_name)
        means.insert(1, middle.mean[:, None])
        variances.insert(1, middle.var[:, None])
    weight = jnp.asarray(_outputs(t)[1] / t, x.dtype)
    mean_each, var_each = jnp.concatenate(means, 1) + joined.constant, jnp.concatenate(variances, 1)
    mean = (mean_each * weight).sum(1)
    var = ((jnp.maximum(var_each, 0) + (mean_each - mean[:, None]) ** 2) * weight).sum(1)
    return Moments(mean, var, blocks.add_devices(mask.sum().astype(x.dtype), axis_name) * c * t)


def _apply(joined: _Filters, x: jax.Array) -> jax.Array:
    """Both convolutions of the signals x [g, r, t], without the constant: [g, r, t]."""
    t = x.shape[2]
    out = [
        jnp.einsum('grn,gon->gro', x[..., edge.seen], joined.matrix(edge), precision=blocks.PRECISION)
        for edge in _edges(t)
    ]
    if t >= TAPS:
        out.insert(1, filters.fir(x, joined.middle(), PAD))
    return jnp.concatenate(out, -1)


class _EEGNeX(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        mask, keys = batch['mask'], blocks.split(key, 2)
        h = self._norm('bn_spatial', N_SPATIAL)(self._front(batch, train), mask, train=train)
        h = blocks.dropout(_padded_mean(h, POOLS[0]), self.dropout, keys[0], self.axis_name)
        self.sow('features', 'spatial', h.swapaxes(0, 1))  # [b, 64, t / 4]
        h = self._norm('bn_third', SECOND)(self._dilated(h, 'third', SECOND, DILATIONS[0]), mask, train=train)
        h = self._norm('bn_fourth', FIRST)(self._dilated(h, 'fourth', FIRST, DILATIONS[1]), mask, train=train)
        h = blocks.dropout(_padded_mean(h, POOLS[1]), self.dropout, keys[1], self.axis_name)
        self.sow('features', 'penultimate', h.swapaxes(0, 1))  # [b, 8, L]
        length = n_pooled(self.n_times)
        bound = blocks.uniform((FIRST * length) ** -0.5)
        linear = blocks.max_norm(self.param('linear', bound, (self.n_out, FIRST, length)), LINEAR_MAX_NORM)
        bias = self.param('linear_bias', bound, (self.n_out,))
        return jnp.einsum('fbt,nft->bn', h, linear, precision=blocks.PRECISION) + bias

    def _front(self, batch: Batch, train: bool) -> jax.Array:
        """Both temporal convolutions, their norms and the spatial filters of x [b, c, t]: [64, b, t]."""
        x, t = batch['x'], self.n_times
        first = self.param('first', blocks.uniform(TAPS**-0.5), (FIRST, TAPS))
        second = self.param('second', blocks.uniform((FIRST * TAPS) ** -0.5), (SECOND, FIRST, TAPS))
        xavier = blocks.xavier(self.n_chans, N_SPATIAL * self.n_chans)  # torch counts the filters of all groups
        spatial = blocks.max_norm(self.param('spatial', xavier, (N_SPATIAL, self.n_chans)), MAX_NORM)
        moments = spatial_first.filtered_moments(batch, first, PAD, self.axis_name) if train else None
        gain, offset = self._norm('bn_first', FIRST).fold(moments)
        joined = _joined(t, first * gain[:, None], offset, second)
        gain, offset = self._norm('bn_second', SECOND).fold(_moments(batch, joined, self.axis_name) if train else None)
        joined = _Filters(joined.taps * gain[:, None, None], joined.constant * gain[:, None] + offset[:, None])
        mixed = spatial_first.mix(x, spatial)
        h = _apply(joined, mixed.reshape(SECOND, PER_SECOND * len(x), t)).reshape(mixed.shape)
        constant = jnp.repeat(joined.constant, _outputs(t)[1].astype(int), axis=1, total_repeat_length=t)
        return h + (jnp.repeat(constant, PER_SECOND, axis=0) * spatial.sum(1)[:, None])[:, None]

    def _dilated(self, h: jax.Array, name: str, n_out: int, dilation: int) -> jax.Array:
        """Convolution of h [f, b, t] to [n_out, b, t]."""
        f, k = h.shape[0], DILATED_TAPS
        taps = self.param(name, blocks.uniform((f * k) ** -0.5), (n_out, f, k))
        total = dilation * (k - 1)
        return filters.conv(h, taps, (total // 2, total - total // 2), dilation)

    def _norm(self, name: str, features: int) -> blocks.BatchNorm:
        return blocks.BatchNorm(features, axis_name=self.axis_name, name=name)


def _padded_mean(h: jax.Array, width: int) -> jax.Array:
    """Means of `width` neighbours of ELU(h) [f, b, t] with a zero before and after it, which count."""
    return filters.elu_mean(jnp.pad(h, ((0, 0), (0, 0), (1, 1))), width)


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    norm = torch_weights.batch_norm_tensors
    spatial, linear = (f'{name}.parametrizations.weight.original' for name in ('block_3.0', 'final_layer'))
    return [
        Tensor('block_1.1.weight', (FIRST, 1, 1, TAPS), ('params', 'first')),
        *norm('block_1.2', ('bn_first',), FIRST),
        Tensor('block_2.0.weight', (SECOND, FIRST, 1, TAPS), ('params', 'second')),
        *norm('block_2.1', ('bn_second',), SECOND),
        Tensor(spatial, (N_SPATIAL, 1, signal.n_chans, 1), ('params', 'spatial')),
        *norm('block_3.1', ('bn_spatial',), N_SPATIAL),
        Tensor('block_4.0.weight', (SECOND, N_SPATIAL, 1, DILATED_TAPS), ('params', 'third')),
        *norm('block_4.1', ('bn_third',), SECOND),
        Tensor('block_5.0.weight', (FIRST, SECOND, 1, DILATED_TAPS), ('params', 'fourth')),
        *norm('block_5.1', ('bn_fourth',), FIRST),
        Tensor('final_layer.bias', (n_out,), ('params', 'linear_bias')),
        Tensor(linear, (n_out, FIRST * n_pooled(signal.n_times)), ('params', 'linear')),
    ]


def eegnex(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.5) -> Model:
    """EEGNeX for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 22 are used.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate, 0 to below 1.

    Raises: RequestError where the windows are too short for the two means.
    """
    require('eegnex', signal, n_out, min_times=MIN_TIMES, dropout=dropout)
    module = _EEGNeX(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out))
