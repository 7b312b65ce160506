"""Selective state spaces: diagonal linear systems in time whose pace each token sets, computed by a parallel scan.

h_t = a_t h_(t-1) + b_t, complex, from h_0 = 0. With a pace g_t = softplus(W x_t + w) + least for each state and token

    a_t = exp(g_t (-rate + i frequency)),    b_t = sqrt(1 - |a_t|^2) (V x_t),    y_t = Re(C h_t) + skip x_t

A pace near 0 keeps a state and writes nothing; a large one forgets it and writes the token. That the step depends on
the token is the selection of Mamba (Gu & Dao 2023, arXiv:2312.00752), whose output gate follows too; one system of many
inputs and outputs for all features, and its scan (`jax.lax.associative_scan`, Blelloch 1990), are those of S5 (Smith,
Warrington & Linderman 2023, arXiv:2208.04933); b_t is scaled as in linear recurrent units (Orvieto et al. 2023,
arXiv:2303.06349), so that white tokens give states of unit variance at any pace. Unlike Mamba's, V and C do not depend
on the token, and there is no convolution before.
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


def _combine(earlier: Pair, later: Pair) -> Pair:
    """Two steps h -> a h + b, one after the other, as one."""
    (a, b), (c, d) = earlier, later
    return a * c, c * b + d


@jax.custom_vjp
def recurrence(decay: jax.Array, write: jax.Array) -> jax.Array:
    """States h_t = decay_t h_(t-1) + write_t along the last axis but one, from zero: [..., l, p] of both.

    Depth log l. The gradient is the same recurrence backwards in time, and keeps nothing but decays and states.
    """
    return _scan(decay, write, backwards=False)


def _scan(decay: jax.Array, write: jax.Array, *, backwards: bool) -> jax.Array:
    states: jax.Array = lax.associative_scan(_combine, (decay, write), reverse=backwards, axis=decay.ndim - 2)[1]
    return states


def _forward(decay: jax.Array, write: jax.Array) -> tuple[jax.Array, Pair]:
    states = recurrence(decay, write)
    return states, (decay, states)


def _backward(kept: Pair, grad: jax.Array) -> Pair:
    decay, states = kept
    nothing = jnp.zeros_like(decay[..., :1, :])
    following = jnp.concatenate([decay[..., 1:, :], nothing], -2)
    of_write = _scan(following, grad, backwards=True)
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
