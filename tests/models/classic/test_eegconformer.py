"""EEGConformer: attention against its plain form, tokens, reference_init statistics; more in test_networks.py."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.models.classic.eegconformer import eegconformer, n_tokens
from jbench.models.layers import attention, blocks
from jbench.spec.model import Signal


def plain_attention(q: jax.Array, k: jax.Array, v: jax.Array, kept: jax.Array | None, rate: float) -> jax.Array:
    """softmax, then dropout, then the mean of the values, as the paper writes them."""
    chances = jax.nn.softmax(jnp.einsum('bhsk,bhsq->bhkq', k, q) / math.sqrt(q.shape[2]), axis=2)
    if kept is not None:
        chances = jnp.where(kept, chances / (1 - rate), 0)
    return jnp.einsum('bhkq,bhsk->bhsq', chances, v)


@pytest.mark.slow
@pytest.mark.parametrize('drops', [True, False])
def test_attention_equals_its_plain_form(drops: bool) -> None:
    """Value and gradients; scores of hundreds do not overflow."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        q, k, v, weight = (jnp.asarray(rng.standard_normal((2, 3, 4, 6))) for _ in range(4))
        kept = jnp.asarray(rng.random((2, 3, 6, 6)) < 0.6) if drops else None
        for size in (1.0, 30.0):
            found, back = jax.vjp(lambda *a: attention.attend(*a, kept, 0.4), size * q, size * k, v)
            expected, back_2 = jax.vjp(lambda *a: plain_attention(*a, kept, 0.4), size * q, size * k, v)
            np.testing.assert_allclose(found, expected, atol=1e-12)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11), back(weight), back_2(weight))


def test_gelu_is_the_exact_one() -> None:
    with jax.enable_x64(True):
        x = jnp.linspace(-9, 9, 1001)
        np.testing.assert_allclose(blocks.gelu(x), jax.nn.gelu(x, approximate=False), atol=1e-15)


def test_tokens() -> None:
    assert [n_tokens(t) for t in (99, 113, 114, 200, 240, 480)] == [1, 1, 2, 7, 10, 26]


@pytest.mark.slow
def test_polluted_statistics_are_those_of_ones() -> None:
    """What one pass over ones in training leaves (braindecode's constructor); the drawn weights are the same."""
    signal = Signal(n_chans=3, n_times=120, sfreq=120.0)
    clean, reference_init = (eegconformer(signal, 2, reference_init=p) for p in (False, True))
    batch = {'x': jnp.ones((1, 3, 120)), 'mask': jnp.ones(1, bool)}

    def draw(key: jax.Array) -> Any:
        variables = clean.init(key)
        return variables, clean.apply(variables, batch, train=True, key=None)[1], reference_init.init(key)

    once = jax.jit(draw, compiler_options={'xla_backend_optimization_level': 0})
    variables, state, found = once(jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, found['params'], variables['params'])
    np.testing.assert_array_equal(variables['batch_stats']['bn']['mean'], 0)
    np.testing.assert_allclose(found['batch_stats']['bn']['mean'], state['bn']['mean'], atol=1e-6)
    np.testing.assert_allclose(found['batch_stats']['bn']['var'], 0.9, rtol=1e-6)
    assert np.abs(found['batch_stats']['bn']['mean']).max() > 0.005
