"""Deep4Net: its shrinking on short windows and its max pooling; braindecode's numbers are in test_networks.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jbench.models.classic.deep4net import Sizes, sizes
from jbench.models.layers import blocks, filters


@pytest.mark.parametrize(
    ('n_times', 'expected'),
    [
        (480, Sizes((10, 10, 10, 10), 3, 1)),
        (441, Sizes((10, 10, 10, 10), 3, 1)),
        (440, Sizes((10, 9, 9, 9), 2, 19)),
        (294, Sizes((10, 6, 6, 6), 2, 13)),
        (293, Sizes((10, 6, 6, 6), 1, 269)),
        (240, Sizes((10, 5, 5, 5), 1, 219)),
        (200, Sizes((10, 4, 4, 4), 1, 182)),
        (10, Sizes((10, 1, 1, 1), 1, 1)),
    ],
)
def test_short_windows_shrink_the_network(n_times: int, expected: Sizes) -> None:
    """Lengths as braindecode 1.8.1 has them."""
    assert sizes(n_times) == expected


@pytest.mark.slow
def test_the_first_of_equal_samples_takes_the_gradient() -> None:
    """As torch.nn.functional.max_pool1d does (values worked out by hand); the rest at the end takes none."""
    x = jnp.asarray([[1.0, 1, 1, 0, 2, 2, -1, -2, -1, 5]])
    weight = jnp.asarray([[10.0, 20, 30]])

    def score(x: jax.Array) -> jax.Array:
        return (blocks.max_pool(x, 3) * weight).sum()

    np.testing.assert_array_equal(blocks.max_pool(x, 3), [[1, 2, -1]])
    np.testing.assert_array_equal(jax.grad(score)(x), [[10, 0, 0, 0, 20, 0, 30, 0, 0, 0]])
    np.testing.assert_array_equal(jax.grad(lambda x: score(x.T.T))(x), jax.grad(score)(x))
    upright = jax.grad(lambda x: (blocks.max_pool(x, 3, axis=0) * weight.T).sum())(x.T)
    np.testing.assert_array_equal(upright.T, jax.grad(score)(x))


@pytest.mark.parametrize('n_times', [13, 40])  # few outputs and many
@pytest.mark.parametrize(('pad', 'dilation'), [((0, 0), 1), ((2, 3), 1), ((4, 0), 2)])
def test_conv_equals_xla(n_times: int, pad: tuple[int, int], dilation: int) -> None:
    """Value and both gradients, in both orders of axes."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, taps = jnp.asarray(rng.standard_normal((4, 3, n_times))), jnp.asarray(rng.standard_normal((5, 4, 3)))

        def plain(x: jax.Array, taps: jax.Array) -> jax.Array:
            return lax.conv_general_dilated(
                x, taps, (1,), [pad], rhs_dilation=(dilation,), dimension_numbers=('CNW', 'OIW', 'CNW')
            )

        def first(x: jax.Array, taps: jax.Array) -> jax.Array:
            return filters.conv(x, taps, pad, dilation)

        def last(x: jax.Array, taps: jax.Array) -> jax.Array:
            return filters.conv(x.transpose(1, 2, 0), taps, pad, dilation, last=True).transpose(2, 0, 1)

        weight = rng.standard_normal(jax.eval_shape(plain, x, taps).shape)

        @partial(jax.jit, static_argnums=0)
        def both(function: Callable[..., jax.Array], x: jax.Array, taps: jax.Array) -> Any:
            found, back = jax.vjp(function, x, taps)
            return found, back(jnp.asarray(weight))

        expected = both(plain, x, taps)
        for form in (first, last):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), both(form, x, taps), expected)
