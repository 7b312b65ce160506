"""EEGNet: a compact convolutional network (temporal, spatial, separable convolution).

Lawhern, Solon, Waytowich, Gordon, Hung & Lance (2018). EEGNet: a compact convolutional neural network for EEG-based
brain-computer interfaces. Journal of Neural Engineering 15, 056013. doi:10.1088/1741-2552/aace8c

The function computed is that of braindecode 1.8 `EEGNet` with its defaults (8 temporal filters of 64 samples, 2 spatial
filters each, 16 separable ones), for x [B, C, T]:

    temporal convolution (64, padded 32/32, so T+1 samples) -> BN -> spatial filters (C weights, norm <= 1) -> BN -> ELU
    -> mean of 4 -> dropout -> depthwise (16, padded 8/8, one sample more) -> pointwise -> BN -> ELU -> mean of 8
    -> dropout -> linear

Parameters: 1104 + 16 C + n (16 L + 1), L = floor((floor((T+1)/4) + 1) / 8). At (C, T, n) = (8, 480, 12): 4124.

Differences from the paper: batch-norm momentum 0.01, eps 1e-3; kernels are the same number of samples at any rate (64:
0.53 s at 120 Hz, 0.5 s at the paper's 128 Hz); even kernels are padded on both sides, so the signal grows by one
sample, twice; no norm limit on the linear layer (the paper: 0.25).

braindecode's faults. Kept: the two samples more (they can change L), and the slow running statistics (some 300 steps
until the initial values are forgotten). Dropped: its constructor feeds zeros in training mode, so that its running
variances start at 0.99; here they start at 1 (running mean 0), and at 0.99 where the published protocol is asked for
(`reference_init`).

How it is computed. Nothing non-linear stands between the temporal and the spatial convolution, so the spatial filters
go first: 16 signals instead of 8 C. The statistics of the first batch norm, of a tensor [B, 8, C, T+1] that then never
exists, follow exactly from the lag moments of the data (`layers/spatial_first.py`). Same values, gradients and running
statistics as the literal order, at 1/36 (C=8) to 1/500 (C=64) of its time on a CPU. Evaluation needs no moments.
"""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters, spatial_first
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor, Variables
from jbench.spec.model import Signal

N_TEMPORAL, PER_TEMPORAL = 8, 2  # F1 and D of the paper
N_SPATIAL = N_TEMPORAL * PER_TEMPORAL
TAPS, SEPARABLE_TAPS = 64, 16  # samples
PAD, SEPARABLE_PAD = (32, 32), (8, 8)
POOL_1, POOL_2 = 4, 8
MAX_NORM = 1.0
MOMENTUM, EPS = 0.01, 1e-3  # of the batch norms
MIN_TIMES = POOL_1 * (POOL_2 - 1) - 1  # 27: one value is left after both poolings


def n_pooled(n_times: int) -> int:
    """Samples L that reach the linear layer."""
    return ((n_times + 1) // POOL_1 + 1) // POOL_2


def precompute(x: jax.Array) -> dict[str, jax.Array]:
    """What the statistics of the first batch norm need of windows x [b, c, t]."""
    return spatial_first.lag_sums(x, TAPS, PAD)


class _EEGNet(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        mask = batch['mask']
        key_1, key_2 = (None, None) if key is None else jax.random.split(key)
        temporal = self.param('temporal', blocks.uniform(1 / math.sqrt(TAPS)), (N_TEMPORAL, TAPS))
        xavier = math.sqrt(6 / (self.n_chans * (1 + N_SPATIAL)))  # torch's fan_out counts the filters of all groups
        spatial = blocks.max_norm(self.param('spatial', blocks.uniform(xavier), (N_SPATIAL, self.n_chans)), MAX_NORM)
        h = spatial_first.temporal_spatial(batch, temporal, spatial, self._batch_norm('bn_temporal'), PAD, train=train)
        h = self._batch_norm('bn_spatial')(h, mask, train=train)
        h = blocks.dropout(filters.elu_mean(h, POOL_1), self.dropout, key_1, self.axis_name)
        self.sow('features', 'spatial', h.swapaxes(0, 1))  # [b, 16, t / 4]

        depth = self.param('depth', blocks.uniform(1 / math.sqrt(SEPARABLE_TAPS)), (N_SPATIAL, SEPARABLE_TAPS))
        point = self.param('point', blocks.uniform(1 / math.sqrt(N_SPATIAL)), (N_SPATIAL, N_SPATIAL))
        h = filters.fir(h, depth, SEPARABLE_PAD, block=32)
        h = jnp.einsum('gf,fbt->gbt', point, h, precision=blocks.PRECISION)
        h = self._batch_norm('bn_separable')(h, mask, train=train)
        h = blocks.dropout(filters.elu_mean(h, POOL_2), self.dropout, key_2, self.axis_name)
        self.sow('features', 'penultimate', h.swapaxes(0, 1))  # [b, 16, L]

        length = n_pooled(self.n_times)
        bound = 1 / math.sqrt(N_SPATIAL * length)
        linear = self.param('linear', blocks.uniform(bound), (self.n_out, N_SPATIAL, length))
        bias = self.param('linear_bias', nn.initializers.zeros, (self.n_out,))
        return jnp.einsum('fbt,nft->bn', h, linear, precision=blocks.PRECISION) + bias

    def _batch_norm(self, name: str) -> blocks.BatchNorm:
        features = N_TEMPORAL if name == 'bn_temporal' else N_SPATIAL
        return blocks.BatchNorm(features, MOMENTUM, EPS, axis_name=self.axis_name, name=name)


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    spatial = 'conv_spatial.parametrizations.weight.original'
    return [
        Tensor('conv_temporal.weight', (N_TEMPORAL, 1, 1, TAPS), ('params', 'temporal')),
        *torch_weights.batch_norm_tensors('bnorm_temporal', ('bn_temporal',), N_TEMPORAL),
        Tensor(spatial, (N_SPATIAL, 1, signal.n_chans, 1), ('params', 'spatial')),
        *torch_weights.batch_norm_tensors('bnorm_1', ('bn_spatial',), N_SPATIAL),
        Tensor('conv_separable_depth.weight', (N_SPATIAL, 1, 1, SEPARABLE_TAPS), ('params', 'depth')),
        Tensor('conv_separable_point.weight', (N_SPATIAL, N_SPATIAL, 1, 1), ('params', 'point')),
        *torch_weights.batch_norm_tensors('bnorm_2', ('bn_separable',), N_SPATIAL),
        Tensor(
            'final_layer.conv_classifier.weight', (n_out, N_SPATIAL, 1, n_pooled(signal.n_times)), ('params', 'linear')
        ),
        Tensor('final_layer.conv_classifier.bias', (n_out,), ('params', 'linear_bias')),
    ]


def eegnet(
    signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.25, reference_init: bool = False
) -> Model:
    """EEGNet for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 27 are used.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate, 0 to below 1.
        reference_init: running variances start at 0.99, as the reference's do.

    Raises: RequestError where the windows are too short for the two poolings.
    """
    require('eegnet', signal, n_out, min_times=MIN_TIMES, dropout=dropout)

    def start(variables: Variables) -> Variables:
        """The statistics after the reference's constructor has fed zeros in training mode: no spread, once."""
        var = {name: norm | {'var': (1 - MOMENTUM) * norm['var']} for name, norm in variables['batch_stats'].items()}
        return variables | {'batch_stats': var} if reference_init else variables

    module = _EEGNet(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out), precompute=precompute, start=start)
