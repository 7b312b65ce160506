"""FmriMlp: each volume through a residual perceptron, then a weighted mean over volumes.

Scotti et al. (2023). Reconstructing the mind's eye: fMRI-to-image with contrastive learning and diffusion priors.
Advances in Neural Information Processing Systems 36. arXiv:2305.18274

The function computed is that of neuraltrain 0.2.3 `FmriMlp` as NeuralBench sets it (far smaller than the paper's), for
x [B, F, T] (F voxels or vertices, T volumes):

    at each time: linear to 128 -> LN -> GELU -> dropout 0.5
    -> twice: linear -> LN -> GELU -> dropout 0.15, added to its input
    -> linear over time: one value a feature -> linear to n -> linear to n

Parameters: 128 F + 33921 + T + 130 n + n^2. At (F, T, n) = (20484, 4, 1536): 5214853.

Differences from the reference: it is built for 4 volumes and refuses other windows, this one for the volumes of the
task; its last layer has 1536 outputs, the size of that task's embeddings, here as many as the task asks for.
"""

from __future__ import annotations

import flax.linen as nn
import jax

from jbench.models.layers import blocks
from jbench.models.layers.blocks import LayerNorm, Linear
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor, layer_norm_tensors, linear_tensors
from jbench.spec.model import Signal

N_HIDDEN, N_BLOCKS = 128, 2
DROPPED, DROPPED_IN_BLOCKS = 0.5, 0.15
HEAD = ('lin1', 'output_head')  # of the reference: both depend on n, and nothing stands between them


class _FmriMlp(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        keys = blocks.split(key, 1 + N_BLOCKS)

        def layer(x: jax.Array, name: str, rate: float, key: jax.Array | None) -> jax.Array:
            x = Linear(x.shape[-1], N_HIDDEN, name=name)(x)
            x = blocks.gelu(LayerNorm(N_HIDDEN, name=f'{name}_norm')(x))
            return blocks.dropout(x, rate, key, self.axis_name, batch_axis=0)

        h = layer(batch['x'].transpose(0, 2, 1), 'first', DROPPED, keys[0])  # [b, t, f]
        for i in range(N_BLOCKS):
            h = h + layer(h, f'block{i}', DROPPED_IN_BLOCKS, keys[1 + i])
        h = Linear(self.n_times, 1, name='time')(h.transpose(0, 2, 1))[..., 0]
        self.sow('features', 'penultimate', h)  # [b, 128]
        h = Linear(N_HIDDEN, self.n_out, name='out')(h)
        self.sow('features', 'projected', h)  # [b, n]
        logits: jax.Array = Linear(self.n_out, self.n_out, name='head')(h)
        return logits


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of neuraltrain 0.2.3), in its order."""
    found = [
        *linear_tensors('out_time_agg', ('time',), signal.n_times, 1),
        *linear_tensors('lin0', ('first',), signal.n_chans, N_HIDDEN),
        *layer_norm_tensors('post_lin0.0', ('first_norm',), N_HIDDEN),
    ]
    for i in range(N_BLOCKS):
        found += linear_tensors(f'mlp.{i}.0', (f'block{i}',), N_HIDDEN, N_HIDDEN)
        found += layer_norm_tensors(f'mlp.{i}.1', (f'block{i}_norm',), N_HIDDEN)
    return [
        *found,
        *linear_tensors('lin1', ('out',), N_HIDDEN, n_out),
        *linear_tensors('output_head.0', ('head',), n_out, n_out),
    ]


def fmri_mlp(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """FmriMlp for windows of `signal` (voxels as channels, one sample a volume) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 1 are used.
        n_out: number of outputs.
        axis_name: mapped axis over which batches are split; None on one device.

    Raises: RequestError for windows without a channel or a sample.
    """
    require('fmri_mlp', signal, n_out)
    module = _FmriMlp(signal.n_chans, signal.n_times, n_out, axis_name)
    return network(module, signal, _tensors(signal, n_out), head=HEAD)
