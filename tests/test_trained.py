"""A trained network from its result: it answers with the bits that are stored, or says in words why it cannot."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import jbench
from jbench import files, run, trained
from jbench.data.load import loader, prepared_set
from jbench.models import MODELS
from jbench.plan import select
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json

FLAGS = [
    *('--task=p3', '--seeds=33', '--simulated=yes', '--format=json'),
    *('--set=recipe.max_epochs=1', '--set=recipe.batch_size=50'),
]
NET = '''\
import jax
import jax.numpy as jnp

from jbench.models.model import Answer, Model


def net(signal, n_out):
    """Linear in the means of the channels; counts its steps in an integer."""
    def init(key):
        weights = jax.random.normal(key, (signal.n_chans, n_out))
        return {'params': {'w.x': weights}, 'batch_stats': {'n': jnp.zeros((), jnp.int32)}}

    def apply(variables, batch, *, train, key):
        state = {'n': variables['batch_stats']['n'] + train}
        return Answer(batch['x'].mean(-1) @ variables['params']['w.x'], state)

    return Model(init, apply)
'''


class Stored(NamedTuple):
    """What lies in a work folder."""

    workdir: Path
    paths: dict[str, Path]  # of results, by model
    file: Path  # of the user's own model


@pytest.fixture(scope='module')
def stored(tmp_path_factory):
    """Models on five simulated subjects of P3, the untrained one in a try on few windows. The test part takes several
    chunks, its last batch is not full."""
    workdir, known = tmp_path_factory.mktemp('trained'), select.datasets()
    few = dataclasses.replace(known['SimulatedP3'], n_subjects=5, n_recordings=5)
    (workdir / 'mine.py').write_text(NET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
        patch.setattr(loader, 'CHUNK_BATCHES', 1)
        argv = [*FLAGS, f'--workdir={workdir}']
        assert run.main([*argv, f'--model=eegnet,dummy,{workdir}/mine.py:net']) == 0
        assert run.main([*argv, '--model=chance', '--debug']) == 0
        paths = {p.parts[-3].partition('@')[0]: p for p in workdir.glob('results/*/*/*/*/seed33.json')}
        yield Stored(workdir, paths, workdir / 'mine.py')


@pytest.mark.slow
def test_one_fit_is_tested_while_channels_fail(stored, tmp_path, capsys, monkeypatch):
    """A point of the curve is what a run with that share scores, whose training is the same."""
    known = select.datasets()
    few = dataclasses.replace(known['SimulatedP3'], n_subjects=5, n_recordings=5)
    monkeypatch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
    path = stored.paths['eegnet']
    argv = [*FLAGS, f'--workdir={tmp_path}', '--model=eegnet', '--set=recipe.mask_channels=0.5']
    (tmp_path / 'prepared').symlink_to(stored.workdir / 'prepared')
    assert run.main(argv) == 0
    (whole,) = tmp_path.glob('results/*/*/*/*/seed33.json')
    capsys.readouterr()
    assert run.main(['report', 'robustness', str(path), '--share=0.5,0', '--format=json', f'--out={tmp_path}']) == 0
    found = json.loads(capsys.readouterr().out)
    for row, one in zip(found['rows'], (path, whole), strict=True):
        first = result_file.read(one)['headline']
        assert (row['score'], [row['low'], row['high']]) == (first['value'], first['interval'] or [None, None])
    assert found['rows'][0]['score'] != found['rows'][1]['score'] and [r['share'] for r in found['rows']] == [0, 0.5]
    assert sorted(Path(p).name for p in found['files']) == ['robustness.csv', 'robustness.png', 'robustness.svg']
    assert len((tmp_path / 'robustness.csv').read_text().splitlines()) == 3
    assert run.main(['report', 'robustness', str(path), '--share=0', f'--out={tmp_path}']) == 0
    assert 'p3@2/SimulatedP3 (simulated, custom)' in capsys.readouterr().out


@pytest.mark.parametrize('share', ['1', '-0.1', 'x', ''])
def test_shares_that_are_none_are_refused(share, capsys):
    assert run.main(['report', 'robustness', 'absent.json', f'--share={share}']) == 2
    assert f'--share={share}: expected shares of the channels from 0 to below 1' in capsys.readouterr().err


@pytest.fixture
def copied(stored, tmp_path, monkeypatch):
    """The results elsewhere, without the prepared sets."""
    shutil.copytree(stored.workdir / 'results', tmp_path / 'results')
    paths = {k: tmp_path / p.relative_to(stored.workdir) for k, p in stored.paths.items()}
    return Stored(tmp_path, paths, stored.file)


def load(at: Stored, name: str) -> trained.TrainedModel:
    return jbench.load_model(at.paths[name], model=f'{at.file}:net' if name == 'net' else None)


def windows(at: Stored, path: Path) -> np.ndarray:
    """The test windows as `jbench.load` gives them."""
    result = result_file.read(path)
    task = from_json(Cell, result['config']).task
    (manifest,) = at.workdir.glob(f'prepared/{result["dataset"]}/*/manifest.json')
    data = prepared_set.open_set(manifest.parent, task)
    rows = data.rows('test')
    return prepared_set.read(data, rows[np.isin(data.ids[rows], result_file.load_predictions(path)['id'])], data.clamp)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['eegnet', 'chance', 'net'])
def test_it_answers_with_the_bits_that_are_stored(name, stored, copied):
    """With dropout and batch statistics, untrained, of the user's own file; other targets: test_kinds.py."""
    found = result_file.load_predictions(stored.paths[name])['outputs']
    model, x = load(stored, name), windows(stored, stored.paths[name])
    assert len(x) == len(found) > model.cell.task.recipe.batch_size, 'several chunks'
    np.testing.assert_array_equal(model.predict(), found)
    np.testing.assert_array_equal(model.predict(x), found)
    alone = load(copied, name)
    np.testing.assert_array_equal(alone.predict(x), found, 'without the prepared set')
    np.testing.assert_allclose(alone.predict(x[3:5]), found[3:5], rtol=1e-5)
    with pytest.raises(RequestError, match=r'no prepared set \w+ in .*; make it with .* --prepare .*predict\(x\)'):
        alone.predict()


@pytest.mark.slow
def test_what_it_knows(stored):
    model = load(stored, 'eegnet')
    assert model.spec is MODELS['eegnet'] and model.classes == ('Target', 'NonTarget')
    assert (model.signal.n_chans, model.signal.n_times, len(model.signal.ch_names)) == (16, 120, 16)
    assert model.result == result_file.read(stored.paths['eegnet']) and 'params' in model.variables
    x, stats = windows(stored, stored.paths['eegnet'])[:6], model.variables['batch_stats']
    outputs = model.model.apply(model.variables, {'x': x, 'mask': np.ones(6, bool)}, train=False, key=None)[0]
    np.testing.assert_allclose(outputs, model.predict(x), rtol=1e-4, atol=1e-5)
    assert stats, 'of batch normalisation'
    with pytest.raises(RequestError, match=r'got windows \[6, 15, 120\], expected \[N, 16, 120\]'):
        model.predict(x[:, :15])
    with pytest.raises(RequestError, match='at least one'):
        model.predict(x[:0])
    own = load(stored, 'net').variables
    assert own['batch_stats']['n'].dtype == np.int32 and own['batch_stats']['n'] > 0 and list(own['params']) == ['w.x']


@pytest.mark.slow
def test_what_keeps_no_weights_says_so(copied, monkeypatch):
    with pytest.raises(RequestError, match='dummy is an estimator, which keeps no weights'):
        load(copied, 'dummy')
    path = copied.paths['eegnet'].with_suffix('.safetensors')
    whole = path.read_bytes()
    for content, words in ((whole[:-1], 'damaged'), (b'', 'damaged'), (whole[:-1] + b'!', 'damaged: expected sha256')):
        path.write_bytes(content)
        with pytest.raises(RequestError, match=rf'{path}: {words}.*train it again with --if_exists=overwrite'):
            load(copied, 'eegnet')
    path.write_bytes(whole)
    told = result_file.read(copied.paths['eegnet'])
    path.write_bytes(copied.paths['chance'].with_suffix('.safetensors').read_bytes())
    with monkeypatch.context() as patch:  # as a result says it
        patch.setattr(result_file, 'read', lambda p: told | {'weights': {'sha256': files.sha256_file(path)}})
        load(copied, 'eegnet')
        path.write_bytes(whole)
        patch.setattr(result_file, 'read', lambda p: told | {'weights': {'sha256': '0' * 64}})
        with pytest.raises(RequestError, match=f'{path}: damaged: expected sha256 0000'):
            load(copied, 'eegnet')
        path.unlink()
        with pytest.raises(RequestError, match=f'{path}: cannot read the weights: No such file'):
            load(copied, 'eegnet')
        patch.setattr(result_file, 'read', lambda p: told | {'weights': None})
        with pytest.raises(RequestError, match=r'were not kept .* --keep_weights=yes --if_exists=overwrite'):
            load(copied, 'eegnet')
    with pytest.raises(FileNotFoundError):
        jbench.load_model(copied.workdir / 'seed1.json')


@pytest.mark.slow
def test_another_network_than_the_one_that_was_trained_is_refused(copied, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(MODELS, 'eegnet', dataclasses.replace(MODELS['eegnet'], version=9))
        with pytest.raises(RequestError, match=r'trained by eegnet, version 1, which was mended since \(version 9\)'):
            load(copied, 'eegnet')
        patch.delitem(MODELS, 'eegnet')
        with pytest.raises(RequestError, match='which is not in this jbench'):
            load(copied, 'eegnet')
    with monkeypatch.context() as patch:
        kept = load(copied, 'eegnet').result
        kept['config']['model']['target'] = 'no.such.module:function'  # a name in a result is looked up, never imported
        patch.setattr(result_file, 'read', lambda path: kept)
        assert load(copied, 'eegnet').spec is MODELS['eegnet']
    with pytest.raises(RequestError, match='unused, because'):
        jbench.load_model(copied.paths['eegnet'], model=f'{copied.file}:net')
    with pytest.raises(
        RequestError, match=r"a result alone does not make run; .*model='mine.py:net'\), or --model=mine.py:net"
    ):
        jbench.load_model(copied.paths['net'])
    changed = tmp_path / 'other.py'
    changed.write_text(NET + '\n')
    with pytest.raises(RequestError, match=r'trained by net@\w+ .* is net@\w+: the file changed'):
        jbench.load_model(copied.paths['net'], model=f'{changed}:net')
    changed.write_text(NET)  # the same file in another place
    assert jbench.load_model(copied.paths['net'], model=f'{changed}:net').spec.name.startswith('net@')


@pytest.mark.slow
def test_weights_are_kept_or_not_as_asked(stored, tmp_path):
    shutil.copytree(stored.workdir / 'prepared', tmp_path / 'prepared')
    kept = stored.paths['eegnet'].with_suffix('.safetensors')
    path = tmp_path / kept.relative_to(stored.workdir)
    argv = [*FLAGS, '--model=eegnet', f'--workdir={tmp_path}', '--if_exists=overwrite']
    assert run.main(argv) == 0 and path.read_bytes() == kept.read_bytes(), 'the same bytes'
    assert run.main([*argv, '--keep_weights=no']) == 0 and not path.exists()
    assert path.with_suffix('.json').exists()
    assert not stored.paths['dummy'].with_suffix('.safetensors').exists()


@pytest.mark.slow
def test_windows_of_another_split_are_not_answered(stored):
    model = load(stored, 'eegnet')
    other = dataclasses.replace(model.cell.task.split, seed=34)
    moved = dataclasses.replace(model.cell, task=dataclasses.replace(model.cell.task, split=other))
    with pytest.raises(RequestError, match='its test windows are not those of this jbench'):
        dataclasses.replace(model, cell=moved).predict()
