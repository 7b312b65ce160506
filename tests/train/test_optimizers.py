"""Other optimizers and schedules than AdamW by one cycle, against the definitions that PyTorch documents."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jbench.data.load import loader
from jbench.plan import cells, select, user_files
from jbench.spec.errors import RequestError
from jbench.spec.task import Recipe
from jbench.train import fit, optim

BATCHES, EPOCHS = 7, 5
KIT = {'optimizer': 'adamw', 'schedule': 'cosine', 'lr': 1e-2, 'weight_decay': 0.1, 'max_epochs': EPOCHS}
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def path(recipe: Recipe, steps: int) -> list[np.ndarray]:
    """Parameters after each step, of gradients that any of the optimizers is given."""
    tx, params = optim.make(recipe, BATCHES * EPOCHS), {'w': jnp.asarray(START, jnp.float32)}
    state, update = tx.init(params), jax.jit(tx.update)
    out = []
    for t in range(steps):
        moved, state = update({'w': jnp.asarray(GRADS[t], jnp.float32)}, state, params)
        params = optax.apply_updates(params, moved)
        out.append(np.asarray(params['w'], np.float64))
    return out


START = np.random.default_rng(1).standard_normal(9)
GRADS = np.random.default_rng(2).standard_normal((BATCHES * EPOCHS, 9)) * np.geomspace(1e-4, 1, 9)


def rates(schedule: str, lr: float) -> list[float]:
    """Of each step, as the documents of torch say: CosineAnnealingLR(T_max=EPOCHS - 1), stepped after each epoch."""
    falls = [(1 + np.cos(np.pi * e / (EPOCHS - 1))) / 2 for e in range(EPOCHS)]
    return [lr * (falls[t // BATCHES] if schedule == 'cosine' else 1.0) for t in range(BATCHES * EPOCHS)]


def reference(recipe: Recipe) -> list[np.ndarray]:
    """AdamW or Adamax in float64, in plain steps, with decoupled decay."""
    p, m, v = START.copy(), np.zeros(9), np.zeros(9)
    out = []
    for t, (lr, g) in enumerate(zip(rates(recipe.schedule, recipe.lr), GRADS, strict=True), 1):
        m = BETA1 * m + (1 - BETA1) * g
        if recipe.optimizer == 'adamax':
            v = np.maximum(BETA2 * v, np.abs(g) + EPS)
            step = m / (1 - BETA1**t) / v
        else:
            v = BETA2 * v + (1 - BETA2) * g**2
            step = m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS)
        p = p - lr * (recipe.weight_decay * p + step)
        out.append(p)
    return out


@pytest.mark.parametrize('optimizer', ['adamw', 'adamax'])
@pytest.mark.parametrize('schedule', ['cosine', 'constant'])
def test_every_step_is_that_of_the_definition(optimizer: str, schedule: str) -> None:
    recipe = Recipe(**{**KIT, 'optimizer': optimizer, 'schedule': schedule, 'grad_clip': 1e9})
    np.testing.assert_allclose(path(recipe, BATCHES * EPOCHS), reference(recipe), rtol=0, atol=2e-6)


def test_the_cosine_ends_at_zero_and_the_first_epoch_has_the_whole_rate() -> None:
    recipe = Recipe(**{**KIT, 'weight_decay': 0.0, 'grad_clip': 1e9})
    steps = np.abs(np.diff([START, *path(recipe, BATCHES * EPOCHS)], axis=0)).max(1)
    assert steps[0] == pytest.approx(1e-2, rel=1e-3) and steps[BATCHES - 1] > 1e-4
    np.testing.assert_array_equal(steps[-BATCHES:], 0)
    one = optim.make(Recipe(**{**KIT, 'max_epochs': 1}), BATCHES)  # of a single epoch the rate stays
    updates, _ = one.update({'w': jnp.ones(1)}, one.init({'w': jnp.ones(1)}), {'w': jnp.zeros(1)})
    assert float(updates['w'][0]) == pytest.approx(-1e-2, rel=1e-5)


def test_adamax_by_one_cycle_has_its_rates() -> None:
    """Of a gradient that never changes each step of Adamax is the rate."""
    recipe = Recipe(optimizer='adamax', weight_decay=0.0, grad_clip=1e9, lr=1e-3)
    tx, params = optim.make(recipe, 40), {'w': jnp.zeros(1)}
    state, update, seen = tx.init(params), jax.jit(tx.update), []
    for _ in range(40):
        moved, state = update({'w': jnp.full(1, 0.5)}, state, params)
        seen.append(-float(moved['w'][0]))
    np.testing.assert_allclose(seen, optim.onecycle(1e-3, 40)[0], rtol=2e-4, atol=1e-9)


@pytest.mark.parametrize('schedule', ['cosine', 'constant', 'one_cycle'])
def test_a_finder_holds_the_rate_of_any_schedule(schedule: str) -> None:
    recipe = Recipe(**{**KIT, 'optimizer': 'adamax', 'schedule': schedule, 'weight_decay': 0.0})
    tx, params = optim.make(recipe, BATCHES * EPOCHS), {'w': jnp.zeros(1)}
    state = tx.init(params)
    for rate in (1e-3, 0.5, 2e-5):
        updates, state = tx.update({'w': jnp.full(1, 0.25)}, optim.at_rate(state, rate), params)
        assert float(updates['w'][0]) == pytest.approx(-rate, rel=1e-4)


def test_one_compiled_update_serves_every_rate_and_length() -> None:
    params, grads = {'w': jnp.ones(3)}, {'w': jnp.array([0.1, -0.2, 0.3])}
    made = optim.make(Recipe(**KIT), 1)
    update = jax.jit(chex.assert_max_traces(made.update, n=1))
    for total, lr in ((EPOCHS * 3, 1e-4), (EPOCHS * 100, 5e-3)):
        tx = optim.make(Recipe(**{**KIT, 'lr': lr}), total)
        state = tx.init(params)
        for _ in range(4):
            expected, got = tx.update(grads, state, params), update(grads, state, params)
            chex.assert_trees_all_close(got, expected, rtol=1e-6)
            state = got[1]


def test_frozen_parameters_have_no_moments() -> None:
    recipe = Recipe(optimizer='adamax', trainable=(('a', 0.0), ('b', 0.5)), lr=1e-2, schedule='constant')
    tx, params = optim.make(recipe, 5), {'a': jnp.ones(2), 'b': jnp.ones(2), 'c': jnp.ones(2)}
    state = tx.init(params)
    assert state[1].mu['a'] is None and state[1].nu['b'].shape == (2,)
    grads = {'a': None, 'b': jnp.ones(2), 'c': jnp.ones(2)}
    updates, _ = tx.update(grads, state, {**params, 'a': None})
    assert updates['a'] is None
    np.testing.assert_allclose(updates['b'], updates['c'] / 2, rtol=1e-6)


def test_an_epoch_is_better_by_more_than_the_least_gain() -> None:
    """As the start kit of 2025 counts: from 1.0, errors 0.9995 and 0.9991 are no gain of 1e-3, 0.9985 is one."""
    course = fit.Course()
    values = (1.0, 0.9995, 0.9991, 0.9985, 0.998)
    assert [course.close_epoch(v, -1.0, 1, 1e-3) for v in values] == [True, False, False, True, False]
    assert course.best_epoch == 3 and course.wait == 1


def test_steps_say_nothing_of_a_schedule_by_epochs() -> None:
    task, dataset = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']
    with pytest.raises(RequestError, match=r'recipe\.least_steps: 7 is unused with recipe\.schedule=cosine'):
        cells.apply(task, dataset, (('recipe.schedule', 'cosine'), ('recipe.least_steps', 7)))


@pytest.mark.parametrize(('name', 'n_epochs'), [('c1', 100), ('c2', 1)])
def test_the_recipes_of_the_kit_of_2025(name: str, n_epochs: int) -> None:
    """The rates that its scheduler gives, from the config that a person names (S: challenge_1.py, challenge_2.py)."""
    asked = user_files.config_overrides(f'configs/hbn2025_{name}.py')
    name = {'c1': 'challenge2025/response_time', 'c2': 'challenge2025/externalizing'}[name]
    task = select.tasks()[name][-1]
    recipe = cells.apply(task, select.datasets()['Shirazi2024HbnL100Mini'], asked).recipe
    batches = loader.n_batches(300, recipe.batch_size)
    assert (batches, fit.length(recipe, batches).most) == (3, n_epochs)
    tx = optim.make(recipe, batches * n_epochs)
    rate = tx.init({'w': jnp.zeros(1)})[-1]
    seen = [float(optim._rate(recipe, rate._replace(step=jnp.int32(t)))) for t in range(0, batches * n_epochs, 50)]
    lr = 1e-3 if n_epochs > 1 else 2e-3
    falls = [np.cos(np.pi * (t // batches) / (n_epochs - 1)) if n_epochs > 1 else 1 for t in range(0, 3 * n_epochs, 50)]
    np.testing.assert_allclose(seen, [lr * (1 + f) / 2 for f in falls], atol=1e-9)
    assert recipe.optimizer == ('adamw' if n_epochs > 1 else 'adamax')
