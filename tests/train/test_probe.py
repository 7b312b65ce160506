"""Probes: the encoder stays bit for bit, its features are computed once, and results are those of the slow way."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import types
from pathlib import Path

import encoders
import jax
import numpy as np
import pytest
import small

from jbench import trained, training
from jbench.context import Context
from jbench.data.load import loader, prepared_set
from jbench.data.load.streams import Places
from jbench.models import MODELS
from jbench.models.foundation import probes
from jbench.progress import Interrupted, Progress, StopSignal
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.spec.recipe import Recipe
from jbench.train import fit, frozen, optim, parallel, probe, seeds
from jbench.train.programs import Compiler, build

HEADS = ['probe', 'mlp_probe', 'ridge_probe']


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('probe'))


@pytest.fixture(scope='module')
def compiler():
    return Compiler()


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
    return tmp_path_factory.mktemp('work')


@pytest.fixture
def encoded(monkeypatch):
    """How many windows were encoded."""
    counted, before = [], frozen._encoded

    def count(data, encoder, rows, context):
        counted.append(len(rows))
        return before(data, encoder, rows, context)

    monkeypatch.setattr(frozen, '_encoded', count)
    return counted


def context(at, stop=None):
    return Context(at, None, Progress(), stop or StopSignal(), 'resume')


def probed(cell, data, compiler, at, asked=(33,)):
    return dict(probe.train_probe(cell, data, list(asked), compiler, context(at)))


def start(data, seed=33):
    """The encoder that a seed draws."""
    plain = build(encoders.SPEC, dataclasses.replace(data.signal, ch_names=()), data.n_out)
    return plain, parallel.init_state(plain, seed)


@pytest.mark.slow
@pytest.mark.parametrize('head', HEADS)
def test_no_parameter_of_the_encoder_moves(data, compiler, workdir, head):
    cell = encoders.of(small.cell(max_epochs=2), adaptation=head)
    outcome = probed(cell, data, compiler, workdir)[33]
    plain, drawn = start(data)
    before = encoders.leaves(probes.without_head(plain, {n: drawn[n] for n in ('params', 'batch_stats')})['params'])
    after = encoders.leaves(outcome['variables']['params']['encoder'])
    assert before.keys() == after.keys() and 'linear.weight' not in after and 'embed.weight' in after
    for name, array in before.items():
        np.testing.assert_array_equal(np.asarray(after[name]), np.asarray(array), err_msg=name)
    own = {'probe': 18, 'ridge_probe': 18, 'mlp_probe': 256 * 8 + 256 + 2 * 256 + 2}[head]
    size = sum(a.size for a in after.values())
    assert outcome['n_parameters'] == {'total': size + own, 'trainable': own}


@pytest.mark.slow
@pytest.mark.parametrize('head', ['probe', 'mlp_probe'])
def test_features_are_those_of_the_encoder_in_evaluation(head, data, compiler, workdir):
    """And a probe on them learns what the whole network learns whose encoder answers each time."""
    cell = encoders.of(small.cell(max_epochs=2), adaptation=head)
    outcome = probed(cell, data, compiler, workdir)[33]
    signal = dataclasses.replace(data.signal, ch_names=())
    attached, recipe = build(encoders.SPEC, signal, data.n_out, cell.task.recipe), cell.task.recipe
    slow = dataclasses.replace(recipe, adaptation='full', trainable=(('encoder.*', 0.0),))
    batches = loader.n_batches(len(data.rows('train')), slow.batch_size)
    programs = parallel.compile_programs(attached, optim.adamw(slow, 1), slow, signal, data.n_out)
    train, valid, test = (loader.Loader(data, (s,), slow.batch_size) for s in ('train', 'valid', 'test'))
    drawn = parallel.init_state(attached, 33)
    new = parallel.init_state(build(probes.head_of(recipe), probes.features(encoders.WIDTH), data.n_out), 33)
    drawn['params'] = {**drawn['params'], 'encoder': outcome['variables']['params']['encoder'], 'head': new['params']}
    before = jax.device_get(encoders.leaves(new['params']))  # the training takes its first state over
    tx = optim.adamw(slow, batches * fit.length(slow, batches).most)
    state = parallel.new_state(drawn, tx, fit.loss_weights(slow, train))
    fitted = fit.fit(programs, state, train, valid, slow, fit.monitor_of(cell.task), fit.Watch())
    ours, theirs = (encoders.leaves(v['params']['head']) for v in (outcome['variables'], fitted.variables))
    for name, array in theirs.items():
        np.testing.assert_allclose(np.asarray(ours[name]), np.asarray(array), rtol=1e-4, atol=1e-5)
        moved = abs(array - before[name]).max()
        assert moved > (1e-2 if array.ndim > 1 else 1e-3)  # it learnt; of two equal classes the bias hardly moves
    outputs = parallel.predict(programs, fitted.variables, test)
    np.testing.assert_allclose(outcome['predictions']['outputs'], outputs, rtol=1e-4, atol=1e-5)
    assert [h['monitor'] for h in outcome['history']] == pytest.approx([h['monitor'] for h in fitted.history])


@pytest.mark.slow
def test_each_window_is_encoded_once(data, compiler, tmp_path, encoded):
    """For all heads, rates and runs; another seed of an encoder without weights is another encoder."""
    for recipe in ({'adaptation': 'ridge_probe'}, {'adaptation': 'probe'}, {'adaptation': 'probe', 'lr': 0.5}):
        probed(encoders.of(small.cell(max_epochs=1), **recipe), data, compiler, tmp_path)
    assert sum(encoded) == np.count_nonzero(data.split != '')
    cell = encoders.of(small.cell(max_epochs=1), adaptation='ridge_probe')
    probed(cell, data, compiler, tmp_path, (33, 34))
    assert sum(encoded) == 2 * np.count_nonzero(data.split != '')
    other = dataclasses.replace(data, factor=2.0)
    probed(cell, other, compiler, tmp_path)
    assert sum(encoded) == 3 * np.count_nonzero(data.split != '')


@pytest.mark.slow
def test_a_damaged_shard_is_encoded_again(data, compiler, tmp_path, encoded):
    cell = encoders.of(small.cell(), adaptation='ridge_probe')
    first = probed(cell, data, compiler, tmp_path)[33]
    (shard,) = (tmp_path / 'features').rglob('*.array_record')
    before, n = shard.read_bytes(), len(encoded)
    shard.write_bytes(before[:100] + bytes([before[100] ^ 1]) + before[101:])
    second = probed(cell, data, compiler, tmp_path)[33]
    assert len(encoded) == n + 1 and shard.read_bytes() == before
    np.testing.assert_array_equal(first['predictions']['outputs'], second['predictions']['outputs'])


@pytest.mark.slow
def test_what_was_encoded_before_an_interruption_stays(data, compiler, tmp_path, encoded, monkeypatch):
    monkeypatch.setattr(frozen, 'SHARD', 1)  # a chunk each
    cell = encoders.of(small.cell(batch_size=8), adaptation='ridge_probe')
    whole = probed(cell, data, compiler, tmp_path / 'whole')[33]
    n, done = len(encoded), len(encoded)
    assert n > 2

    class Stop(StopSignal):
        def __call__(self):
            return len(encoded) >= done + 2

    with pytest.raises(Interrupted):
        list(probe.train_probe(cell, data, [33], compiler, context(tmp_path / 'cut', Stop())))
    kept = len(list((tmp_path / 'cut' / 'features').rglob('*.array_record')))
    assert 0 < kept < n and not list((tmp_path / 'cut').rglob('manifest.json'))
    before = len(encoded)
    resumed = probed(cell, data, compiler, tmp_path / 'cut')[33]
    assert len(encoded) - before == n - kept
    np.testing.assert_array_equal(whole['predictions']['outputs'], resumed['predictions']['outputs'])


@pytest.mark.slow
def test_shards_of_batches_of_another_size_are_not_taken_up(data, compiler, tmp_path, monkeypatch):
    """They hold other windows: those that an interruption left."""
    monkeypatch.setattr(frozen, 'SHARD', 1)
    outcomes = []
    for at in ('resumed', 'whole'):
        for batch_size in (16, 8) if at == 'resumed' else (8,):
            cell = encoders.of(small.cell(batch_size=batch_size), adaptation='ridge_probe')
            outcomes.append(probed(cell, data, compiler, tmp_path / at)[33]['predictions']['outputs'])
            for manifest in (tmp_path / at).rglob('manifest.json'):
                manifest.unlink()
    np.testing.assert_array_equal(outcomes[1], outcomes[2])


@pytest.mark.slow
def test_features_are_in_the_cells_of_their_windows(data, tmp_path):
    """And of the places of electrodes that the encoder went by."""
    plain, drawn = start(data)
    whole = {n: drawn[n] for n in ('params', 'batch_stats')}
    signal, recipe = dataclasses.replace(data.signal, ch_names=()), small.cell().task.recipe

    def program():
        return parallel.compile_predict(plain, recipe, signal, data.n_out, feature='penultimate')

    encoder = frozen.Encoder('tiny', 'tiny', 1, whole, whole, program, 64, False)
    split = np.where(np.arange(len(data.split)) % 3 == 0, '', data.split)
    cells = np.array([f'cell {i}' for i in range(len(split))])
    part = dataclasses.replace(data, split=split, places=Places(cells, cells, np.arange(len(split)), cells))
    features, rows = frozen.ready(part, encoder, context(tmp_path)), np.flatnonzero(split != '')
    assert (features.about(np.arange(5))['cell'] == cells[rows[:5]]).all()
    other = frozen.ready(part, encoder._replace(places='0' * 64), context(tmp_path))
    assert other.folder != features.folder


def test_features_do_not_turn_as_channels_around_a_wrist():
    assert probe.learnt_by(Recipe(adaptation='probe', rotation=1)).rotation == 0


def test_a_ridge_learns_as_many_angles_as_it_answers():
    y = np.arange(24.0, dtype=np.float32).reshape(2, 12)
    features = types.SimpleNamespace(y=y, kind='angles', n_out=4, learnt=lambda y: y)
    taught, weights = probe._taught(features, np.array([1]))
    np.testing.assert_array_equal(taught, [[13, 16, 19, 22]])
    assert weights.tolist() == [1]


def test_features_that_are_no_numbers_are_refused(data, tmp_path):
    plain, drawn = start(data)
    whole = jax.tree.map(lambda a: np.full(a.shape, np.nan, np.float32), {n: drawn[n] for n in ('params',)})
    encoder = frozen.Encoder(
        'tiny',
        'tiny',
        1,
        whole,
        whole | {'batch_stats': {}},
        lambda: parallel.compile_predict(
            plain,
            small.cell().task.recipe,
            dataclasses.replace(data.signal, ch_names=()),
            data.n_out,
            feature='penultimate',
        ),
        64,
        False,
    )
    with pytest.raises(RequestError, match='not finite'):
        frozen.ready(data, encoder, context(tmp_path))


def test_a_network_without_a_head_is_refused(data, compiler, tmp_path):
    cell = dataclasses.replace(encoders.of(small.cell(), adaptation='probe'), model=MODELS['fmri_linear'])
    with pytest.raises(RequestError, match='no encoder'):
        probed(cell, data, compiler, tmp_path)


@pytest.mark.parametrize(
    'what', ['ridge_probe', *(pytest.param(a, marks=pytest.mark.slow) for a in ('mlp_probe', 'lora'))]
)
def test_a_kept_network_answers_as_it_was_tested(data, compiler, workdir, monkeypatch, what):
    """As files of weights alone say it: encoder and head are one network."""
    monkeypatch.setitem(MODELS, 'tiny', encoders.SPEC)
    cell = encoders.of(small.cell(max_epochs=2), adaptation=what, **({'lora_rank': 2} if what == 'lora' else {}))
    at = context(workdir / what)
    (result,) = training.train(cell, (data.folder, 0.0), [33], compiler, at)
    assert result['status'] == 'done' and result['config']['task']['recipe']['adaptation'] == what
    path = result_file.result_dir(at.workdir, cell) / 'seed33.json'
    model, kept = trained.load_model(path), result_file.load_predictions(path)
    again = prepared_set.open_set(data.folder, cell.task)
    x = prepared_set.read(again, again.rows('test'), again.clamp)
    np.testing.assert_allclose(model.predict(x), kept['outputs'], rtol=1e-4, atol=1e-4)


def test_probes_are_told_apart_from_seeds(data, compiler, workdir):
    """A resumed probe takes no checkpoint of another adaptation: keys of cells differ."""
    cells = [encoders.of(small.cell(), adaptation=head) for head in (*HEADS, 'full', 'lora')]
    assert len({c.key for c in cells}) == 5
    folders = {seeds.checkpoint_folder(c, 33, context(workdir)) for c in cells}
    assert len(folders) == 5


@pytest.mark.slow
def test_the_benchmark_finds_an_encoder_of_the_table_the_same_both_ways():
    """Two epochs of few windows: the figures of docs/speed.md come of as many as it says."""
    script = Path(__file__).parents[2] / 'benchmarks' / 'probing.py'

    def called(*argv):
        return subprocess.run([sys.executable, str(script), *argv], capture_output=True, text=True)

    wrong = called('--model=labrm')
    assert wrong.returncode == 2 and "unknown encoder 'labrm'; did you mean 'labram'?" in wrong.stderr
    done = called('--model=labram', '--windows=60', '--epochs=2', '--again=2')
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout.splitlines()[-1])
    assert row['again_epochs'] == 2 and row['loss'] > 0
    assert row['train_loss_difference'] < 1e-5 and row['monitor_difference'] == 0
