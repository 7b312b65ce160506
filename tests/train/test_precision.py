"""A network in bfloat16: it is what it computes in, and nothing else is."""

from __future__ import annotations

import dataclasses
from functools import partial

import encoders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shapes
import small
from families import often

from jbench import files
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.models import MODELS
from jbench.models.foundation import probes
from jbench.models.model import Answer, Model
from jbench.plan.cells import apply
from jbench.progress import Progress, StopSignal
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import Recipe
from jbench.targets import score
from jbench.train import losses, optim, parallel, precision, probe, seeds, step
from jbench.train.programs import Compiler, build

SIGNAL = Signal(n_chans=3, n_times=60, sfreq=120.0)
LOW = Recipe(precision='bfloat16')


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """Windows whose class is the sign of a wave in them, which the tiny encoder can learn."""
    found = small.prepared(tmp_path_factory.mktemp('precision'))
    x = prepared_set.read(found, np.arange(len(found.y)), found.clamp).mean(1)
    waves = x[:, : x.shape[1] // encoders.PATCH * encoders.PATCH].reshape(len(x), -1, encoders.PATCH).mean(1)
    return dataclasses.replace(
        found, y=(waves @ np.sin(np.arange(encoders.PATCH) * np.pi / 10) > 0).astype(found.y.dtype)
    )


@pytest.fixture(scope='module')
def fitted(data, tmp_path_factory):
    """(first variables, outcome) of the tiny encoder in each precision."""
    found = {}
    for name in ('float32', 'bfloat16'):
        cell = encoders.of(small.cell(max_epochs=8, patience=8), precision=name)
        at = Context(tmp_path_factory.mktemp(name), None, Progress(), StopSignal(), 'resume')
        ((_, outcome),) = seeds.train_network(cell, data, [33], Compiler(), at)
        signal = dataclasses.replace(data.signal, ch_names=())
        found[name] = parallel.init_state(build(cell.model, signal, data.n_out, cell.task.recipe), 33), outcome
    return found


@pytest.mark.slow
def test_masters_stay_float32_and_move(fitted):
    drawn, outcome = fitted['bfloat16']
    before, after = (encoders.leaves(v['params']) for v in (drawn, outcome['variables']))
    assert before.keys() == after.keys()
    for name, array in after.items():
        assert array.dtype == np.float32, name
        assert not np.array_equal(array, before[name]), name
        rounded = np.asarray(jnp.asarray(array).astype(jnp.bfloat16).astype(jnp.float32))
        assert not np.array_equal(array, rounded), f'{name} holds no more than bfloat16 does'


@pytest.mark.slow
def test_the_course_is_close_to_that_of_float32_and_it_learns(fitted, data):
    whole, low = (fitted[name][1] for name in ('float32', 'bfloat16'))
    told = [[h['train_loss'] for h in outcome['history']] for outcome in (whole, low)]
    np.testing.assert_allclose(told[1], told[0], rtol=0.02)
    assert told[0] != told[1]  # it was another computation
    outputs = low['predictions']['outputs']
    assert outputs.dtype == np.float32
    test = data.rows('test')
    scores = score.evaluate(data.kind, outputs, data.y[test], data.about(test))
    assert score.headline(scores, 'bal_acc') > 0.7 and told[1][-1] < told[1][0] - 0.02


def products(jaxpr, found):
    """Types of what is multiplied in matrix products of a program, and of what is raised to a power of e."""
    for line in jaxpr.eqns:
        if line.primitive.name in ('dot_general', 'exp', 'log'):
            kind = 'product' if line.primitive.name == 'dot_general' else 'softmax'
            found.setdefault(kind, set()).update(str(v.aval.dtype) for v in line.invars)
        for value in line.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, 'jaxpr', inner)
                if hasattr(inner, 'eqns'):
                    products(inner, found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize('microbatch', [0, 2])
def test_products_of_both_passes_are_of_bfloat16_and_the_state_is_not(microbatch):
    recipe = dataclasses.replace(LOW, batch_size=4, microbatch=microbatch)
    network = build(encoders.SPEC, SIGNAL, 2, recipe)
    tx = optim.adamw(recipe, 1)
    state = jax.eval_shape(lambda: parallel.new_state(parallel.init_state(network, 0), tx, jnp.ones(2)))
    batch = {'x': np.ones((1, 4, 3, 60), np.float32), 'y': np.zeros((1, 4), int), 'mask': np.ones((1, 4), bool)}
    program = jax.vmap(
        partial(step.train_step, model=network, tx=tx, recipe=recipe), axis_name=losses.AXIS, in_axes=(None, 0)
    )
    traced = jax.make_jaxpr(program)(state, batch)
    assert products(traced.jaxpr, {})['product'] == {'bfloat16'}
    floats = {str(a.dtype) for a in traced.out_avals if jnp.issubdtype(a.dtype, jnp.floating)}
    assert floats == {'float32'}

    def loss(outputs):
        return losses.cross_entropy(outputs, {'y': batch['y'][0]}, jnp.ones(2), 0.1)[0].sum()

    variables = {n: state[n] for n in ('params', 'batch_stats')}
    rows = {k: v[0] for k, v in batch.items()}
    answer = jax.eval_shape(lambda v: network.apply(v, rows, train=False, key=None), variables)
    assert answer.outputs.dtype == jnp.float32 and answer.features['penultimate'].dtype == jnp.float32
    assert products(jax.make_jaxpr(loss)(answer.outputs).jaxpr, {})['softmax'] == {'float32'}


@pytest.mark.slow
def test_batch_statistics_stay_float32():
    """Those of a network that computes some of them from whole windows beforehand, too."""
    signal = Signal(n_chans=3, n_times=240, sfreq=120.0)
    for name in ('eegnet', 'shallow_fbcsp_net'):
        network = build(MODELS[name], signal, 2, LOW)
        like = jax.eval_shape(network.init, jax.random.key(0))
        batch = {'x': jax.ShapeDtypeStruct((1, 4, 3, 240), jnp.float32), 'mask': jnp.ones((1, 4), bool)}
        run = jax.vmap(
            partial(network.apply, train=True, key=jax.random.key(1)), in_axes=(None, 0), axis_name=losses.AXIS
        )
        stats = jax.eval_shape(run, like, batch).batch_stats
        assert {str(a.dtype) for a in jax.tree.leaves(stats)} == {'float32'}


def test_what_bfloat16_has_not_is_refused():
    def apply_(variables, batch, *, train, key):
        return Answer(jnp.abs(jnp.fft.rfft(batch['x'])).mean(1)[:, :2], variables['batch_stats'])

    spectral = Model(lambda key: {'params': {}, 'batch_stats': {}}, apply_)
    precision.check(spectral, Recipe(), SIGNAL)
    with pytest.raises(RequestError, match=r'recipe\.precision=bfloat16: .*RFFT.*leave it as float32'):
        precision.check(precision.computed(spectral, LOW), LOW, SIGNAL)


SOME = ('eegnet', 'emg2qwerty', 'labram', 'codebrain')


@pytest.mark.parametrize(
    'name', often((m.name for m in MODELS.values() if m.kind == 'network' and not m.accelerator), SOME)
)
def test_every_network_computes_in_bfloat16(name):
    """By shapes alone: none is refused, what it gives is float32, and what it learns stays so."""
    model = MODELS[name]
    signal = shapes.fitting(model, 600)
    network = build(model, signal, 20 if 'angles' in model.targets else 2, LOW)
    precision.check(network, LOW, signal)
    like = jax.eval_shape(network.init, jax.random.key(0))
    batch = {
        'x': jax.ShapeDtypeStruct((1, 2, signal.n_chans, signal.n_times), jnp.float32),
        'mask': jnp.ones((1, 2), bool),
    }

    def loss(params, batch):
        answer = network.apply({**like_stats, 'params': params}, batch, train=True, key=jax.random.key(1))
        return answer.outputs.sum()

    like_stats = {'batch_stats': jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), like['batch_stats'])}
    gradient = jax.vmap(jax.grad(loss), in_axes=(None, 0), axis_name=losses.AXIS)
    found = jax.eval_shape(gradient, like['params'], batch)
    assert {str(a.dtype) for a in jax.tree.leaves(found)} == {'float32'}


def test_it_is_part_of_the_key_and_other_words_are_refused():
    cell = small.cell()
    same, low = (encoders.of(cell, precision=name) for name in ('float32', 'bfloat16'))
    assert same.key == dataclasses.replace(cell, model=encoders.SPEC).key != low.key
    with pytest.raises(
        RequestError, match=r"--set recipe\.precision: got 'float16', expected one of float32, bfloat16"
    ):
        apply(cell.task, cell.dataset, (('recipe.precision', 'float16'),))


@pytest.mark.slow
def test_features_of_an_encoder_in_bfloat16_are_others(data, tmp_path):
    """Its head is small, and learns in float32."""
    at = Context(tmp_path, None, Progress(), StopSignal(), 'resume')
    for name in ('float32', 'bfloat16'):
        cell = encoders.of(small.cell(max_epochs=1), adaptation='ridge_probe', precision=name)
        assert probe.learnt_by(cell.task.recipe).precision == 'float32'
        dict(probe.train_probe(cell, data, [33], Compiler(), at))
    values = []
    for path in (tmp_path / 'features').glob('*/manifest.json'):
        kept = {'folder': path.parent, 'manifest': files.read_json(path), 'signal': probes.features(8)}
        values.append(prepared_set.read(dataclasses.replace(data, **kept, clamp=None), np.arange(64), None))
    assert len(values) == 2 and not np.array_equal(*values)
    np.testing.assert_allclose(*values, atol=0.1)
