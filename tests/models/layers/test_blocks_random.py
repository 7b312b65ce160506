"""Random words of dropout are those of jax, in one pass."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from each import each

from jbench.models.layers import blocks


@pytest.mark.slow
@each('n', [0, 1, 2, 7, 65_537])
def test_words_are_those_of_jax(n):
    for key in (jax.random.key(7), jax.random.key_data(jax.random.key(8)), jax.random.fold_in(jax.random.key(9), 3)):
        found = jax.jit(blocks.random_words, static_argnums=1)(key, n)
        np.testing.assert_array_equal(found, jax.random.bits(key, (n,), jnp.uint32))


@pytest.mark.slow
def test_words_of_several_keys_at_once():
    keys = jax.random.split(jax.random.key(1), 3)
    found = jax.vmap(lambda key: blocks.random_words(key, 50))(keys)
    np.testing.assert_array_equal(found, [jax.random.bits(key, (50,), jnp.uint32) for key in keys])
