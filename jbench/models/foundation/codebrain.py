"""CodeBrain: long convolutions over one row of all patches of all channels.

Ma, Wu, Lin, Xing, Liu, Jia & Feng (2026). CodeBrain: bridging decoupled tokenizer and multi-scale architecture for EEG
foundation model. International Conference on Learning Representations. arXiv:2506.09110

The function computed is that of braindecode 1.8 `CodeBrain(...)(x, return_features=True)`, then the mean over all
tokens and a linear layer, for x [B, C, T] at 200 Hz in units of 0.1 mV, P = floor(T / 200), L = C P:

    tokens of 200 as CBraMod's (layers/grid.py), L in a row, channel by channel -> ReLU(W x) = first, h = first
    -> 8 times: u = GELU(convolution (3 taps, 200 -> 400) of h + first)
                s = W GELU(4 long convolutions of each value of u + skip u), dropped whole rows, 1600 -> 400
                c = s + attention(s);  o = tanh(c[:200]) sigmoid(c[200:])
                h = (scale h / |h| sqrt(200) + W o) sqrt(1/2);  sum += W o
    -> sum sqrt(1/8) -> W -> ReLU -> W -> LN -> mean over channels and patches -> linear

A long convolution has taps at all lags, forwards and backwards in the row: ten pieces of two numbers each, stretched
by linear interpolation to 2, 2, 4, 8, ... 512 taps, 1024 in all, each piece half as strong as the one before, divided
by `size`. `size` is the norm of the 1024 taps at the initial weights: it is a tensor of its own, read and written with
the weights, and training never computes it anew (nor does the reference, behind its first pass; a file that it wrote
before that pass is refused).

Attention, `window`: each token compares itself with that many neighbours in the row, 4 heads of 100. The default is
the reference's 1: a token sees itself alone, attention is the map W_o(W_v s + b_v) + b_o, queries and keys learn
nothing. The weights do not tell what the authors used downstream; any odd width may be asked for.

Channels, `montage`. 'tueg': the 19 electrodes of pretraining, by their names (`channels`), in their order; others are
left out, and a recording that lacks one of the 19 is refused. For the row runs across the borders of channels: without
one of them every token behind it has other neighbours, and a row of zeros would be a channel that nobody recorded,
which moves the statistics of the norms of all others. 'given': all channels, in the order in which they come, as the
reference takes them.

Parameters: 13529200 + 201 n, for any C and P, among them the 200 of `mask_encoding`, which are read nowhere. Without
effect are, too, queries and keys (window 1), the last W o of h and its scale, and pieces of taps beyond L. The two
layers that name codes in pretraining (1638400) are not read, nor the reference's own head, which is tied to C and P.

How it is computed. Convolutions of the front and of 3 taps are products with matrices, the long ones go by the Fourier
transform (`layers/long_convolution.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation import tueg_channels
from jbench.models.foundation.tueg_channels import NAMES
from jbench.models.layers import blocks
from jbench.models.layers.attention import packed_tensors
from jbench.models.layers.blocks import PRECISION
from jbench.models.layers.grid import GridPatches, grid_tensors
from jbench.models.layers.long_convolution import LongConvolution, long_tensors
from jbench.models.layers.patches import Front
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PATCH = 200  # samples
FRONT = Front(samples=PATCH, widths=(25, 25, 25), groups=5, taps=49, stride=25, pad=24, feature_major=True)
KERNEL = (19, 7)  # channels x patches
WIDTH, WIDE, BLOCKS, HEADS = 200, 400, 8, 4
MONTAGES = ('tueg', 'given')
# a file of braindecode: without its head and those of pretraining
CHECKPOINT = Exceptions(ignored=('lm_head_?.weight', 'final_layer.*'), head=('head.*',))


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as which electrode of pretraining (`montage='tueg'`): {'Fp1': 'FP1', 'T7': 'T3'}."""
    return tueg_channels.channels(ch_names)


class _Convolution(nn.Module):
    """x [b, l, n_in] -> [b, l, n_out], zeros around; each filter is a direction times a length (weight norm)."""

    n_in: int
    n_out: int
    n_taps: int = 1

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        fan, length, half = self.n_in * self.n_taps, x.shape[1], self.n_taps // 2
        shape, bound = (self.n_out, self.n_in, self.n_taps), blocks.uniform(fan**-0.5)
        gain = self.param('gain', lambda key: jnp.sqrt((bound(key, shape) ** 2).sum((1, 2))))
        direction = self.param('direction', nn.initializers.normal(math.sqrt(2 / fan)), shape)
        bias = self.param('bias', bound, (self.n_out,))
        weight = direction * (gain / jnp.sqrt((direction**2).sum((1, 2))))[:, None, None]
        padded = jnp.pad(x, ((0, 0), (half, half), (0, 0)))
        x = jnp.concatenate([padded[:, i : i + length] for i in range(self.n_taps)], 2)
        flat = jnp.matmul(x.reshape(-1, fan), weight.transpose(2, 1, 0).reshape(fan, -1), precision=PRECISION)
        return flat.reshape(-1, length, self.n_out) + bias


class _Attention(nn.Module):
    """Over x [b, l, d], each token with `window` // 2 neighbours on either side; weights as of
    `torch.nn.MultiheadAttention`."""

    window: int
    dropout: float
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        b, length, d = x.shape
        weight = self.param('in_weight', blocks.xavier(d, 3 * d), (3 * d, d))
        bias = self.param('in_bias', nn.initializers.zeros, (3 * d,))
        out = blocks.Linear(d, d, None, nn.initializers.zeros, name='out')
        if self.window == 1:  # every probability is 1
            values = jnp.matmul(x.reshape(-1, d), weight[2 * d :].T, precision=PRECISION) + bias[2 * d :]
            heads = values.reshape(b, length, HEADS, -1)
            kept = blocks.dropout(heads, self.dropout, key, self.axis_name, batch_axis=0, channels=True)
            return out(kept.reshape(b, length, d))
        joined = jnp.matmul(x.reshape(-1, d), weight.T, precision=PRECISION) + bias
        q, k, v = joined.reshape(b, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)  # each [b, h, l, size]
        seen = np.abs(np.arange(length)[:, None] - np.arange(length)) <= self.window // 2
        shape, rate = (b, HEADS, length, length), self.dropout
        drawn = None if key is None or not rate else blocks.kept(key, rate, shape, self.axis_name, 0)
        return out(attend_wide(q, k, v, drawn, rate, seen=seen).transpose(0, 2, 1, 3).reshape(b, length, d))


class _Block(nn.Module):
    """The next h, and what is added to the sum, of h and first [b, l, 200]."""

    window: int
    dropout: float
    axis_name: str | None

    @nn.compact
    def __call__(self, h: jax.Array, first: jax.Array, key: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        keys = blocks.split(key, 2)
        scale = self.param('scale', nn.initializers.ones, (WIDTH,))
        u = blocks.gelu(_Convolution(WIDTH, WIDE, 3, name='wide')(h + first))
        s = LongConvolution(WIDE, self.dropout, self.axis_name, name='long')(u, keys[0])
        c = s + _Attention(self.window, self.dropout, self.axis_name, name='attention')(s, keys[1])
        o = jnp.tanh(c[..., :WIDTH]) * jax.nn.sigmoid(c[..., WIDTH:])
        onward = _Convolution(WIDTH, WIDTH, name='onward')(o)
        return (_normed(h) * scale + onward) * math.sqrt(0.5), _Convolution(WIDTH, WIDTH, name='aside')(o)


def _normed(h: jax.Array) -> jax.Array:
    """h over its root mean square along the last axis; where that is zero its gradient is zero."""
    squares = (h**2).sum(-1, keepdims=True)
    positive = squares > 0
    norm = jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), 0)
    return h / (norm / math.sqrt(h.shape[-1]) + 1e-8)


class _CodeBrain(nn.Module):
    used: tuple[int, ...]  # channels of the input, in the order of the row
    n_out: int
    axis_name: str | None
    dropout: float
    window: int

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]."""
        keys, x = blocks.split(key, BLOCKS + 1), batch['x']
        self.param('mask', nn.initializers.zeros, (PATCH,))
        x = x if self.used == tuple(range(x.shape[1])) else x[:, np.array(self.used)]
        b, c, t = x.shape
        patches = x[:, :, : t // PATCH * PATCH].reshape(b, c, -1, PATCH)
        x = GridPatches(FRONT, KERNEL, self.dropout, self.axis_name, name='front')(patches, keys[0])
        first = jax.nn.relu(_Convolution(WIDTH, WIDTH, name='first')(x.reshape(b, -1, WIDTH)))
        h, total = first, jnp.zeros_like(first)
        for i in range(BLOCKS):
            h, more = _Block(self.window, self.dropout, self.axis_name, name=f'block_{i}')(h, first, keys[i + 1])
            total += more
        x = jax.nn.relu(_Convolution(WIDTH, WIDTH, name='last')(total * math.sqrt(1 / BLOCKS)))
        x = blocks.LayerNorm(WIDTH, name='norm')(blocks.Linear(WIDTH, WIDTH, name='out')(x))
        self.sow('features', 'tokens', x)  # [b, c * p, 200], channel by channel
        pooled = x.mean(1)
        self.sow('features', 'penultimate', pooled)  # [b, 200]
        return blocks.Linear(WIDTH, self.n_out, name='head')(pooled)


def _convolution(name: str, path: tuple[str, ...], n_out: int = WIDTH, n_taps: int = 1) -> list[Tensor]:
    place, weight = ('params', *path), f'{name}.parametrizations.weight'
    return [
        Tensor(f'{name}.bias', (n_out,), (*place, 'bias')),
        Tensor(f'{weight}.original0', (n_out, 1, 1), (*place, 'gain')),
        Tensor(f'{weight}.original1', (n_out, WIDTH, n_taps), (*place, 'direction')),
    ]


def _tensors(n_out: int) -> list[Tensor]:
    """The reference's state_dict (braindecode 1.8.1), in its order, and our head."""
    linear, name = torch_weights.linear_tensors, 'patch_embedding'
    grid = grid_tensors(FRONT, KERNEL, name, path=('front',))
    out = [Tensor(f'{name}.mask_encoding', (PATCH,), ('params', 'mask')), *grid[2:], *grid[:2]]
    out += _convolution('init_conv.0.conv', ('first',))
    for i in range(BLOCKS):
        name, ours = f'residual_layer.residual_blocks.{i}', f'block_{i}'
        out += [Tensor(f'{name}.rms_norm.scale', (1, WIDTH, 1), ('params', ours, 'scale'))]
        out += _convolution(f'{name}.conv_layer.conv', (ours, 'wide'), WIDE, 3)
        out += long_tensors(f'{name}.sgconv', (ours, 'long'), WIDE)
        out += packed_tensors(f'{name}.attention', (ours, 'attention'), WIDE)
        out += _convolution(f'{name}.res_conv', (ours, 'onward')) + _convolution(f'{name}.skip_conv', (ours, 'aside'))
    out += _convolution('final_conv.0.conv', ('last',))
    plain = linear('final_conv.2.conv', ('out',), WIDTH, WIDTH)
    out += [plain[0]._replace(shape=(WIDTH, WIDTH, 1)), plain[1]]
    return out + torch_weights.layer_norm_tensors('norm', ('norm',), WIDTH) + linear('head', ('head',), WIDTH, n_out)


def codebrain(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.1,
    montage: str = 'tueg',
    window: int = 1,
) -> Model:
    """CodeBrain for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_times >= 200 and ch_names are used; the weights were learnt at 200 Hz.
        n_out: number of logits.
        axis_name: mapped axis over which rows are shared; None on one device.
        dropout: rate of all dropouts, 0 to below 1.
        montage: 'tueg': the 19 electrodes of pretraining; 'given': all channels in the order in which they come.
        window: tokens that a token's attention sees, odd.

    Raises: RequestError where the window is too short or lacks an electrode.
    """
    require('codebrain', signal, n_out, min_times=PATCH, dropout=dropout)
    if window < 1 or window % 2 == 0:
        raise RequestError(f'codebrain: window={window}: expected an odd number of tokens, 1, 3, 5, ...')
    if montage not in MONTAGES:
        raise RequestError(f'codebrain: montage={montage}: expected one of {", ".join(MONTAGES)}')
    used = _montage(signal) if montage == 'tueg' else tuple(range(signal.n_chans))
    module, use = _CodeBrain(used, n_out, axis_name, dropout, window), channels(signal.ch_names)
    known = use if montage == 'tueg' else None
    grid = TokenGrid((len(used), signal.n_times // PATCH), 1)
    made = network(module, signal, _tensors(n_out), checkpoints=(CHECKPOINT,), channels=known, tokens=grid)
    packed = [f'residual_layer.residual_blocks.{i}.attention.in_proj_weight' for i in range(BLOCKS)]
    return made._replace(idle=dict.fromkeys(packed, (0, 1)) if window == 1 else {})  # queries and keys


def _montage(signal: Signal) -> tuple[int, ...]:
    """The channels of the 19 electrodes, in their order. Raises: RequestError where one is missing."""
    found = tueg_channels.places(signal.ch_names)
    if missing := [name for i, name in enumerate(NAMES) if i not in found]:
        given = ', '.join(signal.ch_names) or 'channels without names'
        raise RequestError(
            f'codebrain: no channel for {", ".join(missing)}: got {given}, expected all of {", ".join(NAMES)}, as in '
            f'pretraining. --model=codebrain:montage=given reads all channels in their order, unlike pretraining; '
            f'eegdino_small takes those of the 19 that there are'
        )
    return tuple(found.values())
