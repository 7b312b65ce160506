"""Heads on other features of an encoder: which they read, and that what learns is what the recipe says."""

from __future__ import annotations

import dataclasses

import encoders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small

from jbench import files, trained, training
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.models import MODELS
from jbench.models.foundation import probes
from jbench.plan import select
from jbench.plan.cells import Choice, apply, make_cells
from jbench.progress import Progress, StopSignal
from jbench.results import result_file
from jbench.spec import validate
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.overrides import override
from jbench.spec.recipe import DEFAULT, VARIANTS, Recipe
from jbench.train import adaptation, lora, probe, trainable
from jbench.train.programs import Compiler

SIGNAL = Signal(n_chans=3, n_times=120, sfreq=120.0)
P3, SIMULATED = small.cell().task, small.cell().dataset
LOW = {'adaptation': 'lora', 'lora_rank': 2, 'lora_dropout': 0.5}
DEEP = {'layer': 'layer_0', 'aggregation': 'mean'}


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('taps'))


@pytest.fixture(scope='module')
def compiler():
    return Compiler()


def context(at):
    return Context(at, None, Progress(), StopSignal(), 'resume')


def windows(rows=4):
    x = np.random.default_rng(0).normal(size=(rows, SIGNAL.n_chans, SIGNAL.n_times))
    return {'x': jnp.asarray(x, jnp.float32), 'mask': jnp.ones(rows, bool)}


def network_of(**recipe):
    recipe = Recipe(**recipe)
    return adaptation.adapted(encoders.tiny(SIGNAL, 2), SIGNAL, 2, recipe, None), recipe


def learning(model, recipe):
    """Paths of the parameters that are trained."""
    factors = adaptation.resolved(recipe, model).trainable
    params = jax.eval_shape(model.init, jax.random.key(0))['params']
    found = jax.tree_util.tree_leaves_with_path(params)
    return {jax.tree_util.keystr(p, simple=True, separator='.') for p, _ in found if trainable.factor(p, factors) > 0}


def test_tokens_are_put_together_as_numpy_does():
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 5)).astype(np.float32)  # nine tokens of two windows
    flat = x.reshape(2, 9, 5)
    expected = {
        'flatten': x.reshape(2, -1),
        'mean': flat.mean(1),
        'first': flat[:, 0],
        'quarters': np.concatenate([flat[:, a:b].mean(1) for a, b in ((0, 3), (3, 5), (5, 7), (7, 9))], 1),
    }
    for how, value in expected.items():
        found = probes.aggregated(jnp.asarray(x), Recipe(layer='tokens', aggregation=how))
        np.testing.assert_allclose(found, value, rtol=1e-6, err_msg=how)
    with pytest.raises(RequestError, match=r'one vector a window already.*recipe\.layer=tokens'):
        probes.aggregated(jnp.ones((2, 5)), Recipe(aggregation='mean'))
    with pytest.raises(RequestError, match='3 tokens have no 4 parts'):
        probes.aggregated(jnp.ones((2, 3, 5)), Recipe(aggregation='quarters'))


@pytest.mark.slow
@pytest.mark.parametrize('adapted', ['lora', 'full', 'mlp_probe'])
def test_a_head_reads_the_layer_that_the_recipe_names(adapted):
    model, _ = network_of(adaptation=adapted, **DEEP)
    plain, _ = network_of()
    variables, batch = model.init(jax.random.key(1)), windows()
    read = model.apply(variables, batch, train=False, key=None).features['penultimate']
    params = variables['params'].get('base', variables['params'])['encoder']
    own = {'params': {**plain.init(jax.random.key(2))['params'], **params}, 'batch_stats': {}}
    layers = plain.apply(own, batch, train=False, key=None).features
    np.testing.assert_allclose(read, layers['layer_0'].mean(1), rtol=1e-5, atol=1e-6)
    assert read.shape == (4, 8) and not np.allclose(read, layers['penultimate'], atol=1e-2)


def test_a_layer_that_an_encoder_lacks_is_refused_with_those_that_it_has():
    with pytest.raises(
        RequestError, match=r"(?s)unknown layer of this encoder .*'layer_7'.*layer_0, layer_1, penul.*tokens"
    ):
        network_of(adaptation='probe', layer='layer_7')


@pytest.mark.slow
def test_what_learns_is_what_the_recipe_says():
    """A new head with it, whose encoder is the old one by name, so that its weights are read as ever."""
    head = {'head.out.weight', 'head.out.bias'}
    read = {f'encoder.layer_0.{name}' for name in ('in_weight', 'in_bias', 'out.weight', 'out.bias')}  # the last one
    assert learning(*network_of(adaptation='probe', **DEEP)) == head
    assert learning(*network_of(adaptation='last_k', **DEEP)) == head | read
    model, recipe = network_of(adaptation='attention', **DEEP)
    assert learning(model, recipe) == head | read
    assert learning(*network_of(adaptation='attention')) >= {'linear.weight', 'layer_1.matrices', 'layer_0.out.bias'}
    model, recipe = network_of(adaptation='full', **DEEP)
    plain, _ = network_of()
    file = plain.to_torch(plain.init(jax.random.key(5)))
    found = model.from_torch(file, model.checkpoints[0], model.init(jax.random.key(0)))
    np.testing.assert_array_equal(found['params']['encoder']['embed']['weight'], file['embed.weight'])
    first, last = adaptation.stages(dataclasses.replace(recipe, adaptation='two_stage'), model)
    assert learning(model, first) == head and len(learning(model, last)) > 8


@pytest.mark.slow
def test_a_trained_encoder_drops_and_a_frozen_one_does_not():
    batch, key = windows(), jax.random.key(3)
    for adapted, drops in (('full', True), ('probe', False)):
        model, _ = network_of(adaptation=adapted, layer='tokens', aggregation='first')
        variables = model.init(jax.random.key(1))
        calm, trained_ = (
            model.apply(variables, batch, train=t, key=k).outputs for t, k in ((False, None), (True, key))
        )
        assert np.allclose(calm, trained_) != drops


@pytest.mark.slow
@pytest.mark.parametrize('what', [{'adaptation': 'probe'}, {'adaptation': 'full', 'head': 'mlp_512'}])
def test_a_kept_network_answers_as_it_was_tested(data, compiler, tmp_path, monkeypatch, what):
    monkeypatch.setitem(MODELS, 'tiny', encoders.SPEC)
    cell = encoders.of(small.cell(max_epochs=1), layer='tokens', aggregation='quarters', **what)
    at = context(tmp_path)
    (result,) = training.train(cell, (data.folder, 0.0), [33], compiler, at)
    assert result['status'] == 'done'
    path = result_file.result_dir(at.workdir, cell) / 'seed33.json'
    again = prepared_set.open_set(data.folder, cell.task)
    x = prepared_set.read(again, again.rows('test'), again.clamp)
    kept = result_file.load_predictions(path)
    np.testing.assert_allclose(trained.load_model(path).predict(x), kept['outputs'], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_features_of_another_layer_are_kept_apart(data, compiler, tmp_path):
    for fields in ({}, {'layer': 'tokens', 'aggregation': 'mean'}):
        cell = encoders.of(small.cell(), adaptation='ridge_probe', **fields)
        dict(probe.train_probe(cell, data, [33], compiler, context(tmp_path)))
    kept = [files.read_json(path)['about']['feature'] for path in (tmp_path / 'features').glob('*/manifest.json')]
    assert sorted(kept) == ['penultimate', 'tokens mean']


def test_a_ridge_that_does_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(probe, 'free_memory', lambda: 10**9)
    probe._check_room(5000)
    with pytest.raises(
        RequestError, match=r'20000 features take 12\.8 GB, and 1\.0 GB of memory are free.*aggregation=mean'
    ):
        probe._check_room(20000)


# ---- what the command refuses, and NeuralBench's names ----


def test_combinations_that_mean_nothing_are_refused():
    for fields, message in (
        ((('recipe.adaptation', 'probe'), ('recipe.head', 'mlp')), 'says itself which head there is; leave it out'),
        ((('recipe.adaptation', 'mlp_probe'), ('recipe.head', 'linear')), 'leave it out, or take mlp_512 or'),
        ((('recipe.head', 'mlp'), ('recipe.trainable', (('head.*', 1.0),))), r'recipe\.trainable: the adaptation'),
        ((('recipe.adaptation', 'probe'), ('recipe.lora_dropout', '.1')), 'is unused with'),
    ):
        with pytest.raises(RequestError, match=message):
            apply(P3, SIMULATED, fields)
    choice = Choice(P3, SIMULATED, False)
    with pytest.raises(RequestError, match=r'is no encoder with a head.*recipe\.layer=tokens'):
        make_cells([choice], select.select_models('eegnet'), (('recipe.layer', 'tokens'),))


def test_adaptations_that_do_not_fit_a_target_are_refused():
    for name, fields, message in (
        ('emg/typing', {'recipe.adaptation': 'probe'}, 'keystrokes are answered frame by frame by the own head'),
        ('emg/typing', {'recipe.head': 'mlp'}, 'keystrokes are answered frame by frame by the own head'),
        ('pretrain/movies', {'recipe.adaptation': 'ridge_probe'}, r"tells a 'moment' .* take recipe\.adaptation=probe"),
        ('pretrain/next', {'recipe.adaptation': 'ridge_probe'}, "tells a 'next'"),
    ):
        ((task, _),) = select.select_tasks(name)
        for path, value in fields.items():
            task = override(task, path, value)
        with pytest.raises(RequestError, match=message):
            validate.check(task)


@pytest.mark.parametrize('name', VARIANTS)
def test_a_name_of_neuralbench_is_the_fields_that_it_stands_for(name):
    choice, models = Choice(P3, SIMULATED, False), select.select_models('bendr:weights=none')
    (named,) = make_cells([choice], models, (('recipe.adaptation', name),))
    plain = tuple(sorted((f'recipe.{field}', value) for field, value in VARIANTS[name].items()))
    (spelled,) = make_cells([choice], models, plain)
    assert named == spelled and named.key == spelled.key
    assert ('freeze' in name or 'probe' in name) == (named.task.recipe.adaptation in ('probe', 'mlp_probe'))
    changed = {path for path, _ in named.overrides}
    assert changed == {path for path, value in plain if value != getattr(DEFAULT, path.removeprefix('recipe.'))}


def test_a_name_of_neuralbench_says_all_of_it():
    fields = (('recipe.adaptation', 'avg_linear_freeze'), ('recipe.aggregation', 'first'))
    with pytest.raises(RequestError, match=r'recipe\.adaptation=avg_linear_freeze says recipe\.aggregation=mean'):
        apply(P3, SIMULATED, fields)


# ---- low rank ----


def test_low_rank_of_the_matrices_that_are_named():
    plain, _ = network_of()
    names = [t.name for t, _ in lora.targets(plain, ('layers.1.to_[qv].*', 'embed.weight'))]
    assert names == ['embed.weight', 'layers.1.to_q.weight', 'layers.1.to_v.weight']
    model, recipe = network_of(adaptation='lora', lora_targets=('*',))
    assert {'lora.embed.weight.a', 'lora.layers.0.self_attn.in_proj_weight.b'} <= learning(model, recipe)
    assert 'base.embed.weight' not in learning(model, recipe)
    assert not any(t.name.startswith('lora.head') for t in model.tensors)
    with pytest.raises(RequestError, match=r"(?s)unknown matrix of this network .*'fc'.*embed\.weight"):
        network_of(adaptation='lora', lora_targets=('fc',))


@pytest.mark.slow
def test_dropout_of_low_rank_leaves_out_columns_in_training_alone():
    (model, _), (plain, _) = network_of(**LOW), network_of()
    variables = model.init(jax.random.key(0))
    pairs = jax.tree.map(lambda a: jnp.ones(a.shape), variables['params']['lora'])
    variables = {**variables, 'params': {**variables['params'], 'lora': pairs}}
    dropped = lora._dropped(variables, jax.random.key(1), Recipe(**LOW))
    columns = np.concatenate(
        [np.asarray(pair['a']).reshape(-1, 2, 8).swapaxes(1, 2).reshape(-1, 2) for pair in dropped.values()]
    )
    assert {tuple(row) for row in columns.tolist()} == {(0.0, 0.0), (2.0, 2.0)}
    assert 0.3 < columns.mean() / 2 < 0.7
    without, _ = network_of(**LOW | {'lora_dropout': 0.0})
    batch = windows()
    calm = [m.apply(variables, batch, train=False, key=None).outputs for m in (model, without)]
    np.testing.assert_array_equal(*calm)
    loud = [m.apply(variables, batch, train=True, key=jax.random.key(2)).outputs for m in (model, without)]
    assert not np.allclose(*loud, atol=1e-3)
    assert len(lora.targets(plain)) == len(dropped)
