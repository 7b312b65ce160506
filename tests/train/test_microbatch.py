"""A batch in parts, of networks as they are: the same step of pretrained encoders; batch statistics are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import narrow
import numpy as np
import optax
import pytest
from families import often

from jbench.models import MODELS, factory
from jbench.models.model import Model
from jbench.models.torch_weights import EXACT
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import adaptation, parallel, precision
from jbench.train.losses import AXIS
from jbench.train.step import check_microbatch, n_parts, predict_step, train_step

RECIPE = Recipe(batch_size=4)
ENCODERS: dict[str, dict[str, Any]] = {  # without dropout
    'labram': {},
    'reve_small': {'remat': True},
    'codebrain': {'dropout': 0.0},
}


def step(
    model: Model,
    signal: Signal,
    microbatch: int,
    variables: Any,
    seed: int | jax.Array = 0,
    *,
    n_devices: int = 1,
    recipe: Recipe = RECIPE,
) -> tuple[Any, Any]:
    """What a step on four windows, of which one does not count, moves parameters by; its loss and gradient's norm."""
    rng, tx = np.random.default_rng(0), optax.sgd(1.0)
    x = jnp.asarray(rng.normal(size=(4, signal.n_chans, signal.n_times)), float)
    batch = {'x': x, 'y': jnp.array([0, 1, 1, 0]), 'mask': jnp.array([True, True, False, True]), **model.precompute(x)}
    state = parallel.new_state({**variables, 'key': jax.random.PRNGKey(seed)}, tx, jnp.array([1.0, 2.0]))
    run = partial(train_step, model=model, tx=tx, recipe=dataclasses.replace(recipe, microbatch=microbatch))
    shared = jax.tree.map(lambda a: a.reshape(n_devices, -1, *a.shape[1:]), batch)
    new, told = jax.vmap(run, (None, 0), axis_name=AXIS)(state, shared)
    return jax.tree.map(lambda a, b: a[0] - b, new['params'], state['params']), jax.tree.map(lambda a: a[0], told)


@pytest.mark.parametrize('name', often(ENCODERS, ('labram',)))
def test_an_encoder_makes_the_same_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, where sums of other orders differ by 1e-13."""
    model, signal = narrow.built(name, monkeypatch, **ENCODERS[name])
    with jax.enable_x64(True):
        start = jax.tree.map(lambda a: a.astype(float), narrow.drawn(model))
        whole, one, two = (jax.jit(partial(step, model, signal, size))(start) for size in (0, 1, 2))
        for moved, told in (one, two):
            apart = optax.tree.norm(optax.tree.sub(moved, whole[0]))
            assert apart < 1e-9 * optax.tree.norm(whole[0])
            np.testing.assert_allclose(*(jax.tree.leaves(t) for t in (told, whole[1])), rtol=1e-9)


def test_a_processor_trains_on_some_windows_of_an_encoder_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unasked, on at most as many as some 4,400 tokens are; not on an accelerator, nor where rows answer each other."""
    signals = [Signal(n_chans=n, n_times=n_times, sfreq=200.0) for n in (19, 64) for n_times in (800, 2000)]
    monkeypatch.setattr(jax, 'default_backend', lambda: 'cpu')
    made = [factory(MODELS['cbramod'])(signal, 2) for signal in signals]
    assert [n_parts(model, Recipe(), 64) for model in made] == [2, 4, 4, 16]
    model = made[-1]
    assert n_parts(model, Recipe(), 7) == 7 and n_parts(model, Recipe(), 6) == 1
    assert n_parts(model, Recipe(microbatch=32), 64) == 2
    assert n_parts(model, Recipe(loss='clip'), 64) == 1
    monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
    assert n_parts(model, Recipe(), 64) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'options', 'recipe', 'splits'),  # a split: devices, windows at once on each, windows at once by the recipe
    [
        ('labram', {}, RECIPE, ((1, 2, 0),)),
        ('bdtcn', {}, RECIPE, ((1, 2, 0), (2, 1, 0))),
        (
            'eegdino_small',
            {'drop_path': 0.5},
            dataclasses.replace(RECIPE, adaptation='lora', lora_dropout=0.5),
            ((1, 2, 0), (2, 1, 0)),
        ),
        ('luna_base', {'remat': True}, RECIPE, ((1, 0, 2),)),
    ],
    ids=['plain', 'dropout of feature maps', 'dropout', 'dropout of layers that are computed again'],
)
def test_parts_and_devices_make_the_same_step(
    name: str,
    options: dict[str, Any],
    recipe: Recipe,
    splits: Sequence[tuple[int, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What dropout, of values, branches and added matrices, draws for a window is the same wherever it is computed."""
    monkeypatch.setattr(jax, 'default_backend', lambda: 'cpu')
    network, signal = narrow.built(name, monkeypatch, axis_name=AXIS, **options)
    model = adaptation.adapted(network, signal, 2, recipe, AXIS)
    assert model.at_once == 0 or model.at_once > 4
    run = [
        partial(step, model._replace(at_once=size), signal, microbatch, n_devices=n_devices, recipe=recipe)
        for n_devices, size, microbatch in ((1, 0, 0), *splits)
    ]
    with jax.enable_x64(True):
        start = jax.tree.map(lambda a: a.astype(float), narrow.drawn(model))
        programs = [jax.jit(one) for one in run]
        (whole, told), *others = (program(start, 0) for program in programs)
        for other in others:
            jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12), other, (whole, told))
        draws = abs(programs[0](start, 1)[1]['grad_norm'] / told['grad_norm'] - 1) > 1e-3
        loops, *more = (str(jax.make_jaxpr(one)(start, 0)).count('scan[') for one in run)
    assert draws == (name != 'labram')
    assert more == [loops + 1] * len(splits)


@pytest.mark.slow
def test_a_microbatch_of_a_whole_batch_is_the_plain_step() -> None:
    """Of a network with batch statistics, too, and of a loss of all rows together, which take no fewer at once."""
    signal = Signal(n_chans=3, n_times=120, sfreq=120.0)
    model = factory(MODELS['eegnet'])(signal, 2)
    start = model.init(jax.random.key(0))
    plain, whole = (str(jax.make_jaxpr(partial(step, model, signal, size))(start)) for size in (0, 4))
    assert plain == whole
    check_microbatch(Recipe(batch_size=4, microbatch=4, loss='clip'), 1)


@pytest.mark.slow
def test_answers_in_parts_are_those_of_the_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an encoder and of a probe of it: outputs, and a feature, in the order of windows."""
    monkeypatch.setattr(jax, 'default_backend', lambda: 'cpu')
    encoder, signal = narrow.built('labram', monkeypatch)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(6, signal.n_chans, signal.n_times)), jnp.float32)
    batch = {'x': x, 'mask': jnp.ones(6, bool)}
    for recipe in (Recipe(), Recipe(adaptation='probe')):
        model = adaptation.adapted(encoder, signal, 2, recipe, None)
        assert model.at_once == encoder.at_once
        variables = narrow.drawn(model)
        for name in ('', 'penultimate'):
            whole, parts = (
                jax.jit(partial(predict_step, model=model._replace(at_once=size), feature=name))(variables, batch)
                for size in (0, 2)
            )
            assert np.ptp(whole, axis=0).max() > 1e-3
            np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_only_codebrain_keeps_numbers_that_are_no_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {name: narrow.built(name, monkeypatch)[0] for name in narrow.NARROW}
    kept = {name: jax.eval_shape(model.init, jax.random.key(0))['batch_stats'] for name, model in made.items()}
    assert [name for name, stats in kept.items() if stats] == ['codebrain']


@pytest.mark.slow
@pytest.mark.parametrize(
    'recipe',
    [Recipe(), Recipe(precision='bfloat16'), Recipe(head='mlp'), Recipe(adaptation='lora')],
    ids=['plain', 'bfloat16', 'head', 'lora'],
)
def test_numbers_that_training_hands_on_are_no_statistics(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    model, signal = narrow.built('codebrain', monkeypatch)
    made = adaptation.adapted(precision.computed(model, recipe), signal, 2, recipe, None)
    shapes = jax.eval_shape(made.init, jax.random.key(0))
    jax.eval_shape(partial(step, made, signal, 2), shapes)


@pytest.mark.parametrize('checkpoints', [(), (EXACT,)])
def test_statistics_of_a_batch_are_refused(checkpoints: tuple[Any, ...]) -> None:
    """Of a network for which weights were published, too."""
    signal = Signal(n_chans=3, n_times=64, sfreq=128.0)
    model = factory(MODELS['eegnet'])(signal, 2)._replace(checkpoints=checkpoints)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    with pytest.raises(RequestError, match=r'recipe\.microbatch: this network has batch statistics'):
        jax.eval_shape(partial(step, model, signal, 2), shapes)
    jax.eval_shape(partial(step, model, signal, 0), shapes)
