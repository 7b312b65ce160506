"""LaBraM: a transformer over all patches of all channels, which it knows by their names.

Jiang, Zhao & Lu (2024). Large brain model for learning generic representations with tremendous EEG data in BCI.
International Conference on Learning Representations. arXiv:2405.18765

The function computed is that of braindecode 1.8 `Labram` as NeuralBench fine-tunes it, for x [B, C, T] at 200 Hz in
units of 0.1 mV, P = floor(T / 200):

    a patch of 1 s -> 8 filters (15 samples every 8, padded by 7) -> [GN of 4 groups -> GELU], twice followed by
    8 filters of 3 -> [GN -> GELU]: 25 moments x 8, a token of 200
    + the row of its channel in one table + the row of its second in another; before them a class token
    -> 12 x [x + g1 attention(LN(x)), then x + g2 W2 GELU(W1 LN(x))], W1 200 -> 800 -> LN
    -> mean over all tokens, the class token too -> linear

Attention has 10 heads of 20 over all 1 + C P tokens; queries and keys have no bias and a layer norm each. All layer
norms have eps 1e-6.

Parameters: 5819936 + 201 n, for any C and T: the tables have 129 and 16 rows.

Channels: see `labram_channels.channels`. What LaBraM has no row for is left out. NeuralBench in addition leaves out a
channel without a position and, of a batch, what some recording in it lacks, so that there a prediction can depend on
the other windows; here names alone decide, for all windows alike.

Windows: shorter than 200 samples they are filled up with zeros; what is left behind the last patch is not read. From
16 s on (P > 15) the reference stretches the table: row 0 stays, rows 1 to 15 are interpolated to P rows, of which the
last is never read, because row 0 counts as the class token's but belongs to the first patch. Kept. There the stretched
rows are parameters of their own from then on; here the 16 rows are what is trained, and they are stretched in every
step, so that weights mean the same for every length of window.

Differences from the paper, as in NeuralBench: no drop path (its fine-tuning has 0.1: `drop_path`); its classifier
means the patches without the class token and normalises after that.

How it is computed. Convolutions are products with matrices (`layers/patches.py`). What the tables add is one array
[1 + C P, 200] a step, without the batch. Attention: `wide_attention.attend_wide`; linear layers: `feed_forward`.
"""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation.labram_channels import NAMES, channels
from jbench.models.layers import blocks
from jbench.models.layers.blocks import PRECISION
from jbench.models.layers.feed_forward import feed_forward
from jbench.models.layers.patches import Front, Patches, patch_tensors
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.model import Batch, Model, TokenGrid, in_parts, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PATCH = 200  # samples
FRONT = Front(samples=PATCH, widths=(8, 8, 8), groups=4, taps=15, stride=8, pad=7, feature_major=False)
WIDTH, HIDDEN, LAYERS, HEADS = 200, 800, 12, 10
SECONDS = 16  # rows of the table
EPS = 1e-6
GAIN = 0.1  # of a branch, at first
DRAW = nn.initializers.normal(0.02)
CHECKPOINT = Exceptions(ignored=('final_layer.*',), head=('head.*',))  # a file of braindecode, with a head or without


def n_patches(n_times: int) -> int:
    """Patches P of a channel."""
    return max(n_times // PATCH, 1)


def stretch(n: int) -> np.ndarray:
    """What the rows of n patches are made of [n, 16]: one row each, or beyond 15 two neighbours."""
    if n < SECONDS:
        return np.eye(n, SECONDS)
    source = np.maximum((np.arange(n - 1) + 0.5) * (SECONDS - 1) / n - 0.5, 0)  # of rows 1 to 15
    lower = source.astype(int)
    out = np.zeros((n, SECONDS))
    out[0, 0] = 1
    out[np.arange(1, n), 1 + lower] = 1 - (source - lower)
    out[np.arange(1, n), 1 + np.minimum(lower + 1, SECONDS - 2)] += source - lower
    return out


class _Attention(nn.Module):
    """Self-attention over x [b, l, d]; `out`: standard deviation of the projection's weights."""

    out: float

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        b, length, d = x.shape
        weight = self.param('in_weight', DRAW, (3 * d, d))
        joined = jnp.matmul(x.reshape(-1, d), weight.T, precision=PRECISION).reshape(b, length, 3, HEADS, -1)
        q = blocks.LayerNorm(d // HEADS, EPS, name='norm_q')(joined[:, :, 0])
        k = blocks.LayerNorm(d // HEADS, EPS, name='norm_k')(joined[:, :, 1])
        q, k, v = (a.transpose(0, 2, 1, 3) for a in (q, k, joined[:, :, 2]))
        draw = nn.initializers.normal(self.out)
        rows = attend_wide(q, k, v).transpose(0, 2, 1, 3).reshape(b, length, d)
        return blocks.Linear(d, d, draw, nn.initializers.zeros, name='out')(rows)


class _Layer(nn.Module):
    """Layer `which`, from 0, of the transformer, over x [b, l, d]."""

    which: int
    drop_path: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        first, second = blocks.split(key, 2)
        small = 0.02 / math.sqrt(2 * (self.which + 1))
        gains = [self.param(f'gain_{i}', nn.initializers.constant(GAIN), (WIDTH,)) for i in (1, 2)]
        h = _Attention(small, name='attention')(blocks.LayerNorm(WIDTH, EPS, name='norm_1')(x))
        x = x + blocks.drop_path(gains[0] * h, self.drop_path, first, self.axis_name)
        zeros = nn.initializers.zeros
        wide = blocks.Linear(WIDTH, HIDDEN, DRAW, zeros, name='wide')
        narrow = blocks.Linear(HIDDEN, WIDTH, nn.initializers.normal(small), zeros, name='narrow')
        h = feed_forward(wide, narrow, blocks.LayerNorm(WIDTH, EPS, name='norm_2')(x))
        return x + blocks.drop_path(gains[1] * h, self.drop_path, second, self.axis_name)


class _Labram(nn.Module):
    used: tuple[int, ...]  # channels of the input
    rows: tuple[int, ...]  # theirs in the table
    n_out: int
    axis_name: str | None
    drop_path: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]."""
        keys = blocks.split(key, LAYERS)
        x = batch['x'] if len(self.used) == batch['x'].shape[1] else batch['x'][:, np.array(self.used)]
        b, c, t = x.shape
        p = n_patches(t)
        x = x[:, :, : p * PATCH] if t >= PATCH else jnp.pad(x, ((0, 0), (0, 0), (0, PATCH - t)))
        codes = self._codes(p)
        patches = Patches(FRONT, name='patches')(x.reshape(b, c * p, PATCH)) + codes[1:]
        x = jnp.concatenate([jnp.broadcast_to(codes[:1], (b, 1, WIDTH)), patches], 1)
        for i in range(LAYERS):
            rate = self.drop_path * i / max(LAYERS - 1, 1)
            x = _Layer(i, rate, self.axis_name, name=f'layer_{i}')(x, keys[i])
        x = blocks.LayerNorm(WIDTH, EPS, name='norm')(x)
        self.sow('features', 'tokens', x)  # [b, 1 + c * p, 200], channel by channel
        pooled = x.mean(1)
        self.sow('features', 'penultimate', pooled)  # [b, 200]
        return blocks.Linear(WIDTH, self.n_out, name='head')(pooled)

    def _codes(self, n: int) -> jax.Array:
        """What is added to the patches, and before it the class token [1 + c * n, 200]."""
        token = self.param('token', DRAW, (1, WIDTH))
        space = self.param('channels', DRAW, (len(NAMES) + 1, WIDTH))
        time = self.param('seconds', DRAW, (SECONDS, WIDTH))
        stretched = jnp.matmul(jnp.asarray(stretch(n), time.dtype), time, precision=PRECISION)
        codes = space[np.array(self.rows)][:, None] + stretched
        return jnp.concatenate([token + space[:1], codes.reshape(-1, WIDTH)])


def _tensors(n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order, and our head."""
    norm, linear = torch_weights.layer_norm_tensors, torch_weights.linear_tensors
    pairs = [(f'patch_embed.temporal_conv.conv{i}', f'patch_embed.temporal_conv.norm{i}') for i in (1, 2, 3)]
    out = [
        Tensor('cls_token', (1, 1, WIDTH), ('params', 'token')),
        Tensor('position_embedding', (1, len(NAMES) + 1, WIDTH), ('params', 'channels')),
        Tensor('temporal_embedding', (1, SECONDS, WIDTH), ('params', 'seconds')),
        *patch_tensors(FRONT, ('patches',), pairs),
    ]
    for i in range(LAYERS):
        theirs, ours = f'blocks.{i}', f'layer_{i}'
        attention = (ours, 'attention')
        out += [Tensor(f'{theirs}.gamma_{j}', (WIDTH,), ('params', ours, f'gain_{j}')) for j in (1, 2)]
        out += norm(f'{theirs}.norm1', (ours, 'norm_1'), WIDTH)
        out += [Tensor(f'{theirs}.attn.qkv.weight', (3 * WIDTH, WIDTH), ('params', *attention, 'in_weight'))]
        out += norm(f'{theirs}.attn.q_norm', (*attention, 'norm_q'), WIDTH // HEADS)
        out += norm(f'{theirs}.attn.k_norm', (*attention, 'norm_k'), WIDTH // HEADS)
        out += linear(f'{theirs}.attn.proj', (*attention, 'out'), WIDTH, WIDTH)
        out += norm(f'{theirs}.norm2', (ours, 'norm_2'), WIDTH)
        out += linear(f'{theirs}.mlp.0', (ours, 'wide'), WIDTH, HIDDEN)
        out += linear(f'{theirs}.mlp.2', (ours, 'narrow'), HIDDEN, WIDTH)
    return out + norm('norm', ('norm',), WIDTH) + linear('head', ('head',), WIDTH, n_out)


def labram(signal: Signal, n_out: int, *, axis_name: str | None = None, drop_path: float = 0.0) -> Model:
    """LaBraM for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_times >= 1 and ch_names are used; the weights were learnt at 200 Hz.
        n_out: number of logits.
        axis_name: mapped axis over which rows are shared; None on one device.
        drop_path: rate at which a window does without a branch of the last layer, 0 to below 1; of the first layer it
            is 0, between them it grows evenly.

    Raises: RequestError where none of the channels is one that LaBraM knows.
    """
    require('labram', signal, n_out)
    if not 0 <= drop_path < 1:
        raise RequestError(f'labram: drop_path={drop_path}: expected a rate from 0 to below 1')
    if len(signal.ch_names) != signal.n_chans:
        raise RequestError(f'labram: needs the names of all {signal.n_chans} channels, got {len(signal.ch_names)}')
    index = {name: i for i, name in enumerate(NAMES)}
    names = channels(signal.ch_names)
    found = {i: index[names[name]] + 1 for i, name in enumerate(signal.ch_names) if name in names}
    if not found:
        raise RequestError(
            f'labram: it knows none of the channels {", ".join(signal.ch_names)}: expected electrodes of the 10-10 '
            f'system, as Cz, or pairs of them, as F7-T7. Rename the channels, or take a model that needs no names, as '
            f'cbramod'
        )
    module = _Labram(tuple(found), tuple(found.values()), n_out, axis_name, drop_path)
    use = channels(signal.ch_names)
    grid = TokenGrid((len(found), n_patches(signal.n_times)), 1)
    return in_parts(network(module, signal, _tensors(n_out), checkpoints=(CHECKPOINT,), channels=use, tokens=grid))
