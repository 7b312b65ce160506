"""Groups of parameters with a learning rate of their own, and frozen ones."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.models import MODELS
from jbench.models.model import Answer, Model
from jbench.plan.cells import apply
from jbench.plan.select import datasets, tasks
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import checkpoint, losses, optim, parallel, trainable
from jbench.train.programs import build
from jbench.train.step import train_step

PARAMS = {'body': {'weight': np.ones((3, 2)), 'bias': np.ones(2)}, 'head': {'weight': np.ones(2), 'bias': np.ones(1)}}
GROUPS = (('fixed.*', 0.0), ('body.*', 0.1))
STEPS, ROWS, N_OUT = 20, 6, 2


def test_the_first_pattern_that_fits_decides():
    trained, frozen = trainable.divide(PARAMS, (('head.bias', 1.0), ('*.bias', 0.0), ('body.*', 0.5)))
    assert trained['body']['bias'] is None and frozen['head']['bias'] is None
    assert trained['head']['bias'] is PARAMS['head']['bias'] and frozen['body']['bias'] is PARAMS['body']['bias']
    chex.assert_trees_all_equal(trainable.join(trained, frozen), PARAMS)
    assert trainable.divide(PARAMS, ())[0] is PARAMS


@pytest.mark.parametrize(
    ('patterns', 'says'),
    [
        ((('boddy.*', 0.0),), "'boddy.*' fits no parameter; there are body.bias, body.weight, head.bias, head.weight"),
        ((('*', 0.5), ('body.*', 0.0)), "'body.*' fits only what an earlier pattern fits; put it first"),
        ((('*', 0.0),), 'every parameter is frozen'),
        ((('body.*', 0.0), ('head.*', 0.0)), 'every parameter is frozen'),
    ],
)
def test_patterns_that_mean_nothing_are_refused(patterns, says):
    with pytest.raises(RequestError) as refused:
        optim.adamw(Recipe(trainable=patterns), 10).init(PARAMS)
    assert says in str(refused.value)


def test_a_negative_factor_is_refused_before_anything_is_prepared():
    task = tasks()['p3'][-1]
    chosen = apply(task, datasets()['SimulatedP3'], (('recipe.trainable', (('head.*', 0.5),)),))
    assert chosen.recipe.trainable == (('head.*', 0.5),)
    with pytest.raises(RequestError, match=r"recipe\.trainable: the factor of 'head\.\*', -1\.0, must be at least 0"):
        apply(task, datasets()['SimulatedP3'], (('recipe.trainable', (('head.*', -1),)),))


def linear() -> Model:
    """Outputs (x fixed) body + bias, of x [B, 1, 5]."""

    def init(key: jax.Array) -> Any:
        a, b = jax.random.split(key)
        params = {'fixed': {'w': jax.random.normal(a, (5, 4))}, 'body': {'w': jax.random.normal(b, (4, N_OUT))}}
        return {'params': params | {'bias': jnp.zeros(N_OUT)}, 'batch_stats': {}}

    def apply(variables: Any, batch: Any, *, train: bool, key: Any) -> Answer:
        p = variables['params']
        return Answer(batch['x'][:, 0] @ p['fixed']['w'] @ p['body']['w'] + p['bias'], variables['batch_stats'])

    return Model(init, apply)


def begin(model: Model, recipe: Recipe) -> dict:
    tx = optim.adamw(recipe, STEPS)
    return jax.device_get(parallel.new_state(parallel.init_state(model, 0), tx, np.ones(N_OUT, np.float32)))


def step_of(model: Model, recipe: Recipe) -> Any:
    """The compiled step, of one device."""
    tx = optim.adamw(recipe, STEPS)

    def step(state: Any, batch: Any) -> Any:
        return train_step(state, batch, model=model, tx=tx, recipe=recipe)

    return jax.jit(jax.vmap(step, (None, 0), axis_name=losses.AXIS))


def batch_of(x: np.ndarray, y: np.ndarray) -> dict:
    return {'x': x[None], 'y': y[None], 'mask': np.ones((1, len(x)), bool)}


@pytest.mark.slow
def test_groups_follow_adamw_each_at_its_rate_and_the_frozen_stay():
    """Against AdamW in NumPy: rates by group; the frozen do not move, decay, or count in the norm that is clipped."""
    recipe = Recipe(lr=0.05, weight_decay=0.1, grad_clip=0.5, loss='squared_error', trainable=GROUPS)
    state, step = begin(linear(), recipe), step_of(linear(), recipe)
    start = state['params']
    fixed, p = start['fixed']['w'].astype(float), {'body': start['body']['w'], 'bias': start['bias']}
    p = {k: v.astype(float) for k, v in p.items()}
    m, v = ({k: np.zeros_like(a) for k, a in p.items()} for _ in range(2))
    rng = np.random.default_rng(1)
    rates, betas = optim.onecycle(recipe.lr, STEPS)
    clipped = 0
    for t in range(STEPS):
        x, y = rng.standard_normal((ROWS, 1, 5)), rng.standard_normal((ROWS, N_OUT))
        state, metrics = jax.tree.map(
            lambda a: np.asarray(a)[0], step(state, batch_of(x.astype(np.float32), y.astype(np.float32)))
        )
        seen = x[:, 0] @ fixed
        error = 2 * (seen @ p['body'] + p['bias'] - y) / (ROWS * N_OUT)
        g = {'body': seen.T @ error, 'bias': error.sum(0)}
        norm = np.sqrt(sum((a**2).sum() for a in g.values()))
        np.testing.assert_allclose(metrics['grad_norm'], norm, rtol=1e-4)
        clipped += norm > recipe.grad_clip
        for k, factor in (('body', 0.1), ('bias', 1.0)):
            one = g[k] * min(1, recipe.grad_clip / (norm + 1e-6))
            m[k] = betas[t] * m[k] + (1 - betas[t]) * one
            v[k] = 0.999 * v[k] + 0.001 * one**2
            way = (m[k] / (1 - betas[t] ** (t + 1))) / (np.sqrt(v[k] / (1 - 0.999 ** (t + 1))) + 1e-8)
            p[k] = p[k] - rates[t] * factor * (recipe.weight_decay * p[k] + way)
        np.testing.assert_allclose(state['params']['body']['w'], p['body'], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state['params']['bias'], p['bias'], rtol=1e-4, atol=1e-5)
    assert clipped > 0
    np.testing.assert_array_equal(state['params']['fixed']['w'], start['fixed']['w'])
    assert state['opt'][1].mean['fixed'] == {'w': None}  # nothing is kept of it


def test_a_factor_of_one_is_the_same_program():
    texts = set()
    for patterns in ((), (('*', 1.0),), (('body.*', 1.0),)):
        recipe = Recipe(loss='squared_error', trainable=patterns)
        x, y = np.zeros((ROWS, 1, 5), np.float32), np.zeros((ROWS, N_OUT), np.float32)
        texts.add(step_of(linear(), recipe).lower(begin(linear(), recipe), batch_of(x, y)).as_text())
    assert len(texts) == 1


@pytest.mark.slow
def test_a_frozen_network_keeps_its_weights_and_its_statistics_follow_the_data(tmp_path):
    """As a linear probe of EEGNet; its state is saved and comes back."""
    signal = Signal(n_chans=2, n_times=32, sfreq=120.0)
    model = build(MODELS['eegnet'], signal, N_OUT)
    recipe = Recipe(lr=0.1, trainable=(('linear*', 1.0), ('*', 0.0)))
    state = begin(model, recipe)
    rng = np.random.default_rng(0)
    batch = batch_of(rng.normal(3, 1, (ROWS, 2, 32)).astype(np.float32), rng.integers(0, N_OUT, ROWS).astype(np.int32))
    new = jax.tree.map(lambda a: np.asarray(a)[0], step_of(model, recipe)(state, batch)[0])
    for name, before in state['params'].items():
        same = jax.tree.all(jax.tree.map(np.array_equal, before, new['params'][name]))
        assert same == (name not in ('linear', 'linear_bias')), name
    assert not np.array_equal(new['batch_stats']['bn_spatial']['var'], state['batch_stats']['bn_spatial']['var'])
    checkpoint.save(tmp_path, 1, {'now': new}, {})
    back = checkpoint.restore(tmp_path, {'now': state}, lambda facts: True)
    assert back is not None
    chex.assert_trees_all_equal(back[0]['now'], new)
