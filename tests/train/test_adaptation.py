"""What of an encoder learns: exactly what the adaptation says, and the result answers as it was tested."""

from __future__ import annotations

import dataclasses

import encoders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from families import params
from shapes import fitting

from jbench.context import Context
from jbench.models import MODELS, factory, pretrained
from jbench.models.foundation import probes
from jbench.progress import Interrupted, Progress, StopSignal
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import Recipe
from jbench.train import adaptation, lora, parallel, seeds, trainable
from jbench.train.programs import Compiler, build

CONVOLUTIONAL = ('jbench_tiny', 'signal_jepa_pre_local', 'signal_jepa_post_local')  # without a transformer
SIGNAL = Signal(n_chans=3, n_times=60, sfreq=120.0)


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('adaptation'))


@pytest.fixture(scope='module')
def compiler():
    return Compiler()


def context(at, stop=None):
    return Context(at, None, Progress(), stop or StopSignal(), 'resume')


def network_of(**recipe):
    """The tiny encoder as adapted, its recipe, and its resolved recipe."""
    recipe = Recipe(**recipe)
    model = build(encoders.SPEC, SIGNAL, 2, recipe)
    return model, recipe, adaptation.resolved(recipe, model)


def factors(model, resolved):
    """Factor of each parameter by path."""
    params = jax.eval_shape(model.init, jax.random.key(0))['params']
    found = jax.tree_util.tree_leaves_with_path(params)
    return {
        jax.tree_util.keystr(p, simple=True, separator='.'): trainable.factor(p, resolved.trainable) for p, _ in found
    }


def fitted(cell, data, compiler, at, seed=33):
    ((_, outcome),) = seeds.train_network(cell, data, [seed], compiler, context(at))
    return outcome


def drawn(cell, data, seed=33):
    model = build(cell.model, dataclasses.replace(data.signal, ch_names=()), 2, cell.task.recipe)
    return model, parallel.init_state(model, seed)


def moved(before, after):
    """Paths of parameters that are no longer bit for bit what they were."""
    before, after = encoders.leaves(before), encoders.leaves(after)
    assert before.keys() == after.keys()
    return {name for name in before if not np.array_equal(np.asarray(before[name]), np.asarray(after[name]))}


def test_a_plain_recipe_is_not_touched():
    model, recipe, resolved = network_of()
    assert resolved is recipe and adaptation.stages(recipe, model) == [recipe]


def test_layer_decay_falls_towards_the_input():
    found = factors(*network_of(layer_decay=0.5)[::2])
    assert {found['linear.weight'], found['norm.scale']} == {1.0}
    assert found['layer_1.matrices'] == 0.5
    assert found['layer_0.in_weight'] == 0.25 and found['embed.weight'] == 0.125


@pytest.mark.parametrize(('k', 'frozen'), [(1, {'embed', 'layer_0'}), (2, {'embed'})])
def test_last_k_freezes_what_comes_before(k, frozen):
    found = factors(*network_of(adaptation='last_k', last_k=k)[::2])
    assert {name.partition('.')[0] for name, factor in found.items() if factor == 0} == frozen
    assert {factor for name, factor in found.items() if name.partition('.')[0] not in frozen} == {1.0}


def test_more_layers_than_there_are_are_refused():
    with pytest.raises(RequestError, match=r'recipe\.last_k: 3 layers, and this encoder has 2'):
        network_of(adaptation='last_k', last_k=3)


@pytest.mark.parametrize('what', ['probe', 'lora', 'last_k', 'two_stage'])
def test_a_network_without_a_head_takes_no_adaptation(what):
    recipe = Recipe(adaptation=what)
    with pytest.raises(RequestError, match=r'recipe\.adaptation'):
        model = build(MODELS['fmri_linear'], Signal(n_chans=3, n_times=128, sfreq=120.0), 2, recipe)
        adaptation.stages(recipe, model)
        adaptation.resolved(recipe, model)


@pytest.mark.slow
def test_last_k_trains_the_last_layer_alone(data, compiler, tmp_path):
    cell = encoders.of(small.cell(max_epochs=2), adaptation='last_k')
    outcome = fitted(cell, data, compiler, tmp_path)
    _, start = drawn(cell, data)
    changed = moved(start['params'], outcome['variables']['params'])
    assert {name.partition('.')[0] for name in changed} == {'layer_1', 'norm', 'linear'}
    counted = encoders.leaves(start['params'])
    learnt = sum(a.size for name, a in counted.items() if name.partition('.')[0] in {'layer_1', 'norm', 'linear'})
    assert outcome['n_parameters'] == {'total': sum(a.size for a in counted.values()), 'trainable': learnt}


@pytest.mark.slow
def test_low_rank_leaves_the_network_and_moves_its_pairs_and_head(data, compiler, tmp_path):
    cell = encoders.of(small.cell(max_epochs=2), adaptation='lora', lora_rank=2)
    outcome = fitted(cell, data, compiler, tmp_path)
    _, start = drawn(cell, data)
    changed = moved(start['params'], outcome['variables']['params'])
    pairs = {name for name in encoders.leaves(start['params']) if name.startswith('lora.')}
    assert changed == pairs | {'base.linear.weight', 'base.linear.bias'} and len(pairs) == 12
    size = sum(encoders.leaves(start['params'])[name].size for name in changed)
    assert outcome['n_parameters']['trainable'] == size


@pytest.mark.slow
def test_every_pair_of_low_rank_is_on_the_path():
    """At first the network answers as it did; then each matrix, of a packed one each third, changes the answer."""
    model, _, _ = network_of(adaptation='lora', lora_rank=2)
    plain, _, _ = network_of()
    key = jax.random.key(1)
    variables, rng = model.init(key), np.random.default_rng(0)
    batch = {'x': jnp.asarray(rng.normal(size=(4, 3, 60)), jnp.float32), 'mask': jnp.ones(4, bool)}

    def answer(made, given):
        return np.asarray(made.apply(given, batch, train=False, key=None).outputs)

    first = answer(model, variables)
    np.testing.assert_array_equal(first, answer(plain, plain.init(key)))
    chosen = lora.targets(plain)
    packed, single = ('in_proj_weight', 'out_proj.weight'), ('to_q', 'to_k', 'to_v', 'to_out')
    assert [t.name for t, _ in chosen] == [
        *(f'layers.0.self_attn.{name}' for name in packed),
        *(f'layers.1.{name}.weight' for name in single),
    ]
    for tensor, n in chosen:
        for third in range(n):
            b = np.zeros(variables['params']['lora'][tensor.name]['b'].shape, np.float32)
            b[third if n > 1 else ...] = rng.normal(size=b.shape[-2:])
            pairs = dict(variables['params']['lora'])
            pairs[tensor.name] = {'a': pairs[tensor.name]['a'], 'b': jnp.asarray(b)}
            changed = variables | {'params': {**variables['params'], 'lora': pairs}}
            assert abs(answer(model, changed) - first).max() > 1e-4, (tensor.name, third)


@pytest.mark.slow
def test_low_rank_is_alpha_over_rank_times_the_product():
    model, _, _ = network_of(adaptation='lora', lora_rank=2, lora_alpha=6.0)
    plain, _, _ = network_of()
    variables = model.init(jax.random.key(0))
    pairs = jax.tree.map(lambda a: jnp.asarray(np.random.default_rng(1).normal(size=a.shape), jnp.float32), variables)
    pairs = pairs['params']['lora']
    variables = variables | {'params': {**variables['params'], 'lora': pairs}}
    base = variables['params']['base']['layer_0']
    merged = lora.merged(variables, lora.targets(plain), 3.0)['params']['layer_0']
    a, b = (np.asarray(pairs['layers.0.self_attn.in_proj_weight'][k], np.float64) for k in 'ab')
    expected = np.asarray(base['in_weight']) + 3 * np.concatenate([b[i] @ a[i] for i in range(3)])
    np.testing.assert_allclose(merged['in_weight'], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(merged['in_bias'], base['in_bias'])


@pytest.mark.parametrize('model', params(m for m in MODELS.values() if m.family == 'foundation'))
def test_every_encoder_of_the_table_can_be_adapted(model):
    """It has a head on features, layers in their order, and matrices of attention in each of them."""
    signal = fitting(model, 400)
    plain = factory(model)(signal, 3)
    assert probes.width(plain, signal) > 0
    layer = 'spatial' if model.name == 'jbench_tiny' else 'tokens'  # a network of a single paper
    assert probes.width(probes.tapped(plain, Recipe(layer=layer, aggregation='mean')), signal) > 0
    head = jax.eval_shape(lambda: probes.without_head(plain, plain.init(jax.random.key(0))))
    assert len(jax.tree.leaves(head)) < len(jax.tree.leaves(jax.eval_shape(plain.init, jax.random.key(0))))
    if model.name in CONVOLUTIONAL:
        for recipe in (Recipe(adaptation='last_k'), Recipe(layer_decay=0.5), Recipe(adaptation='lora')):
            with pytest.raises(RequestError, match=r'no layers that follow|no matrices of attention'):
                adaptation.resolved(recipe, adaptation.adapted(plain, signal, 3, recipe, None))
        return
    found = adaptation.resolved(Recipe(adaptation='last_k', last_k=1), plain)
    adapted = lora.targets(plain)
    paths = ['.'.join(t.path[1:]) for t, _ in adapted]
    n_layers = len({path.partition('.')[0] for path in paths})
    assert n_layers >= 4 and len(adapted) >= 2 * n_layers
    frozen = {path for path, _ in found.trainable}
    learns = {path.partition('.')[0] for path in paths if path not in frozen}
    assert len(learns) == 1  # the attention of one layer


@pytest.mark.slow
def test_low_rank_starts_from_pretrained_weights():
    """A file of the network fits; its pairs are what was drawn."""
    model, _, _ = network_of(adaptation='lora', lora_rank=2)
    plain, _, _ = network_of()
    file = plain.to_torch(plain.init(jax.random.key(5)))
    start = model.init(jax.random.key(0))
    found = model.from_torch(file, model.checkpoints[0], start)
    got, there = encoders.leaves(found['params']), encoders.leaves(plain.init(jax.random.key(5))['params'])
    for name, array in there.items():
        if not name.startswith('linear'):
            np.testing.assert_array_equal(got[f'base.{name}'], array)
    assert not moved(start['params']['lora'], found['params']['lora'])
    assert moved(start['params'], found['params']) >= {'base.layer_0.in_weight'}


@pytest.mark.slow
def test_weights_of_a_low_rank_run_are_refused():
    """Else a run would begin from the weights before it, without a word."""
    model, _, _ = network_of(adaptation='lora', lora_rank=2)
    plain, _, _ = network_of()
    kept = model.to_torch(model.init(jax.random.key(5)))
    for network in (model, plain):
        with pytest.raises(RequestError, match=r'mine: kept by a run with recipe\.adaptation=lora'):
            pretrained.begin(network, kept, network.init(jax.random.key(0)), 'mine')


@pytest.mark.slow
@pytest.mark.parametrize('recipe', [{'adaptation': 'lora', 'lora_rank': 2}, {'head': 'mlp'}, {'layer': 'transformer'}])
def test_networks_without_declared_checkpoints_start_from_kept_weights(recipe):
    signal = Signal(n_chans=3, n_times=250, sfreq=120.0)
    model = build(MODELS['eegconformer'], signal, 2, Recipe(**recipe))
    plain = build(MODELS['eegconformer'], signal, 2)
    kept = plain.to_torch(plain.init(jax.random.key(5)))
    begun = pretrained.begin(model, kept, model.init(jax.random.key(0)), 'mine')
    again = model.to_torch(begun)
    same = {n for n in kept if n in again and np.array_equal(kept[n], again[n])}
    assert len(same) > 80 and not any(n in same for n in (t.name for t in plain.own_head()))


def test_fully_connected_layers_of_eegconformer_follow_its_blocks():
    signal = Signal(n_chans=3, n_times=250, sfreq=120.0)
    model = build(MODELS['eegconformer'], signal, 2)
    last = factors(model, adaptation.resolved(Recipe(adaptation='last_k', last_k=1), model))
    learns = {path.partition('.')[0] for path, factor in last.items() if factor}
    assert learns == {'block_5', 'head_0', 'head_1', 'linear'}
    decayed = factors(model, adaptation.resolved(Recipe(layer_decay=0.5), model))
    assert decayed['head_0.weight'] == decayed['linear.weight'] == 1 and decayed['block_0.wide.weight'] == 0.5**6


@pytest.mark.slow
def test_attention_of_eegdino_learns_with_its_biases():
    signal = fitting(MODELS['eegdino_small'], 400)
    model = factory(MODELS['eegdino_small'])(signal, 2)
    found = factors(model, adaptation.resolved(Recipe(adaptation='attention'), model))
    learns = {
        path.removeprefix('layer_3.attention.') for path, factor in found.items() if factor and 'layer_3.' in path
    }
    assert learns == {'in_weight', 'q_bias', 'v_bias', 'out.weight', 'out.bias'}


@pytest.mark.slow
def test_two_stages_first_train_the_head(data, compiler, tmp_path):
    cell = encoders.of(small.cell(max_epochs=2, patience=2), adaptation='two_stage', head_epochs=2)
    model, start = drawn(cell, data)
    first, last = adaptation.stages(cell.task.recipe, model)
    assert first.max_epochs == 2 and not last.trainable
    head = {'linear.weight', 'linear.bias'}
    assert {n for n, f in factors(model, adaptation.resolved(first, model)).items() if f} == head
    outcome = fitted(cell, data, compiler, tmp_path)
    assert [h['epoch'] for h in outcome['history']] == [0, 1, 2, 3] and outcome['best_epoch'] >= 2
    assert {n.partition('.')[0] for n in moved(start['params'], outcome['variables']['params'])} >= {'embed', 'linear'}
    total = sum(a.size for a in encoders.leaves(start['params']).values())
    assert outcome['n_parameters'] == {'total': total, 'trainable': total}


@pytest.mark.slow
@pytest.mark.parametrize('after', [2, 4, 7])
def test_two_stages_go_on_where_they_were_stopped(data, compiler, tmp_path, after):
    """In the first stage, between them, in the second: the same bits."""
    cell = encoders.of(small.cell(max_epochs=2, patience=2), adaptation='two_stage', head_epochs=2)
    whole = fitted(cell, data, compiler, tmp_path / 'whole')
    asked = 0

    class Stop(StopSignal):
        def __call__(self):
            nonlocal asked
            asked += 1
            return asked > after

    with pytest.raises(Interrupted):
        list(seeds.train_network(cell, data, [33], compiler, context(tmp_path / 'cut', Stop())))
    first = seeds.checkpoint_folder(cell, 33, context(tmp_path / 'cut')) / 'part0'
    assert any(first.iterdir())  # also of a stage that is over: it is not trained again
    resumed = fitted(cell, data, compiler, tmp_path / 'cut')
    assert resumed['resumed_at']
    assert not moved(whole['variables'], resumed['variables'])
    assert [dict(h) for h in resumed['history']] == whole['history']


def test_the_head_stage_counts_no_other_model(data):
    """Stages are not mixed up with the plain recipe of the same fields."""
    model, recipe, _ = network_of(adaptation='two_stage')
    first, last = adaptation.stages(recipe, model)
    assert first != last and last == dataclasses.replace(recipe, adaptation='full')
