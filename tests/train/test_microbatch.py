"""A batch in parts, of networks as they are: the same step of pretrained encoders; batch statistics are refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import narrow
import numpy as np
import optax
import pytest

from jbench.models import MODELS, factory
from jbench.models.model import Model
from jbench.models.torch_weights import EXACT
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import adaptation, parallel, precision
from jbench.train.losses import AXIS
from jbench.train.step import n_parts, train_step

ENCODERS: dict[str, dict[str, Any]] = {  # without dropout
    'labram': {},
    'reve_small': {'remat': True},
    'codebrain': {'dropout': 0.0},
}


def step(model: Model, signal: Signal, microbatch: int, variables: Any) -> tuple[Any, Any]:
    """What a step on four windows, of which one does not count, moves parameters by; its loss and gradient's norm."""
    rng, tx = np.random.default_rng(0), optax.sgd(1.0)
    x = jnp.asarray(rng.normal(size=(4, signal.n_chans, signal.n_times)), float)
    batch = {'x': x, 'y': jnp.array([0, 1, 1, 0]), 'mask': jnp.array([True, True, False, True]), **model.precompute(x)}
    state = parallel.new_state({**variables, 'key': jax.random.PRNGKey(0)}, tx, jnp.array([1.0, 2.0]))
    run = partial(train_step, model=model, tx=tx, recipe=Recipe(batch_size=4, microbatch=microbatch))
    new, told = jax.vmap(run, (None, 0), axis_name=AXIS)(state, jax.tree.map(lambda a: a[None], batch))
    return jax.tree.map(lambda a, b: a[0] - b, new['params'], state['params']), told


@pytest.mark.slow
@pytest.mark.parametrize('name', ENCODERS)
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
    """Unasked, on as many as some 4,400 tokens are; not on an accelerator, nor where rows answer each other."""
    signals = [Signal(n_chans=n, n_times=n_times, sfreq=200.0) for n in (19, 64) for n_times in (800, 2000)]
    made = [factory(MODELS['cbramod'])(signal, 2) for signal in signals]
    assert [n_parts(model, Recipe(), 64) for model in made] == [2, 4, 4, 16]
    model = made[-1]
    assert n_parts(model, Recipe(), 7) == 7 and n_parts(model, Recipe(), 6) == 1
    assert n_parts(model, Recipe(microbatch=32), 64) == 2
    assert n_parts(model, Recipe(loss='clip'), 64) == 1
    monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
    assert n_parts(model, Recipe(), 64) == 1


def test_unasked_parts_make_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model, signal = narrow.built('labram', monkeypatch)
    assert model.at_once > 4
    steps = [partial(step, model._replace(at_once=size), signal, 0) for size in (0, 2)]
    with jax.enable_x64(True):
        start = jax.tree.map(lambda a: a.astype(float), narrow.drawn(model))
        whole, parts = (jax.jit(run)(start) for run in steps)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12), parts, whole)
        loops = [str(jax.make_jaxpr(run)(start)).count('scan[') for run in steps]
    assert loops[1] == loops[0] + 1


def test_only_codebrain_keeps_numbers_that_are_no_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {name: narrow.built(name, monkeypatch)[0] for name in narrow.NARROW}
    kept = {name: jax.eval_shape(model.init, jax.random.key(0))['batch_stats'] for name, model in made.items()}
    assert [name for name, stats in kept.items() if stats] == ['codebrain']


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
