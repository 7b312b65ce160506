"""SimpleConvTimeAgg: electrodes merged by their positions, dilated convolutions, a weighted mean over time.

Defossez, Caucheteux, Rapin, Kabeli & King (2023). Decoding speech perception from non-invasive brain recordings. Nature
Machine Intelligence 5, 1097-1107. doi:10.1038/s42256-023-00714-5

The function computed is that of neuraltrain 0.2.3 `SimpleConvTimeAgg` as NeuralBench sets it, for x [B, C, T] and
channels at positions p in [0, 1]^3 (each axis scaled over the channels):

    merger: 270 mixtures of the channels, with weights softmax over channels of heads . (cos, sin)(phases), where
    phases = 2 pi / 1.4 (i, j, k) . (p + 0.2), i, j, k = 0 .. 9 -> 1x1 convolution to 270
    -> conv to 320 -> BN -> GELU
    -> conv, dilated by 2, -> BN -> GELU, added to its input -> conv to 640 -> gated linear unit: 320
    -> conv, dilated by 4, -> BN -> GELU, added to its input
    -> conv to 512, dilated by 8 -> conv to 1024 -> gated linear unit: 512
    -> linear over time: one value a feature -> linear

All convolutions have 3 taps, the same length and an offset. In training one point of [0, 1]^3, drawn for each step,
silences the channels within 0.2 of it; a mixture of none is zero. Channels without position never count.

Parameters: 4170611 + T + 513 n, whatever C. At (C, T, n) = (8, 480, 12): 4177247.

The reference's faults. Kept: offsets before a batch norm do nothing in training; the last linear layer ties the weights
to T; no limit for windows however short, though the dilated taps then see zeros. Dropped: where no channel has a
position its input is silently zero; here that is an error.

How it is computed. Positions belong to the signal, so the merger's weights are one matrix a step and not one a window.
Merger, 1x1 convolution and first convolution are linear with nothing in between: they are one convolution of the C
channels and of a row of ones, which carries the 1x1 convolution's offset and is padded with zeros as it would be. That
saves a tenth of the work; the rest is large convolutions, which run at the rate of matrix products here as in torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.layers import blocks, filters
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal

N_MERGED, N_HIDDEN, N_LAST = 270, 320, 512
N_FREQUENCIES, MARGIN = 10, 0.2  # of the embedding of each axis: it repeats after 1 + 2 margins
RADIUS = 0.2  # around the point that silences channels
TAPS = 3
UNKNOWN = (-0.1, -0.1, -0.1)  # the reference's mark of a channel without position
LAYERS = ((N_MERGED, N_HIDDEN), (N_HIDDEN, N_HIDDEN), (N_HIDDEN, N_HIDDEN), (N_HIDDEN, N_LAST))
GATED = (1, 3)  # layers that a gated linear unit follows


def scaled(positions: Sequence[Position]) -> np.ndarray:
    """Positions in metres with each axis from 0 to 1 over the channels that have one: [c, 3]; `UNKNOWN` elsewhere."""
    known = np.array([place is not None for place in positions], bool)
    found = np.full((len(known), 3), UNKNOWN)
    metres = np.array([place for place in positions if place is not None])
    low, extent = metres.min(0), np.ptp(metres, axis=0)
    found[known] = (metres - low) / np.where(extent == 0, 1, extent)
    return found


def embedding(positions: jax.Array, along: jax.Array) -> jax.Array:
    """Cosines, then sines, of the 10^3 waves over positions [c, 3]: [c, 2000]; the wave number of z runs fastest.

    along [10]: frequencies along one axis.
    """
    waves = along[np.array(list(product(range(N_FREQUENCIES), repeat=3)))]  # [1000, 3]
    phase = jnp.matmul(positions + MARGIN, waves.T, precision=blocks.PRECISION)
    return jnp.concatenate([jnp.cos(phase), jnp.sin(phase)], axis=1)


def frequencies() -> jax.Array:
    """Of the embedding's waves along one axis, in radians."""
    return 2 * math.pi / (1 + 2 * MARGIN) * jnp.arange(N_FREQUENCIES, dtype=jnp.float32)


def centre(key: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """The point around which a step silences channels, for all windows on all devices."""
    return jax.random.uniform(key, (3,), dtype)


def alive(positions: jax.Array, silenced: jax.Array | None) -> jax.Array:
    """Which channels at positions [c, 3] count: those that have one, far enough from the silenced point."""
    known = jnp.any(positions != jnp.asarray(UNKNOWN, positions.dtype), axis=1)
    return known if silenced is None else known & (jnp.sum((positions - silenced) ** 2, axis=1) > RADIUS**2)


def merge_weights(scores: jax.Array, counts: jax.Array) -> jax.Array:
    """Softmax of scores [m, c] over the channels that count [c]; zero where none does."""
    top = jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True, where=counts, initial=-jnp.inf))
    raised = jnp.where(counts, jnp.exp(jnp.where(counts, scores - top, 0)), 0)
    return raised / jnp.where(counts.any(), raised.sum(1, keepdims=True), 1)


class _Merger(nn.Module):
    """Weights [270, c] of the channels in each mixture."""

    places: tuple[tuple[float, ...], ...]

    @nn.compact
    def __call__(self, dtype: jnp.dtype, key: jax.Array | None) -> jax.Array:
        where = jnp.asarray(self.places, dtype)
        found = embedding(where, self.variable('batch_stats', 'frequencies', frequencies).value)
        scale = 1 / math.sqrt(found.shape[1])
        heads = self.param('heads', nn.initializers.normal(scale), (N_MERGED, found.shape[1]))
        counts = alive(where, None if key is None else centre(key, dtype))
        return merge_weights(jnp.matmul(heads, found.T, precision=blocks.PRECISION), counts)


class _Conv(nn.Module):
    """A convolution's weight [g, f, k] and offset [g], drawn as torch draws them."""

    n_in: int
    n_out: int
    taps: int = TAPS

    def setup(self) -> None:
        draw = blocks.uniform(1 / math.sqrt(self.n_in * self.taps))
        self.weight = self.param('weight', draw, (self.n_out, self.n_in, self.taps))
        self.bias = self.param('bias', draw, (self.n_out,))

    def __call__(self, x: jax.Array, dilation: int = 1) -> jax.Array:
        """x [b, t, f] -> [b, t, g]."""
        return filters.conv(x, self.weight, (dilation, dilation), dilation, last=True) + self.bias


class _SimpleConvTimeAgg(nn.Module):
    places: tuple[tuple[float, ...], ...]
    n_times: int
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]; rows where mask [b] is false count in no statistic."""
        x, mask = batch['x'], batch['mask']
        for i, (n_in, n_out) in enumerate(LAYERS):
            conv, before = _Conv(n_in, n_out, name=f'conv{i}'), x
            x = self._front(conv, x, key) if i == 0 else conv(x, 2**i)
            if i < len(LAYERS) - 1:
                norm = blocks.BatchNorm(n_out, axis_name=self.axis_name, last=True, name=f'norm{i}')
                x = nn.gelu(norm(x, mask, train=train), approximate=False)
            if n_in == n_out:
                x = x + before
            if i in GATED:
                x = nn.glu(_Conv(n_out, 2 * n_out, name=f'gate{i}')(x))
        self.sow('features', 'convolutions', x.swapaxes(1, 2))  # [b, 512, t]
        over_time = blocks.Linear(self.n_times, 1, name='time')(x.swapaxes(1, 2))[..., 0]
        self.sow('features', 'penultimate', over_time)  # [b, 512]
        return blocks.Linear(N_LAST, self.n_out, name='head')(over_time)

    def _front(self, conv: _Conv, x: jax.Array, key: jax.Array | None) -> jax.Array:
        """Merger, 1x1 convolution and first convolution of x [b, c, t] in one: [b, t, 320]."""
        linear = _Conv(N_MERGED, N_MERGED, 1, name='linear')
        mixtures = _Merger(self.places, name='merger')(x.dtype, key)
        merged = jnp.matmul(linear.weight[..., 0], mixtures, precision=blocks.PRECISION)
        channels = jnp.concatenate([merged, linear.bias[:, None]], axis=1)
        weight = jnp.einsum('gfk,fc->gck', conv.weight, channels, precision=blocks.PRECISION)
        ones = jnp.ones((*x.shape[:1], 1, x.shape[2]), x.dtype)
        x = jnp.concatenate([x, ones], axis=1).swapaxes(1, 2)
        return filters.conv(x, weight, (1, 1), last=True) + conv.bias


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of neuraltrain 0.2.3), in its order."""

    def conv(name: str, path: str, n_in: int, n_out: int, taps: int = TAPS) -> list[Tensor]:
        shapes = {'weight': (n_out, n_in, taps), 'bias': (n_out,)}
        return [Tensor(f'{name}.{part}', shape, ('params', path, part)) for part, shape in shapes.items()]

    found = [
        Tensor('merger.heads', (N_MERGED, 2 * N_FREQUENCIES**3), ('params', 'merger', 'heads')),
        Tensor('merger.embedding.pos', (N_FREQUENCIES,), ('batch_stats', 'merger', 'frequencies')),
        *conv('initial_linear.0', 'linear', N_MERGED, N_MERGED, 1),
    ]
    for i, (n_in, features) in enumerate(LAYERS):
        found += conv(f'encoder.sequence.{i}.0', f'conv{i}', n_in, features)
        if i < len(LAYERS) - 1:
            found += torch_weights.batch_norm_tensors(f'encoder.sequence.{i}.1', (f'norm{i}',), features)
    for i in GATED:
        found += conv(f'encoder.glus.{i}.0', f'gate{i}', LAYERS[i][1], 2 * LAYERS[i][1])
    return [
        *found,
        *torch_weights.linear_tensors('time_agg_out', ('time',), signal.n_times, 1),
        *torch_weights.linear_tensors('output_head', ('head',), N_LAST, n_out),
    ]


def simpleconv_time_agg(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """SimpleConvTimeAgg for windows of `signal` (any rate: the kernels are in samples) with `n_out` outputs.

    Args:
        signal: n_chans >= 1, n_times >= 1 and the positions of the channels are used. One montage a signal; sets whose
            recordings differ in their electrodes would have to carry positions in the batch.
        n_out: number of logits.
        axis_name: mapped axis over which batch statistics are shared; None on one device.

    Raises: RequestError where positions are missing, or none is known.
    """
    require('simpleconv_time_agg', signal, n_out)
    if len(signal.positions) != signal.n_chans:
        raise RequestError(
            f'simpleconv_time_agg: needs the positions of all {signal.n_chans} channels, got {len(signal.positions)}'
        )
    if all(p is None for p in signal.positions):
        raise RequestError('simpleconv_time_agg: needs the position of at least one channel, none is known')
    return network_at(scaled(signal.positions), signal, n_out, axis_name)


def network_at(places: np.ndarray, signal: Signal, n_out: int, axis_name: str | None = None) -> Model:
    """SimpleConvTimeAgg on channels at `places` [C, 3], as `scaled` gives them."""
    where = tuple(map(tuple, places.tolist()))
    module = _SimpleConvTimeAgg(where, signal.n_times, n_out, axis_name)
    return network(module, signal, _tensors(signal, n_out), head=('output_head',))
