"""EEG-DINO: a transformer over all patches of all channels and one token for the window.

Wang, Liu, Liu, Si, Xu, Li & Zhen (2025). EEG-DINO: learning EEG foundation models via hierarchical self-distillation.
Medical Image Computing and Computer Assisted Intervention

The function computed is that of braindecode 1.8 `EEGDINO(return_encoder_output=True)` and a linear layer, for
x [B, C, T] at 200 Hz in units of 0.1 mV, P = T / 200 rounded up (zeros fill the last patch):

    a patch of 1 s -> convolution (49 samples every 25, padded by 24) -> [GN -> GELU], twice followed by a convolution
    of 3 -> [GN -> GELU]: 8 moments, a token of d
    + linear of its 101 amplitudes (dropout .1) + the vector of its electrode
    -> + depthwise convolution over 5 patches of these sums
    -> layers of [x + drop path(dropout(attention(LN(x)))), then x + drop path(dropout(W2 GELU(W1 LN(x))))]
    -> mean over the patches' tokens -> linear

Behind the first layer the token of the window comes before the others. Attention has 8 heads, no bias for keys, and
drops a tenth of its probabilities; there is no norm at the end.

Sizes: `eegdino_small` (12 layers, d 200, W1 512, 25 filters each, 5 groups) and `eegdino_medium` (16 layers, d 512,
W1 1024, 64, 128 and 64 filters, 8 groups). Parameters: 4433944 and 33755456, and (d + 1) n, for any C and P.

Channels: those of the 19 electrodes of pretraining that a recording has (`tueg_channels.channels`); others are left
out one by one. The reference gives slot i to channel i, whatever its name; here a slot belongs to an electrode. The
order of the slots is that of CBraMod's TUEG montage, which the reference does not state.

The head is the linear layer on the mean that NeuralBench puts on encoders (it does not have this one); the authors'
own head of five layers is not here. The token of the window is the feature 'window'.

How it is computed. Convolutions are products with matrices (`layers/patches.py`). The vectors of electrodes are one
array [C, 1, d] a part of a batch. Attention: `wide_attention.attend_wide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation import tueg_channels
from jbench.models.foundation.tueg_channels import NAMES
from jbench.models.layers import blocks
from jbench.models.layers.blocks import PRECISION
from jbench.models.layers.feed_forward import feed_forward
from jbench.models.layers.grid import GridPatches, grid_tensors
from jbench.models.layers.patches import Front
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.model import Batch, Model, TokenGrid, in_parts, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PATCH = 200  # samples
KERNEL = (1, 5)  # channels x patches
HEADS = 8
CHECKPOINT = Exceptions(ignored=('final_layer.*',), head=('head.*',))  # a file of braindecode: without its head


class Size(NamedTuple):
    """What a size consists of."""

    layers: int
    hidden: int  # between W1 and W2
    front: Front


def _front(widths: tuple[int, int, int], groups: int) -> Front:
    return Front(samples=PATCH, widths=widths, groups=groups, taps=49, stride=25, pad=24, feature_major=True)


SIZES = {
    'small': Size(12, 512, _front((25, 25, 25), 5)),
    'medium': Size(16, 1024, _front((64, 128, 64), 8)),
}


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as which electrode of pretraining: {'Fp1': 'FP1', 'T7': 'T3'}."""
    return tueg_channels.channels(ch_names)


class _Attention(nn.Module):
    """Self-attention over x [b, l, d]."""

    dropout: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        b, length, d = x.shape
        first, second = blocks.split(key, 2)
        weight = self.param('in_weight', blocks.uniform(d**-0.5), (3 * d, d))
        of_q, of_v = (self.param(f'{name}_bias', nn.initializers.zeros, (d,)) for name in 'qv')
        bias = jnp.concatenate([of_q, jnp.zeros_like(of_q), of_v])
        joined = jnp.matmul(x.reshape(-1, d), weight.T, precision=PRECISION) + bias
        q, k, v = joined.reshape(b, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)  # each [b, h, l, size]
        shape, rate = (b, HEADS, length, length), self.dropout
        kept = None if first is None or not rate else blocks.kept(first, rate, shape, self.axis_name, 0)
        mixed = attend_wide(q, k, v, kept, rate).transpose(0, 2, 1, 3).reshape(b, length, d)
        out = blocks.Linear(d, d, name='out')(mixed)
        return blocks.dropout(out, rate, second, self.axis_name, batch_axis=0)


class _Layer(nn.Module):
    """One layer of the transformer, over x [b, l, d]."""

    hidden: int
    dropout: float
    drop_path: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        d, keys = x.shape[2], blocks.split(key, 4)
        h = _Attention(self.dropout, self.axis_name, name='attention')(blocks.LayerNorm(d, name='norm_1')(x), keys[0])
        x = x + blocks.drop_path(h, self.drop_path, keys[1], self.axis_name)
        wide, narrow = blocks.Linear(d, self.hidden, name='wide'), blocks.Linear(self.hidden, d, name='narrow')
        h = feed_forward(wide, narrow, blocks.LayerNorm(d, name='norm_2')(x))
        h = blocks.dropout(h, self.dropout, keys[2], self.axis_name, batch_axis=0)
        return x + blocks.drop_path(h, self.drop_path, keys[3], self.axis_name)


class _EegDino(nn.Module):
    used: tuple[int, ...]  # channels of the input
    slots: tuple[int, ...]  # theirs
    size: Size
    n_out: int
    axis_name: str | None
    dropout: float
    drop_path: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]."""
        size, x = self.size, batch['x']
        keys, d = blocks.split(key, size.layers + 1), size.front.width
        x = x if self.used == tuple(range(x.shape[1])) else x[:, np.array(self.used)]
        x = jnp.pad(x, ((0, 0), (0, 0), (0, -x.shape[2] % PATCH)))
        patches = x.reshape(*x.shape[:2], -1, PATCH)
        front = GridPatches(size.front, KERNEL, self.dropout, self.axis_name, name='front')
        x = front(patches, keys[0], self._electrodes(d)[:, None]).reshape(len(x), -1, d)
        window = self.param('window', nn.initializers.normal(0.02), (1, d))
        for i in range(size.layers):
            layer = _Layer(size.hidden, self.dropout, self.drop_path, self.axis_name, name=f'layer_{i}')
            x = layer(x, keys[i + 1])
            if i == 0:
                x = jnp.concatenate([jnp.broadcast_to(window, (len(x), 1, d)), x], 1)
        self.sow('features', 'window', x[:, 0])  # [b, d]
        self.sow('features', 'tokens', x[:, 1:])  # [b, c * p, d], channel by channel
        pooled = x[:, 1:].mean(1)
        self.sow('features', 'penultimate', pooled)  # [b, d]
        return blocks.Linear(d, self.n_out, name='head')(pooled)

    def _electrodes(self, width: int) -> jax.Array:
        """The vectors of the channels [c, d]."""
        draw = blocks.uniform(len(NAMES) ** -0.5)
        table = self.param('electrodes', draw, (width, len(NAMES)))
        return table.T[np.array(self.slots)] + self.param('electrodes_bias', draw, (width,))


def _tensors(size: Size, n_out: int) -> list[Tensor]:
    """The reference's state_dict (braindecode 1.8.1), in its order, and our head."""
    norm, linear, d = torch_weights.layer_norm_tensors, torch_weights.linear_tensors, size.front.width
    grid = grid_tensors(size.front, KERNEL, 'patch_embedding', path=('front',), position='time_encoding')
    out = [
        Tensor('global_tokens', (1, 1, d), ('params', 'window')),
        *grid[2:],
        Tensor('patch_embedding.channel_embedding.weight', (d, len(NAMES)), ('params', 'electrodes')),
        Tensor('patch_embedding.channel_embedding.bias', (d,), ('params', 'electrodes_bias')),
        *grid[:2],
    ]
    for i in range(size.layers):
        theirs, ours = f'encoder_layers.{i}', f'layer_{i}'
        path = ('params', ours, 'attention')
        out += norm(f'{theirs}.norm1', (ours, 'norm_1'), d)
        out += [Tensor(f'{theirs}.attn.{name}_bias', (d,), (*path, f'{name}_bias')) for name in 'qv']
        out += [Tensor(f'{theirs}.attn.qkv.weight', (3 * d, d), (*path, 'in_weight'))]
        out += linear(f'{theirs}.attn.proj', (ours, 'attention', 'out'), d, d)
        out += norm(f'{theirs}.norm2', (ours, 'norm_2'), d)
        out += linear(f'{theirs}.mlp.fc1', (ours, 'wide'), d, size.hidden)
        out += linear(f'{theirs}.mlp.fc2', (ours, 'narrow'), size.hidden, d)
    return out + linear('head', ('head',), d, n_out)


def eegdino_small(
    signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.1, drop_path: float = 0.1
) -> Model:
    """The small EEG-DINO for windows of `signal` with `n_out` outputs.

    Args:
        signal: ch_names are used; the weights were learnt at 200 Hz.
        n_out: number of logits.
        axis_name: mapped axis over which rows are shared; None on one device.
        dropout: rate of all dropouts, 0 to below 1.
        drop_path: rate at which a window does without a branch of a layer, 0 to below 1.

    Raises: RequestError where none of the channels is an electrode of pretraining.
    """
    return _build('small', signal, n_out, axis_name=axis_name, dropout=dropout, drop_path=drop_path)


def eegdino_medium(
    signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.1, drop_path: float = 0.1
) -> Model:
    """The medium EEG-DINO; arguments and errors as of `eegdino_small`."""
    return _build('medium', signal, n_out, axis_name=axis_name, dropout=dropout, drop_path=drop_path)


def _build(size: str, signal: Signal, n_out: int, *, axis_name: str | None, dropout: float, drop_path: float) -> Model:
    name, chosen = f'eegdino_{size}', SIZES[size]
    require(name, signal, n_out, dropout=dropout)
    if not 0 <= drop_path < 1:
        raise RequestError(f'{name}: drop_path={drop_path}: expected a rate from 0 to below 1')
    if len(signal.ch_names) != signal.n_chans:
        raise RequestError(f'{name}: needs the names of all {signal.n_chans} channels, got {len(signal.ch_names)}')
    found = tueg_channels.places(signal.ch_names)
    if not found:
        raise RequestError(
            f'{name}: it knows none of the channels {", ".join(signal.ch_names)}: expected some of {", ".join(NAMES)}. '
            f'Rename the channels, or take a model that needs no names, as cbramod'
        )
    module = _EegDino(tuple(found.values()), tuple(found), chosen, n_out, axis_name, dropout, drop_path)
    use = channels(signal.ch_names)
    grid = TokenGrid((len(found), -(-signal.n_times // PATCH)), 1)
    return in_parts(
        network(module, signal, _tensors(chosen, n_out), checkpoints=(CHECKPOINT,), channels=use, tokens=grid)
    )
