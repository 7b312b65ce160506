"""Selective state spaces: diagonal linear systems in time whose pace each token sets, computed by a parallel scan.

h_t = a_t h_(t-1) + b_t, complex, from h_0 = 0. With a pace g_t = softplus(W x_t + w) + least for each state and token

    a_t = exp(g_t (-rate + i frequency)),    b_t = sqrt(1 - |a_t|^2) (V x_t),    y_t = Re(C h_t) + skip x_t

A pace near 0 keeps a state and writes nothing; a large one forgets it and writes the token. That the step depends on
the token is the selection of Mamba (Gu & Dao 2023, arXiv:2312.00752), whose output gate follows too; one system of many
inputs and outputs for all features is that of S5 (Smith, Warrington & Linderman 2023, arXiv:2208.04933); b_t is scaled
as in linear recurrent units (Orvieto et al. 2023, arXiv:2303.06349), so that white tokens give states of unit variance
at any pace. Unlike Mamba's, V and C do not depend on the token, and there is no convolution before.

On an accelerator the states are those of `jax.lax.associative_scan`, as in S5: some 2 log2(l) steps, each of which the
device spreads over tokens. It writes out a tree of slices for every power of two, which takes a CPU longer to compile
and to run. So there tokens are cut into chunks of about the root of their number. One loop goes through the tokens of a
chunk, all chunks at once; another one through the chunks. Both are `jax.lax.scan`, whose body is compiled once.
"""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from jbench.models.layers import blocks

LEAST_PACE = 1e-3  # so that the root of what is written has a gradient
MEMORY = 100.0  # tokens: the slowest state forgets within so many, to begin with
PACE_START = math.log(math.e - 1)  # softplus of it is 1

Pair = tuple[jax.Array, jax.Array]


@jax.custom_vjp
def recurrence(decay: jax.Array, write: jax.Array) -> jax.Array:
    """States h_t = decay_t h_(t-1) + write_t along the last axis but one, from zero: [..., l, p] of both.

    Some 2 sqrt(l) steps on a CPU, 2 log2(l) elsewhere, one after the other. The gradient is the same recurrence
    backwards in time, and keeps nothing but decays and states.
    """
    return _scanned(decay, write)


def _scanned(decay: jax.Array, write: jax.Array, *, backwards: bool = False) -> jax.Array:
    """The recurrence, as suits the device."""
    scan = chunked if jax.default_backend() == 'cpu' else associative
    return scan(decay, write, backwards=backwards)


def associative(decay: jax.Array, write: jax.Array, *, backwards: bool = False) -> jax.Array:
    """The recurrence, by pairs of tokens, pairs of these pairs, and so on."""

    def joined(before: Pair, now: Pair) -> Pair:
        """What two stretches of tokens, one after the other, make of a state before them."""
        return now[0] * before[0], now[0] * before[1] + now[1]

    states: jax.Array = lax.associative_scan(joined, (decay, write), reverse=backwards, axis=decay.ndim - 2)[1]
    return states


def chunked(decay: jax.Array, write: jax.Array, *, backwards: bool = False) -> jax.Array:
    """The recurrence, by chunks of tokens. What fills up the last one writes nothing, and comes before all tokens or
    behind them."""
    shape = decay.shape
    n = max(1, round(math.sqrt(shape[-2])))  # tokens of a chunk
    fill = [(0, 0)] * (len(shape) - 2) + [(0, -shape[-2] % n), (0, 0)]

    def cut(x: jax.Array) -> jax.Array:
        """[..., l, p] -> [n, chunks, ..., p]."""
        chunks = jnp.pad(x, fill).reshape(*shape[:-2], -1, n, shape[-1])
        return jnp.moveaxis(chunks, (-2, -3), (0, 1))

    def token(before: Pair, now: Pair) -> tuple[Pair, Pair]:
        """One token further in every chunk: what the chunk makes of a state before it, and its own state."""
        after = (now[0] * before[0], now[0] * before[1] + now[1])
        return after, after

    def chunk(state: jax.Array, whole: Pair) -> tuple[jax.Array, jax.Array]:
        """The state before a chunk; that behind it is carried on."""
        return whole[0] * state + whole[1], state

    steps = (cut(decay), cut(write))
    start = (jnp.ones_like(steps[0][0]), jnp.zeros_like(steps[1][0]))
    whole, (kept, made) = lax.scan(token, start, steps, reverse=backwards)
    _, before = lax.scan(chunk, jnp.zeros_like(whole[1][0]), whole, reverse=backwards)
    states = jnp.moveaxis(kept * before + made, (0, 1), (-2, -3))  # [..., chunks, n, p]
    return states.reshape(*shape[:-2], -1, shape[-1])[..., : shape[-2], :]


def _forward(decay: jax.Array, write: jax.Array) -> tuple[jax.Array, Pair]:
    states = recurrence(decay, write)
    return states, (decay, states)


def _backward(kept: Pair, grad: jax.Array) -> Pair:
    decay, states = kept
    nothing = jnp.zeros_like(decay[..., :1, :])
    following = jnp.concatenate([decay[..., 1:, :], nothing], -2)
    of_write = _scanned(following, grad, backwards=True)
    before = jnp.concatenate([nothing, states[..., :-1, :]], -2)
    return of_write * before, of_write


recurrence.defvjp(_forward, _backward)


def _log_rates(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Logarithms of rates of decay, a token: uniform from 1 / MEMORY to 1."""
    return jax.random.uniform(key, shape, jnp.float32, -math.log(MEMORY), 0.0)


def _frequencies(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Radians a token: every second state only decays, the others turn by up to half a circle."""
    turning = jnp.arange(shape[0]) % 2
    return turning * jax.random.uniform(key, shape, jnp.float32, 0.0, math.pi)


class SelectiveStateSpace(nn.Module):
    """x [..., l, width] -> [..., l, width], causal along l: `states` complex states, an output gate, a linear map.

    The states are computed in float32 at least.
    """

    width: int
    states: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        d, p = self.width, self.states
        wide = jnp.promote_types(x.dtype, jnp.float32)
        rate = jnp.exp(self.param('log_rate', _log_rates, (p,)).astype(wide))
        frequency = self.param('frequency', _frequencies, (p,)).astype(wide)
        started = nn.initializers.constant(PACE_START)
        pace = jax.nn.softplus(blocks.Linear(d, p, draw_bias=started, name='pace')(x).astype(wide)) + LEAST_PACE
        decay = jnp.exp(lax.complex(-pace * rate, pace * frequency))
        size = jnp.sqrt(-jnp.expm1(-2 * pace * rate))
        written = blocks.Linear(d, 2 * p, name='write')(x).astype(wide)
        states = recurrence(decay, lax.complex(size * written[..., :p], size * written[..., p:]))
        seen = jnp.concatenate([states.real, states.imag], -1).astype(x.dtype)
        y = blocks.Linear(2 * p, d, name='read')(seen) + self.param('skip', nn.initializers.ones, (d,)) * x
        return blocks.Linear(d, d, name='out')(y * jax.nn.silu(blocks.Linear(d, d, name='gate')(x)))
