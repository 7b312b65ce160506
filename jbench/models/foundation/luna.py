"""LUNA: learned queries gather any set of channels into a few vectors a patch, a transformer goes over the patches.

Döner, Ingolfsson, Benini & Li (2025). LUNA: efficient and topology-agnostic foundation model for EEG signal analysis.
Advances in Neural Information Processing Systems 38. arXiv:2510.22257

The function computed is that of braindecode 1.8.1 `LUNA` as NeuralBench fine-tunes it, for x [B, C, T] at 256 Hz, of
any unit: each channel of a window is z-scored (deviation over T - 1; a flat one stays 0), zeros fill up T to patches of
40 samples, S of them; sizes are those of `LARGE` (base and huge in brackets), d = 96 (64, 128):

    a patch of a channel -> 24 filters (19 samples every 10, padded by 9) -> [GN of 4 groups -> GELU], twice followed by
    24 filters of 3 -> [GN -> GELU]: 4 moments x 24, a token of d
    + W2 GELU(W1 of its 21 amplitudes and 21 phases), W1 42 -> 168
    + W4 GELU(W3 of the sines and cosines of its channel's place), W3 d -> 2 d
    -> y = 6 (4, 8) learnt queries look at the C tokens of a patch: 2 heads, keys and values with a layer norm each
    -> y + W2 GELU(W1 y), W1 d -> 4 d -> 3 x pre-norm transformer layer over the queries, 2 heads, d -> 4 d
    -> side by side 576 (256, 1024) values a patch
    -> 10 (8, 24) x [x + attention(LN(x)), then x + W2 LN(GELU(W1 LN(x)))], W1 576 -> 2304, with heads of d / 2 and
    rotary positions -> LN -> mean over patches -> linear

Dropout of .1 around the queries (probabilities, hidden values, results); drop path of .1 in the transformer.

Parameters, with a linear layer of w + 1 numbers an output on w = 256, 576, 1024: 6571896, 40448088, 303404216, for any
C and T. The reference counts 193, 337 and 897 more, which nothing changes: the rotary frequencies of each block, here a
formula, `temperature` and `mask_token`, which are read nowhere.

Channels: those whose place is known (`channels`), in any number and order. Coordinates are stretched to [0, 1] over
those that are used; their code has octaves of up to 2^20, which float32 cannot hold, so it is made in float64 when the
network is built. NeuralBench puts a channel without a place at (-.1, -.1, -.1), which moves the codes of all others;
here it is left out.

`mlp_norm`: the authors' network has a layer norm before W4, and before the W2 that follows the queries; braindecode
leaves both out, and the four tensors of the authors' files unread. By default they are left out here too, as in every
published score of NeuralBench; with the authors' weights take `mlp_norm=True`.

Phases jump where a real or imaginary part may be nothing but rounding: at the overtones of a flat piece of signal, or
at the end of a window that is one sample longer than its patches. What the reference puts in there, anything from -pi
to pi, differs between machines and between float32 and float64. Here a part below 4 eps of the sum of magnitudes of the
patch is 0, and the phase of 0 is 0; all others are those of the reference. (A true part as small as that is 0, too: of
random windows hardly ever one, then pi for -pi.)

Differences from the reference: it starts the three layers over the queries from one draw; here each has its own.

How it is computed. The queries are the same for every patch: what they ask is one product of d x 12 for keys, and what
they gather of the normalised tokens is mapped to values afterwards, so that no token is mapped to a key or value. The
code of the channels is mapped once a step. Amplitudes and phases are products with a matrix of waves. Rotated pairs are
kept as two halves, which attention does not see. Attention: `wide_attention.attend_wide`. A step of the large one for
16 windows of 64 channels and 10 s needs 1.4 GB beside the weights, so that `remat` is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation import adapters
from jbench.models.foundation.luna_layers import Block, Code, QueryLayer, Spectrum, Unify, block_tensors, unify_tensors
from jbench.models.layers import blocks
from jbench.models.layers.deep import in_turn
from jbench.models.layers.patches import Front, Patches, patch_tensors
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal

PATCH = 40  # samples
QUERY_LAYERS = 3


class Size(NamedTuple):
    """What tells the three networks apart."""

    queries: int
    width: int  # d
    depth: int  # blocks over the patches

    @property
    def joined(self) -> int:
        """Values of a patch in the blocks."""
        return self.queries * self.width

    @property
    def front(self) -> Front:
        """The convolutions of a patch."""
        return Front(PATCH, (self.width // 4,) * 3, groups=4, taps=19, stride=10, pad=9, feature_major=False)


BASE, LARGE, HUGE = Size(4, 64, 8), Size(6, 96, 10), Size(8, 128, 24)
_UNREAD = ('mask_token', 'blocks.*.attn.rotary_emb.freqs')
_AUTHORS = (*_UNREAD, 'cross_attn.temparature', 'decoder_head.*', 'channel_emb.*')
_LOCATION = (('channel_location_embedder.0.*', 'channel_location_embedder.*'),)
_NORMS = ('channel_location_embedder.norm.*', 'cross_attn.ffn.norm.*')
# files of braindecode; the authors', for a network with `mlp_norm` and for one without
CHECKPOINT = {
    'braindecode': Exceptions(ignored=(*_UNREAD, 'cross_attn.temperature', 'final_layer.*'), head=('head.*',)),
    'authors': Exceptions(renamed=_LOCATION, ignored=_AUTHORS, head=('head.*',)),
    'authors_without_norms': Exceptions(renamed=_LOCATION, ignored=(*_AUTHORS, *_NORMS), head=('head.*',)),
}


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and where they lie in mm, {'Cz': '0 -9 120'}: those whose place is known by their name.

    Raises: RequestError where there is none.
    """
    from jbench.data import electrodes  # MNE takes its time

    return adapters.placed(ch_names, electrodes.positions(ch_names))


def code_of_places(places: Sequence[Position], width: int) -> np.ndarray:
    """The code of channels [c, width]: for octave after octave, for x, y and z, sine and cosine; zeros fill it up."""
    known = np.array(places, float)
    low, high = known.min(0), known.max(0)
    unit = (known - low) / (high - low + 1e-8)
    phase = unit[:, None] * 2.0 ** np.arange(width // 6)[:, None]  # [c, octave, axis]
    code = np.stack([np.sin(phase), np.cos(phase)], -1).reshape(len(known), -1)
    return np.pad(code, ((0, 0), (0, width - code.shape[1])))


def z_scored(x: jax.Array) -> jax.Array:
    """x [b, c, t] with mean 0 and deviation 1 over t; zeros where it varies by no more than rounding."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).sum(-1, keepdims=True) / (x.shape[-1] - 1)
    rounding = 4 * jnp.finfo(x.dtype).eps * jnp.abs(x).max(-1, keepdims=True)
    varies = variance > rounding**2
    return jnp.where(varies, centred / jnp.sqrt(jnp.where(varies, variance, 1)), 0)


class _Luna(nn.Module):
    size: Size
    used: tuple[int, ...]  # channels of the input
    code: tuple[tuple[float, ...], ...]  # of them, [c, d]
    n_out: int
    axis_name: str | None
    dropout: float
    drop_path: float
    mlp_norm: bool
    remat: bool

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]."""
        x, size = batch['x'], self.size
        keys = blocks.split(key, size.depth + QUERY_LAYERS + 1)
        x = z_scored(x if len(self.used) == x.shape[1] else x[:, np.array(self.used)])
        x = self._joined(jnp.pad(x, ((0, 0), (0, 0), (0, -x.shape[2] % PATCH))), keys[size.depth :])

        def block(i: int, **place: Any) -> Block:
            return Block(2 * size.queries, size.joined, i, self.drop_path, self.axis_name, **place)

        x = in_turn(self, block, x, keys[: size.depth], again=size.depth if self.remat else 0)
        x = blocks.LayerNorm(size.joined, name='norm')(x)
        self.sow('features', 'tokens', x)  # [b, s, w]
        pooled = x.mean(1)
        self.sow('features', 'penultimate', pooled)  # [b, w]
        return blocks.Linear(size.joined, self.n_out, name='head')(pooled)

    def _joined(self, x: jax.Array, keys: Sequence[jax.Array | None]) -> jax.Array:
        """What the queries make of each patch [b, s, w] of x [b, c, t], z-scored."""
        size, (b, c, t) = self.size, x.shape
        x = x.reshape(b, c, t // PATCH, PATCH).transpose(0, 2, 1, 3).reshape(b, -1, PATCH)  # patch by patch
        tokens = Patches(size.front, name='patches')(x) + Spectrum(size.width, PATCH, name='spectrum')(x)
        code = Code(size.width, self.mlp_norm, name='code')(jnp.asarray(self.code, x.dtype))
        h = tokens.reshape(-1, c, size.width) + code
        h = Unify(size.queries, size.width, self.mlp_norm, self.dropout, self.axis_name, name='unify')(h, keys[0])
        for i in range(QUERY_LAYERS):
            h = QueryLayer(size.width, self.dropout, self.axis_name, name=f'query_layer_{i}')(h, keys[1 + i])
        return h.reshape(b, t // PATCH, size.joined)


def _tensors(size: Size, mlp_norm: bool, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order, without what it never learns, and our
    head."""
    linear, norm, d = torch_weights.linear_tensors, torch_weights.layer_norm_tensors, size.width
    pairs = [(f'patch_embed.proj_in.{i}', f'patch_embed.proj_in.{i + 1}') for i in (0, 3, 6)]
    spectral, place = 'freq_embed.frequency_to_embed', 'channel_location_embedder'
    n = 2 * (PATCH // 2 + 1)
    out = patch_tensors(size.front, ('patches',), pairs)
    out += linear(f'{spectral}.fc1', ('spectrum', 'wide'), n, 4 * n)
    out += linear(f'{spectral}.fc2', ('spectrum', 'narrow'), 4 * n, d)
    out += linear(f'{place}.fc1', ('code', 'wide'), d, 2 * d) + linear(f'{place}.fc2', ('code', 'narrow'), 2 * d, d)
    out += norm(f'{place}.norm', ('code', 'norm'), 2 * d) if mlp_norm else []
    out += unify_tensors(size.queries, d, mlp_norm, QUERY_LAYERS)
    for i in range(size.depth):
        out += block_tensors(f'blocks.{i}', f'layer_{i}', size.joined)
    return out + norm('norm', ('norm',), size.joined) + linear('head', ('head',), size.joined, n_out)


class _Options(NamedTuple):
    """Those of the factories."""

    axis_name: str | None
    dropout: float
    drop_path: float
    mlp_norm: bool
    remat: bool


def build(name: str, size: Size, signal: Signal, n_out: int, options: _Options) -> Model:
    """LUNA of any size, for the factories below, which say what is what."""
    require(name, signal, n_out, min_times=2, dropout=options.dropout)
    if not 0 <= options.drop_path < 1:
        raise RequestError(f'{name}: drop_path={options.drop_path}: expected a rate from 0 to below 1')
    if len(signal.positions) != signal.n_chans:
        raise RequestError(
            f'{name}: needs the places of all {signal.n_chans} channels, None of one that is not known, got '
            f'{len(signal.positions)}'
        )
    used = tuple(i for i, place in enumerate(signal.positions) if place is not None)
    if not used:
        raise RequestError(
            f'{name}: the place of no channel is known: expected electrodes of the 10-05 system, as Cz. Rename the '
            'channels, or take a model that goes by their order alone, as cbramod'
        )
    code = code_of_places([signal.positions[i] for i in used], size.width)
    module = _Luna(size, used, tuple(map(tuple, code.tolist())), n_out, *options)
    names = ('authors',) if options.mlp_norm else ('braindecode', 'authors_without_norms')
    layouts, use = tuple(CHECKPOINT[name] for name in names), adapters.placed(signal.ch_names, signal.positions)
    return network(
        module,
        signal,
        _tensors(size, options.mlp_norm, n_out),
        checkpoints=layouts,
        channels=use,
        tokens=TokenGrid((1, -(-signal.n_times // PATCH)), 1),
    )


def luna_base(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.1,
    drop_path: float = 0.1,
    mlp_norm: bool = False,
    remat: bool = False,
) -> Model:
    """LUNA of 8 blocks, 4 queries of 64; as `luna_large`."""
    return build('luna_base', BASE, signal, n_out, _Options(axis_name, dropout, drop_path, mlp_norm, remat))


def luna_large(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.1,
    drop_path: float = 0.1,
    mlp_norm: bool = False,
    remat: bool = False,
) -> Model:
    """LUNA of 10 blocks, 6 queries of 96, which NeuralBench takes, for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_times >= 2 and positions are used; the weights were learnt at 256 Hz.
        n_out: number of logits.
        axis_name: mapped axis over which rows are shared; None on one device.
        dropout: rate around the queries, 0 to below 1.
        drop_path: rate at which a window does without a branch of a block, 0 to below 1.
        mlp_norm: the authors' two layer norms that braindecode leaves out; see above.
        remat: whether a block's values are computed again for its gradient instead of kept: less memory, more time.

    Raises: RequestError where the place of no channel is known, or a window is one sample.
    """
    return build('luna_large', LARGE, signal, n_out, _Options(axis_name, dropout, drop_path, mlp_norm, remat))


def luna_huge(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.1,
    drop_path: float = 0.1,
    mlp_norm: bool = False,
    remat: bool = False,
) -> Model:
    """LUNA of 24 blocks, 8 queries of 128; as `luna_large`."""
    return build('luna_huge', HUGE, signal, n_out, _Options(axis_name, dropout, drop_path, mlp_norm, remat))
