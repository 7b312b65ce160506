"""BDTCN: its convolution against the plain one, and what it drops. Equality with braindecode: test_networks.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.models.classic import bdtcn
from jbench.models.layers import filters

F, G, T, B = 3, 2, 64, 5


@pytest.mark.parametrize('dilation', [1, 2, 4])
def test_convolution_is_the_plain_one(dilation: int) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(dilation)
        x, taps = jnp.asarray(rng.standard_normal((F, T, B))), jnp.asarray(rng.standard_normal((G, F, 5)))

        def shifted(x: jax.Array, taps: jax.Array) -> jax.Array:
            return bdtcn.dilated_conv(x.reshape(F, -1), taps, dilation * B).reshape(G, -1, B)

        def plain(x: jax.Array, taps: jax.Array) -> jax.Array:
            return filters.conv(x.swapaxes(1, 2), taps, dilation=dilation).swapaxes(1, 2)

        back = jnp.asarray(rng.standard_normal((G, T - 4 * dilation, B)))

        @partial(jax.jit, static_argnums=0)
        def both(function: Callable[..., jax.Array], x: jax.Array, taps: jax.Array) -> Any:
            found, pull = jax.vjp(function, x, taps)
            return found, *pull(back)

        for a, b in zip(both(shifted, x, taps), both(plain, x, taps), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_dropout_takes_whole_feature_maps() -> None:
    x = jnp.arange(1.0, 1 + 30 * 28 * 64).reshape(30, 28 * 64)
    factor = (bdtcn.feature_dropout(x, 64, 0.5, jax.random.key(0), None) / x).reshape(30, 28, 64)
    np.testing.assert_array_equal(factor, jnp.broadcast_to(factor[:, :1], factor.shape))
    assert set(np.unique(factor)) == {0.0, 2.0}
    assert abs(float(factor.mean()) - 1) < 0.1
    assert bdtcn.feature_dropout(x, 64, 0.5, None, None) is x
