"""Losses against PyTorch's values, and the share of a loss that each device differentiates."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from places import FIXTURES

from jbench.metrics import keystrokes
from jbench.train import losses, step

TORCH = np.load(FIXTURES / 'losses_torch.npz')  # made by make_torch_fixtures.py
CLASSIC = ('cross_entropy', 'binary_cross_entropy', 'squared_error')


@partial(jax.jit, static_argnums=(0, 4))
def mean(name, outputs, y, mask=None, n_devices=1, weights=None):
    """The mean loss over the rows that count, as `train_step` takes it, rows split over devices."""
    mask = jnp.ones(len(outputs), bool) if mask is None else jnp.asarray(mask)

    def share(x, y, mask):
        values, weight = losses.LOSSES[name](x, {'y': y, 'mask': mask}, weights, 0.1)
        sums = jnp.where(mask, values, 0).sum(), jnp.where(mask, weight, 0).sum()
        return jax.lax.psum(sums, losses.AXIS)

    split = (jnp.reshape(jnp.asarray(a), (n_devices, -1, *np.shape(a)[1:])) for a in (outputs, y, mask))
    total, weight = jax.vmap(share, axis_name=losses.AXIS)(*split)
    return (total / weight)[0]


with_grad = jax.jit(jax.value_and_grad(mean, 1), static_argnums=(0, 4))


# others: below, and test_pretraining_losses.py
OURS = {'clip_distinct', 'absolute_error', 'info_nce', 'next_window', 'reconstruction'}


@pytest.mark.parametrize('name', sorted(set(losses.LOSSES) - OURS))
def test_losses_and_their_gradients_equal_those_of_torch(name):
    if name in CLASSIC:
        outputs, y = TORCH['logits'], TORCH['y'] if name == 'cross_entropy' else TORCH['labels']
    else:
        outputs, y = TORCH[{'clip': 'clip/outputs', 'ctc': 'ctc/logits'}[name]], TORCH[f'{name}/y']
    weights = jnp.asarray(TORCH['weights'])
    value, grad = with_grad(name, jnp.asarray(outputs), y, weights=weights)
    np.testing.assert_allclose(value, TORCH[f'{name}/value'], rtol=1e-6)
    np.testing.assert_allclose(grad, TORCH[f'{name}/grad'], rtol=1e-5, atol=1e-6 if name == 'ctc' else 1e-7)


def test_the_absolute_error_is_a_mean_over_values_and_windows():
    y, off = np.arange(24.0).reshape(8, 3), np.array([1.0, -2, 3])
    value, grad = with_grad('absolute_error', jnp.asarray(y + off), jnp.asarray(y))
    np.testing.assert_allclose(value, 2.0, rtol=1e-6)
    np.testing.assert_allclose(grad, np.tile(np.sign(off) / 24, (8, 1)), rtol=1e-6)


def test_every_loss_of_a_recipe_is_there():
    from typing import get_args, get_type_hints

    from jbench.spec.task import Recipe

    assert set(get_args(get_type_hints(Recipe)['loss'])) == set(losses.LOSSES)


@pytest.mark.parametrize('n_devices', [1, 2, 4])
def test_a_row_with_the_same_target_is_no_wrong_answer(n_devices):
    """Against cross-entropy among the rows that differ; where all do, the loss is `clip`."""
    outputs, y = (
        np.resize(TORCH['clip/outputs'], (8, 5)) + np.arange(8)[:, None] / 9,
        np.resize(TORCH['clip/y'], (8, 5)),
    )
    assert np.isclose(mean('clip_distinct', outputs[:4], y[:4]), mean('clip', outputs[:4], y[:4]), rtol=1e-6)
    shown = np.array([0, 1, 0, 2, 1, 1, 3, 0])
    y = y[:4][shown]
    logits = outputs @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T
    expected = []
    for k, row in enumerate(logits):
        rivals = [row[k], *row[shown != shown[k]]]
        expected.append(np.log(np.exp(rivals).sum()) - row[k])
    got = mean('clip_distinct', jnp.asarray(outputs), y, n_devices=n_devices)
    np.testing.assert_allclose(got, np.mean(expected), rtol=1e-5)
    assert got < mean('clip', jnp.asarray(outputs), y) - 0.1


@pytest.mark.parametrize('name', ['clip', 'clip_distinct', 'ctc'])
@pytest.mark.parametrize('n_devices', [1, 2, 4])
def test_rows_of_padding_are_as_if_absent_and_devices_change_nothing(name, n_devices):
    outputs, y = (TORCH[k] for k in (('ctc/logits', 'ctc/y') if name == 'ctc' else ('clip/outputs', 'clip/y')))
    outputs, y = np.resize(outputs, (8, *outputs.shape[1:])), np.resize(y, (8, *y.shape[1:]))
    mask = np.arange(8) < 5
    spoilt = np.where(mask.reshape(-1, *[1] * (outputs.ndim - 1)), outputs, 1e4)  # what padding holds is no matter
    got, grad = with_grad(name, jnp.asarray(spoilt), y, mask, n_devices)
    alone, expected = with_grad(name, jnp.asarray(outputs[:5]), y[:5])
    np.testing.assert_allclose(got, alone, rtol=1e-6)
    np.testing.assert_allclose(grad[:5], expected, rtol=1e-5, atol=1e-7)
    assert not np.asarray(grad[5:]).any()


def all_paths(logits, keys):
    """-log of the summed probability of every path that stands for the keys."""
    p = jax.nn.softmax(logits)
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        said = np.where(np.array(path) == logits.shape[1] - 1, keystrokes.NONE, path)
        if list(keystrokes.decode(said)) == keys:
            total += float(np.prod([p[t, k] for t, k in enumerate(path)]))
    return -np.log(total)


@pytest.mark.parametrize('keys', [[], [0], [1, 0], [0, 0], [0, 1, 0], [1, 1, 1]])
def test_ctc_sums_over_every_path(keys):
    logits = np.random.default_rng(len(keys)).normal(size=(5, 3)).astype(np.float32) * 2
    y = np.array([keys + [-1] * (4 - len(keys))])
    expected = all_paths(logits, keys) / max(1, len(keys))
    np.testing.assert_allclose(mean('ctc', logits[None], y), expected, rtol=1e-5)


@pytest.mark.slow
def test_keys_that_do_not_fit_their_frames_cost_nothing():
    y = np.array([[0, 0, 0, -1], [0, 1, 0, -1]])
    logits = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)  # 0-0-0 needs five frames, 0-1-0 three
    _, grad = with_grad('ctc', jnp.asarray(logits), y)
    assert not np.asarray(grad[0]).any() and np.asarray(grad[1]).any() and np.isfinite(grad).all()


@pytest.mark.slow
def test_the_scale_of_a_loss_scales_value_and_gradient():
    import optax

    from jbench.models.model import Answer, Model
    from jbench.spec.task import Recipe

    model = Model(lambda key: {}, lambda v, batch, *, train, key: Answer(batch['x'][:, 0, :1] * v['params'], {}))
    batch = {'x': jnp.ones((4, 1, 3)), 'y': jnp.zeros((4, 1)), 'mask': jnp.ones(4, bool)}
    state = {
        'params': jnp.array(2.0),
        'batch_stats': {},
        'opt': optax.sgd(1.0).init(jnp.array(2.0)),
        'step': jnp.array(0),
    }
    state |= {'key': jax.random.key(0), 'loss_weights': jnp.ones(1)}
    found = []
    for scale in (1.0, 1e-4):
        recipe = Recipe(loss='squared_error', loss_scale=scale)
        run = partial(step.train_step, model=model, tx=optax.sgd(1.0), recipe=recipe)
        _, facts = jax.vmap(run, axis_name=losses.AXIS, in_axes=(None, 0))(
            state, {k: v[None] for k, v in batch.items()}
        )
        found.append([float(facts['loss'][0]), float(facts['grad_norm'][0])])
    np.testing.assert_allclose(found[0], [4.0, 4.0])
    np.testing.assert_allclose(found[1], [4e-4, 4e-4], rtol=1e-6)


def after_steps(recipe, n_devices=1):
    """Weights of a linear network after three steps, the loss of each, with rows of padding and weighted classes."""
    import optax

    from jbench.models.model import Answer, Model

    def apply(v, batch, *, train, key):
        return Answer(jnp.einsum('bct,ck->bk', batch['x'], v['params']), v['batch_stats'])

    rng = np.random.default_rng(0)
    model = Model(lambda key: {}, apply)
    batch = {'x': rng.normal(size=(8, 3, 2)), 'y': np.arange(8) % 3, 'mask': np.array([1, 1, 0, 1, 1, 1, 1, 0], bool)}
    batch = {k: jnp.asarray(v).reshape(n_devices, -1, *v.shape[1:]) for k, v in batch.items()}
    params, tx = jnp.asarray(rng.normal(size=(3, 3))), optax.sgd(0.5)
    state = {'params': params, 'batch_stats': {}, 'opt': tx.init(params), 'step': jnp.array(0)}
    state |= {'key': jax.random.PRNGKey(0), 'loss_weights': jnp.array([1.0, 2.0, 0.5])}
    run = jax.jit(
        jax.vmap(
            partial(step.train_step, model=model, tx=tx, recipe=recipe),
            axis_name=losses.AXIS,
            in_axes=(None, 0),
            out_axes=None,
        )
    )
    told = []
    for _ in range(3):
        state, facts = run(state, batch)
        told.append((float(facts['loss']), float(facts['grad_norm'])))
    return np.asarray(state['params']), told


@pytest.mark.parametrize('n_devices', [1, 2])
@pytest.mark.parametrize('size', [1, 2, 4])
def test_a_batch_in_parts_is_the_same_step(size, n_devices):
    from jbench.spec.task import Recipe

    if size == 1 and n_devices == 2:
        pytest.skip('four rows a device are no eight parts')
    recipe = Recipe(batch_size=8, loss_scale=0.3)
    whole, parts = (after_steps(dataclasses.replace(recipe, microbatch=m), n_devices) for m in (0, size))
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-6)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-6)


def test_a_microbatch_that_would_be_another_step_is_refused():
    from jbench.spec.errors import RequestError
    from jbench.spec.task import Recipe

    for devices, message, recipe in (
        (1, '3 does not divide recipe.batch_size=8', Recipe(batch_size=8, microbatch=3)),
        (2, 'on 2 devices', Recipe(batch_size=8, microbatch=1)),
        (1, 'answers of each other', Recipe(batch_size=8, microbatch=4, loss='clip')),
    ):
        with pytest.raises(RequestError, match=message):
            step.check_microbatch(recipe, devices)
    step.check_microbatch(Recipe(batch_size=8, microbatch=4), 2)


def test_channels_turn_by_a_place_for_a_whole_batch() -> None:
    """Each of three turns comes; all rows turn alike, time and order stay."""
    x = jnp.arange(2 * 4 * 3.0).reshape(2, 4, 3)
    seen = set()
    for k in range(30):
        turned = np.asarray(step.rotated(x, 1, jax.random.key(k)))
        (place,) = (p for p in (-1, 0, 1) if (turned == np.roll(x, p, axis=1)).all())
        seen.add(place)
    assert seen == {-1, 0, 1}


@pytest.mark.slow
@pytest.mark.parametrize('rotation', [0, 1])
def test_nothing_is_known_beforehand_of_windows_whose_channels_turn(rotation: int) -> None:
    from jbench.models import MODELS
    from jbench.spec.model import Signal
    from jbench.spec.task import Recipe
    from jbench.train.programs import build

    network = build(MODELS['eegnet'], Signal(n_chans=4, n_times=120, sfreq=120.0), 2, Recipe(rotation=rotation))
    assert bool(network.precompute(jnp.ones((2, 4, 120)))) == (not rotation)


@pytest.mark.slow
@pytest.mark.parametrize(('rotation', 'seen'), [(0, {0.0}), (1, {0.0, 1.0, 9.0})])
def test_a_step_turns_channels_where_its_recipe_says_so(rotation: int, seen: set[float]) -> None:
    """Channel k holds k, and the network answers channel 0 with a target of 0: the loss tells the turn of the step."""
    import optax

    from jbench.models.model import Answer, Model
    from jbench.spec.task import Recipe

    def apply(variables, batch, *, train, key):
        return Answer(variables['params'] * batch['x'][:, 0, :1], {})

    x = jnp.broadcast_to(jnp.arange(4.0)[:, None], (2, 4, 3))
    batch = {'x': x, 'y': jnp.zeros((2, 1)), 'mask': jnp.ones(2, bool)}
    tx, recipe = optax.sgd(0.0), Recipe(loss='squared_error', rotation=rotation)
    run = partial(step.train_step, model=Model(lambda key: {}, apply), tx=tx, recipe=recipe)
    taken = jax.jit(jax.vmap(run, axis_name=losses.AXIS, in_axes=(None, 0), out_axes=None))
    params = jnp.array(1.0)
    state = {'params': params, 'batch_stats': {}, 'opt': tx.init(params), 'step': jnp.array(0)}
    state |= {'key': jax.random.key_data(jax.random.key(3)), 'loss_weights': jnp.ones(1)}
    found = set()
    for _ in range(30):
        state, facts = taken(state, {k: v[None] for k, v in batch.items()})
        found.add(float(facts['loss']))
    assert found == seen
