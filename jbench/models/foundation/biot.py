"""BIOT: a transformer over the short-time spectra of channels, each frame of each channel a token.

Yang, Westover & Sun (2023). BIOT: Biosignal transformer for cross-data learning in the wild. NeurIPS 36, 78240-78260.

The function computed is that of NeuralBench's wrapper around braindecode 1.8.1 `BIOT`, for x [B, C, T] at 200 Hz:

    each channel of each window over the 95th percentile of its magnitudes (0: over 1) -> C channels to 18 differences
    of electrodes (adapters.py) -> spectra of 200 samples every 100 (rectangular, 101 magnitudes): ts frames
    -> linear to 256 + token of the difference + sine code of the frame -> dropout .5: 18 ts tokens
    -> four times [x + dropout .2 of linear attention(LN x), then x + W2 GELU(W1 LN x)] -> mean over tokens -> linear

Linear attention, 8 heads of 32: softmax of q over the 32, of k over the tokens; q (k' v) / sqrt(32). No biases in q, k
and v; W1 widens 256 to 1024; no norm at the end. ts = floor(T / 100) - 1, so T is at least 200, and at most 100199:
the table of the code has 1000 rows.

Parameters: 3186688 + 18 (C + 1) + 257 n.

Channels. The differences are those of the checkpoint `biot-pretrained-six-datasets-18chs`. A difference whose two
electrodes are both there starts as (+1, -1) plus torch's usual random weights, the others as these alone. Hazards of
the reference, kept: with the limit of the row's norm a difference starts at about 0.7 of its size; the percentile is
taken before the differences are (the authors scale differences); a row that is zero would never learn, as magnitudes
have no gradient there, hence the random weights. Not kept: where no difference is covered at all, the reference goes on
with random weights in silence; here that must be asked for (`adapter='random'`).

`dropout` is .5 as braindecode's class has it; the authors' code has .1. The authors classify by ELU and a linear layer,
here as in NeuralBench by a linear layer alone.

How it is computed. The percentile goes by bisection over the bits of the magnitudes, in a tenth of the time of a sort,
and once for windows that stay in memory. Frames share their halves: a spectrum of 200 samples is the sum of two of 100,
so each sample is transformed once. Query, key and value are one product; k is divided by the sums of its exponentials
only where it has been multiplied with v. Tokens are averaged before W2 of the last layer (`deep.with_mean`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models import torch_weights
from jbench.models.foundation import adapters
from jbench.models.layers import blocks
from jbench.models.layers.deep import with_mean
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PAIRS = (
    *('FP1-F7', 'F7-T7', 'T7-P7', 'P7-O1', 'FP2-F8', 'F8-T8', 'T8-P8', 'P8-O2', 'FP1-F3', 'F3-C3', 'C3-P3', 'P3-O1'),
    *('FP2-F4', 'F4-C4', 'C4-P4', 'P4-O2', 'C3-A2', 'C4-A1'),
)
FRAME, HOP = 200, 100  # samples
N_FREQUENCIES = FRAME // 2 + 1
WIDTH, HEADS, LAYERS, INNER = 256, 8, 4, 1024
MAX_FRAMES = 1000
QUANTILE = 0.95
# files of braindecode: the code of frames (which is computed), the number of each token (before 1.5), another head; the
# head and the mixture of channels are new
_THEIRS = ('encoder.positional_encoding.pe', 'encoder.index', 'final_layer.*')
CHECKPOINT = Exceptions(ignored=_THEIRS, head=('head.*', 'adapter.*'))


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used by their names, and in which differences: {'Fp1': 'FP1-F7, FP1-F3'}."""
    return adapters.used(ch_names, PAIRS, adapters.differences(ch_names, PAIRS))


def n_frames(n_times: int) -> int:
    """Spectra of a channel."""
    return n_times // HOP - 1


def sizes(x: jax.Array) -> jax.Array:
    """What each channel of windows x [b, c, t] is divided by: the quantile of its magnitudes; 1 where that is 0."""
    n = x.shape[-1]
    rank = QUANTILE * (n - 1)
    low = math.floor(rank)
    magnitudes = jnp.abs(x)
    integer = jnp.dtype(f'int{8 * x.dtype.itemsize}')
    bits = lax.bitcast_convert_type(magnitudes, integer)  # the order of floats above zero is that of their bits
    top = 8 * x.dtype.itemsize - 2

    def set_bit(i: jax.Array, found: jax.Array) -> jax.Array:
        trial = found | jnp.left_shift(jnp.ones((), integer), (top - i).astype(integer))
        return jnp.where((bits < trial[..., None]).sum(-1) <= low, trial, found)

    below_bits = lax.fori_loop(0, top + 1, set_bit, jnp.zeros(x.shape[:-1], integer))
    below = lax.bitcast_convert_type(below_bits, x.dtype)
    larger = jnp.where(magnitudes > below[..., None], magnitudes, jnp.inf).min(-1)
    tied = (magnitudes <= below[..., None]).sum(-1) > low + 1
    above = jnp.where(tied, below, larger)
    found = below + (rank - low) * (above - below) if rank > low else below
    return jnp.where(found == 0, 1, found).astype(x.dtype)


def precompute(x: jax.Array) -> dict[str, jax.Array]:
    """What training needs of windows x [b, c, t] alone."""
    return {'sizes': sizes(x)}


def spectra(x: jax.Array) -> jax.Array:
    """Magnitudes of the spectra of 200 samples every 100 of x [b, k, t]: [b, k, frames, 101]."""
    n = x.shape[-1] // HOP
    parts = jnp.matmul(
        x[..., : n * HOP].reshape(-1, HOP), jnp.asarray(_waves(), x.dtype), precision=blocks.PRECISION
    ).reshape(*x.shape[:-1], n, 2, N_FREQUENCIES)
    signs = jnp.asarray((-1.0) ** np.arange(N_FREQUENCIES), x.dtype)  # of waves that begin 100 samples later
    whole = parts[..., :-1, :, :] + signs * parts[..., 1:, :, :]
    squares = (whole**2).sum(-2)
    alive = squares > 0  # where not, the gradient is zero, as in torch
    return jnp.where(alive, jnp.sqrt(jnp.where(alive, squares, 1)), 0)


def _waves() -> np.ndarray:
    """Cosines and sines of the frequencies over half a frame: [100, 202]."""
    turns = np.outer(np.arange(HOP), np.arange(N_FREQUENCIES)) % FRAME
    sines = np.where(turns % HOP == 0, 0, np.sin(2 * np.pi * turns / FRAME))
    return np.concatenate([np.cos(2 * np.pi * turns / FRAME), sines], axis=1)


def codes(n: int) -> np.ndarray:
    """Sine code of positions 0 to n - 1: [n, 256]; sines at even places, cosines at odd ones."""
    phase = np.arange(n)[:, None] * np.exp(np.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
    return np.stack([np.sin(phase), np.cos(phase)], axis=2).reshape(n, WIDTH)


class _Attention(nn.Module):
    """Linear attention over x [b, l, d]."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        b, length, _ = x.shape
        draw = blocks.uniform(WIDTH**-0.5)
        weight = jnp.concatenate([self.param(name, draw, (WIDTH, WIDTH)) for name in ('query', 'key', 'value')])
        joined = jnp.matmul(x.reshape(-1, WIDTH), weight.T, precision=blocks.PRECISION)
        q, k, v = jnp.moveaxis(joined.reshape(b, length, 3, HEADS, WIDTH // HEADS), 2, 0)
        mixed = attend(q, k, v)
        return blocks.Linear(WIDTH, WIDTH, name='projection')(mixed.reshape(b, length, WIDTH))


def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """softmax(q) over features times (softmax(k)' over tokens times v) / sqrt(size); all [b, l, h, size]."""
    powers = jnp.exp(k - lax.stop_gradient(k.max(1, keepdims=True)))
    context = jnp.einsum('blhd,blhe->bhde', powers, v, precision=blocks.PRECISION)
    context = context / powers.sum(1)[..., None] / math.sqrt(q.shape[-1])
    return jnp.einsum('blhd,bhde->blhe', jax.nn.softmax(q, -1), context, precision=blocks.PRECISION)


class _BIOT(nn.Module):
    begin: adapters.Start
    n_times: int
    n_out: int
    axis_name: str | None
    dropout: float
    attention_dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Outputs [b, n] of x [b, c, t]."""
        keys = blocks.split(key, LAYERS + 1)
        x, size = batch['x'], batch['sizes'] if 'sizes' in batch else sizes(batch['x'])
        mixed = adapters.Mixture(self.begin, name='adapter')(x / size[..., None])
        h = blocks.Linear(N_FREQUENCIES, WIDTH, name='spectrum')(spectra(mixed))  # [b, 18, frames, 256]
        tokens = self.param('tokens', nn.initializers.normal(1.0), (len(PAIRS), WIDTH))
        places = tokens[:, None] + jnp.asarray(codes(n_frames(self.n_times)), tokens.dtype)  # of no window alone
        h = (h + places).reshape(len(x), -1, WIDTH)
        h = blocks.dropout(h, self.dropout, keys[0], self.axis_name, batch_axis=0)
        for i in range(LAYERS):
            mixed = _Attention(name=f'attention_{i}')(blocks.LayerNorm(WIDTH, name=f'norm_{i}')(h))
            h = h + blocks.dropout(mixed, self.attention_dropout, keys[i + 1], self.axis_name, batch_axis=0)
            wide = blocks.Linear(WIDTH, INNER, name=f'wide_{i}')(blocks.LayerNorm(WIDTH, name=f'wide_norm_{i}')(h))
            narrow = blocks.Linear(INNER, WIDTH, name=f'narrow_{i}')
            h, pooled = with_mean(narrow, h, blocks.gelu(wide), 0)
        self.sow('features', 'tokens', h)  # [b, 18 frames, 256]
        self.sow('features', 'penultimate', pooled)
        return blocks.Linear(WIDTH, self.n_out, name='linear')(pooled)


def _tensors(n_chans: int, n_out: int) -> list[Tensor]:
    """braindecode's names, but for the code of frames and its head; then the mixture of channels and our head."""
    linear, norm = torch_weights.linear_tensors, torch_weights.layer_norm_tensors
    out = linear('encoder.patch_embedding.projection', ('spectrum',), N_FREQUENCIES, WIDTH)
    for i in range(LAYERS):
        layer = f'encoder.transformer.layers.layers.{i}'
        for short, name in {'q': 'query', 'k': 'key', 'v': 'value'}.items():
            out.append(Tensor(f'{layer}.0.fn.to_{short}.weight', (WIDTH, WIDTH), ('params', f'attention_{i}', name)))
        out += linear(f'{layer}.0.fn.to_out', (f'attention_{i}', 'projection'), WIDTH, WIDTH)
        out += norm(f'{layer}.0.norm', (f'norm_{i}',), WIDTH)
        out += linear(f'{layer}.1.fn.fn.w1', (f'wide_{i}',), WIDTH, INNER)
        out += linear(f'{layer}.1.fn.fn.w2', (f'narrow_{i}',), INNER, WIDTH)
        out += norm(f'{layer}.1.norm', (f'wide_norm_{i}',), WIDTH)
    out.append(Tensor('encoder.channel_tokens.weight', (len(PAIRS), WIDTH), ('params', 'tokens')))
    return out + adapters.tensors(len(PAIRS), n_chans) + linear('head', ('linear',), WIDTH, n_out)


def biot(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.5,
    attention_dropout: float = 0.2,
    adapter: str = 'names',
) -> Model:
    """BIOT for windows of `signal` (its checkpoint is of 200 Hz; frames are in samples) with `n_out` outputs.

    Args:
        signal: n_times from 200 to 100199, and ch_names are used.
        n_out: number of outputs.
        axis_name: mapped axis over which dropout is drawn; None on one device.
        dropout, attention_dropout: rates for tokens, and for what attention adds.
        adapter: 'names': the mixture of channels starts from their names; 'random': as torch draws such a layer.

    Raises: RequestError where windows are too short or too long, or no difference of electrodes can be formed.
    """
    require('biot', signal, n_out, min_times=FRAME, dropout=dropout)
    require('biot', signal, n_out, dropout=attention_dropout)
    longest = (MAX_FRAMES + 2) * HOP - 1
    if signal.n_times > longest:
        raise RequestError(f'biot: windows of {signal.n_times} samples are too long, it takes at most {longest}')
    pattern = adapters.differences(signal.ch_names, PAIRS)
    begin = adapters.start('biot', signal, adapter, targets=PAIRS, pattern=pattern, drawn=True)
    module = _BIOT(begin, signal.n_times, n_out, axis_name, dropout, attention_dropout)
    tensors, use = _tensors(signal.n_chans, n_out), channels(signal.ch_names)
    grid = TokenGrid((len(PAIRS), n_frames(signal.n_times)), 1)
    return network(module, signal, tensors, precompute=precompute, checkpoints=(CHECKPOINT,), channels=use, tokens=grid)
