"""STEEGFormer: a transformer over short patches of all channels, pretrained to fill in masked ones.

Yang, Sun, Li & Van Hulle (2026). Are EEG foundation models worth it? Comparative evaluation with traditional decoders
in diverse BCI tasks. International Conference on Learning Representations. openreview.net/forum?id=5Xwm8e6vbh

The function computed is that of braindecode 1.8.1 `STEEGFormer` on windows that are standardised before, for
x [B, C, T] at 128 Hz, P = floor(T / 16):

    each channel of each window minus its mean, over its standard deviation + 1e-8
    -> a patch of 16 samples -> linear: a token of d
    + sine code of its patch, 1 to P, + the row of its channel in one table; before them a class token + code of 0
    -> layers x [x + attention(LN x), then x + W2 GELU(W1 LN x)], W1 d -> 4 d
    -> mean over all tokens but the class token -> linear

             d   layers  heads   parameters of the encoder
    small   512     8      8      25303552
    base    768    12     12      85181184
    large  1024    24     16     302478336

and d n + n of the head, for any C and T. Tokens lie patch by patch, the channels of one patch side by side. The class
token is read by the others, not by the head; the last norm by nothing: with `pool='cls'` the head reads the class token
after it. All layer norms have eps 1e-6.

The head. 'avg' is both the reference's default and the form of NeuralBench's wrapper (mean of tokens, linear layer),
drawn as torch draws a linear layer; braindecode draws its own after Glorot.

Standardisation is what the authors do when they read a window (biased deviation), not part of braindecode's class,
which scales nothing. Theirs comes after a clip at 500 uV: `signal.clamp`.

Channels: see `steegformer_channels.channels`. Braindecode numbers all channels by their place as soon as one name is
unknown; here the unknown one is left out and the others keep their rows.

Windows: up to 2047 patches, the length of the reference's code; what is left behind the last patch counts for the
standardisation and is not read. The authors' encoder of pretraining counts patches from 0, so that the first shares the
class token's code, their fine-tuning and braindecode from 1: kept from 1. The table of channels starts at zero.

How it is computed. Codes and rows of channels are one array [1 + P C, d] a part of a batch, without the batch. Query,
key and value are one product. Tokens are averaged before the last projection (`deep.with_mean`; not for `pool='cls'`).
Attention: `wide_attention.attend_wide`, with its gradient on one core 21 ms instead of 56 of
`jax.nn.dot_product_attention` (four windows, 305 tokens, 8 heads of 64). A step for 16 windows of 19 channels and 4 s
(609 tokens) at once needs 4.6 GB beside the weights (small), or 10.2 (base) where all layers are kept, with `remat` 1.0
or 2.0; a processor takes four windows at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation.steegformer_channels import INDEX, ROWS, channels
from jbench.models.layers import blocks
from jbench.models.layers.deep import in_turn, n_again
from jbench.models.layers.prenorm import EPS, Draws, Names, PreNorm, prenorm_tensors
from jbench.models.layers.wide_attention import n_pieces
from jbench.models.model import Batch, Model, TokenGrid, in_parts, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PATCH = 16  # samples
MAX_PATCHES = 2047
POOLS = ('avg', 'cls')
CHECKPOINT = Exceptions(ignored=('final_layer.*',), head=('head.*',))  # a file of braindecode, whose head is not read


class Size(NamedTuple):
    """What sizes of the network differ in."""

    width: int
    layers: int
    heads: int


SIZES = {
    'steegformer_small': Size(512, 8, 8),
    'steegformer_base': Size(768, 12, 12),
    'steegformer_large': Size(1024, 24, 16),
}


def standardised(x: jax.Array) -> jax.Array:
    """Each channel of windows x [b, c, t] minus its mean, over its standard deviation + 1e-8."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / (jnp.sqrt((centred**2).mean(-1, keepdims=True)) + 1e-8)


def codes(n: int, width: int) -> np.ndarray:
    """Sine code of positions 0 to n - 1: [n, width]; sines at even places, cosines at odd ones."""
    phase = np.arange(n)[:, None] * np.exp(np.arange(0, width, 2) * (-math.log(10000.0) / width))
    return np.stack([np.sin(phase), np.cos(phase)], axis=2).reshape(n, width)


def layer_bytes(size: Size, batch: int, length: int) -> float:
    """What the gradient keeps of a layer, about (28 d a token, and scores where they are not made anew), for windows
    of `length` tokens in float32."""
    scores = size.heads * length if n_pieces(batch * size.heads, 4 * length**2, size.width // size.heads) == 1 else 0
    return 4.0 * batch * length * (28 * size.width + scores)


class _STEEGFormer(nn.Module):
    size: Size
    used: tuple[int, ...]  # channels of the input
    rows: tuple[int, ...]  # theirs in the table
    n_out: int
    pool: str
    drop_path: float
    axis_name: str | None
    remat: bool | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Outputs [b, n] of x [b, c, t]."""
        d, layers, heads = self.size
        keys = blocks.split(key, layers)
        x = batch['x'] if len(self.used) == batch['x'].shape[1] else batch['x'][:, np.array(self.used)]
        b, c, t = x.shape
        p = t // PATCH
        patches = standardised(x)[:, :, : p * PATCH].reshape(b, c, p, PATCH).transpose(0, 2, 1, 3)
        added = self._added(p)
        embed = blocks.Linear(PATCH, d, blocks.xavier(PATCH, d), nn.initializers.zeros, name='embed')
        x = embed(patches.reshape(b, p * c, PATCH)) + added[1:]
        x = jnp.concatenate([jnp.broadcast_to(added[:1], (b, 1, d)), x], 1)
        draws = Draws(blocks.xavier(d, d), blocks.xavier(d, d), *[blocks.xavier(d, 4 * d)] * 2)

        def layer(i: int, **place: Any) -> PreNorm:
            rate = self.drop_path * i / max(layers - 1, 1)
            return PreNorm(d, heads, draws, rate, self.axis_name, **place)

        remat = False if self.drop_path else self.remat
        each = layer_bytes(self.size, *x.shape[:2])
        again = n_again(each, layers - 1, rest=each, train=train, remat=remat)
        x = in_turn(self, layer, x, keys[:-1], again=again)
        x, mean = layer(layers - 1, name=f'layer_{layers - 1}')(x, keys[-1], mean_from=1)
        normed = blocks.LayerNorm(d, EPS, name='norm')(x)
        tokens = (normed if self.pool == 'cls' else x)[:, 1:]
        self.sow('features', 'tokens', tokens)  # [b, p * c, d], patch by patch
        pooled = normed[:, 0] if self.pool == 'cls' else mean
        self.sow('features', 'penultimate', pooled)  # [b, d]
        return blocks.Linear(d, self.n_out, name='head')(pooled)

    def _added(self, n: int) -> jax.Array:
        """The class token with its code, then what is added to the patches: [1 + n c, d]."""
        d = self.size.width
        token = self.param('token', nn.initializers.normal(0.02), (1, d))
        table = self.param('channels', nn.initializers.zeros, (ROWS, d))
        time = jnp.asarray(codes(n + 1, d), table.dtype)
        each = time[1:, None] + table[np.array(self.rows)]
        return jnp.concatenate([token + time[:1], each.reshape(-1, d)])


def _tensors(size: Size, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order, and our head."""
    d, linear = size.width, torch_weights.linear_tensors
    out = [
        Tensor('cls_token', (1, 1, d), ('params', 'token')),
        *linear('patch_embed.proj', ('embed',), PATCH, d),
        Tensor('channel_pos.embedding.weight', (ROWS, d), ('params', 'channels')),
    ]
    for i in range(size.layers):
        mix, feed = f'encoder.{i}.0.fn', f'encoder.{i}.1.fn'
        names = Names(
            norm_1=f'{mix}.0',
            joined=tuple(f'{mix}.1.{part}' for part in ('keys', 'queries', 'values')),
            rows=(1, 0, 2),
            out=f'{mix}.1.projection',
            norm_2=f'{feed}.0',
            wide=f'{feed}.1.0',
            narrow=f'{feed}.1.3',
        )
        out += prenorm_tensors(names, f'layer_{i}', d)
    return out + torch_weights.layer_norm_tensors('norm', ('norm',), d) + linear('head', ('head',), d, n_out)


class _Options(NamedTuple):
    """Those of the factories."""

    pool: str
    drop_path: float
    remat: bool | None


def _build(name: str, signal: Signal, n_out: int, axis_name: str | None, options: _Options) -> Model:
    """The network of the size called `name`; the rest as in `steegformer_small`."""
    pool, drop_path, remat = options
    require(name, signal, n_out, min_times=PATCH)
    most = (MAX_PATCHES + 1) * PATCH - 1
    if signal.n_times > most:
        raise RequestError(
            f'{name}: windows of {signal.n_times} samples are too long, it reads at most {most}. Set window.duration '
            f'so: at 128 Hz, to {most / 128:.0f} s or less'
        )
    if pool not in POOLS:
        raise RequestError(f'{name}: pool={pool}: expected one of {", ".join(POOLS)}')
    if not 0 <= drop_path < 1:
        raise RequestError(f'{name}: drop_path={drop_path}: expected a rate from 0 to below 1')
    if remat and drop_path:
        raise RequestError(
            f'{name}: remat=True goes with drop_path=0 alone, got {drop_path}: leave one of them out, or take less '
            'memory by recipe.microbatch'
        )
    if len(signal.ch_names) != signal.n_chans:
        raise RequestError(f'{name}: needs the names of all {signal.n_chans} channels, got {len(signal.ch_names)}')
    names = channels(signal.ch_names)
    found = {i: INDEX[names[ch].upper()] for i, ch in enumerate(signal.ch_names) if ch in names}
    if not found:
        raise RequestError(
            f'{name}: it knows none of the channels {", ".join(signal.ch_names)}: expected electrodes of the 10-10 '
            f'system or between them, as Cz or FTT7h. Rename the channels, or take a model that needs no names, as '
            f'cbramod'
        )
    size = SIZES[name]
    module = _STEEGFormer(size, tuple(found), tuple(found.values()), n_out, pool, drop_path, axis_name, remat)
    use = channels(signal.ch_names)
    grid = TokenGrid((signal.n_times // PATCH, len(found)), 0)
    return in_parts(
        network(module, signal, _tensors(size, n_out), checkpoints=(CHECKPOINT,), channels=use, tokens=grid)
    )


def steegformer_small(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    pool: str = 'avg',
    drop_path: float = 0.0,
    remat: bool | None = None,
) -> Model:
    """STEEGFormer of 8 layers for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_times from 16 to 32767 and ch_names are used; the weights were learnt at 128 Hz.
        n_out: number of outputs.
        axis_name: mapped axis over which rows are shared; None on one device.
        pool: what the head reads: 'avg', the mean of the tokens; 'cls', the class token after the last norm.
        drop_path: rate at which a window does without a branch of the last layer, 0 to below 1; of the first layer it
            is 0, between them it grows evenly. The authors fine-tune with 0.1.
        remat: whether values of layers are computed again for the gradient instead of kept: less memory, more time;
            only without `drop_path`. True: of all layers but the last; None: in training, of as many as it takes to
            keep no more than 5 GB.

    Raises: RequestError where none of the channels is one that STEEGFormer knows, or windows are too short or long.
    """
    return _build('steegformer_small', signal, n_out, axis_name, _Options(pool, drop_path, remat))


def steegformer_base(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    pool: str = 'avg',
    drop_path: float = 0.0,
    remat: bool | None = None,
) -> Model:
    """STEEGFormer of 12 layers; arguments and errors as of `steegformer_small`."""
    return _build('steegformer_base', signal, n_out, axis_name, _Options(pool, drop_path, remat))


def steegformer_large(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    pool: str = 'avg',
    drop_path: float = 0.0,
    remat: bool | None = None,
) -> Model:
    """STEEGFormer of 24 layers; arguments and errors as of `steegformer_small`."""
    return _build('steegformer_large', signal, n_out, axis_name, _Options(pool, drop_path, remat))
