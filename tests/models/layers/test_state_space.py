"""State spaces: both scans equal the plain recurrence in value and gradient; a layer is causal, and selects."""

from __future__ import annotations

from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import close, compiled, value_and_grad
from jax import lax

from jbench.models.layers import state_space
from jbench.models.layers.state_space import LEAST_PACE, SelectiveStateSpace, recurrence

SHAPES = [(1, 1), (2, 3), (7, 2), (16, 4), (33, 5)]  # tokens, states


def plain(decay: jax.Array, write: jax.Array) -> jax.Array:
    """The recurrence as it is written, one token after the other."""

    def step(h: jax.Array, given: Any) -> tuple[jax.Array, jax.Array]:
        h = given[0] * h + given[1]
        return h, h

    first = jnp.zeros_like(write[..., 0, :])
    _, states = lax.scan(step, first, (jnp.moveaxis(decay, -2, 0), jnp.moveaxis(write, -2, 0)))
    return jnp.moveaxis(states, 0, -2)


def numbers(shape: tuple[int, ...], seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = ('size', 'angle', 'real', 'imaginary')
    return dict(zip(names, rng.uniform(-1, 1, (4, *shape)), strict=True))


@pytest.mark.parametrize(
    ('shape', 'how'), [*((s, 'chunked') for s in SHAPES), *((s, 'associative') for s in (SHAPES[0], SHAPES[-1]))]
)
def test_the_scan_equals_the_plain_recurrence_in_value_and_gradient(
    shape: tuple[int, int], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complex, of several rows, float64. Which one a device takes is said by its name alone."""
    taken = {name: mock.Mock(side_effect=getattr(state_space, name)) for name in ('chunked', 'associative')}
    for name, scan in taken.items():
        monkeypatch.setattr(state_space, name, scan)
    monkeypatch.setattr(jax, 'default_backend', lambda: 'cpu' if how == 'chunked' else 'gpu')
    with jax.enable_x64(True):

        def of(scan: Any) -> Any:
            def apply(v: Any) -> tuple[jax.Array, Any]:
                p = v['params']
                decay = p['size'] * jnp.exp(1j * jnp.pi * p['angle'])
                states = scan(decay, lax.complex(p['real'], p['imaginary']))
                return jnp.stack([states.real, states.imag]), ()

            return compiled(lambda p: value_and_grad(apply, {'params': p}))(numbers((2, 3, *shape), sum(shape)))

        close(of(recurrence), of(plain))
    assert {name: scan.call_count for name, scan in taken.items() if scan.called} == {how: 2}, 'there and back'


def test_the_scan_is_that_of_numpy() -> None:
    """An oracle that shares nothing with jax: a loop of products, float32 within rounding."""
    rng = np.random.default_rng(3)
    decay, write = rng.uniform(-1, 1, (2, 40, 3))
    h, wanted = np.zeros(3), []
    for a, b in zip(decay, write, strict=True):
        h = a * h + b
        wanted.append(h)
    found = compiled(recurrence)(jnp.asarray(decay, jnp.float32), jnp.asarray(write, jnp.float32))
    np.testing.assert_allclose(found, np.array(wanted), atol=1e-5)


@pytest.fixture(scope='module')
def layer() -> Any:
    """A layer, its variables far from their start, and tokens."""
    module, x = SelectiveStateSpace(6, 8), np.random.default_rng(0).standard_normal((2, 12, 6)).astype(np.float32)
    variables = compiled(module.init)(jax.random.key(1), x)
    rng = np.random.default_rng(1)
    moved = jax.tree.map(lambda p: p + 0.3 * rng.standard_normal(p.shape).astype(np.float32), variables)
    return compiled(module.apply), moved, x


@pytest.mark.slow
def test_a_layer_is_causal(layer: Any) -> None:
    """Tokens before a changed one stay to the bit, those from it on do not."""
    apply, variables, x = layer
    for k in (0, 5, 11):
        other = x.copy()
        other[:, k:] += 3
        before, after = apply(variables, x), apply(variables, other)
        np.testing.assert_array_equal(before[:, :k], after[:, :k])
        assert (np.abs(before[:, k] - after[:, k]) > 1e-4).any()


def test_a_layer_equals_its_definition(layer: Any) -> None:
    """Every number of a layer by a loop over tokens in NumPy, float64."""
    apply, variables, x = layer
    p = jax.tree.map(lambda a: np.asarray(a, float), variables['params'])

    def linear(name: str, v: np.ndarray) -> np.ndarray:
        return v @ p[name]['weight'].T + p[name]['bias']

    h, wanted = np.zeros((2, 8), complex), []
    for t in range(x.shape[1]):
        u = x[:, t].astype(float)
        pace = np.log1p(np.exp(linear('pace', u))) + LEAST_PACE
        decay = np.exp(pace * (-np.exp(p['log_rate']) + 1j * p['frequency']))
        written = linear('write', u)
        h = decay * h + np.sqrt(1 - np.abs(decay) ** 2) * (written[:, :8] + 1j * written[:, 8:])
        gate = linear('gate', u)
        y = linear('read', np.concatenate([h.real, h.imag], -1)) + p['skip'] * u
        wanted.append(linear('out', y * gate / (1 + np.exp(-gate))))
    np.testing.assert_allclose(apply(variables, x), np.stack(wanted, 1), atol=2e-4)


@pytest.mark.slow
def test_a_slow_pace_keeps_a_state_and_a_fast_one_forgets_it() -> None:
    """What the first token wrote, seen at the last one."""
    module, x = SelectiveStateSpace(4, 8), np.zeros((1, 30, 4), np.float32)
    x[0, 0] = 1
    first, apply = compiled(module.init)(jax.random.key(0), x), compiled(module.apply)

    def kept(bias: float) -> float:
        pace = {'weight': first['params']['pace']['weight'] * 0, 'bias': jnp.full(8, bias)}
        variables = {'params': first['params'] | {'pace': pace, 'log_rate': jnp.zeros(8)}}
        last = [apply(variables, v)[0, -1] for v in (x, 0 * x)]
        return float(np.abs(last[0] - last[1]).max())

    assert kept(-3.0) > 100 * kept(4.0)


@pytest.mark.slow
def test_gradients_are_finite_at_any_pace() -> None:
    """Even where tokens are so large that a pace is nothing, or forgets all at once."""
    module = SelectiveStateSpace(4, 8)
    x = np.random.default_rng(0).standard_normal((1, 9, 4)).astype(np.float32)
    variables = compiled(module.init)(jax.random.key(0), x)
    grads = compiled(jax.grad(lambda v, x: (module.apply(v, x) ** 2).mean()))
    for size in (0.0, 1.0, 1e3):
        assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads(variables, size * x)))
