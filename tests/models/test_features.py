"""Named features of networks: what they are, and that none is computed that nobody asks for."""

from __future__ import annotations

from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jbench.models import MODELS, factory
from jbench.models.model import Model, TokenGrid, features, network
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import losses, optim, parallel
from jbench.train.step import predict_step, train_step

NETWORKS = [m for m in MODELS.values() if m.family == 'classic' and m.targets != ('angles',)]  # test_pose_networks.py
N_OUT, ROWS = 3, 2
LEVEL = {'xla_backend_optimization_level': 0}  # of LLVM: what is computed was decided before
HEADS = {'simpleconv_time_agg': 'head', 'emg2qwerty': 'head'}  # the last layer, where not 'linear'
# last layers of several windows, with a limit, of summed times, two of them
OTHERS = {'atcnet', 'eegnex', 'fmri_linear', 'fmri_mlp'}


def built(name: str, n_chans: int = 4, n_times: int = 0) -> tuple[Model, Signal]:
    n_times = n_times or (2064 if name == 'emg2qwerty' else 128)
    known = ((0.0, 0.1, 0.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.1), None) if 'positions' in MODELS[name].asks else ()
    signal = Signal(n_chans=n_chans, n_times=n_times, sfreq=120.0, positions=known)
    return factory(MODELS[name])(signal, N_OUT, axis_name=losses.AXIS), signal


def windows(signal: Signal) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ROWS, signal.n_chans, signal.n_times)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize('model', NETWORKS, ids=lambda m: m.name)
def test_every_network_names_what_its_last_layer_sees(model):
    """Rows first, in evaluation and in training."""
    made, signal = built(model.name)
    batch = {'x': windows(signal), 'mask': np.ones(ROWS, bool)}
    variables = jax.eval_shape(made.init, jax.random.key(0))
    assert sorted(variables) == ['batch_stats', 'params']
    for train in (False, True):
        apply = jax.vmap(lambda v, b, t=train: made.apply(v, b, train=t, key=None), (None, 0), axis_name=losses.AXIS)
        found = jax.eval_shape(apply, variables, {k: a[None] for k, a in batch.items()}).features
        assert 'penultimate' in found
        assert all(a.shape[1] == ROWS and a.ndim > 2 for a in found.values())


@pytest.mark.slow
@pytest.mark.parametrize('name', [m.name for m in NETWORKS if m.name not in OTHERS])
def test_outputs_are_the_last_layer_of_the_penultimate_features(name):
    made, signal = built(name)
    rng, shapes = np.random.default_rng(1), jax.eval_shape(made.init, jax.random.key(0))
    variables = jax.tree.map(lambda a: rng.uniform(0, 0.2, a.shape).astype(np.float32), shapes)
    batch = {'x': windows(signal), 'mask': np.ones(ROWS, bool)}
    evaluate = jax.jit(lambda v: made.apply(v, batch, train=False, key=None), compiler_options=LEVEL)
    params, answer = variables['params'], evaluate(variables)
    head, seen = params[HEADS.get(name, 'linear')], answer.features['penultimate']
    weight, bias = (head['weight'], head['bias']) if isinstance(head, dict) else (head, params['linear_bias'])
    outputs = np.tensordot(seen, weight, (tuple(range(seen.ndim))[-(weight.ndim - 1) :], range(1, weight.ndim))) + bias
    outputs = jax.nn.log_softmax(outputs) if name == 'emg2qwerty' else outputs
    np.testing.assert_allclose(outputs, answer.outputs, rtol=1e-4, atol=1e-4 * np.abs(outputs).max())


def compiled(name: str, *, kept: bool) -> list[jax.stages.Compiled]:
    """The train and the predict step, with features or as if there were none; with them, one that gives them back."""
    made, signal = built(name)
    recipe = Recipe()
    tx = optim.adamw(recipe, 10)
    state = jax.eval_shape(lambda: parallel.new_state(parallel.init_state(made, 0), tx, jnp.ones(N_OUT)))
    batch = {'x': windows(signal), 'mask': np.ones(ROWS, bool), 'y': np.zeros(ROWS, np.int32)}
    variables = {k: state[k] for k in ('params', 'batch_stats')}

    def predict(variables: Any, batch: Any) -> Any:
        return predict_step(variables, batch, model=made)

    def give(variables: Any, batch: Any) -> Any:
        return made.apply(variables, batch, train=False, key=None)

    def train(state: Any, batch: Any) -> Any:
        return train_step(state, batch, model=made, tx=tx, recipe=recipe)

    batch = {k: v[None] for k, v in batch.items()}
    programs = [(train, state), (predict, variables), *[(give, variables)] * kept]
    with mock.patch.object(nn.Module, 'sow', nn.Module.sow if kept else lambda *args, **how: False):
        return [
            jax.jit(jax.vmap(step, (None, 0), axis_name=losses.AXIS)).lower(given, batch).compile(LEVEL)
            for step, given in programs
        ]


def size(program: jax.stages.Compiled) -> tuple[float, int]:
    """Operations with numbers, and instructions."""
    return program.cost_analysis()['flops'], program.as_text().count(' = ')


@pytest.mark.parametrize('name', ['eegnet', pytest.param('eegconformer', marks=pytest.mark.slow)])
def test_features_that_nobody_asks_for_are_not_computed(name):
    """The compiled steps are as if the network named none; a program that gives them back is larger."""
    train, predict, give = map(size, compiled(name, kept=True))
    assert [train, predict] == [size(program) for program in compiled(name, kept=False)]
    assert give[1] > predict[1]


class Twice(nn.Module):
    """A layer that is called twice, and a part with a feature of its own."""

    @nn.compact
    def __call__(self, batch, *, train, key):
        layer = Part(name='part')
        h = layer(layer(batch['x'].mean(-1)))
        self.sow('features', 'last', h)
        return h


class Part(nn.Module):
    @nn.compact
    def __call__(self, h):
        h = h * self.param('scale', nn.initializers.constant(2.0), (1,))
        self.sow('features', 'scaled', h)
        return h


def test_features_of_windows_by_dotted_path():
    model = network(Twice(), Signal(n_chans=3, n_times=8, sfreq=120.0))
    variables, x = model.init(jax.random.key(0)), windows(Signal(n_chans=3, n_times=8, sfreq=120.0))
    assert list(variables['params']) == ['part'] and sorted(variables) == ['batch_stats', 'params']
    found = features(model)(variables, x)
    assert sorted(found) == ['last', 'part.scaled.0', 'part.scaled.1']
    np.testing.assert_allclose(found['part.scaled.0'], 2 * x.mean(-1), rtol=1e-5)
    np.testing.assert_allclose(found['last'], 4 * x.mean(-1), rtol=1e-5)
    assert list(features(model, 'last')(variables, x)) == ['last']
    with pytest.raises(RequestError, match=r"unknown feature of this network 'lost'.*\n.*part\.scaled\.0"):
        features(model, 'lost')(variables, x)


def test_tokens_become_a_grid():
    grid = TokenGrid((2, 3), 1)
    tokens = np.arange(2 * 6 * 4).reshape(2, 6, 4)
    laid = grid.laid_out(tokens)
    assert laid.shape == (2, 2, 3, 4)
    np.testing.assert_array_equal(laid[:, 1, 2], tokens[:, 5])
    np.testing.assert_array_equal(grid.laid_out(laid), laid)
    class_token = np.full((2, 1, 4), -1)
    np.testing.assert_array_equal(grid.laid_out(np.concatenate([class_token, tokens], 1)), laid)
    assert grid.laid_out(tokens[:, 0]) is None and grid.laid_out(tokens[:, :5]) is None
