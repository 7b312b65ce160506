"""BDTCN: its convolution and the whole network against the plain ones, what it drops, and how much a processor
computes at once. Equality with braindecode: test_networks.py."""

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
from jbench.spec.model import Signal

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


def test_parts_of_a_convolution_are_added_in_float32() -> None:
    """In bfloat16, too: all that is lost is the rounding of the sum."""
    rng = np.random.default_rng(0)
    x, taps = (jnp.asarray(rng.standard_normal(shape), jnp.bfloat16) for shape in ((30, 200), (30, 30, 5)))
    found = jax.jit(bdtcn.dilated_conv, static_argnums=2)(x, taps, 2)
    exact = bdtcn.dilated_conv(x.astype(jnp.float32), taps.astype(jnp.float32), 2)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), exact, rtol=2**-8, atol=1e-5)


def plain_network(params: Any, x: jax.Array) -> jax.Array:
    """Logits of x [B, C, T]: causal convolutions with zeros before them, as the module's docstring says."""
    x = x.swapaxes(1, 2)
    for i, dilation in enumerate(bdtcn.DILATIONS):
        block, h = params[f'block{i}'], x
        for name in ('conv1', 'conv2'):
            conv = block[name]
            taps = conv['direction'] * (conv['norm'] / jnp.sqrt((conv['direction'] ** 2).sum((1, 2))))[:, None, None]
            h = jax.nn.relu(filters.conv(h, taps, (4 * dilation, 0), dilation, last=True) + conv['bias'])
        if 'downsample' in block:
            x = x @ block['downsample'].T + block['downsample_bias']
        x = jax.nn.relu(h + x)
    return (x @ params['linear']['weight'].T + params['linear']['bias'])[:, 56:].mean(1)


@pytest.mark.slow
@pytest.mark.parametrize(('n_chans', 'n_times'), [(3, 90), (30, 58)])
def test_network_is_the_plain_one(n_chans: int, n_times: int) -> None:
    """Of 30 channels, too, where the first block adds its input as it is, and of the shortest windows."""
    model = bdtcn.bdtcn(Signal(n_chans=n_chans, n_times=n_times, sfreq=120.0), 2)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        drawn = jax.tree.map(
            lambda a: jnp.asarray(rng.normal(0.2, 0.3, a.shape)), jax.eval_shape(model.init, jax.random.key(0))
        )
        x = jnp.asarray(rng.standard_normal((4, n_chans, n_times)))
        found = model.apply(drawn, {'x': x, 'mask': jnp.ones(4, bool)}, train=False, key=None).outputs
        np.testing.assert_allclose(found, plain_network(drawn['params'], x), rtol=1e-10)


@pytest.mark.parametrize(('n_times', 'at_once'), [(58, 132), (480, 16), (20000, 1)])
def test_longer_windows_are_fewer_at_once(n_times: int, at_once: int) -> None:
    assert bdtcn.bdtcn(Signal(n_chans=3, n_times=n_times, sfreq=120.0), 2).at_once == at_once


@pytest.mark.slow
def test_dropout_takes_whole_feature_maps() -> None:
    x = jnp.arange(1.0, 1 + 30 * 28 * 64).reshape(30, 28 * 64)
    factor = (bdtcn.feature_dropout(x, 64, 0.5, jax.random.key(0), None) / x).reshape(30, 28, 64)
    np.testing.assert_array_equal(factor, jnp.broadcast_to(factor[:, :1], factor.shape))
    assert set(np.unique(factor)) == {0.0, 2.0}
    assert abs(float(factor.mean()) - 1) < 0.1
    assert bdtcn.feature_dropout(x, 64, 0.5, None, None) is x
