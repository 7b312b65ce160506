"""CTNet: EEGNet's convolutions, then a transformer over the pooled samples.

Zhao, Jiang, Zhang, Xiao, Zhao, Yang, Du, Meng & Chen (2024). CTNet: a convolutional transformer network for EEG-based
motor imagery classification. Scientific Reports 14, 20237. doi:10.1038/s41598-024-71118-7

The function computed is that of braindecode 1.8 `CTNet` with its defaults, for x [B, C, T]:

    20 temporal filters (64, "same": 31/32) -> BN -> 2 spatial filters of each (C weights) -> BN -> ELU -> mean of 8
    -> dropout .3 -> convolution 40 -> 40 (16, "same": 7/8) -> BN -> ELU -> mean of 8 -> dropout .3: L tokens of 40
    -> x0 = dropout .1 of sqrt(40) * tokens + position -> 6 layers -> (x0 + their result), flat -> linear

A layer normalises after it adds: x = LN(x + dropout .5 of attention (4 heads of 10, dropout .5 of the probabilities)),
then x = LN(x + dropout .5 of 40 -> 160 -> GELU -> dropout .5 -> 40).

Parameters: 1280 + 40 + 40 C + 80 + 25600 + 80 + 40 max(100, floor(T/64)) + 6 * 19720 + n (40 L + 1),
L = floor(floor(T/8) / 8). At (C, T, n) = (8, 480, 12): 153092.

braindecode's faults. Kept: only the first L rows of the table of positions (100 rows, more for windows beyond 6400
samples) are ever read; the others are parameters without a gradient that weight decay shrinks (L = 7 of 100 at 480
samples). Its constructor builds a dropout of .5 before the linear layer that its forward pass never calls: there is
none here either. The kernels are the same number of samples at any rate (64: 0.53 s at 120 Hz).

How it is computed. Spatial filters first (`layers/spatial_first.py`): 40 signals instead of 20 C, and the statistics of
the first batch norm from the lag moments of the data. Query, key and value are one product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import flax.linen as nn
import jax

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters, spatial_first
from jbench.models.layers.attention import Attention
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.model import Signal

N_TEMPORAL, WIDTH = 20, 40  # temporal filters; spatial filters, and width of a token
TAPS, SECOND_TAPS = 64, 16  # samples
PAD, SECOND_PAD = (31, 32), (7, 8)
POOL = 8  # twice
LAYERS, HEADS, EXPANSION = 6, 4, 4
POSITIONS = 100
FRONT_DROPOUT, POSITION_DROPOUT = 0.3, 0.1
MIN_TIMES = POOL * POOL  # one token


def n_tokens(n_times: int) -> int:
    """Tokens L of a window."""
    return n_times // POOL // POOL


def n_positions(n_times: int) -> int:
    """Rows of the table of positions."""
    return max(POSITIONS, n_times // (POOL * POOL))


def precompute(x: jax.Array) -> dict[str, jax.Array]:
    """What the statistics of the first batch norm need of windows x [b, c, t]."""
    return spatial_first.lag_sums(x, TAPS, PAD)


class _Layer(nn.Module):
    """One layer of the transformer, over x [b, l, d]."""

    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        keys = blocks.split(key, 4)

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.dropout, keys[which], self.axis_name, batch_axis=0)

        attention = Attention(WIDTH, HEADS, WIDTH // HEADS, self.dropout, self.axis_name, name='attention')
        x = blocks.LayerNorm(WIDTH, name='norm_1')(x + drop(attention(x, keys[0]), 1))
        h = blocks.gelu(blocks.Linear(WIDTH, EXPANSION * WIDTH, name='wide')(x))
        h = blocks.Linear(EXPANSION * WIDTH, WIDTH, name='narrow')(drop(h, 2))
        return blocks.LayerNorm(WIDTH, name='norm_2')(x + drop(h, 3))


class _CTNet(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        keys = blocks.split(key, LAYERS + 3)
        h = self._convolutions(batch, keys, train)
        position = self.param('position', nn.initializers.normal(1.0), (n_positions(self.n_times), WIDTH))
        x = h.transpose(1, 2, 0) * math.sqrt(WIDTH) + position[: h.shape[2]]
        first = x = blocks.dropout(x, POSITION_DROPOUT, keys[2], self.axis_name, batch_axis=0)
        self.sow('features', 'tokens', x)  # [b, L, 40]
        for i in range(LAYERS):
            x = _Layer(self.axis_name, self.dropout, name=f'layer_{i}')(x, keys[i + 3])
        self.sow('features', 'transformer', x)
        flat = (first + x).reshape(len(x), -1)
        self.sow('features', 'penultimate', flat)  # [b, 40 L]
        return blocks.Linear(flat.shape[1], self.n_out, name='linear')(flat)

    def _convolutions(self, batch: Batch, keys: Sequence[jax.Array | None], train: bool) -> jax.Array:
        """Pooled features [40, b, l] of x [b, c, t]."""
        mask = batch['mask']
        temporal = self.param('temporal', blocks.uniform(TAPS**-0.5), (N_TEMPORAL, TAPS))
        spatial = self.param('spatial', blocks.uniform(self.n_chans**-0.5), (WIDTH, self.n_chans))
        taps = self.param('taps', blocks.uniform((WIDTH * SECOND_TAPS) ** -0.5), (WIDTH, WIDTH, SECOND_TAPS))
        h = spatial_first.temporal_spatial(batch, temporal, spatial, self._norm('bn_temporal'), PAD, train=train)
        h = filters.elu_mean(self._norm('bn_spatial')(h, mask, train=train), POOL)
        h = blocks.dropout(h, FRONT_DROPOUT, keys[0], self.axis_name)
        h = self._norm('bn_second')(filters.conv(h, taps, SECOND_PAD), mask, train=train)
        return blocks.dropout(filters.elu_mean(h, POOL), FRONT_DROPOUT, keys[1], self.axis_name)

    def _norm(self, name: str) -> blocks.BatchNorm:
        return blocks.BatchNorm(N_TEMPORAL if name == 'bn_temporal' else WIDTH, axis_name=self.axis_name, name=name)


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    norm, linear, front = torch_weights.batch_norm_tensors, torch_weights.linear_tensors, 'cnn.eegnet_module'
    out = [
        Tensor(f'{front}.0.weight', (N_TEMPORAL, 1, 1, TAPS), ('params', 'temporal')),
        *norm(f'{front}.1', ('bn_temporal',), N_TEMPORAL),
        Tensor(f'{front}.2.weight', (WIDTH, 1, signal.n_chans, 1), ('params', 'spatial')),
        *norm(f'{front}.3', ('bn_spatial',), WIDTH),
        Tensor(f'{front}.7.weight', (WIDTH, WIDTH, 1, SECOND_TAPS), ('params', 'taps')),
        *norm(f'{front}.8', ('bn_second',), WIDTH),
        Tensor('position.encoding', (1, n_positions(signal.n_times), WIDTH), ('params', 'position')),
    ]
    for i in range(LAYERS):
        first, second, layer = f'trans.layers.{i}.attention', f'trans.layers.{i}.feed_forward', f'layer_{i}'
        for theirs, own in (('keys', 'key'), ('queries', 'query'), ('values', 'value'), ('projection',) * 2):
            out += linear(f'{first}.module.0.{theirs}', (layer, 'attention', own), WIDTH, WIDTH)
        out += torch_weights.layer_norm_tensors(f'{first}.layernorm', (layer, 'norm_1'), WIDTH)
        out += linear(f'{second}.module.0.0', (layer, 'wide'), WIDTH, EXPANSION * WIDTH)
        out += linear(f'{second}.module.0.3', (layer, 'narrow'), EXPANSION * WIDTH, WIDTH)
        out += torch_weights.layer_norm_tensors(f'{second}.layernorm', (layer, 'norm_2'), WIDTH)
    return out + linear('final_layer', ('linear',), WIDTH * n_tokens(signal.n_times), n_out)


def ctnet(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.5) -> Model:
    """CTNet for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 64 are used.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate of the transformer, 0 to below 1.

    Raises: RequestError where the windows are too short for the two poolings.
    """
    require('ctnet', signal, n_out, min_times=MIN_TIMES, dropout=dropout)
    module = _CTNet(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out), precompute=precompute)
