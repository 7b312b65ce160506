"""BDTCN: a temporal convolutional network (three residual blocks of causal, dilated convolutions).

Gemein, Schirrmeister, Chrabaszcz, Wilson, Boedecker, Schulze-Bonhage, Hutter & Ball (2020). Machine-learning-based
diagnostics of EEG pathology. NeuroImage 220, 117021. doi:10.1016/j.neuroimage.2020.117021
The block is that of Bai, Kolter & Koltun (2018), arXiv:1803.01271.

The function computed is that of braindecode 1.8 `BDTCN` with its defaults (30 filters of 5 samples), for x [B, C, T]:

    three blocks, of dilation 1, 2, 4:  ReLU(x + branch), branch = [causal convolution -> ReLU -> dropout of whole
    feature maps] twice; x passes a 1x1 convolution first where it has not 30 features
    -> linear at every sample -> mean of the last T - 56

Each filter is weight-normalised: w = g v / ||v||, the norm over its inputs and taps. One output sees 57 samples, so
the last T - 56 are those that see no padding. No batch norm, hence no state.

Parameters: 22890 + 180 C + 31 n, and 30 (C + 1) fewer at C = 30. At (C, T, n) = (8, 480, 12): 24702.

braindecode's faults. Kept: its constructor means to draw the filters from N(0, 0.01), but draws into a temporary, so
that torch's default U(-1/sqrt(5 C), 1/sqrt(5 C)) stands and g = ||v||; only the 1x1 convolution is N(0, 0.01). Refused:
windows of 57 samples, where it drops the time axis and averages over the classes (one output, whatever was asked).

How it is computed. Zeros before a causal convolution reach only outputs that the mean leaves out, so nothing is padded:
every convolution is shorter than its input, and nearly 4 % of the work is never done. The mean goes before the linear
layer. A convolution is one product of matrices, of all taps [150, f] and the samples [f, n], and the sum of its five
parts, each shifted by its tap: XLA's own convolutions of so few features are slower on a CPU, and a copy of five times
the input, to multiply once, is, too. The batch is the last axis, so that a shift moves whole rows, and columns are one
flat axis. A processor computes a few windows at once, so that the five parts stay near its caches.
"""

from __future__ import annotations

import functools
import math

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.model import Signal

N_FILTERS, TAPS = 30, 5
DILATIONS = (1, 2, 4)
DOWNSAMPLE_STD = 0.01
LAST_LAYER = 'base_tcn.final_layer.fc'  # in the reference
SEEN = 1 + 2 * (TAPS - 1) * sum(DILATIONS)  # 57: samples that one output sees
AT_ONCE = 7680  # samples of all windows that a processor computes at once (`Model.at_once`): 16 windows of 480


def dilated_conv(x: jax.Array, taps: jax.Array, step: int) -> jax.Array:
    """Cross-correlation of the rows of x [f, n] with taps [g, f, k] that are `step` columns apart, without padding.

    Returns [g, n - (k - 1) step]; out[g, s] = sum_fk taps[g, f, k] x[f, s + k step], summed in float32 at least.
    """
    (g, f, k), n = taps.shape, x.shape[1] - (taps.shape[2] - 1) * step
    rows, wide = taps.transpose(2, 0, 1).reshape(k * g, f), jnp.promote_types(x.dtype, jnp.float32)
    each = jnp.matmul(rows, x, precision=blocks.PRECISION, preferred_element_type=wide).reshape(k, g, -1)
    return functools.reduce(jnp.add, [each[i, :, i * step : i * step + n] for i in range(k)]).astype(x.dtype)


def feature_dropout(x: jax.Array, b: int, rate: float, key: jax.Array | None, axis_name: str | None) -> jax.Array:
    """Dropout of whole feature maps of x [f, n * b]."""
    if key is None:
        return x
    scale = blocks.dropout(jnp.ones((x.shape[0], b), x.dtype), rate, key, axis_name)
    # Spread over columns by a product: XLA would draw a copy into every loop that reads it, and each would be slow.
    columns = jnp.tile(jnp.eye(b, dtype=x.dtype), (1, x.shape[-1] // b))
    return x * jnp.matmul(scale, columns, precision=blocks.PRECISION)


class _Conv(nn.Module):
    """A weight-normalised convolution with offset, drawn as torch draws one."""

    n_in: int

    @nn.compact
    def __call__(self, x: jax.Array, step: int) -> jax.Array:
        draw = blocks.uniform(1 / math.sqrt(self.n_in * TAPS))
        direction = self.param('direction', draw, (N_FILTERS, self.n_in, TAPS))
        length = jnp.sqrt((direction**2).sum((1, 2)))
        norm = self.param('norm', lambda key: length)
        bias = self.param('bias', draw, (N_FILTERS,))
        return dilated_conv(x, direction * (norm / length)[:, None, None], step) + bias[:, None]


class _Residual(nn.Module):
    """A block of the paper: x [f, t, b] -> [30, t - 8 dilation, b], the last samples of what padding would give."""

    n_in: int
    dilation: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        b = x.shape[2]
        step = self.dilation * b
        x = h = x.reshape(self.n_in, -1)
        for i, one in enumerate(blocks.split(key, 2)):
            h = nn.relu(_Conv(h.shape[0], name=f'conv{i + 1}')(h, step))
            h = feature_dropout(h, b, self.dropout, one, self.axis_name)
        if self.n_in != N_FILTERS:
            weight = self.param('downsample', nn.initializers.normal(DOWNSAMPLE_STD), (N_FILTERS, self.n_in))
            bias = self.param('downsample_bias', blocks.uniform(1 / math.sqrt(self.n_in)), (N_FILTERS,))
            x = jnp.matmul(weight, x, precision=blocks.PRECISION) + bias[:, None]
        return nn.relu(h + x[:, x.shape[1] - h.shape[1] :]).reshape(N_FILTERS, -1, b)


class _BDTCN(nn.Module):
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; each row for itself."""
        h = jax.lax.optimization_barrier(batch['x'].transpose(1, 2, 0))  # XLA would transpose at every reading
        for i, one in enumerate(blocks.split(key, len(DILATIONS))):
            h = _Residual(h.shape[0], DILATIONS[i], self.axis_name, self.dropout, name=f'block{i}')(h, one)
        self.sow('features', 'convolutions', h.transpose(2, 0, 1))  # [b, 30, t - 56]
        mean = h.mean(1).T
        self.sow('features', 'penultimate', mean)  # [b, 30]
        return blocks.Linear(N_FILTERS, self.n_out, name='linear')(mean)


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    found = []
    for i in range(len(DILATIONS)):
        block, n_in = f'base_tcn.temporal_blocks.temporal_block_{i}', signal.n_chans if i == 0 else N_FILTERS
        for conv, features in (('conv1', n_in), ('conv2', N_FILTERS)):
            name, path = f'{block}.{conv}', ('params', f'block{i}', conv)
            weight = f'{name}.parametrizations.weight'
            found += [
                Tensor(f'{name}.bias', (N_FILTERS,), (*path, 'bias')),
                Tensor(f'{weight}.original0', (N_FILTERS, 1, 1), (*path, 'norm')),
                Tensor(f'{weight}.original1', (N_FILTERS, features, TAPS), (*path, 'direction')),
            ]
        if n_in != N_FILTERS:
            name = f'{block}.downsample'
            found += [
                Tensor(f'{name}.weight', (N_FILTERS, n_in, 1), ('params', f'block{i}', 'downsample')),
                Tensor(f'{name}.bias', (N_FILTERS,), ('params', f'block{i}', 'downsample_bias')),
            ]
    return [*found, *torch_weights.linear_tensors(LAST_LAYER, ('linear',), N_FILTERS, n_out)]


def bdtcn(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.5) -> Model:
    """BDTCN for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 58 are used.
        n_out: number of logits.
        axis_name: mapped axis over which the batch is split; None on one device.
        dropout: rate, 0 to below 1.

    Raises: RequestError where the windows are shorter than what two outputs see.
    """
    require('bdtcn', signal, n_out, min_times=SEEN + 1, dropout=dropout)
    module = _BDTCN(n_out, axis_name, dropout)
    made = network(module, signal, _tensors(signal, n_out), head=(LAST_LAYER,))
    return made._replace(at_once=max(1, AT_ONCE // signal.n_times))
