"""EEGNet against its literal convolutions, and what it is made of (test_networks.py: against braindecode)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jbench.models.classic.eegnet import eegnet
from jbench.models.layers import blocks, filters, spatial_first
from jbench.models.model import Batch, Model, load, save
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

FLOOR = 0.05  # a leaf with smaller values than this is compared on this scale


def build(c: int, t: int, n: int, axis_name: str | None = None) -> Model:
    return eegnet(Signal(n_chans=c, n_times=t, sfreq=120.0), n, axis_name=axis_name)


def batch_of(x: np.ndarray, mask: np.ndarray | None = None) -> Batch:
    return {'x': jnp.asarray(x), 'mask': jnp.ones(len(x), bool) if mask is None else jnp.asarray(mask)}


def close(actual: Any, expected: Any, rtol: float) -> None:
    """Every leaf within rtol of the largest value of the expected leaf (some gradients are zero by algebra: FLOOR)."""

    def leaf(path: Any, a: Any, e: Any) -> None:
        scale = max(float(np.abs(e).max()), FLOOR)
        np.testing.assert_allclose(a, e, rtol=0, atol=rtol * scale, err_msg=jax.tree_util.keystr(path))

    jax.tree_util.tree_map_with_path(leaf, actual, expected)


@cache
def small_model() -> tuple[Model, Callable[..., Any]]:
    """A small network, and its compiled `apply`, for tests of what any network must do."""
    model = build(3, 120, 2)
    return model, jax.jit(model.apply, static_argnames='train')


def lively(model: Model, seed: int = 0) -> Variables:
    """Variables with nothing at its initial value; spatial filters with norms on both sides of the limit."""
    variables = jax.jit(model.init)(jax.random.key(seed))
    rng = np.random.default_rng(seed)
    variables = jax.tree.map(lambda v: np.asarray(v) + 0.2 * rng.uniform(-1, 1, v.shape).astype(v.dtype), variables)
    spatial = variables['params']['spatial']
    goal = np.linspace(0.5, 2, len(spatial), dtype=spatial.dtype)[:, None]
    variables['params']['spatial'] = spatial * goal / np.linalg.norm(spatial, axis=1, keepdims=True)
    return jax.tree.map(jnp.asarray, variables)


def literal(variables: Variables, batch: Batch, *, train: bool) -> tuple[jax.Array, Any]:
    """The network as the paper and braindecode write it: convolutions in their order, every tensor built, no mask."""
    p, state, new = variables['params'], variables['batch_stats'], {}

    def conv(x: jax.Array, w: jax.Array, pad: int, groups: int = 1) -> jax.Array:
        return lax.conv_general_dilated(x, w, (1, 1), [(0, 0), (pad, pad)], feature_group_count=groups)

    def norm(x: jax.Array, name: str) -> jax.Array:
        mean, var = state[name]['mean'], state[name]['var']
        if train:
            n = x.size / x.shape[1]
            new[name] = {'mean': 0.99 * mean + 0.01 * x.mean((0, 2, 3)), 'var': 0.99 * var}
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            new[name]['var'] += 0.01 * var * n / (n - 1)
        shape = (1, -1, 1, 1)
        x = (x - mean.reshape(shape)) / jnp.sqrt(var + 1e-3).reshape(shape)
        return x * p[name]['scale'].reshape(shape) + p[name]['bias'].reshape(shape)

    def pool(x: jax.Array, width: int) -> jax.Array:
        return lax.reduce_window(x, 0.0, lax.add, (1, 1, 1, width), (1, 1, 1, width), 'VALID') / width

    norms = jnp.linalg.norm(p['spatial'], axis=1, keepdims=True)
    spatial = jnp.where(norms > 1, p['spatial'] / (norms + 1e-7), p['spatial'])
    h = norm(conv(batch['x'][:, None], p['temporal'][:, None, None], 32), 'bn_temporal')
    h = norm(conv(h, spatial[:, None, :, None], 0, groups=8), 'bn_spatial')
    h = pool(jax.nn.elu(h), 4)
    h = conv(conv(h, p['depth'][:, None, None], 8, groups=16), p['point'][:, :, None, None], 0)
    h = pool(jax.nn.elu(norm(h, 'bn_separable')), 8)
    return jnp.einsum('bft,nft->bn', h[:, :, 0], p['linear']) + p['linear_bias'], new if train else state


def value_and_grad(apply: Callable[..., Any], **kw: Any) -> Callable[[Variables, Batch, np.ndarray], Any]:
    """Compiled (variables, batch, y) -> ((mean loss over valid rows, (logits, new state)), gradient)."""

    @jax.jit
    def compute(variables: Variables, batch: Batch, y: np.ndarray) -> Any:
        def loss(params: Any) -> Any:
            logits, state, *_ = apply({**variables, 'params': params}, batch, train=True, **kw)
            weight = batch['mask'].astype(logits.dtype)
            losses = -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y] * weight
            return losses.sum() / weight.sum(), (logits, state)

        return jax.value_and_grad(loss, has_aux=True)(variables['params'])

    return compute


@pytest.mark.parametrize(
    ('c', 't'), [pytest.param(1, 27, marks=pytest.mark.slow), pytest.param(3, 130, marks=pytest.mark.long)]
)
def test_equals_the_literal_convolutions(c: int, t: int) -> None:
    """Value, gradient, running statistics and evaluation, in float32 and float64.

    Without offsets, and with 100 sd on all channels plus some 10 sd on each.
    """
    rng, model = np.random.default_rng(c), build(c, t, 3)
    narrow = lively(model)
    y, noise, own = rng.integers(0, 3, 5), rng.standard_normal((5, c, t)), rng.standard_normal((1, c, 1))
    ours, plain = both_modes(model.apply, key=None), both_modes(literal)
    for offset in (0.0, 100.0):
        x = (noise + offset + 0.1 * offset * own).astype(np.float32)
        with jax.enable_x64(True):
            wide = jax.tree.map(lambda v: v.astype(float), narrow)
            batch = batch_of(x.astype(float))
            truth = jax.tree.map(np.asarray, plain(wide, batch, y))
            close(ours(wide, batch, y), truth, 1e-10)
        got, usual = (compute(narrow, batch_of(x), y) for compute in (ours, plain))
        if offset == 0:
            close(got, truth, 1e-5)
        # With offsets float32 itself is the limit: be no further from the float64 truth than the literal form is.
        assert error(got, truth) < max(1.5 * error(usual, truth), 1e-5)


def both_modes(apply: Callable[..., Any], **kw: Any) -> Callable[[Variables, Batch, np.ndarray], Any]:
    """Compiled (variables, batch, y) -> (training value and gradient, evaluation logits)."""
    compute = value_and_grad(apply, **kw)

    def both(variables: Variables, batch: Batch, y: np.ndarray) -> Any:
        return compute(variables, batch, y), apply(variables, batch, train=False, **kw)[0]

    return jax.jit(both, compiler_options={'xla_backend_optimization_level': 0})  # compiles in half the time


def error(actual: Any, truth: Any) -> float:
    """Largest deviation of any leaf, relative to that leaf's largest value."""
    pairs = zip(jax.tree.leaves(actual), jax.tree.leaves(truth), strict=True)
    return max(float(np.abs(np.asarray(a, float) - t).max() / max(np.abs(t).max(), FLOOR)) for a, t in pairs)


@jax.jit
def lag_moments(x: jax.Array, mask: jax.Array) -> Any:
    """Of windows [B, C, T] and the filters of EEGNet."""
    return spatial_first.lag_moments(spatial_first.lag_sums(x, 64, (32, 32)), mask, x.shape[1], 64, (32, 32))


@pytest.mark.parametrize(('c', 't'), [(1, 27), (2, 70), (3, 600)])
def test_lag_moments_equal_windows(c: int, t: int) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(t)
        x, mask = rng.standard_normal((4, c, t)) + 50, np.array([True, False, True, True])
        mean, covariance, count = lag_moments(x, mask)
        padded = np.pad(x[mask], ((0, 0), (0, 0), (32, 32)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, 64, axis=-1).reshape(-1, 64)
        assert count == len(windows)
        np.testing.assert_allclose(mean, windows.mean(0), rtol=1e-12)
        expected = np.cov(windows, rowvar=False, bias=True)
        np.testing.assert_allclose(covariance, expected, rtol=0, atol=1e-12 * expected.max())


@pytest.mark.slow
def test_moments_carried_in_the_batch_change_nothing() -> None:
    """Value, gradient and running statistics; windows with very different offsets, and a row of padding."""
    model = build(3, 130, 2)
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((6, 3, 130)) + 50 * rng.standard_normal((6, 1, 1))).astype(np.float32)
    batch, y = batch_of(x, np.arange(6) < 5), np.arange(6) % 2
    precompute = jax.jit(model.precompute)
    alone = [precompute(batch['x'][i : i + 1]) for i in range(6)]
    carried = batch | {k: jnp.concatenate([a[k] for a in alone]) for k in alone[0]}
    variables, compute = lively(model), value_and_grad(model.apply, key=None)
    close(compute(variables, carried, y), compute(variables, batch, y), 1e-5)
    wrong = carried | {'lag_products': 1.1 * carried['lag_products']}
    with pytest.raises(AssertionError):
        close(compute(variables, wrong, y), compute(variables, batch, y), 1e-5)


@pytest.mark.parametrize(('c', 't'), [(8, 480), (3, 121), (64, 240)])
def test_moments_of_a_window_do_not_depend_on_its_batch(c: int, t: int) -> None:
    """To the last bit: a run that goes on computes them in other batches than the run that was stopped."""
    rng, compute = np.random.default_rng(c), jax.jit(build(c, t, 2).precompute)
    x = (rng.standard_normal((64, c, t)) * rng.uniform(0.1, 10, (64, 1, 1))).astype(np.float32)
    order = rng.permutation(64)
    for k, found in compute(x[order]).items():
        np.testing.assert_array_equal(found, np.asarray(compute(x)[k])[order])


def test_lag_moments_bear_offsets() -> None:
    """Float32, all data 100 sd from zero: as accurate as without offset (not centred: 10 to 100 times worse)."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((4, 2, 480)) + 100).astype(np.float32)
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (32, 32)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 64, axis=-1).reshape(-1, 64)
    expected = np.cov(windows, rowvar=False, bias=True)
    _, covariance, _ = lag_moments(x, np.ones(4, bool))
    np.testing.assert_allclose(covariance, expected, rtol=0, atol=1e-6 * expected.max())
    blind = np.diff(rng.standard_normal(65))  # a filter that does not see the offset, but for the edges
    np.testing.assert_allclose(blind @ np.asarray(covariance, float) @ blind, blind @ expected @ blind, rtol=1e-5)


@pytest.mark.parametrize(('t', 'k', 'pad', 'block'), [(120, 64, 32, 64), (27, 64, 32, 64), (10, 3, 0, 4), (9, 7, 3, 2)])
def test_fir_is_a_cross_correlation(t: int, k: int, pad: int, block: int) -> None:
    rng = np.random.default_rng(0)
    x, taps = rng.standard_normal((2, 3, t)), rng.standard_normal((2, k))
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
    expected = [[np.correlate(row, taps[f], 'valid') for row in padded[f]] for f in range(2)]
    close(filters.fir(jnp.asarray(x), jnp.asarray(taps), (pad, pad), block), np.array(expected), 1e-5)


@pytest.mark.slow
def test_norm_limit_and_its_gradient() -> None:
    """Beyond the limit the filter is on the sphere and the gradient across it; a zero filter has a finite one."""
    w = jnp.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(blocks.max_norm(w, 1.0), [[0.6, 0.8], [0.3, 0.4], [0, 0]], rtol=1e-6)
    pull = jnp.array([[1.0, 2.0]] * 3)
    grad = jax.grad(lambda w: jnp.sum(blocks.max_norm(w, 1.0) * pull))(w)
    across = (pull[0] - jnp.dot(pull[0], w[0] / 5) * w[0] / 5) / 5
    np.testing.assert_allclose(grad, jnp.stack([across, pull[1], pull[2]]), atol=1e-6)


@pytest.mark.slow
def test_jit_traces_once_and_changes_nothing() -> None:
    """A full and a padded batch train by the same program; evaluation without jit gives what it gives with it."""
    (model, compiled), rng = small_model(), np.random.default_rng(2)
    variables, key = lively(model), jax.random.key(3)
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def apply(variables: Variables, batch: Batch, key: jax.Array) -> Any:
        return model.apply(variables, batch, train=True, key=key)

    for rows in (4, 3):
        batch = batch_of(rng.standard_normal((4, 3, 120)).astype(np.float32), np.arange(4) < rows)
        apply(variables, batch, key)
    evaluate = {'train': False, 'key': None}
    close(compiled(variables, batch, **evaluate), model.apply(variables, batch, **evaluate), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('train', [False, True])
def test_order_of_the_batch_does_not_matter(train: bool) -> None:
    (model, apply), rng = small_model(), np.random.default_rng(4)
    variables, x, order = lively(model), rng.standard_normal((4, 3, 120)).astype(np.float32), np.array([2, 0, 3, 1])
    logits, state, features = apply(variables, batch_of(x), train=train, key=None)
    expected = logits[order], state, {name: a[order] for name, a in features.items()}
    close(tuple(apply(variables, batch_of(x[order]), train=train, key=None)), expected, 1e-5)


@pytest.mark.slow
def test_dropout_keeps_the_mean_and_channels_whole() -> None:
    kept = blocks.dropout(jnp.ones((200, 200)), 0.25, jax.random.key(0))
    assert set(np.unique(kept)) == {np.float32(0), np.float32(4 / 3)}
    assert abs(float((kept > 0).mean()) - 0.75) < 0.01
    whole = blocks.dropout(jnp.ones((30, 40, 5)), 0.3, jax.random.key(0), channels=True)
    assert (whole == whole[..., :1]).all()
    assert abs(float((whole > 0).mean()) - 0.7) < 0.05


def test_weights_round_trip(tmp_path: Path) -> None:
    model, _ = small_model()
    variables = lively(model)
    save(model, variables, tmp_path / 'w.safetensors')
    assert [file.name for file in tmp_path.iterdir()] == ['w.safetensors']
    chex.assert_trees_all_equal(load(model, tmp_path / 'w.safetensors'), variables)


def test_absent_or_cut_files_are_refused(tmp_path: Path) -> None:
    model, _ = small_model()
    with pytest.raises(RequestError, match='no weights at'):
        load(model, tmp_path / 'none.safetensors')
    whole = tmp_path / 'w.safetensors'
    save(model, model.init(jax.random.key(0)), whole)
    whole.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(RequestError, match='not a complete safetensors file'):
        load(model, whole)
