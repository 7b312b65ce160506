"""ATCNet: convolutions, then attention and a temporal convolutional network on each of several sliding windows.

Altaheri, Muhammad & Alsulaiman (2022). Physics-informed attention temporal convolutional network for EEG-based motor
imagery classification. IEEE Transactions on Industrial Informatics 19, 2249-2258. doi:10.1109/TII.2022.3197419

The function computed is that of braindecode 1.8 `ATCNet` with its defaults, for x [B, C, T >= 616]; "same" padding
everywhere, BN eps 1e-4 in the first part and 1e-5 later:

    16 temporal filters (64) -> BN -> 2 spatial filters of each (C weights) -> BN -> ELU -> mean of 8 -> dropout .3
    -> convolution 32 -> 32 (16) -> BN -> ELU -> mean of 7 -> dropout .3: 32 features at Tc = floor(T/56) times
    (both dropouts of whole features)
    then for 5 windows of Tc - 4 times, shifted by one, each with weights of its own:
        x + dropout .5 and .3 of attention (2 heads of 8) over LN(x), eps 1e-6
        -> 2 blocks ELU(x + twice [causal convolution (4; dilation 1, then 2) -> BN -> ELU -> dropout .3])
        -> last time -> linear, its columns of norm <= 0.25
    -> mean over the windows

Below 616 samples every size shrinks with s = T/616: filters, poolings, number of windows and causal filters become
max(1, int(size * s)) (causal: at least 2). At 480: 49 and 12, 6 and 5, 3 windows, 3. So weights belong to one length.

Parameters: 16 k1 + 32 + 32 C + 64 + 1024 k2 + 64 + W (64 + 2128 + 4 (1024 kt + 96) + 33 n). At (C, T, n) =
(8, 480, 12): 59268.

braindecode's faults. Kept: the shrinking, at which it only warns; two dropouts in a row, of .5 and of .3 (here one of
.65, which has the same distribution); a norm limit that acts on the columns of the linear layers (input features), not
on the rows, that also scales the columns below it, by 1/(1 + 1e-5/norm) and more, and to which the initial weights are
fitted backwards, so that columns beyond the limit are stored enlarged and feel the limit from the start; biases of the
causal convolutions that the batch norm behind them cancels in training. The default rate of 250 Hz is not used by it.

How it is computed. Spatial filters first (`layers/spatial_first.py`): 32 signals instead of 16 C, and the statistics of
the first batch norm from the lag moments of the data. The windows' weights are stacked and their products batched.
Only the last time of a window is read: evaluation computes the 1 + 6 (kt - 1) times that it sees. In training the
batch statistics need them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters, spatial_first
from jbench.models.layers.attention import Attention
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.model import Signal

N_TEMPORAL, WIDTH = 16, 32  # temporal filters; spatial filters, and features of everything after them
HEADS, HEAD_SIZE = 2, 8
DILATIONS = (1, 2)  # of the two causal blocks
ATTENTION_DROPOUT = 1 - (1 - 0.5) * (1 - 0.3)  # of both masks
FRONT_EPS, ATTENTION_EPS = 1e-4, 1e-6
MAX_NORM, NORM_EPS = 0.25, 1e-5
FULL_TIMES = 616  # samples from which nothing shrinks: 5 windows that see 7 times, of 8 * 7 samples each


class Sizes(NamedTuple):
    """Lengths in samples, but for the number of windows."""

    taps: int
    second_taps: int
    pool: int
    second_pool: int
    n_windows: int
    causal_taps: int  # in pooled samples

    @property
    def reach(self) -> int:
        """Times that the last output of the causal blocks sees."""
        return 1 + 2 * sum(DILATIONS) * (self.causal_taps - 1)


def sizes(n_times: int) -> Sizes:
    """What a window of n_times samples leaves of the full sizes."""
    scale = min(1.0, n_times / FULL_TIMES)
    taps, second, pool, second_pool, windows, causal = (int(n * scale) for n in (64, 16, 8, 7, 5, 4))
    return Sizes(max(1, taps), max(1, second), max(1, pool), max(1, second_pool), max(1, windows), max(2, causal))


def same(taps: int) -> tuple[int, int]:
    """Padding before and after that keeps the length: the longer one behind, as in torch."""
    return (taps - 1) // 2, taps // 2


def _limit_of_columns(weight: jax.Array) -> jax.Array:
    """Factors [1, f] of the columns of weight [n, f]: near 1 up to a norm of MAX_NORM, then MAX_NORM / norm."""
    squares = jnp.sum(weight**2, axis=0, keepdims=True)
    norm = jnp.sqrt(jnp.maximum(squares, (MAX_NORM / 2) ** 2))
    return jnp.minimum(norm, MAX_NORM) / (norm + NORM_EPS)


def _enlarged(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """torch's initial weight of a linear layer, divided by the factors that it would get."""
    drawn = blocks.uniform(shape[1] ** -0.5)(key, shape)
    return drawn / _limit_of_columns(drawn)


class _Window(nn.Module):
    """Logits [b, n] of the features h [f, b, t] of one sliding window, and what they are a linear map of [b, f]."""

    n_out: int
    sizes: Sizes
    train: bool
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, h: jax.Array, mask: jax.Array, key: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        keys = blocks.split(key, 1 + 2 * len(DILATIONS))
        x = h.transpose(1, 2, 0)
        attention = Attention(WIDTH, HEADS, HEAD_SIZE, 0.0, self.axis_name, name='attention')
        seen = attention(blocks.LayerNorm(WIDTH, ATTENTION_EPS, name='norm')(x), None)
        x = x + blocks.dropout(seen, ATTENTION_DROPOUT, keys[0], self.axis_name, batch_axis=0)
        h = x.transpose(2, 0, 1)
        h = h if self.train else h[..., -self.sizes.reach :]
        for i, dilation in enumerate(DILATIONS):
            inner = self._causal(h, f'{i}_0', dilation, mask, keys[2 * i + 1])
            h = filters.elu(h + self._causal(inner, f'{i}_1', dilation, mask, keys[2 * i + 2]))
        weight = self.param('linear', _enlarged, (self.n_out, WIDTH))
        bias = self.param('linear_bias', blocks.uniform(WIDTH**-0.5), (self.n_out,))
        limited = weight * _limit_of_columns(weight)
        last = h[..., -1]
        return jnp.einsum('fb,nf->bn', last, limited, precision=blocks.PRECISION) + bias, last.T

    def _causal(self, h: jax.Array, name: str, dilation: int, mask: jax.Array, key: jax.Array | None) -> jax.Array:
        """Convolution with the past, batch norm, ELU and dropout of h [f, b, t]."""
        k = self.sizes.causal_taps
        bound = math.sqrt(6 / (WIDTH * k))  # of He et al. (2015), which torch's default is not
        taps = self.param(f'taps_{name}', blocks.uniform(bound), (WIDTH, WIDTH, k))
        bias = self.param(f'bias_{name}', blocks.uniform((WIDTH * k) ** -0.5), (WIDTH,))
        # Windows have weights of their own, so `filters.conv` would become a grouped convolution: a product instead.
        t = h.shape[2]
        padded = jnp.pad(h, ((0, 0), (0, 0), ((k - 1) * dilation, 0)))
        shifted = jnp.concatenate([padded[..., i * dilation : i * dilation + t] for i in range(k)])
        flat = taps.transpose(0, 2, 1).reshape(WIDTH, k * WIDTH)
        h = jnp.einsum('gf,fbt->gbt', flat, shifted, precision=blocks.PRECISION) + bias[:, None, None]
        h = filters.elu(blocks.BatchNorm(WIDTH, axis_name=self.axis_name, name=f'bn_{name}')(h, mask, train=self.train))
        return blocks.dropout(h, self.dropout, key, self.axis_name)


class _ATCNet(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        size = sizes(self.n_times)
        keys = blocks.split(key, 3)
        h = self._convolutions(batch, size, keys, train)
        self.sow('features', 'convolutions', h.swapaxes(0, 1))  # [b, 32, t]
        n, length = size.n_windows, h.shape[2] - size.n_windows + 1
        windows = jnp.stack([h[..., i : i + length] for i in range(n)])
        each = nn.vmap(
            _Window,
            in_axes=(0, None, 0),
            variable_axes={'params': 0, 'batch_stats': 0},
            split_rngs={'params': True},
        )(self.n_out, size, train, self.axis_name, self.dropout, name='windows')
        own = None if keys[2] is None else jax.random.split(keys[2], n)
        logits, last = each(windows, batch['mask'], own)
        self.sow('features', 'penultimate', last.swapaxes(0, 1))  # [b, W, 32]
        return logits.mean(0)

    def _convolutions(self, batch: Batch, size: Sizes, keys: Sequence[jax.Array | None], train: bool) -> jax.Array:
        """Pooled features [32, b, t] of x [b, c, t]."""
        mask, f = batch['mask'], WIDTH
        temporal = self.param('temporal', blocks.uniform(size.taps**-0.5), (N_TEMPORAL, size.taps))
        spatial = self.param('spatial', blocks.uniform(self.n_chans**-0.5), (f, self.n_chans))
        taps = self.param('taps', blocks.uniform((f * size.second_taps) ** -0.5), (f, f, size.second_taps))
        first = self._norm('bn_temporal', N_TEMPORAL)
        h = spatial_first.temporal_spatial(batch, temporal, spatial, first, same(size.taps), train=train)
        h = filters.elu_mean(self._norm('bn_spatial', f)(h, mask, train=train), size.pool)
        h = blocks.dropout(h, self.dropout, keys[0], self.axis_name, channels=True)
        h = self._norm('bn_second', f)(filters.conv(h, taps, same(size.second_taps)), mask, train=train)
        h = filters.elu_mean(h, size.second_pool)
        return blocks.dropout(h, self.dropout, keys[1], self.axis_name, channels=True)

    def _norm(self, name: str, features: int) -> blocks.BatchNorm:
        return blocks.BatchNorm(features, eps=FRONT_EPS, axis_name=self.axis_name, name=name)


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    norm, size = torch_weights.batch_norm_tensors, sizes(signal.n_times)
    out = [
        Tensor('conv_block.conv1.weight', (N_TEMPORAL, 1, size.taps, 1), ('params', 'temporal')),
        *norm('conv_block.bn1', ('bn_temporal',), N_TEMPORAL),
        Tensor('conv_block.conv2.weight', (WIDTH, 1, 1, signal.n_chans), ('params', 'spatial')),
        *norm('conv_block.bn2', ('bn_spatial',), WIDTH),
        Tensor('conv_block.conv3.weight', (WIDTH, WIDTH, size.second_taps, 1), ('params', 'taps')),
        *norm('conv_block.bn3', ('bn_second',), WIDTH),
    ]
    for part in (_attention_tensors, _causal_tensors, _linear_tensors):
        for window in range(size.n_windows):
            out += [t._replace(row=window) for t in part(window, size, n_out)]
    return out


def _attention_tensors(window: int, size: Sizes, n_out: int) -> list[Tensor]:
    name, inner = f'attention_blocks.{window}', HEADS * HEAD_SIZE
    out = torch_weights.layer_norm_tensors(f'{name}.ln', ('windows', 'norm'), WIDTH)
    for theirs, own in (('q', 'query'), ('k', 'key'), ('v', 'value')):
        out += torch_weights.linear_tensors(f'{name}.mha.fc_{theirs}', ('windows', 'attention', own), WIDTH, inner)
    return out + torch_weights.linear_tensors(f'{name}.mha.fc_o', ('windows', 'attention', 'projection'), inner, WIDTH)


def _causal_tensors(window: int, size: Sizes, n_out: int) -> list[Tensor]:
    out = []
    for i in range(len(DILATIONS)):
        for j in range(2):
            name, own = f'temporal_conv_nets.{window}.{i}', f'{i}_{j}'
            path = ('params', 'windows')
            out += [
                Tensor(f'{name}.conv{j + 1}.weight', (WIDTH, WIDTH, size.causal_taps), (*path, f'taps_{own}')),
                Tensor(f'{name}.conv{j + 1}.bias', (WIDTH,), (*path, f'bias_{own}')),
                *torch_weights.batch_norm_tensors(f'{name}.bn{j + 1}', ('windows', f'bn_{own}'), WIDTH),
            ]
    return out


def _linear_tensors(window: int, size: Sizes, n_out: int) -> list[Tensor]:
    name, path = f'final_layer.{window}', ('params', 'windows')
    return [
        Tensor(f'{name}.bias', (n_out,), (*path, 'linear_bias')),
        Tensor(f'{name}.parametrizations.weight.original', (n_out, WIDTH), (*path, 'linear')),
    ]


def atcnet(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.3) -> Model:
    """ATCNet for windows of `signal` (any rate: the sizes are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 1 are used; below 616 samples the network shrinks.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate after the convolutions (the attention keeps its own), 0 to below 1.

    Raises: RequestError where there is no channel, no sample or no output.
    """
    require('atcnet', signal, n_out, dropout=dropout)
    taps = sizes(signal.n_times).taps

    def precompute(x: jax.Array) -> dict[str, jax.Array]:
        """What the statistics of the first batch norm need of windows x [b, c, t]."""
        return spatial_first.lag_sums(x, taps, same(taps))

    module = _ATCNet(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out), precompute=precompute)
