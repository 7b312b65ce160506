"""Layers in a row and as a loop: the same values, gradients and dropout; what is computed again is not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import close, compiled

from jbench.models.layers import blocks
from jbench.models.layers.deep import LIMIT, in_turn, n_again, with_mean

DEPTH = 6


class Layer(nn.Module):
    """A wide layer with dropout; its first weights say which it is."""

    which: int

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        weight = self.param('weight', nn.initializers.normal(0.1 * (self.which + 1)), (4, 256))
        return x + blocks.dropout(jnp.tanh(x @ weight), 0.5, key, batch_axis=0) @ weight.T


class Row(nn.Module):
    again: int

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        return in_turn(self, lambda i, **place: Layer(i, **place), x, blocks.split(key, DEPTH), again=self.again)


@pytest.mark.slow
@pytest.mark.parametrize('again', [2, DEPTH])
@pytest.mark.parametrize('key', [None, jax.random.key(3)], ids=['still', 'dropout'])
def test_a_loop_is_the_row(key: jax.Array | None, again: int) -> None:
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    variables = compiled(Row(again=0).init)(jax.random.key(0), x, None)
    jax.tree.map(np.testing.assert_array_equal, compiled(Row(again).init)(jax.random.key(0), x, None), variables)
    assert list(variables['params']) == [f'layer_{i}' for i in range(DEPTH)]

    def answer(again: int) -> tuple[jax.Array, dict]:
        return compiled(jax.value_and_grad(lambda v: (Row(again).apply(v, x, key) ** 2).sum()))(variables)

    (one, grads), (two, others) = answer(0), answer(again)
    close(two, one, 1e-6)
    jax.tree.map(lambda a, b: close(b, a, 1e-5), grads, others)


@pytest.mark.slow
def test_what_is_computed_again_is_not_kept() -> None:
    x = jax.ShapeDtypeStruct((2048, 4), jnp.float32)
    variables = jax.eval_shape(Row(again=0).init, jax.random.key(0), x, None)

    def needed(again: int) -> int:
        gradient = jax.jit(jax.grad(lambda v, x: (Row(again).apply(v, x, None) ** 2).sum()))
        return gradient.lower(variables, x).compile().memory_analysis().temp_size_in_bytes

    one = 2048 * 256 * 4  # of the values of a layer
    assert needed(again=0) == needed(again=1)  # why `n_again` never says one
    assert needed(again=0) > (DEPTH - 1) * one > needed(again=3) > 3.5 * one > needed(again=DEPTH)


def test_no_more_layers_are_computed_again_than_it_takes() -> None:
    sizes = [LIMIT / fitting for fitting in (22.5, 21.5, 20.5, 11.5, 0.5)]
    assert [n_again(size, 21, rest=size, train=True, remat=None) for size in sizes] == [0, 0, 2, 11, 21]
    assert n_again(LIMIT / 10, 12, rest=LIMIT / 2, train=True, remat=None) == 7
    assert [n_again(LIMIT, 21, rest=0, train=True, remat=remat) for remat in (None, False, True)] == [20, 0, 21]
    assert [n_again(LIMIT, 21, rest=0, train=False, remat=remat) for remat in (None, False, True)] == [0, 0, 0]


@pytest.mark.slow
def test_a_mean_needs_no_product_for_each_token() -> None:
    """Whoever reads the mean alone pays for one product a window."""
    weight = jnp.asarray(np.random.default_rng(0).standard_normal((16, 8)), jnp.float32)
    x, h = (np.random.default_rng(1).standard_normal((3, 50, n)).astype(np.float32) for n in (8, 16))

    def both(x: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        return with_mean(lambda h: h @ weight + 1, x, h, mean_from=2)

    def flops(function: Callable[..., Any]) -> float:
        return jax.jit(function).lower(x, h).compile().cost_analysis()['flops']

    tokens, mean = both(x, h)
    close(mean, tokens[:, 2:].mean(1), 1e-6)
    assert flops(both) > 2 * 3 * 50 * 16 * 8 > 3 * flops(lambda x, h: both(x, h)[1])
