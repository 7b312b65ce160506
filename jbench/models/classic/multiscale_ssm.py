"""MultiscaleSSM: regions of the scalp as tokens in windows of 100 ms and of 5 s, and selective state spaces over them.

Our own design; no paper describes it and nobody published results of it. Its parts: selective state spaces (Gu & Dao
2023, Mamba, arXiv:2312.00752) as one system of many inputs and outputs, on an accelerator with the parallel scan, as in
S5 (Smith, Warrington & Linderman 2023, arXiv:2208.04933): jbench/models/layers/state_space.py; the regions of
jbench/models/layers/regions.py.

For x [B, C, T] and R regions that have a channel (frontal, parietal, temporal, occipital; elsewhere, for channels whose
place is not known):

    8 mixtures of the channels of each region
    fast: windows of 100 ms every 50 ms -> 16 linear filters and the log energy of 16 pairs of filters -> linear to 32
    slow: means of 100 ms, windows of 5 s of them every 0.5 s (shorter where T is) -> linear to 32
    to both, a vector of the region is added; tokens [B, R, L, 32]
    each path: two times [x + state space(LN(x) + W mean over regions), then x + W2 GELU(W1 LN(x))] -> LN
    -> of each region, feature and path a weighted mean over tokens -> dropout -> linear

Weights of filters and layers are the same for all regions; mixtures belong to channels, and the last layers to R and T.
Dropout (0.25) is that of the branches and before the last layer.

Causal in time: a token depends on samples up to its end alone, before the first sample stand zeros, and no statistic is
taken over time or over windows. The last tokens of both paths end at the last sample. What sees all tokens of a window
is the weighted mean over them, and what follows it: an answer is there when the window ends.

Windows are as long as a whole number of samples allows (of 100 ms: twice the rounded 50 ms); other rates than 120 Hz
have filters of other lengths.
"""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.layers import blocks
from jbench.models.layers.regions import REGIONS, regions
from jbench.models.layers.state_space import SelectiveStateSpace
from jbench.models.model import Batch, Model, network, require
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

MIXTURES, FILTERS = 8, 16  # of a region; linear ones, and as many pairs
WIDTH, STATES, EXPANSION = 32, 32, 2
LAYERS = 2  # of each path
HOP = 0.05  # s between fast tokens; a window and a mean take two
PER_TOKEN, SPANS = 5, 10  # means from a slow token to the next; such steps in its window, at most
FLOOR = 1e-3  # of an energy

Regions = tuple[tuple[str, tuple[int, ...]], ...]  # names, and numbers of their channels


def hop(sfreq: float) -> int:
    """Samples from a fast token to the next."""
    return max(1, round(HOP * sfreq))


def windows(x: jax.Array, step: int, spans: int) -> jax.Array:
    """Windows of `spans` steps along the last axis, [..., t] -> [..., l, spans * step]: l = ceil(t / step).

    Each ends a step after the one before, the last with x; zeros stand before the first sample.
    """
    n = -(-x.shape[-1] // step)
    before = (n + spans - 1) * step - x.shape[-1]
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, 0)])
    cut = x.reshape(*x.shape[:-1], n + spans - 1, step)
    return jnp.concatenate([cut[..., i : i + n, :] for i in range(spans)], -1)


class _Mixtures(nn.Module):
    """Mixtures of the channels of each region of x [b, c, t]: [b, r, 8, t]."""

    regions: Regions
    n_chans: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        placed = []
        for name, channels in self.regions:
            own = self.param(name, blocks.uniform(math.sqrt(3 / len(channels))), (MIXTURES, len(channels)))
            place = jnp.asarray(np.eye(self.n_chans)[list(channels)], own.dtype)
            placed.append(jnp.matmul(own, place, precision=blocks.PRECISION))
        mixed = jnp.einsum('gc,bct->bgt', jnp.concatenate(placed), x, precision=blocks.PRECISION)
        return mixed.reshape(len(x), len(self.regions), MIXTURES, -1)


class _Fast(nn.Module):
    """Windows of 100 ms of mixtures [b, r, s, t] -> [b, r, l, 32]: what they are, and how much of it there is."""

    step: int  # samples

    @nn.compact
    def __call__(self, mixed: jax.Array) -> jax.Array:
        seen = _joined(windows(mixed, self.step, 2))
        found = blocks.Linear(seen.shape[-1], 3 * FILTERS, name='filters')(seen)
        linear, real, imaginary = jnp.split(found, 3, axis=-1)
        energy = jnp.log(real**2 + imaginary**2 + FLOOR)
        return blocks.Linear(2 * FILTERS, WIDTH, name='token')(jnp.concatenate([linear, energy], -1))


class _Slow(nn.Module):
    """Windows of 5 s of means of 100 ms of mixtures [b, r, s, t] -> [b, r, m, 32]."""

    step: int  # samples of half a mean

    @nn.compact
    def __call__(self, mixed: jax.Array) -> jax.Array:
        means = windows(mixed, 2 * self.step, 1).mean(-1)
        spans = min(SPANS, -(-means.shape[-1] // PER_TOKEN))
        seen = _joined(windows(means, PER_TOKEN, spans))
        return blocks.Linear(seen.shape[-1], WIDTH, name='token')(seen)


def _joined(cut: jax.Array) -> jax.Array:
    """Windows [b, r, s, l, k] of all mixtures side by side: [b, r, l, s * k]."""
    b, r, s, n, k = cut.shape
    return cut.transpose(0, 1, 3, 2, 4).reshape(b, r, n, s * k)


class _Block(nn.Module):
    """One layer over tokens x [b, r, l, d], causal along l."""

    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        first, second = blocks.split(key, 2)

        def drop(h: jax.Array, key: jax.Array | None) -> jax.Array:
            return blocks.dropout(h, self.dropout, key, self.axis_name, batch_axis=0)

        h = blocks.LayerNorm(WIDTH, name='norm_1')(x)
        h = h + blocks.Linear(WIDTH, WIDTH, name='across')(h.mean(1, keepdims=True))
        x = x + drop(SelectiveStateSpace(WIDTH, STATES, name='state_space')(h), first)
        h = blocks.Linear(WIDTH, EXPANSION * WIDTH, name='wide')(blocks.LayerNorm(WIDTH, name='norm_2')(x))
        return x + drop(blocks.Linear(EXPANSION * WIDTH, WIDTH, name='narrow')(blocks.gelu(h)), second)


class _MultiscaleSSM(nn.Module):
    regions: Regions
    n_chans: int
    step: int
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]. No statistic is taken over rows."""
        keys = blocks.split(key, 2 * LAYERS + 1)
        mixed = _Mixtures(self.regions, self.n_chans, name='mixtures')(batch['x'])
        seen = []
        for k, (name, tokens) in enumerate((('fast', _Fast), ('slow', _Slow))):
            x = tokens(self.step, name=name)(mixed) + self._region(name)
            for i in range(LAYERS * k, LAYERS * (k + 1)):
                x = _Block(self.axis_name, self.dropout, name=f'block_{i}')(x, keys[i])
            x = blocks.LayerNorm(WIDTH, name=f'{name}_norm')(x)
            self.sow('features', f'{name}_tokens', x.reshape(len(x), -1, WIDTH))  # [b, r * l, 32], regions in turn
            seen.append(self._over_time(name, x))
        h = jnp.concatenate(seen, -1)
        self.sow('features', 'penultimate', h)  # [b, r * 64]
        h = blocks.dropout(h, self.dropout, keys[-1], self.axis_name, batch_axis=0)
        return blocks.Linear(h.shape[1], self.n_out, name='linear')(h)

    def _region(self, path: str) -> jax.Array:
        """A vector for each region that is there: [r, 1, 32]."""
        table = self.param(f'{path}_regions', nn.initializers.normal(0.1), (len(REGIONS), WIDTH))
        return table[np.array([REGIONS.index(name) for name, _ in self.regions])][:, None]

    def _over_time(self, path: str, x: jax.Array) -> jax.Array:
        """Weighted means over the tokens of x [b, r, l, d], weights by feature: [b, r * d]; at first those of a mean,
        give or take a half."""
        n = x.shape[2]

        def draw(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
            return (1 + blocks.uniform(0.5)(key, shape)) / n

        weight = self.param(f'{path}_time', draw, (n, WIDTH))
        return jnp.einsum('brld,ld->brd', x, weight, precision=blocks.PRECISION).reshape(len(x), -1)


def multiscale_ssm(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.25) -> Model:
    """MultiscaleSSM for windows of `signal` (windows are in seconds) with `n_out` outputs.

    Args:
        signal: n_chans >= 1, n_times >= 1, sfreq and the positions of the channels are used.
        n_out: number of logits.
        axis_name: mapped axis of devices, over which dropout is drawn as on one; None on one device.
        dropout: rate, 0 to below 1.

    Raises: RequestError where positions are missing.
    """
    require('multiscale_ssm', signal, n_out, dropout=dropout)
    if len(signal.positions) != signal.n_chans:
        raise RequestError(
            f'multiscale_ssm: needs the positions of all {signal.n_chans} channels (None where one is not known), got '
            f'{len(signal.positions)}'
        )
    step = hop(signal.sfreq)
    module = _MultiscaleSSM(regions(signal.positions), signal.n_chans, step, n_out, axis_name, dropout)
    return network(module, signal, head=('params.linear',))
