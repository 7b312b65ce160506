"""ShallowFBCSPNet: a convolutional network in the form of filter-bank common spatial patterns.

Schirrmeister, Springenberg, Fiederer, Glasstetter, Eggensperger, Tangermann, Hutter, Burgard & Ball (2017). Deep
learning with convolutional neural networks for EEG decoding and visualization. Human Brain Mapping 38, 5391-5420.
doi:10.1002/hbm.23730

The function computed is that of braindecode 1.8 `ShallowFBCSPNet` with its defaults, for x [B, C, T]:

    40 temporal filters (25 samples, valid, with bias) -> 40 spatial filters over all of them and C -> BN -> square
    -> mean of 75 samples every 15 -> log(max(., 1e-6)) -> dropout 0.5 -> linear

Parameters: 1120 + 1600 C + n (40 P + 1), P = floor((T - 99) / 15) + 1. At (C, T, n) = (8, 480, 12): 26412.

Differences from the paper: trained on whole windows, not on crops; kernels are the same number of samples at any rate
(at 120 Hz twice as long as the paper's at 250 Hz).

braindecode's faults. Kept: the bias of the temporal filters does nothing in training, where the batch norm subtracts it
again (its gradient is zero); it moves by weight decay alone. Kept as clear errors: windows shorter than 99 samples and
a single channel are refused (the reference fails on one while it merges the biases).

How it is computed. The two convolutions have nothing between them and are one (`filters.spatiotemporal`), as in the
reference; on a CPU and with 40 channels or more it goes by frequencies, at half the operations. Features are the last
axis, as XLA's convolutions have them on CPUs. The bias of the temporal filters is not added but given to the batch
norm, so that its gradient is zero exactly. The mean of 75 every 15 is block sums of 15 and a sliding sum of 5.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.model import Signal

N_FILTERS, TAPS = 40, 25  # as many spatial filters as temporal ones
POOL, STRIDE = 75, 15  # samples
SMALLEST = 1e-6  # power below it counts as this
MIN_TIMES = TAPS + POOL - 1  # 99: one pooled value


def n_pooled(n_times: int) -> int:
    """Samples P that reach the linear layer."""
    return (n_times - MIN_TIMES) // STRIDE + 1


class _ShallowFBCSPNet(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        f, c, length = N_FILTERS, self.n_chans, n_pooled(self.n_times)
        temporal = self.param('temporal', blocks.xavier(TAPS, f * TAPS), (f, TAPS))
        temporal_bias = self.param('temporal_bias', nn.initializers.zeros, (f,))
        spatial = self.param('spatial', blocks.xavier(f * c, f * c), (f, f, c))
        h = filters.spatiotemporal(batch['x'], temporal, spatial)
        norm = blocks.BatchNorm(f, axis_name=self.axis_name, last=True, name='bn')
        h = norm(h, batch['mask'], train=train, bias=filters.spatiotemporal_bias(temporal_bias, spatial))
        power = blocks.average_pool(h**2, POOL, STRIDE, axis=1)
        h = jnp.log(jnp.where(power < SMALLEST, SMALLEST, power))  # the gradient of jnp.maximum halves at SMALLEST
        h = blocks.dropout(h, self.dropout, key, self.axis_name, batch_axis=0)
        self.sow('features', 'penultimate', h.swapaxes(1, 2))  # [b, 40, P]
        linear = self.param('linear', blocks.xavier(f * length, self.n_out * length), (self.n_out, f, length))
        bias = self.param('linear_bias', nn.initializers.zeros, (self.n_out,))
        return jnp.einsum('btf,nft->bn', h, linear, precision=blocks.PRECISION) + bias


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    f, length = N_FILTERS, n_pooled(signal.n_times)
    return [
        Tensor('conv_time_spat.conv_time.weight', (f, 1, TAPS, 1), ('params', 'temporal')),
        Tensor('conv_time_spat.conv_time.bias', (f,), ('params', 'temporal_bias')),
        Tensor('conv_time_spat.conv_spat.weight', (f, f, 1, signal.n_chans), ('params', 'spatial')),
        *torch_weights.batch_norm_tensors('bnorm', ('bn',), f),
        Tensor('final_layer.conv_classifier.weight', (n_out, f, length, 1), ('params', 'linear')),
        Tensor('final_layer.conv_classifier.bias', (n_out,), ('params', 'linear_bias')),
    ]


def shallow_fbcsp_net(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.5) -> Model:
    """ShallowFBCSPNet for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 2 and n_times >= 99 are used.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate, 0 to below 1.

    Raises: RequestError where the windows are too short for one pooled value, or of one channel.
    """
    require('shallow_fbcsp_net', signal, n_out, min_chans=2, min_times=MIN_TIMES, dropout=dropout)
    module = _ShallowFBCSPNet(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out))
