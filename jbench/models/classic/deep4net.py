"""Deep4Net: four blocks of convolution and max pooling, the first one temporal and spatial.

Schirrmeister, Springenberg, Fiederer, Glasstetter, Eggensperger, Tangermann, Hutter, Burgard & Ball (2017). Deep
learning with convolutional neural networks for EEG decoding and visualization. Human Brain Mapping 38, 5391-5420.
doi:10.1002/hbm.23730

The function computed is that of braindecode 1.8 `Deep4Net` with its defaults, for x [B, C, T]:

    25 temporal filters (10 samples, valid, with bias) -> 25 spatial filters over all of them and C -> BN -> ELU
    -> max of 3 -> [dropout 0.5 -> convolution (10, valid) -> BN -> ELU -> max of 3] with 50, 100 and 200 features
    -> linear

Parameters (T >= 441): 263525 + 625 C + n (200 L + 1), L samples left. At (C, T, n) = (8, 480, 12): 270937.

Differences from the paper: trained on whole windows, not on crops; kernels are the same number of samples at any rate.

braindecode's faults. Kept: windows shorter than 441 samples shrink the pools and the filters of blocks 2 to 4 by T/441,
each rounded down, but not the first filter; below 294 samples no pooling is left, so that 182 to 240 samples reach the
linear layer, which becomes most of the network (it is the published network on short windows; those who run it are
warned by nobody). Kept: the bias of the temporal filters does nothing in training, where the batch norm subtracts it
again (its gradient is zero); it moves by weight decay alone. Kept as clear errors: windows shorter than 10 samples and
a single channel are refused (the reference fails on one while it merges the biases).

How it is computed. The first two convolutions have nothing between them and are one (`filters.spatiotemporal`), as in
the reference. Features are the last axis, as XLA's convolutions have them on CPUs; the last block, of few samples, is a
product of matrices. ELU rises everywhere, so it comes after the max pooling, on a third of the values. The gradient of
a pool goes to the first of equal samples, as in torch; where samples differ by rounding alone, two exact
implementations may choose differently.
"""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.model import Signal

FEATURES = (25, 50, 100, 200)  # of the four blocks
TAPS, POOL = 10, 3  # samples
WHOLE = 441  # samples that leave one value with these filters and pools; shorter windows shrink them


class Sizes(NamedTuple):
    """What the network consists of for one length of windows."""

    taps: tuple[int, ...]  # of the four convolutions
    pool: int
    length: int  # samples that reach the linear layer


def sizes(n_times: int) -> Sizes:
    """Filters and pools for windows of n_times samples."""

    def shrunk(n: int) -> int:
        return n if n_times >= WHOLE else max(1, int(n * (n_times / WHOLE)))

    taps, pool, length = (TAPS, *(shrunk(TAPS),) * 3), shrunk(POOL), n_times
    for k in taps:
        length = (length - k + 1) // pool
    return Sizes(taps, pool, length)


class _Deep4Net(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        f, c, (taps, _, length) = FEATURES[0], self.n_chans, sizes(self.n_times)
        temporal = self.param('temporal', blocks.xavier(TAPS, f * TAPS), (f, TAPS))
        temporal_bias = self.param('temporal_bias', nn.initializers.zeros, (f,))
        spatial = self.param('spatial', blocks.xavier(f * c, f * c), (f, f, c))
        h = filters.spatiotemporal(batch['x'], temporal, spatial)
        bias = filters.spatiotemporal_bias(temporal_bias, spatial)
        h = self._normalised_and_pooled(h, 1, batch['mask'], train, bias)
        for i, key_i in zip((2, 3, 4), blocks.split(key, 3), strict=True):
            n_in, n, k = FEATURES[i - 2], FEATURES[i - 1], taps[i - 1]
            self.sow('features', f'block_{i - 1}', h.swapaxes(1, 2))  # [b, f, t]
            weight = self.param(f'conv_{i}', blocks.xavier(n_in * k, n * k), (n, n_in, k))
            h = filters.conv(blocks.dropout(h, self.dropout, key_i, self.axis_name, batch_axis=0), weight, last=True)
            h = self._normalised_and_pooled(h, i, batch['mask'], train)
        self.sow('features', 'penultimate', h.swapaxes(1, 2))  # [b, 200, L]
        n = FEATURES[-1]
        linear = self.param('linear', blocks.xavier(n * length, self.n_out * length), (self.n_out, n, length))
        bias = self.param('linear_bias', nn.initializers.zeros, (self.n_out,))
        return jnp.einsum('btf,nft->bn', h, linear, precision=blocks.PRECISION) + bias

    def _normalised_and_pooled(
        self, h: jax.Array, block: int, mask: jax.Array, train: bool, bias: jax.Array | None = None
    ) -> jax.Array:
        """Batch norm, max pooling and ELU of h [b, t, f]."""
        norm = blocks.BatchNorm(h.shape[2], axis_name=self.axis_name, last=True, name=f'bn_{block}')
        h = norm(h, mask, train=train, bias=bias)
        return filters.elu(blocks.max_pool(h, sizes(self.n_times).pool, axis=1))


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    f, (taps, _, length) = FEATURES, sizes(signal.n_times)
    later = [
        tensor
        for i in (2, 3, 4)
        for tensor in (
            Tensor(f'conv_{i}.weight', (f[i - 1], f[i - 2], taps[i - 1], 1), ('params', f'conv_{i}')),
            *torch_weights.batch_norm_tensors(f'bnorm_{i}', (f'bn_{i}',), f[i - 1]),
        )
    ]
    return [
        Tensor('conv_time_spat.conv_time.weight', (f[0], 1, TAPS, 1), ('params', 'temporal')),
        Tensor('conv_time_spat.conv_time.bias', (f[0],), ('params', 'temporal_bias')),
        Tensor('conv_time_spat.conv_spat.weight', (f[0], f[0], 1, signal.n_chans), ('params', 'spatial')),
        *torch_weights.batch_norm_tensors('bnorm', ('bn_1',), f[0]),
        *later,
        Tensor('final_layer.conv_classifier.weight', (n_out, f[-1], length, 1), ('params', 'linear')),
        Tensor('final_layer.conv_classifier.bias', (n_out,), ('params', 'linear_bias')),
    ]


def deep4net(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.5) -> Model:
    """Deep4Net for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 2 and n_times >= 10 are used.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate, 0 to below 1.

    Raises: RequestError where the windows are shorter than the first filter, or of one channel.
    """
    require('deep4net', signal, n_out, min_chans=2, min_times=TAPS, dropout=dropout)
    module = _Deep4Net(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out))
