"""BENDR: convolutions from 256 to 2.7 samples a second, then a transformer without norms over what they give.

Kostas, Aroca-Ouellette & Rudzicz (2021). BENDR: using transformers and a contrastive self-supervised learning task to
learn from massive amounts of EEG data. Frontiers in Human Neuroscience 15, 653659. doi:10.3389/fnhum.2021.653659

The function computed is that of NeuralBench's wrapper around braindecode 1.8.1 `BENDR`, for x [B, C, T] at 256 Hz:

    C channels to the 19 of the 10-20 system (adapters.py) -> each window from its least to its largest value as
    -1 to 1; a 20th channel 2 min(range / 4861, 1) - 1 -> six times [convolution to 512 (3 taps, pad 1, every 3rd, then
    every 2nd sample) -> dropout .1 of channels -> group norm (256 groups, over time) -> GELU]: t vectors
    -> + GELU of a convolution over time (25 taps, pad 12, 16 groups, weight norm of each tap) -> LN -> dropout .1
    -> linear to 1536; in front of them one vector of -5
    -> eight times [x + dropout .1 of attention (8 heads, dropout .1 of the probabilities), then
                    x + dropout .1 of W2 dropout .1 GELU(W1 x)], W1 widens 1536 to 3076, no norms
    -> LN -> linear to 512 -> mean over the t + 1 vectors -> linear

t = ceil(T / 3) halved five times, each time rounded up. Any T >= 1 is defined; below 96 samples all is one vector.

Parameters: 157140537 + 19 (C + 1) + 513 n.

`final_norm`: the authors build the last layer norm but never apply it, braindecode does, and so do the published
numbers: on by default, off for the authors' model.

Hazard of the reference, kept: 4861 is the range of the authors' data in their own unit; windows are in volts, so the
20th channel is -1 whatever the window.

The mixture starts as 1 where a channel has the name of a target, 0 elsewhere. Not kept of the reference: where no
channel has such a name it would feed constant windows in silence; here that is refused (`adapter='random'` draws the
weights). Nor that the projections of attention start from one and the same draw in all eight layers, as copies.

How it is computed. Time before features; convolutions are products of neighbouring samples side by side. Attention is
written out: so few vectors take less than a hundredth of the work. Vectors are averaged before the last linear layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.foundation import adapters
from jbench.models.layers import blocks
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.model import Signal

TARGETS = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2'.split())
STRIDES, TAPS = (3, 2, 2, 2, 2, 2), 3
POSITION_TAPS, POSITION_GROUPS, HEADS = 25, 16, 8
START, AMPLITUDE_RANGE, LEAST_RANGE = -5.0, 4861.0, 1e-12
# files of braindecode, with its head or without; the authors' stood for vectors that pretraining hid
CHECKPOINT = Exceptions(ignored=('final_layer.*', 'contextualizer.mask_replacement'), head=('head.*', 'adapter.*'))
# as it lay at the hub before April 2026, when braindecode read nothing of it
OLD = (('encoder_state_dict.*', 'encoder.*'), ('contextualizer_state_dict.*', 'contextualizer.*'))
LAYOUTS = (CHECKPOINT, CHECKPOINT._replace(renamed=OLD))


class Sizes(NamedTuple):
    """What tests make smaller."""

    width: int = 512  # of what the convolutions give
    wide: int = 1536  # of the transformer
    inner: int = 3076
    layers: int = 8


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used by their names, and as what: {'T3': 'T7'}."""
    return adapters.used(ch_names, TARGETS, adapters.same(ch_names, TARGETS))


def n_vectors(n_times: int) -> int:
    """Vectors that the convolutions make of a window."""
    return -(-n_times // math.prod(STRIDES))


def scaled(x: jax.Array) -> jax.Array:
    """x [b, c, t] from -1 to 1 in each window, and one more channel that tells its range: [b, c + 1, t]."""
    low, high = x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True)
    extent = high - low
    unit = 2 * (x - low) / jnp.maximum(extent, LEAST_RANGE) - 1
    amplitude = 2 * jnp.minimum(extent / AMPLITUDE_RANGE, 1) - 1
    return jnp.concatenate([unit, jnp.broadcast_to(amplitude, (len(x), 1, x.shape[2]))], axis=1)


def neighbours(x: jax.Array, stride: int) -> jax.Array:
    """Three samples around every `stride`-th of x [b, t, f], zeros beyond the ends: [b, ceil(t / stride), 3 f]."""
    n = -(-x.shape[1] // stride)
    x = jnp.pad(x, ((0, 0), (1, stride * n + 1 - x.shape[1]), (0, 0)))
    return jnp.concatenate([x[:, i : i + stride * n : stride] for i in range(TAPS)], axis=2)


def group_norm(x: jax.Array, gain: jax.Array, offset: jax.Array) -> jax.Array:
    """x [b, t, f] less its mean and over its deviation, over time and pairs of neighbouring features."""
    b, t, f = x.shape
    pairs = x.reshape(b, t, f // 2, 2)
    centred = pairs - pairs.mean((1, 3), keepdims=True)
    unit = centred * jax.lax.rsqrt((centred**2).mean((1, 3), keepdims=True) + 1e-5)
    return unit.reshape(b, t, f) * gain + offset


class _Linear(nn.Module):
    """x [..., n_in] @ weight.T + bias, drawn smaller the more layers there are, as no norm keeps x in bounds."""

    n_in: int
    n_out: int
    depth: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        bound = 0.67 * self.depth**-0.25 * math.sqrt(6 / (self.n_in + self.n_out))  # Huang et al. (2020), T-Fixup
        weight = self.param('weight', blocks.uniform(bound), (self.n_out, self.n_in))
        bias = self.param('bias', nn.initializers.zeros, (self.n_out,))
        flat = jnp.matmul(x.reshape(-1, self.n_in), weight.T, precision=blocks.PRECISION) + bias
        return flat.reshape(*x.shape[:-1], self.n_out)


class _Convolutions(nn.Module):
    """x [b, c, t] -> [b, n_vectors, width]."""

    width: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, keys: Sequence[jax.Array | None]) -> jax.Array:
        h = x.transpose(0, 2, 1)
        for i, (stride, key) in enumerate(zip(STRIDES, keys, strict=True)):
            n_in = h.shape[2]
            draw = blocks.uniform((TAPS * n_in) ** -0.5)
            taps = self.param(f'taps_{i}', draw, (self.width, n_in, TAPS))
            bias = self.param(f'bias_{i}', draw, (self.width,))
            seen = neighbours(h, stride)
            flat = taps.transpose(2, 1, 0).reshape(-1, self.width)
            h = jnp.matmul(seen.reshape(-1, seen.shape[2]), flat, precision=blocks.PRECISION) + bias
            h = h.reshape(*seen.shape[:2], self.width)
            if key is not None:
                alive = blocks.kept(key, self.dropout, (len(h), 1, self.width), self.axis_name, 0)
                h = jnp.where(alive, h / (1 - self.dropout), 0)
            gain = self.param(f'gain_{i}', nn.initializers.ones, (self.width,))
            offset = self.param(f'offset_{i}', nn.initializers.zeros, (self.width,))
            h = blocks.gelu(group_norm(h, gain, offset))
        return h


class _Position(nn.Module):
    """GELU of a grouped convolution of x [b, t, f] over time."""

    width: int
    wide: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        size = self.width // POSITION_GROUPS
        shape = (self.width, size, POSITION_TAPS)
        direction = self.param('direction', nn.initializers.normal(2 / self.wide), shape)
        lengths = jnp.sqrt((direction**2).sum((0, 1)))
        norms = self.param('norms', lambda _, shape: lengths, lengths.shape)
        bias = self.param('bias', nn.initializers.zeros, (self.width,))
        taps = direction * (norms / lengths)
        b, t, _ = x.shape
        reach = POSITION_TAPS // 2
        padded = jnp.pad(x, ((0, 0), (reach, reach), (0, 0))).reshape(b, -1, POSITION_GROUPS, size)
        seen = jnp.stack([padded[:, i : i + t] for i in range(POSITION_TAPS)], axis=3)  # [b, t, g, taps, size]
        seen = seen.transpose(2, 0, 1, 3, 4).reshape(POSITION_GROUPS, b * t, -1)
        grouped = taps.reshape(POSITION_GROUPS, size, size, POSITION_TAPS).transpose(0, 3, 2, 1)
        mixed = jnp.matmul(seen, grouped.reshape(POSITION_GROUPS, -1, size), precision=blocks.PRECISION)
        return blocks.gelu(mixed.transpose(1, 0, 2).reshape(b, t, self.width) + bias)


class _Layer(nn.Module):
    """One layer of the transformer, over x [b, l, d]."""

    sizes: Sizes
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        (_, wide, inner, depth), keys = self.sizes, blocks.split(key, 4)

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.dropout, keys[which], self.axis_name, batch_axis=0)

        weight = self.param('projections', blocks.xavier(wide, 3 * wide), (3 * wide, wide))
        bias = self.param('projections_bias', nn.initializers.zeros, (3 * wide,))
        joined = jnp.matmul(x.reshape(-1, wide), weight.T, precision=blocks.PRECISION) + bias
        q, k, v = joined.reshape(*x.shape[:2], 3, HEADS, wide // HEADS).transpose(2, 0, 1, 3, 4)
        scores = jnp.einsum('bqhs,bkhs->bhqk', q, k, precision=blocks.PRECISION) / math.sqrt(wide // HEADS)
        shares = drop(jax.nn.softmax(scores, -1), 0)
        mixed = jnp.einsum('bhqk,bkhs->bqhs', shares, v, precision=blocks.PRECISION).reshape(x.shape)
        x = x + drop(_Linear(wide, wide, depth, name='projection')(mixed), 1)
        h = drop(blocks.gelu(_Linear(wide, inner, depth, name='wide')(x)), 2)
        return x + drop(_Linear(inner, wide, depth, name='narrow')(h), 3)


class BENDR(nn.Module):
    """The network over batch['x'] [b, c, t], c and its start those of `begin`."""

    begin: adapters.Start
    n_out: int
    axis_name: str | None
    dropout: float
    final_norm: bool = True
    sizes: Sizes = Sizes()

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Outputs [b, n] of x [b, c, t]."""
        width, wide, _, layers = self.sizes
        keys = blocks.split(key, layers + len(STRIDES) + 1)
        x = scaled(adapters.Mixture(self.begin, name='adapter')(batch['x']))
        x = _Convolutions(width, self.axis_name, self.dropout, name='convolutions')(x, keys[: len(STRIDES)])
        self.sow('features', 'vectors', x)  # [b, t, 512]
        x = blocks.LayerNorm(width, name='norm_in')(x + _Position(width, wide, name='position')(x))
        x = blocks.dropout(x, self.dropout, keys[-1], self.axis_name, batch_axis=0)
        x = _Linear(width, wide, layers, name='widen')(x)
        x = jnp.concatenate([jnp.full((len(x), 1, wide), START, x.dtype), x], axis=1)
        for i in range(layers):
            x = _Layer(self.sizes, self.axis_name, self.dropout, name=f'layer_{i}')(x, keys[len(STRIDES) + i])
        normed = blocks.LayerNorm(wide, name='norm_out')(x)  # its parameters exist in either case
        x, narrow = normed if self.final_norm else x, blocks.Linear(wide, width, name='narrow')
        self.sow('features', 'tokens', narrow(x))  # [b, t + 1, 512], that of the start first
        self.sow('features', 'penultimate', pooled := narrow(x.mean(1)))
        return blocks.Linear(width, self.n_out, name='linear')(pooled)


def _tensors(n_chans: int, n_out: int, sizes: Sizes) -> list[Tensor]:
    """braindecode's names; then the mixture of channels and our head."""
    width, wide, inner, layers = sizes
    linear, norm = torch_weights.linear_tensors, torch_weights.layer_norm_tensors
    out = []
    for i in range(len(STRIDES)):
        name, shape = f'encoder.encoder.Encoder_{i}', (width, width if i else len(TARGETS) + 1, TAPS)
        out.append(Tensor(f'{name}.0.weight', shape, ('params', 'convolutions', f'taps_{i}')))
        for entry, ours in {'0.bias': 'bias', '2.weight': 'gain', '2.bias': 'offset'}.items():
            out.append(Tensor(f'{name}.{entry}', (width,), ('params', 'convolutions', f'{ours}_{i}')))
    name, path = 'contextualizer.relative_position.0', ('params', 'position')
    grouped = (width, width // POSITION_GROUPS, POSITION_TAPS)
    out += [
        Tensor(f'{name}.bias', (width,), (*path, 'bias')),
        Tensor(f'{name}.parametrizations.weight.original0', (1, 1, POSITION_TAPS), (*path, 'norms')),
        Tensor(f'{name}.parametrizations.weight.original1', grouped, (*path, 'direction')),
        *norm('contextualizer.input_conditioning.1', ('norm_in',), width),
        *linear('contextualizer.input_conditioning.3', ('widen',), width, wide),
    ]
    for i in range(layers):
        name, layer = f'contextualizer.transformer_layers.{i}', f'layer_{i}'
        out += [
            Tensor(f'{name}.self_attn.in_proj_weight', (3 * wide, wide), ('params', layer, 'projections')),
            Tensor(f'{name}.self_attn.in_proj_bias', (3 * wide,), ('params', layer, 'projections_bias')),
            *linear(f'{name}.self_attn.out_proj', (layer, 'projection'), wide, wide),
            *linear(f'{name}.linear1', (layer, 'wide'), wide, inner),
            *linear(f'{name}.linear2', (layer, 'narrow'), inner, wide),
        ]
    out += [
        *norm('contextualizer.norm', ('norm_out',), wide),
        Tensor('contextualizer.output_layer.weight', (width, wide, 1), ('params', 'narrow', 'weight')),
        Tensor('contextualizer.output_layer.bias', (width,), ('params', 'narrow', 'bias')),
    ]
    return out + adapters.tensors(len(TARGETS), n_chans) + linear('head', ('linear',), width, n_out)


def bendr(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.1,
    final_norm: bool = True,
    adapter: str = 'names',
) -> Model:
    """BENDR for windows of `signal` (its checkpoint is of 256 Hz; taps are in samples) with `n_out` outputs.

    Args:
        signal: ch_names are used; any n_times.
        n_out: number of outputs.
        axis_name: mapped axis over which dropout is drawn; None on one device.
        dropout: rate everywhere.
        final_norm: whether the last layer norm is applied; the authors' model has it and does not.
        adapter: 'names': the mixture of channels starts from their names; 'random': as torch draws such a layer.

    Raises: RequestError where no channel is one of the 19.
    """
    require('bendr', signal, n_out, dropout=dropout)
    pattern = adapters.same(signal.ch_names, TARGETS)
    begin = adapters.start('bendr', signal, adapter, targets=TARGETS, pattern=pattern, drawn=False)
    return built(BENDR(begin, n_out, axis_name, dropout, final_norm), signal)


def built(module: BENDR, signal: Signal) -> Model:
    """The functions of the network, of any sizes."""
    tensors, use = _tensors(signal.n_chans, module.n_out, module.sizes), channels(signal.ch_names)
    grid = TokenGrid((1, n_vectors(signal.n_times)), 1)
    return network(module, signal, tensors, checkpoints=LAYOUTS, channels=use, tokens=grid)
