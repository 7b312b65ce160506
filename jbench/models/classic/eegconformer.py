"""EEGConformer: a convolutional front whose pooled samples are the tokens of a transformer.

Song, Zheng, Liu & Gao (2023). EEG Conformer: convolutional transformer for EEG decoding and visualization. IEEE
Transactions on Neural Systems and Rehabilitation Engineering 31, 710-719. doi:10.1109/TNSRE.2022.3230250

The function computed is that of braindecode 1.8 `EEGConformer` with its defaults, for x [B, C, T]:

    40 temporal filters (25 samples, valid) -> 40 spatial filters over all of them and C -> BN -> ELU
    -> mean of 75 samples every 15 -> dropout 0.5 -> linear 40 to 40: L tokens
    -> six times [x + dropout(attention(LN(x))), then x + dropout(W2 dropout(GELU(W1 LN(x))))], all dropouts 0.5
    -> all tokens: linear to 256 -> ELU -> dropout 0.5 -> linear to 32 -> ELU -> dropout 0.3 -> linear

Attention has 10 heads of size 4 and drops half of its probabilities; W1 widens 40 to 160. All linear maps have biases.

Parameters: 129640 + 1600 C + 10240 L + 33 n, L = floor((T - 99) / 15) + 1. At (C, T, n) = (8, 480, 12): 409036.

Differences from the paper: no augmentation by segmentation and recombination; kernels are the same number of samples at
any rate (at 120 Hz twice as long as the paper's at 250 Hz). As in the paper's code, tokens carry no position.

braindecode's faults. Kept: both biases before the batch norm do nothing in training, where it subtracts them again
(their gradient is zero). Kept as a clear error: windows shorter than 99 samples. Dropped: its constructor feeds ones in
training mode, so that the running statistics start at 0.1 times what the first filters make of ones, and at 0.9; here
they start at 0 and 1, and so only where the published protocol is asked for (`reference_init`). Dropped: it warns of
more than 64 channels, for which it computes the same.

How it is computed. The first two convolutions have nothing between them and are one (`filters.spatiotemporal`): the
tensor [B, 40, C, T] of the reference does not exist; on a CPU and with 40 channels or more it goes by frequencies. Both
biases are not added but given to the batch norm. The mean of 75 every 15 is block sums of 15 and a sliding sum of 5.
Queries, keys and values are one product, attention divides last (`blocks.attend`), and a dropout of 1/2 takes one
random bit a value (`blocks.dropout`), which counts: a batch of 64 windows of 480 samples draws five million of them.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters
from jbench.models.layers.attention import Attention
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor, Variables
from jbench.spec.model import Signal

WIDTH, TAPS = 40, 25  # filters, spatial and temporal, and width of a token
POOL, STRIDE = 75, 15  # samples
LAYERS, HEADS, EXPANSION = 6, 10, 4
HIDDEN = (256, 32)  # of the head
LAST_DROPOUT = 0.3
MOMENTUM = 0.1  # of the batch norm
MIN_TIMES = TAPS + POOL - 1  # 99: one token


def n_tokens(n_times: int) -> int:
    """Tokens L of a window."""
    return (n_times - MIN_TIMES) // STRIDE + 1


class _Block(nn.Module):
    """One layer of the transformer, over x [b, l, d]."""

    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        keys = blocks.split(key, 4)

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.dropout, keys[which], self.axis_name, batch_axis=0)

        attention = Attention(WIDTH, HEADS, WIDTH // HEADS, self.dropout, self.axis_name, name='attention')
        x = x + drop(attention(blocks.LayerNorm(WIDTH, name='norm_1')(x), keys[0]), 1)
        h = blocks.Linear(WIDTH, EXPANSION * WIDTH, name='wide')(blocks.LayerNorm(WIDTH, name='norm_2')(x))
        h = blocks.Linear(EXPANSION * WIDTH, WIDTH, name='narrow')(drop(blocks.gelu(h), 2))
        return x + drop(h, 3)


class _EEGConformer(nn.Module):
    n_chans: int
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        keys = blocks.split(key, LAYERS + 3)
        h = self._front(batch, train)
        h = blocks.average_pool(filters.elu(h), POOL, STRIDE, axis=1)
        x = blocks.Linear(WIDTH, WIDTH, name='token')(
            blocks.dropout(h, self.dropout, keys[0], self.axis_name, batch_axis=0)
        )
        self.sow('features', 'tokens', x)  # [b, L, 40]
        for i in range(LAYERS):
            x = _Block(self.axis_name, self.dropout, name=f'block_{i}')(x, keys[i + 1])
        self.sow('features', 'transformer', x)
        h = x.reshape(x.shape[0], -1)
        for i, rate in enumerate((self.dropout, LAST_DROPOUT)):
            h = filters.elu(blocks.Linear(h.shape[1], HIDDEN[i], name=f'head_{i}')(h))
            h = blocks.dropout(h, rate, keys[LAYERS + 1 + i], self.axis_name, batch_axis=0)
        self.sow('features', 'penultimate', h)  # [b, 32]
        return blocks.Linear(HIDDEN[-1], self.n_out, name='linear')(h)

    def _front(self, batch: Batch, train: bool) -> jax.Array:
        """Both convolutions and the batch norm of x [b, c, t]: [b, t - 24, 40]."""
        f, c = WIDTH, self.n_chans
        first, second = blocks.uniform(TAPS**-0.5), blocks.uniform((f * c) ** -0.5)
        temporal = self.param('temporal', first, (f, TAPS))
        temporal_bias = self.param('temporal_bias', first, (f,))
        spatial = self.param('spatial', second, (f, f, c))
        spatial_bias = self.param('spatial_bias', second, (f,))
        h = filters.spatiotemporal(batch['x'], temporal, spatial)
        bias = filters.spatiotemporal_bias(temporal_bias, spatial) + spatial_bias
        norm = blocks.BatchNorm(f, MOMENTUM, axis_name=self.axis_name, last=True, name='bn')
        return norm(h, batch['mask'], train=train, bias=bias)


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order."""
    norm, linear = torch_weights.layer_norm_tensors, torch_weights.linear_tensors
    front, w = 'patch_embedding.shallownet', WIDTH
    out = [
        Tensor(f'{front}.0.weight', (w, 1, 1, TAPS), ('params', 'temporal')),
        Tensor(f'{front}.0.bias', (w,), ('params', 'temporal_bias')),
        Tensor(f'{front}.1.weight', (w, w, signal.n_chans, 1), ('params', 'spatial')),
        Tensor(f'{front}.1.bias', (w,), ('params', 'spatial_bias')),
        *torch_weights.batch_norm_tensors(f'{front}.2', ('bn',), w),
        Tensor('patch_embedding.projection.0.weight', (w, w, 1, 1), ('params', 'token', 'weight')),
        Tensor('patch_embedding.projection.0.bias', (w,), ('params', 'token', 'bias')),
    ]
    for i in range(LAYERS):
        first, second, block = f'transformer.{i}.0.fn', f'transformer.{i}.1.fn', f'block_{i}'
        out += norm(f'{first}.0', (block, 'norm_1'), w)
        for theirs, own in (('keys', 'key'), ('queries', 'query'), ('values', 'value'), ('projection',) * 2):
            out += linear(f'{first}.1.{theirs}', (block, 'attention', own), w, w)
        out += norm(f'{second}.0', (block, 'norm_2'), w)
        out += linear(f'{second}.1.0', (block, 'wide'), w, EXPANSION * w)
        out += linear(f'{second}.1.3', (block, 'narrow'), EXPANSION * w, w)
    out += linear('fc.fc.0', ('head_0',), w * n_tokens(signal.n_times), HIDDEN[0])
    out += linear('fc.fc.3', ('head_1',), *HIDDEN)
    return out + linear('final_layer', ('linear',), HIDDEN[1], n_out)


def eegconformer(
    signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.5, reference_init: bool = False
) -> Model:
    """EEGConformer for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1 and n_times >= 99 are used.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate of all but the last, 0 to below 1.
        reference_init: running statistics start where the reference's constructor leaves them.

    Raises: RequestError where the windows are too short for one token.
    """
    require('eegconformer', signal, n_out, min_times=MIN_TIMES, dropout=dropout)

    def start(variables: Variables) -> Variables:
        """The statistics after the reference's constructor has fed ones in training mode: no spread, once."""
        p, norm = variables['params'], variables['batch_stats']['bn']
        ones = jnp.einsum('gfc,f->g', p['spatial'], p['temporal'].sum(1) + p['temporal_bias']) + p['spatial_bias']
        polluted_norm = {'mean': MOMENTUM * ones, 'var': (1 - MOMENTUM) * norm['var']}
        return variables | {'batch_stats': {'bn': polluted_norm}} if reference_init else variables

    module = _EEGConformer(signal.n_chans, signal.n_times, n_out, axis_name, dropout)
    return network(module, signal, _tensors(signal, n_out), start=start)
