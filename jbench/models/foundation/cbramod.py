"""CBraMod: attention across channels and attention across time, side by side.

Wang, Zhao, Luo, Zhou, Jiang, Li, Li & Pan (2025). CBraMod: a criss-cross brain foundation model for EEG decoding.
International Conference on Learning Representations. arXiv:2412.07236

The function computed is that of braindecode 1.8 `CBraMod(return_encoder_output=True)`, then the mean over all tokens
and a linear layer, as NeuralBench fine-tunes it, for x [B, C, T] at 200 Hz in units of 0.1 mV, P = T / 200:

    a patch of 1 s -> 25 filters (49 samples every 25, padded by 24) -> [GN of 5 groups -> GELU], twice followed by
    25 filters of 3 -> [GN -> GELU] : 8 moments x 25, a token of 200
    + linear of its 101 amplitudes (dropout .1) -> + depthwise convolution over 19 channels x 7 patches of these sums
    -> 12 x [x + dropout(attention(LN(x))), then x + dropout(W2 dropout(GELU(W1 LN(x))))], W1 200 -> 800
    -> linear 200 -> 200 -> mean over channels and patches -> linear

Attention gives the first 100 values of a token to 4 heads that compare the channels of one patch, the last 100 to 4
heads that compare the patches of one channel; it drops a tenth of its probabilities.

Parameters: 4924000 + 201 n, for any C and P. 200 of them, the `mask_encoding` of pretraining, are read nowhere.

Channels are known by their order alone (`channels`): the convolution over the grid reads 9 neighbours on either side,
so the same electrodes in another order are another input. Pretraining had 19, in the order of the TUEG corpus.

Differences from the reference. It copies one layer twelve times before it draws weights anew, so that the biases of
linear layers and the packed matrices of attention start equal in all layers; here each draws its own. The paper's own
classifier reads all tokens side by side, which ties it to C and P; the mean is NeuralBench's.

How it is computed. Convolutions, those over the grid too, are products with matrices (`layers/patches.py`,
`layers/grid.py`). The last linear layer and the mean change places, so that it maps one vector a window unless the
tokens are asked for. Attention: `wide_attention.attend_wide`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.layers.attention import PackedAttention, packed_tensors
from jbench.models.layers.feed_forward import feed_forward
from jbench.models.layers.grid import GridPatches, grid_tensors
from jbench.models.layers.patches import Front
from jbench.models.model import Batch, Model, TokenGrid, in_parts, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PATCH = 200  # samples
FRONT = Front(samples=PATCH, widths=(25, 25, 25), groups=5, taps=49, stride=25, pad=24, feature_major=True)
KERNEL = (19, 7)  # channels x patches
WIDTH, HIDDEN, LAYERS, HEADS = 200, 800, 12, 4  # heads of either attention
CHECKPOINT = Exceptions(ignored=('final_layer.*',), head=('head.*',))  # a file of braindecode, with a head or without


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as what: all of them, by their place, {'Fp1': '1', 'Fp2': '2'}."""
    return {name: str(i + 1) for i, name in enumerate(ch_names)}


def _draw(n_out: int) -> nn.initializers.Initializer:
    """He et al. (2015), by the outputs."""
    return nn.initializers.normal(math.sqrt(2 / n_out))


def _linear(n_in: int, n_out: int, name: str) -> blocks.Linear:
    return blocks.Linear(n_in, n_out, _draw(n_out), name=name)


class _Layer(nn.Module):
    """One layer of the transformer, over x [b, c, p, d]."""

    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        keys = blocks.split(key, 5)

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.dropout, keys[which], self.axis_name, batch_axis=0)

        x = x + drop(self._attention(blocks.LayerNorm(WIDTH, name='norm_1')(x), keys[:2]), 2)
        h = blocks.LayerNorm(WIDTH, name='norm_2')(x)
        wide, narrow = _linear(WIDTH, HIDDEN, 'wide'), _linear(HIDDEN, WIDTH, 'narrow')
        between = None if key is None else partial(drop, which=3)
        return x + drop(feed_forward(wide, narrow, h, between), 4)

    def _attention(self, x: jax.Array, keys: Sequence[jax.Array | None]) -> jax.Array:
        """Across channels by the first half of the values, across patches by the second."""
        b, c, p, d = x.shape
        half = d // 2

        def attend(name: str) -> PackedAttention:
            return PackedAttention(half, HEADS, self.dropout, self.axis_name, _draw(half), name=name)

        space, time = x[..., :half].transpose(0, 2, 1, 3).reshape(b * p, c, half), x[..., half:].reshape(b * c, p, half)
        space = attend('space')(space, keys[0]).reshape(b, p, c, half).transpose(0, 2, 1, 3)
        return jnp.concatenate([space, attend('time')(time, keys[1]).reshape(b, c, p, half)], -1)


class _CBraMod(nn.Module):
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]."""
        keys = blocks.split(key, LAYERS + 1)
        self.param('mask', nn.initializers.zeros, (PATCH,))
        b, c, t = batch['x'].shape
        front = GridPatches(FRONT, KERNEL, self.dropout, self.axis_name, _draw(WIDTH), name='front')
        x = front(batch['x'].reshape(b, c, t // PATCH, PATCH), keys[0])
        for i in range(LAYERS):
            x = _Layer(self.axis_name, self.dropout, name=f'layer_{i}')(x, keys[i + 1])
        last = _linear(WIDTH, WIDTH, 'out')
        self.sow('features', 'tokens', last(x.reshape(b, -1, WIDTH)))  # [b, c * p, 200], channel by channel
        pooled = last(x.mean((1, 2)))
        self.sow('features', 'penultimate', pooled)  # [b, 200]
        return blocks.Linear(WIDTH, self.n_out, name='head')(pooled)


def _tensors(n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order, and our head."""
    norm, linear = torch_weights.layer_norm_tensors, torch_weights.linear_tensors
    name = 'patch_embedding'
    out = [
        Tensor(f'{name}.mask_encoding', (PATCH,), ('params', 'mask')),
        *grid_tensors(FRONT, KERNEL, name, path=('front',)),
    ]
    for i in range(LAYERS):
        theirs, ours = f'encoder.layers.{i}', f'layer_{i}'
        out += packed_tensors(f'{theirs}.self_attn_s', (ours, 'space'), WIDTH // 2)
        out += packed_tensors(f'{theirs}.self_attn_t', (ours, 'time'), WIDTH // 2)
        out += linear(f'{theirs}.linear1', (ours, 'wide'), WIDTH, HIDDEN)
        out += linear(f'{theirs}.linear2', (ours, 'narrow'), HIDDEN, WIDTH)
        out += norm(f'{theirs}.norm1', (ours, 'norm_1'), WIDTH) + norm(f'{theirs}.norm2', (ours, 'norm_2'), WIDTH)
    return out + linear('proj_out.0', ('out',), WIDTH, WIDTH) + linear('head', ('head',), WIDTH, n_out)


def cbramod(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.1) -> Model:
    """CBraMod for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_chans >= 1, and n_times a multiple of 200, are used; the weights were learnt at 200 Hz.
        n_out: number of logits.
        axis_name: mapped axis over which rows are shared; None on one device.
        dropout: rate of all dropouts, 0 to below 1.

    Raises: RequestError where a window is not a whole number of patches.
    """
    require('cbramod', signal, n_out, min_times=PATCH, dropout=dropout)
    if signal.n_times % PATCH:
        raise RequestError(
            f'cbramod: windows of {signal.n_times} samples are no whole number of patches of {PATCH}: expected a '
            f'multiple, as {signal.n_times // PATCH * PATCH} or {(signal.n_times // PATCH + 1) * PATCH}. '
            f'Set window.duration so: at 200 Hz, to whole seconds'
        )
    grid = TokenGrid((signal.n_chans, signal.n_times // PATCH), 1)
    made = network(_CBraMod(n_out, axis_name, dropout), signal, _tensors(n_out), checkpoints=(CHECKPOINT,), tokens=grid)
    alone = [of for of, n in (('s', signal.n_chans), ('t', signal.n_times // PATCH)) if n == 1]  # with itself to attend
    packed = [f'encoder.layers.{i}.self_attn_{of}.in_proj_weight' for i in range(LAYERS) for of in alone]
    return in_parts(made)._replace(idle=dict.fromkeys(packed, (0, 1)))  # queries and keys
