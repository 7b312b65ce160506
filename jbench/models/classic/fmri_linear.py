"""FmriLinear: one linear map of all voxels, the same at each time, and a learned weight for each time.

NeuralBench's linear baseline of fMRI decoding; no paper of its own. The function computed is that of neuraltrain 0.2.3
`FmriLinear` with `time_agg='out_linear'`, for x [B, F, T] (F voxels or vertices, T volumes):

    linear at each time: n values -> linear over time: one value each

Parameters: F n + n + T + 1. At (F, T, n) = (20484, 4, 1536): 31464965.

How it is computed. Both maps are linear with nothing in between, so volumes are mixed first, and the large product is
taken once and not T times. The offset of the first map reaches the output times the sum of the weights of the times.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers.blocks import PRECISION, Linear
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import linear_tensors
from jbench.spec.model import Signal


class _FmriLinear(nn.Module):
    n_chans: int
    n_times: int
    n_out: int

    def setup(self) -> None:
        self.time = Linear(self.n_times, 1)
        self.linear = Linear(self.n_chans, self.n_out)

    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        weights = self.time.weight[0]
        mixed = jnp.matmul(batch['x'], weights, precision=PRECISION)  # [b, f]
        self.sow('features', 'penultimate', mixed)
        out = jnp.matmul(mixed, self.linear.weight.T, precision=PRECISION)
        return out + self.linear.bias * weights.sum() + self.time.bias


def fmri_linear(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """FmriLinear for windows of `signal` (voxels as channels, one sample a volume) with `n_out` outputs.

    `axis_name` is not used: windows do not meet. Raises RequestError for windows without a channel or a sample.
    """
    require('fmri_linear', signal, n_out)
    tensors = [
        *linear_tensors('out_time_agg', ('time',), signal.n_times, 1),
        *linear_tensors('linear', ('linear',), signal.n_chans, n_out),
    ]
    return network(_FmriLinear(signal.n_chans, signal.n_times, n_out), signal, tensors)
