"""Features for others: the network's own, to the bit, of every window once; and the report of what they hold."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest
from small import N_SUBJECTS

import jbench
from jbench import run
from jbench.alignment.metrics.similarity import cka
from jbench.data.load import loader, prepared_set
from jbench.data.load.shards import Shards
from jbench.data.prepare import build_set
from jbench.models import model as models
from jbench.models import user_model
from jbench.models.foundation import cbramod
from jbench.plan import request, select
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json
from jbench.train import features, optim, parallel, programs

SIZE = 100  # windows of a batch
CHANGES = {'recipe.batch_size': SIZE, 'recipe.max_epochs': 1}
NET = '''\
import jax
import jax.numpy as jnp

from jbench.models.model import Answer, Model


def net(signal, n_out, *, broken=False):
    """Tokens of ten samples."""
    def init(key):
        a, b = jax.random.split(key)
        wide = jax.random.normal(a, (signal.n_chans * 10, 3))
        return {'params': {'wide': wide, 'out': jax.random.normal(b, (3, n_out))}, 'batch_stats': {}}

    def apply(variables, batch, *, train, key):
        b, c, t = batch['x'].shape
        cut = batch['x'].reshape(b, c, t // 10, 10).transpose(0, 2, 1, 3).reshape(b, t // 10, c * 10)
        tokens = jnp.tanh(cut @ variables['params']['wide'])
        found = {'tokens': tokens / (0 if broken else 1), 'penultimate': tokens.mean(1), 'cut': cut[:, :, None]}
        return Answer(tokens.mean(1) @ variables['params']['out'], {}, found)

    return Model(init, apply)
'''


class Place(NamedTuple):
    """A work folder with a trained network."""

    workdir: Path
    net: str
    result: Path


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Five simulated subjects of p3. Several chunks of several batches, the last not full."""
    workdir, known = tmp_path_factory.mktemp('features'), select.datasets()
    few = dataclasses.replace(known['SimulatedP3'], n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS)
    (workdir / 'mine.py').write_text(NET)
    net = f'{workdir}/mine.py:net'
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv('JBENCH_DATA', raising=False)
        patch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
        patch.setattr(loader, 'CHUNK_BATCHES', 2)
        run.results('p3', net, seeds=[33], workdir=workdir, simulated=True, changes=CHANGES)
        (result,) = workdir.glob('results/*/*/*/*/seed33.json')
        yield Place(workdir, net, result)


def ask(place: Place, model: str = '', **more) -> features.Features:
    return jbench.features(
        model or place.net, 'p3', **{'workdir': place.workdir, 'simulated': True, 'changes': CHANGES, **more}
    )


def own(place: Place, layer: str, seed: int) -> tuple[np.ndarray, prepared_set.PreparedSet]:
    """The features that the network itself gives, batch by batch, at the weights that its training draws."""
    cell = from_json(Cell, json.loads(place.result.read_text())['config'])
    (manifest,) = place.workdir.glob('prepared/*/*/manifest.json')
    data = prepared_set.open_set(manifest.parent, cell.task)
    spec = user_model.find(place.net)
    signal = programs.asked_signal(spec, data.signal)
    network = programs.build(spec, signal, data.n_out)
    tx = optim.adamw(cell.task.recipe, 1)
    made = parallel.compile_programs(network, tx, cell.task.recipe, signal, data.n_out)
    state = made.draw(np.uint32(seed))
    x = prepared_set.read(data, np.flatnonzero(data.split != ''), data.clamp)
    short = -len(x) % SIZE
    filled = np.concatenate([x, np.repeat(x[:1], short, 0)])
    compute = models.features(network, layer)
    parts = [compute(state, filled[k : k + SIZE])[layer] for k in range(0, len(filled), SIZE)]
    return np.concatenate(parts)[: len(x)], data


@pytest.mark.slow
@pytest.mark.parametrize('layer', ['tokens', 'penultimate', 'cut'])
def test_they_are_the_networks_own_to_the_bit(layer, place):
    found, (expected, data) = ask(place, layer=layer, seed=5), own(place, layer, 5)
    assert len(expected) % SIZE and len(expected) > 2 * 2 * SIZE, 'several chunks, the last batch not full'
    assert found.values.dtype == np.float32 and found.layer == layer
    np.testing.assert_array_equal(found.values, expected)
    rows = np.flatnonzero(data.split != '')
    for name in ('ids', 'subjects', 'y', 'split'):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name)[rows])
    assert len(set(found.ids.tolist())) == len(found.ids) == len(found.values)
    assert {*found.split.tolist()} == {'train', 'valid', 'test'} and found.ch_names == data.signal.ch_names
    assert found.classes == ('Target', 'NonTarget') and found.model.startswith('net@')


def test_windows_that_no_part_has_are_left_out(place, monkeypatch):
    whole, opened = ask(place), prepared_set.open_set

    def fewer(*args, **more):
        data = opened(*args, **more)
        return dataclasses.replace(data, split=np.where(np.arange(len(data.split)) % 3 == 0, '', data.split))

    monkeypatch.setattr(prepared_set, 'open_set', fewer)
    found = ask(place)
    there = np.isin(whole.ids, found.ids)
    assert 0 < len(found.ids) < len(whole.ids)
    np.testing.assert_array_equal(whole.ids[there], found.ids)
    np.testing.assert_allclose(whole.values[there], found.values, rtol=1e-5, atol=1e-6)


def test_training_windows_that_are_not_drawn_are_left_out(place):
    few, whole = ask(place, changes={**CHANGES, 'recipe.few_shot': 2}), ask(place)
    assert {*few.split.tolist()} == {'train', 'valid', 'test'} and len(few.ids) < len(whole.ids)
    rows = whole.split != 'train'
    np.testing.assert_array_equal(few.ids[few.split != 'train'], whole.ids[rows])


@pytest.mark.slow
def test_of_a_probe_they_are_those_that_its_head_reads(place):
    """Its encoder starts from weights, whatever a head is put behind it."""
    changes = {'recipe.adaptation': 'probe'}
    plain, probed = ask(place, 'jbench_tiny', changes={}), ask(place, 'jbench_tiny', changes=changes)
    np.testing.assert_array_equal(probed.values, plain.values)
    maps = ask(place, 'jbench_tiny', layer='spatial', changes={}).values
    other = ask(place, 'jbench_tiny', changes=changes | {'recipe.layer': 'spatial'})
    np.testing.assert_array_equal(other.values, maps.reshape(len(maps), -1))


def test_the_seed_draws_the_weights(place):
    one, again, other = (ask(place, seed=seed).values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1


@pytest.mark.slow
def test_pooled_is_the_mean_over_tokens(place):
    tokens, pooled = ask(place, layer='tokens'), ask(place, layer='tokens', pooled=True)
    assert tokens.values.shape == (len(tokens.ids), 12, 3)
    np.testing.assert_array_equal(pooled.values, tokens.values.mean(1, dtype=np.float64).astype(np.float32))
    np.testing.assert_array_equal(ask(place, pooled=True).values, ask(place).values, 'it has no tokens')


def test_of_a_trained_network(place):
    model = jbench.load_model(place.result, model=place.net)
    found, test = model.features(layer='penultimate'), model.features(split='test')
    np.testing.assert_array_equal(found.ids, ask(place).ids)
    tested = found.split == 'test'
    np.testing.assert_array_equal(test.ids, found.ids[tested])
    np.testing.assert_allclose(test.values, found.values[tested], rtol=1e-5, atol=1e-6)
    outputs = test.values @ np.asarray(model.variables['params']['out'])
    np.testing.assert_allclose(outputs, model.predict(), rtol=1e-4, atol=1e-5)
    assert np.abs(found.values - ask(place).values).max() > 1e-4, 'it learnt'
    folder = next(place.workdir.glob('prepared/*/*/manifest.json')).parent
    data = prepared_set.open_set(folder, model.cell.task)
    x = prepared_set.read(data, data.rows('test'), data.clamp)
    np.testing.assert_array_equal(model.features(x), test.values)
    np.testing.assert_allclose(
        model.features(x[:3], layer='tokens', pooled=True), test.values[:3], rtol=1e-5, atol=1e-6
    )
    with pytest.raises(RequestError, match=r'features: got windows \[6, 15, 120\], expected \[N, 16, 120\]'):
        model.features(x[:6, :15])
    with pytest.raises(RequestError, match=r"unknown part 'tests'; did you mean 'test'"):
        model.features(split='tests')


def test_a_network_that_asks_gets_the_channels_that_are_there(place, monkeypatch):
    model = jbench.load_model(place.result, model=place.net)
    folder = next(place.workdir.glob('prepared/*/*/manifest.json')).parent
    data = prepared_set.open_set(folder, model.cell.task)
    signal = dataclasses.replace(data.signal, channel_mask=True)

    def apply(variables, batch, *, train, key):
        return models.Answer(batch['x'], {}, {'penultimate': batch['channel_mask'].astype(np.float32)})

    encoder = features.Encoder('masks', 'user', models.Model(lambda key: {}, apply), {}, signal, SIZE)
    mask = np.arange(16) != 3

    def there(self, numbers):
        return np.where(np.asarray(numbers)[:, None] % 2 == 0, mask, True)

    monkeypatch.setattr(Shards, 'channel_mask', there)
    found = features.of_set(encoder, data, model.cell)
    np.testing.assert_array_equal(found.values, there(None, np.flatnonzero(data.split != '')))
    assert features.of_windows(encoder, np.zeros((3, 16, 120), np.float32)).all()


ERRORS = {
    'another name': ({'layer': 'penultimat'}, r"unknown feature of this network 'penultimat'; did you mean 'penult"),
    'no tokens': ({'layer': 'cut', 'pooled': True}, r"feature 'cut' of .*, \[\d+, 12, 1, 160\], is not known to be"),
    'maps': ({'model': 'eegnet', 'pooled': True}, r"'penultimate' of p3/SimulatedP3 eegnet, \[\d+, 16, 3\], is not"),
    'an estimator': ({'model': 'dummy', 'changes': {}}, 'dummy is an estimator, which has no features'),
    'several': ({'model': 'eegnet,atcnet'}, '2 tasks with models, expected one: p3/SimulatedP3 eegnet, p3/'),
    'weights': ({'weights': 'absent'}, '--weights=absent: no such file'),
    'no weights here': ({'model': 'cbramod', 'changes': {'window.duration': 1.0}}, 'starts from pretrained weights'),
    'a field': ({'changes': {'window.duratio': 1.0}}, "unknown option 'window.duratio'"),
    'no folder': ({'data_dir': '/absent'}, '--data_dir=/absent: no such folder'),
    'a seed': ({'seed': -1}, 'expected different integers'),
    'two seeds': ({'seed': '1,2'}, 'expected one integer'),
    'simulated': ({'simulated': 'maybe'}, "argument --simulated: invalid choice: 'maybe'"),
    'no numbers': ({'broken': True, 'layer': 'tokens'}, r'the features of window \d+ are not finite'),
}


@pytest.mark.parametrize('name', ERRORS)
def test_what_is_wrong_is_said(name, place):
    more, words = ERRORS[name]
    more = dict(more)
    if more.pop('broken', False):
        more['model'] = f'{place.net}:broken=True'
        file = place.workdir / 'broken.py'
        file.write_text(NET.replace('broken=False', 'broken=True'))
        more['model'] = f'{file}:net'
    with pytest.raises(RequestError, match=words):
        ask(place, **more)


def test_what_does_not_fit_in_memory_is_refused_before_it_is_computed(place, monkeypatch):
    monkeypatch.setattr(features, 'free_memory', lambda: 50_000)
    with pytest.raises(RequestError, match=r"feature 'tokens', f32 \[\d+, 12, 3\], takes 0.0 GB.*pooled=True"):
        ask(place, layer='tokens')
    assert ask(place, layer='tokens', pooled=True).values.shape[1:] == (3,)


def said(*argv: object) -> int:
    return run.main(['report', 'identity', *map(str, argv)])


def test_the_report_tells_how_much_is_whose(place, capsys):
    flags = (
        '--task=p3',
        f'--workdir={place.workdir}',
        '--simulated=yes',
        '--draws=39',
        f'--set=recipe.batch_size={SIZE}',
    )
    assert said(*flags, f'--model={place.net},dummy', '--format=json') == 0
    (row,) = json.loads(capsys.readouterr().out)
    found = row['found']
    assert row['weights'] == 'start' and row['width'] == 3 and found['n_subjects'] == N_SUBJECTS
    total = found['subject']['share'] + found['target']['share'] + found['residual']
    assert total == pytest.approx(1) and found['meaning']
    values = ask(place)
    from jbench.report import identity

    expected = identity.partition(values.values, values.subjects, values.y, 39)
    assert found['subject'] == expected.subject._asdict() and found['target'] == expected.target._asdict()
    assert said(*flags, f'--model={place.net}') == 0
    out = capsys.readouterr().out
    assert 'p3@2/SimulatedP3 (simulated), layer penultimate' in out and 'chance' in out
    assert f'{100 * expected.subject.share:.1f}' in out and re.search(r'\bp: of as large', out)
    assert all(len(line) <= 110 for line in out.splitlines()[4:])


def test_the_report_takes_trained_networks(place, capsys):
    assert said(place.result, f'--model={place.net}', '--draws=19', '--format=json') == 0
    (row,) = json.loads(capsys.readouterr().out)
    n = len(jbench.load_model(place.result, model=place.net).features(split='test').ids)
    assert row['found']['n_windows'] == n and row['weights'] == f'trained: {place.result}'


@pytest.mark.parametrize(
    ('argv', 'words'),
    [
        ((), 'expected either --task'),
        (('x.json', '--task=p3'), 'expected either --task'),
        (('absent/seed33.json',), 'no such result'),
        (('absent/seed33.json', '--weights=none'), '--weights: unused beside results'),
        (('absent/seed33.json', '--seed=33', '--data_dir=x'), '--seed, --data_dir: unused beside results'),
        (('absent/seed33.json', '--workdir=x', '--simulated=no'), '--workdir, --simulated: unused beside results'),
        (('--task=p3', '--draws=5'), 'fewer than 19 shuffles'),
        (('--task=p3', '--model=dummy', '--simulated=yes'), 'estimators have no features'),
        (('--task=p3', '--lyer=x'), '--layer'),
        (('--task=p3', '--seed=1,2', '--simulated=yes'), 'expected one integer'),
    ],
)
def test_the_report_refuses_in_words(argv, words, capsys):
    assert said(*argv) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_an_encoder_with_and_without_weights(place, tmp_path, monkeypatch):
    """CBraMod of two layers at random weights; the same from a file, whatever is drawn."""
    monkeypatch.setattr(cbramod, 'LAYERS', 2)
    changes = {'window.duration': 1.0}
    drawn = ask(place, 'cbramod', weights='none', seed=3, layer='tokens', changes=changes)
    assert drawn.values.shape[1:] == (16, 200) and drawn.model == 'cbramod:weights=none'
    asked = request.Request('p3', 'cbramod:weights=none', tuple(changes.items()), 'yes')
    (cell,) = request.plan(asked, None, place.workdir).cells
    folder, _ = build_set.locate(cell.task, cell.dataset, None, place.workdir)
    data = prepared_set.open_set(folder, cell.task)
    network = programs.build(cell.model, programs.asked_signal(cell.model, data.signal), data.n_out)
    state = jax.jit(lambda seed: parallel.init_state(network, seed))(np.uint32(3))
    variables = {k: state[k] for k in ('params', 'batch_stats')}
    size = cell.task.recipe.batch_size
    x = prepared_set.read(data, np.flatnonzero(data.split != '')[:size], data.clamp)
    own = models.features(network, 'tokens')(variables, x)['tokens']
    np.testing.assert_array_equal(drawn.values[:size], own)
    models.save(network, variables, tmp_path / 'model.safetensors')
    loaded = ask(place, 'cbramod', weights=tmp_path / 'model.safetensors', layer='tokens', changes=changes)
    np.testing.assert_array_equal(loaded.values, drawn.values)


def test_metrics_of_alignment_take_them_as_they_are(place):
    """Two networks of other seeds are less alike than one is to itself, whatever its features are scaled by."""
    a, b = (ask(place, seed=seed, layer='penultimate') for seed in (5, 6))
    assert a.ids.tolist() == b.ids.tolist()
    x, y = (found.values.reshape(len(found.ids), -1) for found in (a, b))
    assert cka(x, 3 * x) == pytest.approx(1) and cka(x, y) < 0.99
    assert cka(x, np.random.default_rng(0).permutation(x)) < 0.1 < cka(x, y)
