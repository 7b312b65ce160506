"""Clipping, AdamW and the one-cycle schedule against PyTorch's recorded numbers."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from places import FIXTURES

from jbench.spec.errors import RequestError
from jbench.spec.task import Recipe
from jbench.train.optim import OneCycleAdamW, adamw, clip_by_global_norm, onecycle, schedule

FIXTURE = np.load(FIXTURES / 'onecycle_adamw_torch.npz')
TOTALS = [int(name.split('/')[1]) for name in FIXTURE.files if name.startswith('cycle/')]
LR = 3e-3  # of the recorded tables


def state_at(total: int, step: int, lr: float = LR) -> OneCycleAdamW:
    clipped, state = adamw(Recipe(lr=lr), total).init({})
    assert clipped == optax.EmptyState()
    return state._replace(step=jnp.asarray(step, jnp.int32))


@pytest.mark.parametrize('total', TOTALS)
def test_table_equals_torch(total: int) -> None:
    lr, beta1 = onecycle(LR, total)
    assert lr.dtype == beta1.dtype == np.float64
    np.testing.assert_allclose(lr, FIXTURE[f'cycle/{total}'][:, 0], rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(beta1, FIXTURE[f'cycle/{total}'][:, 1], rtol=1e-12)


@pytest.mark.parametrize('total', [40, 1237])
def test_another_cycle_equals_torch(total: int) -> None:
    """That of emg/typing, in the table and in the compiled schedule."""
    typing = Recipe(lr=LR, warmup=0.4, start_div=1e5, end_div=1e3)
    want = FIXTURE[f'typing/{total}']
    lr, beta1 = onecycle(LR, total, warm_up=typing.warmup, div=typing.start_div, final_div=typing.end_div)
    np.testing.assert_allclose(np.stack([lr, beta1], 1), want, rtol=1e-12, atol=1e-18)
    state = adamw(typing, total).init({})[1]
    at = jax.jit(jax.vmap(lambda step: schedule(state._replace(step=step), typing.start_div, typing.end_div)))
    got, gain = at(jnp.arange(total, dtype=jnp.int32))
    np.testing.assert_allclose(got, want[:, 0], rtol=0, atol=1e-6 * LR)
    np.testing.assert_allclose(gain, 1 - want[:, 1], rtol=0, atol=1e-6)
    tx, one = adamw(typing, total), {'a': jnp.ones(1)}
    update, _ = tx.update(one, tx.init(one), one)  # the first step moves by the first rate
    np.testing.assert_allclose(update['a'], -want[0, 0] * (0.05 + 1), rtol=1e-5)


@pytest.mark.parametrize('total', [*TOTALS, 10, 123_457])
def test_compiled_schedule_equals_the_table(total: int) -> None:
    lr, beta1 = onecycle(LR, total)
    steps = np.unique(np.linspace(0, total - 1, 500).astype(int))
    at = jax.jit(jax.vmap(lambda step: schedule(state_at(total, 0)._replace(step=step))))
    got, gain = at(jnp.asarray(steps, jnp.int32))
    np.testing.assert_allclose(got, lr[steps], rtol=0, atol=1e-6 * LR)
    np.testing.assert_allclose(gain, 1 - beta1[steps], rtol=0, atol=1e-6)


def test_ends_of_the_cycle() -> None:
    """First, highest and last values as training.md states them; ten steps, where torch divides by zero, start low."""
    lr, beta1 = onecycle(1e-4, 1000)
    np.testing.assert_allclose(lr[[0, 99, 999]], [4e-6, 1e-4, 4e-10])
    np.testing.assert_allclose(beta1[[0, 99, 999]], [0.95, 0.85, 0.95])
    np.testing.assert_allclose(onecycle(1e-4, 10)[0][:2], [4e-6, onecycle(1e-4, 10)[0][1]])
    assert onecycle(1e-4, 10)[0].argmax() == 1
    np.testing.assert_allclose(schedule(state_at(40, 39)), schedule(state_at(40, 1000)))


def test_no_steps_are_refused() -> None:
    for make in (lambda: onecycle(1e-4, 0), lambda: adamw(Recipe(), 0)):
        with pytest.raises(RequestError, match='at least one training step, got 0'):
            make()


def gradients() -> tuple[np.ndarray, np.ndarray]:
    """Start [50] and gradients [200, 50] as recorded."""
    rng = np.random.default_rng(5)
    start, grads = rng.standard_normal(50), rng.standard_normal((200, 50))
    grads[::3] *= 0.05
    return start, grads


def test_trajectory_equals_torch() -> None:
    """200 clipped AdamW steps; torch in float64, ours in float32. A fixed beta1 would be 2e-2 off."""
    tx = adamw(Recipe(lr=1e-2, weight_decay=0.05, grad_clip=1.0), 200)
    start, grads = gradients()
    params = {'a': jnp.asarray(start[:20], jnp.float32), 'b': jnp.asarray(start[20:], jnp.float32)}
    state = tx.init(params)

    @jax.jit
    def step(params: dict, state: tuple, g: jax.Array) -> tuple:
        updates, state = tx.update({'a': g[:20], 'b': g[20:]}, state, params)
        return optax.apply_updates(params, updates), state

    path = []
    for i, g in enumerate(grads):
        params, state = step(params, state, jnp.asarray(g, jnp.float32))
        if i % 10 in (0, 9):
            path.append(np.concatenate([params['a'], params['b']]))
    np.testing.assert_allclose(path, FIXTURE['trajectory'], rtol=0, atol=5e-6)


@pytest.mark.slow
def test_one_compiled_update_serves_every_length() -> None:
    """The length of the run is in the state: an update made for another length gives the same step."""
    params, grads = {'a': jnp.ones(3)}, {'a': jnp.array([0.1, -0.2, 0.3])}
    update = jax.jit(chex.assert_max_traces(adamw(Recipe(), 1).update, n=1))
    for total, lr in ((40, 1e-4), (1237, 5e-3)):
        tx = adamw(Recipe(lr=lr), total)
        state = tx.init(params)
        for _ in range(3):
            expected = tx.update(grads, state, params)
            got = update(grads, state, params)
            chex.assert_trees_all_close(got, expected, rtol=1e-6)
            state = got[1]


def test_clipping_has_torchs_form() -> None:
    clip = clip_by_global_norm(1.0)
    big, small = {'a': jnp.array([3.0]), 'b': jnp.array([4.0])}, {'a': jnp.array([0.3]), 'b': jnp.array([0.4])}
    chex.assert_trees_all_close(clip.update(big, clip.init(big))[0], jax.tree.map(lambda g: g / (5 + 1e-6), big))
    chex.assert_trees_all_equal(clip.update(small, clip.init(small))[0], small)
    tiny = clip_by_global_norm(1e-6)  # the 1e-6 beside the norm matters here: half of what exact clipping gives
    norm = optax.tree.norm(tiny.update({'a': jnp.array([1e-6])}, optax.EmptyState())[0])
    np.testing.assert_allclose(norm, 5e-7, rtol=1e-5)


def test_a_rate_of_zero_moves_nothing() -> None:
    """The chance model."""
    params = {'a': jnp.ones(3)}
    tx = adamw(Recipe(lr=0.0), 5)
    updates, _ = tx.update({'a': jnp.ones(3)}, tx.init(params), params)
    chex.assert_trees_all_equal(optax.apply_updates(params, updates), params)
