"""ShallowFBCSPNet against its literal convolutions; braindecode's numbers are in test_networks.py.

Also what it shares with Deep4Net and EEGConformer: the merged convolutions, the pools, features as last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jbench.models.classic.shallow_fbcsp_net import shallow_fbcsp_net
from jbench.models.layers import blocks, filters
from jbench.models.model import Batch, Model
from jbench.models.torch_weights import Variables
from jbench.spec.model import Signal

C, T, N = 3, 130, 2


def build(axis_name: str | None = None) -> Model:
    return shallow_fbcsp_net(Signal(n_chans=C, n_times=T, sfreq=120.0), N, axis_name=axis_name)


def windows(rows: int, c: int = C, t: int = T) -> Batch:
    """Random windows with channels of different size and offset; the second row is padding."""
    rng = np.random.default_rng([rows, c, t])
    x = rng.standard_normal((rows, c, t)) * rng.uniform(0.3, 2, (c, 1)) + rng.standard_normal((c, 1))
    return {'x': jnp.asarray(x), 'mask': jnp.arange(rows) != 1}


def lively(model: Model) -> Variables:
    """Variables with nothing at its initial value."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda v: jnp.asarray(v + 0.3 * rng.uniform(-1, 1, v.shape)), model.init(jax.random.key(0)))


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Without optimisation, as it runs once."""
    return jax.jit(function, compiler_options={'xla_backend_optimization_level': 0})


def close(actual: Any, expected: Any, rtol: float) -> None:
    """Every leaf within rtol of the largest value of the expected leaf, or of 1 (some gradients are zero)."""

    def leaf(path: Any, a: Any, e: Any) -> None:
        scale = max(float(np.abs(e).max()), 1)
        np.testing.assert_allclose(a, e, rtol=0, atol=rtol * scale, err_msg=jax.tree_util.keystr(path))

    jax.tree_util.tree_map_with_path(leaf, actual, expected)


def literal(variables: Variables, batch: Batch, train: bool) -> tuple[jax.Array, Any]:
    """Both convolutions with their tensors [b, f, c, t], a batch norm over the valid rows, overlapping windows."""
    p, (mean, var) = variables['params'], (variables['batch_stats']['bn'][k] for k in ('mean', 'var'))
    h = lax.conv_general_dilated(batch['x'][:, None], p['temporal'][:, None, None], (1, 1), 'VALID')
    h = h + p['temporal_bias'][:, None, None]
    h = lax.conv_general_dilated(h, p['spatial'][..., None], (1, 1), 'VALID')[:, :, 0]
    state = variables['batch_stats']
    if train:
        valid = h[np.asarray(batch['mask'])]
        new, n = valid.var((0, 2)), valid.size / valid.shape[1]
        state = {'bn': {'mean': 0.9 * mean + 0.1 * valid.mean((0, 2)), 'var': 0.9 * var + 0.1 * new * n / (n - 1)}}
        mean, var = valid.mean((0, 2)), new
    scale, bias = (p['bn'][k][:, None] for k in ('scale', 'bias'))
    h = (h - mean[:, None]) / jnp.sqrt(var + 1e-5)[:, None] * scale + bias
    power = lax.reduce_window(h**2, 0.0, lax.add, (1, 1, 75), (1, 1, 15), 'VALID') / 75
    h = jnp.log(jnp.clip(power, 1e-6))
    return jnp.einsum('bft,nft->bn', h, p['linear']) + p['linear_bias'], state


@pytest.mark.slow
def test_equals_the_literal_network() -> None:
    """Value, gradient and running statistics; without dropout, with a row of padding."""
    with jax.enable_x64(True):
        model, batch = build(), windows(5)
        variables, valid = lively(model), np.asarray(batch['mask'])

        def outcome(params: Any, train: bool, plain: bool) -> Any:
            v = variables | {'params': params}
            logits, state, *_ = literal(v, batch, train) if plain else model.apply(v, batch, train=train, key=None)
            return jnp.sin(logits[valid]).sum(), (logits[valid], state)

        both = jax.value_and_grad(outcome, has_aux=True)
        for train in (True, False):
            ours, plain = (
                compiled(lambda params, how=(train, plain): both(params, *how))(variables['params'])
                for plain in (False, True)
            )
            close(ours, plain, 1e-12)


@pytest.mark.slow
def test_silence_is_a_constant_without_gradient() -> None:
    """Windows of zeros: the power is 0 at the first step, which counts as the smallest, and nothing pulls."""
    model = build()
    variables, batch = model.init(jax.random.key(0)), {'x': jnp.zeros((4, C, T)), 'mask': jnp.ones(4, bool)}

    def loss(params: Any) -> jax.Array:
        return model.apply(variables | {'params': params}, batch, train=True, key=None)[0].sum()

    value, grads = compiled(jax.value_and_grad(loss))(variables['params'])
    expected = np.log(1e-6) * np.asarray(variables['params']['linear']).sum((1, 2))
    np.testing.assert_allclose(value, 4 * expected.sum(), rtol=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))
    np.testing.assert_array_equal(grads['spatial'], 0)


@pytest.mark.parametrize('n_times', [25, 97, 128])
def test_both_ways_to_convolve_windows_are_equal(monkeypatch: pytest.MonkeyPatch, n_times: int) -> None:
    """By frequencies and by taps: result and gradient, also for lengths that FFTs do not like."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(n_times)
        x, temporal, spatial = (rng.standard_normal(s) for s in ((2, 3, n_times), (4, 25), (5, 4, 3)))
        weight = rng.standard_normal((2, n_times - 24, 5))

        def score(temporal: jax.Array, spatial: jax.Array) -> jax.Array:
            return (filters.spatiotemporal(jnp.asarray(x), temporal, spatial) * weight).sum()

        found = []
        for many in (0, 10**9):
            monkeypatch.setattr(filters, 'MANY', many)
            found.append(jax.jit(jax.value_and_grad(lambda *v: score(*v), argnums=(0, 1)))(temporal, spatial))
        close(*found, 1e-12)
        expected = np.einsum(
            'gfc,fk,bcsk->bsg', spatial, temporal, np.lib.stride_tricks.sliding_window_view(x, 25, axis=2)
        )
        np.testing.assert_allclose(found[0][0], (expected * weight).sum(), rtol=1e-12)


@pytest.mark.parametrize('axis', [0, 1, 2])
def test_pools_equal_windows(axis: int) -> None:
    rng = np.random.default_rng(axis)
    x = np.moveaxis(rng.standard_normal((3, 4, 47)), -1, axis)

    def literal_pool(width: int, stride: int, reduce: Any) -> np.ndarray:
        seen = np.lib.stride_tricks.sliding_window_view(x, width, axis=axis)
        return reduce(np.take(seen, range(0, seen.shape[axis], stride), axis=axis), -1)

    for width, stride in ((15, 5), (6, None), (7, 7), (1, 1)):
        pool = partial(blocks.average_pool, width=width, stride=stride, axis=axis)
        found = jax.jit(pool)(jnp.asarray(x))
        np.testing.assert_allclose(found, literal_pool(width, stride or width, np.mean), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(
        blocks.max_pool(jnp.asarray(x), 3, axis=axis), literal_pool(3, 3, np.max).astype(np.float32)
    )


@pytest.mark.slow
def test_features_last_is_the_same_norm() -> None:
    """And a bias given to the norm is a bias added before it."""
    rng = np.random.default_rng(1)
    x, bias = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in ((4, 5, 7), (4,)))
    mask = jnp.arange(5) < 3
    for train in (True, False):
        one, other = blocks.BatchNorm(4), blocks.BatchNorm(4, last=True)
        variables = one.init(jax.random.key(0), x, mask, train=False)
        state = {'mean': bias, 'var': jnp.full(4, 2.0)}
        how: dict[str, Any] = {'train': train, 'mutable': ['batch_stats']}
        added = one.apply(variables | {'batch_stats': state}, x + bias[:, None, None], mask, **how)
        given = one.apply(variables | {'batch_stats': state}, x, mask, bias=bias, **how)
        last, state_last = other.apply(variables | {'batch_stats': state}, x.transpose(1, 2, 0), mask, bias=bias, **how)
        close(given, added, 1e-6)
        close((last.transpose(2, 0, 1), state_last), added, 1e-6)


@pytest.mark.slow
def test_devices_compute_one_batch() -> None:
    """Halves of a batch on two places of a mapped axis: logits, dropout, statistics, added gradients of the whole."""
    whole, split = build(), build(axis_name='d')
    variables, batch, key = lively(whole), windows(6), jax.random.key(1)
    batch = batch | {'x': batch['x'].astype(jnp.float32)}
    halves = {k: v.reshape(2, 3, *v.shape[1:]) for k, v in batch.items()}

    def run(model: Model, batch: Batch) -> Any:
        def loss(params: Any) -> Any:
            logits, state, _ = model.apply(variables | {'params': params}, batch, train=True, key=key)
            return jnp.sin(logits).sum(), (logits, state)

        return jax.grad(loss, has_aux=True)(variables['params'])

    grads, (logits, state) = compiled(lambda b: run(whole, b))(batch)
    each, (parts, states) = compiled(jax.vmap(lambda b: run(split, b), axis_name='d'))(halves)
    close(parts.reshape(6, N), logits, 1e-5)
    close(jax.tree.map(lambda a: a[1], states), state, 1e-5)
    close(jax.tree.map(lambda a: a.sum(0), each), grads, 1e-4)


@pytest.mark.parametrize('rate', [0.5, 0.25, 0.375, 0.3, 0.1])
def test_dropout_keeps_as_many_as_it_should(rate: float) -> None:
    """Whether the rate is drawn from few bits or not; values that share a word of random bits are independent."""
    shape = (40, 50, 33)
    keep = np.asarray(blocks.kept(jax.random.key(0), rate, shape, None, 0)).astype(float)
    n = keep.size
    assert abs(keep.mean() - (1 - rate)) < 5 * np.sqrt(rate * (1 - rate) / n)
    centred = (keep - (1 - rate)).ravel() / np.sqrt(rate * (1 - rate))
    words = -(-n // {0.5: 32, 0.25: 16, 0.375: 8}.get(rate, 2))
    for lag in (1, words, words // 2):
        assert abs((centred[lag:] * centred[:-lag]).mean()) < 5 / np.sqrt(n - lag), lag
    dropped = np.asarray(blocks.dropout(jnp.ones(shape), rate, jax.random.key(0), batch_axis=0))
    np.testing.assert_allclose(dropped, keep / (1 - rate), rtol=1e-6)


def test_a_rate_of_no_few_bits_is_exact_enough() -> None:
    """Eight bits would drop 0.1016 of the values."""
    n, rate = 2**22, 0.1
    keep = np.asarray(compiled(lambda key: blocks.kept(key, rate, (n,), None, 0))(jax.random.key(0)))
    assert abs(keep.mean() - (1 - rate)) < 5 * np.sqrt(rate * (1 - rate) / n)
