"""Results that somebody hands in: edited, with key and digests made anew."""

from __future__ import annotations

import copy
import datetime
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from families import params
from result_files import HISTORIC
from shapes import fitting

from jbench import files
from jbench.models import MODELS, factory
from jbench.plan import cells, select
from jbench.report import verify
from jbench.report.verify import problems
from jbench.results import checked, forged, older, predictions, result_file
from jbench.results.schema import as_text
from jbench.spec.cell import Cell
from jbench.spec.identity import from_json, to_json

Result = dict[str, Any]


def handed_in(folder: Path, change: Callable[[Result], object], version: str = 'v3') -> Path:
    """A historic result of eegnet, changed, with key, place and digest that fit."""
    (source,) = (HISTORIC / version).rglob('eegnet/*/seed33.json')
    result = copy.deepcopy(json.loads(source.read_text()))
    result['protocol']['debug'] = debug = False
    result['status'] = 'done'
    if version != 'v1':
        result['config']['debug'] = debug
    task = result['config']['task']
    for path, value in cells.in_epochs(select.datasets()['SimulatedP3'].recipe):
        if path.partition('.')[2] in task['recipe']:
            task['recipe'][path.partition('.')[2]] = value
    change(result)
    result['key'] = older.key(result) if version == 'v1' else from_json(Cell, result['config'], 'config').key
    names = (f'{result["task"]}@{result["task_version"]}', result['dataset'], result['model'], result['key'])
    path = folder.joinpath(*names, 'seed33.json')
    path.parent.mkdir(parents=True)
    for beside in source.parent.glob('seed33.*'):
        shutil.copy(beside, path.parent)
    path.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    return path


def put(place: str, value: Any) -> Callable[[Result], None]:
    """Sets a field by its path."""

    def change(result: Result) -> None:
        inner = result
        *parts, last = place.split('.')
        for part in parts:
            inner = inner[part]
        inner[last] = value

    return change


def every(*changes: Callable[[Result], object]) -> Callable[[Result], object]:
    return lambda result: [change(result) for change in changes]


@pytest.mark.parametrize('version', ['v1', 'v2', 'v3'])
def test_a_result_as_it_was_written_has_no_problem(version, tmp_path):
    assert problems(handed_in(tmp_path, lambda result: None, version)) == []


FORGED = {
    'epochs': (
        put('config.task.recipe.max_epochs', 9999),
        r'config\.task\.recipe\.max_epochs: written 9999, expected 20',
    ),
    'window': (put('config.task.window.start', 1.0), r'config\.task\.window\.start: written 1\.0, expected '),
    'target': (put('config.task.target.field', 'x'), r'config\.task\.target\.field: written x, expected '),
    'split': (put('config.task.split.seed', 34), r'config\.task\.split\.seed: written 34, expected 33'),
    'exclusions': (
        put('config.task.exclude', [{'dataset': 'SimulatedP3', 'subject': 's', 'reason': '', 'after_split': False}]),
        r"config\.task\.exclude: written \[\['s', False\]\], expected \[\]",
    ),
}
ONLY_NOW = {
    'a part of the signal': (put('config.task.signal.crop', {'start': 1.0}), r'config\.task\.signal\.crop: written '),
    'another value than said': (
        every(put('config.overrides', [['recipe.lr', 0.5]]), put('protocol.custom', ['recipe.lr=0.5'])),
        r'config\.task\.recipe\.lr: written 0\.01, expected 0\.5',
    ),
    'wishes of the model': (
        every(put('config.model.overrides', [['recipe.max_epochs', 9999]]), put('config.task.recipe.max_epochs', 9999)),
        r'config\.model\.overrides: written .*9999.*, expected \[\]',
    ),
    'wishes of an unknown version': (
        every(
            put('config.model.version', 0),
            put('config.model.overrides', [['window.start', 1.0]]),
            put('config.task.window.start', 1.0),
        ),
        'window.start is not for a model to say',
    ),
    'a version of the model to come': (put('config.model.version', 99), 'config.model.version: written 99'),
    'a version that there is not': (
        every(put('config.task.version', 99), put('task_version', 99)),
        'task_version: written 99, expected one of 1, 2',
    ),
    'the first dataset': (put('config.task.datasets', ['Other']), r'config\.task\.datasets: the first is Other'),
    'measured': (
        every(put('config.dataset.simulated', False), put('simulated', False)),
        r'config\.dataset\.simulated: written False, expected True',
    ),
    'family': (
        put('config.model.family', 'foundation'),
        r'config\.model\.family: written foundation, expected classic',
    ),
    'partial': (
        every(
            put('warnings', ['partial: 28 of 30 recordings']),
            put('config.dataset.simulated', False),
            put('simulated', False),
        ),
        r"protocol\.partial: written \[\], expected \['28 of 30 recordings'\]",
    ),
    'date': (put('date', '2199-01-01T00:00:00Z'), 'date: written 2199-01-01T00:00:00Z, expected '),
    'no date': (put('date', 'yesterday'), 'date: written yesterday, expected '),
    'one class': (put('classes', ['a']), r"classes: written \['a'\], expected 2 names"),
    'the same class': (put('classes', ['a', 'a']), r"classes: written \['a', 'a'\], expected 2 names"),
    'outputs': (put('n_out', 3), 'n_out: written 3, expected 2'),
    'no dataset': (put('config.task.datasets', []), 'its config cannot be read: IndexError'),
}


@pytest.mark.parametrize(
    ('version', 'name'), [*((v, n) for v in ('v1', 'v2', 'v3') for n in FORGED), *(('v3', n) for n in ONLY_NOW)]
)
def test_a_protocol_that_is_not_that_of_the_task_is_named(version, name, tmp_path):
    change, words = (FORGED | ONLY_NOW)[name]
    assert re.search(words, '\n'.join(problems(handed_in(tmp_path, change, version)))), name


@pytest.mark.parametrize(
    'said',
    [
        (('recipe.lr', 0.5),),
        (('recipe.max_epochs', 3),),
        (('split', 'cross_subject'),),
        (('split.fold', '1/3'),),
        (('signal.band', (1.0, 40.0)), ('window.start', 0.1)),
        (('recipe.max_epochs', 5), ('recipe.least_steps', 100)),
    ],
)
def test_settings_of_the_user_are_no_forgery(said, tmp_path):
    task = next(t for t in select.tasks()['p3'] if t.version == 2)
    dataset, (model,) = select.datasets()['SimulatedP3'], select.select_models('eegnet')
    (cell,) = cells.make_cells([cells.Choice(task, dataset, True)], [model], said)

    def change(result: Result) -> None:
        result['config'] = to_json(cell)
        result['protocol']['custom'] = [f'{p}={to_json(v)}' for p, v in cell.overrides]

    assert cell.overrides and problems(handed_in(tmp_path, change)) == []


def test_tasks_of_ones_own_ask_what_they_ask(tmp_path):
    name = every(put('config.task.name', 'mine'), put('task', 'mine'), put('config.task.window.start', 1.0))
    assert problems(handed_in(tmp_path, name)) == []


def weights(path: Path, **arrays: np.ndarray) -> None:
    """Puts weights beside a result, and their digest into it."""
    from safetensors.numpy import save

    blob = save({name.replace('__', '.'): array for name, array in arrays.items()})
    path.with_suffix('.safetensors').write_bytes(blob)
    result = json.loads(path.read_text())
    result['weights'] = {'sha256': files.sha256_file(path.with_suffix('.safetensors')), 'bytes': len(blob)}
    path.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))


def test_the_number_of_parameters_is_that_of_the_weights(tmp_path):
    path = handed_in(tmp_path, put('n_parameters.total', 12))
    weights(path, conv__weight=np.zeros((3, 4)), bn__running_mean=np.zeros(3), bn__num_batches_tracked=np.zeros(()))
    assert problems(path) == []
    weights(path, params__conv=np.zeros((3, 4)), batch_stats__bn=np.zeros(3))
    assert problems(path) == []
    weights(path, conv__weight=np.zeros((3, 5)), bn__running_mean=np.zeros(3))
    assert any('n_parameters.total: written 12, expected 15' in problem for problem in problems(path))
    path.with_suffix('.safetensors').write_bytes(b'none')
    assert any('is no safetensors file' in problem for problem in problems(path))


@pytest.mark.parametrize('spec', params(m for m in MODELS.values() if m.kind == 'network' and m.least_times <= 600))
def test_parameters_of_a_network_are_told_from_its_other_arrays(spec):
    import jax

    made = factory(spec)(fitting(spec, 600), 20)
    shapes = jax.eval_shape(lambda: made.init(jax.random.key(0)))['params']
    total = sum(array.size for array in jax.tree.leaves(shapes))
    sizes = {t.name: int(np.prod(t.shape)) for t in made.tensors} or {'params.all': total, 'batch_stats.all': 7}
    assert forged.n_parameters(sizes) == total


def test_a_date_is_believed_up_to_a_day_ahead(tmp_path):
    now = datetime.datetime.now(datetime.UTC)
    soon, late = ((now + datetime.timedelta(hours=h)).strftime('%Y-%m-%dT%H:%M:%SZ') for h in (20, 30))
    assert problems(handed_in(tmp_path / 'soon', put('date', soon))) == []
    assert len(problems(handed_in(tmp_path / 'late', put('date', late)))) == 1


def test_predictions_that_are_no_numbers_are_named(recwarn, tmp_path):
    path = handed_in(tmp_path, lambda result: None)
    arrays = predictions.load_predictions(path)
    wrong = {
        'outputs': arrays['outputs'].astype(complex),
        'y': arrays['y'].astype('U'),
        'subject': np.arange(len(arrays['y'])),
        'id': arrays['id'][::-1],
    }
    for name, array in wrong.items():
        path.with_suffix('.npz').write_bytes(files.npz_bytes(arrays | {name: array}))
        result = json.loads(path.read_text()) | {'predictions_sha256': files.sha256_file(path.with_suffix('.npz'))}
        path.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
        (problem,) = result_file.verify(path)
        assert f'seed33.npz: {name}: expected ' in problem
    assert not [w for w in recwarn if 'omplex' in str(w.message)]


def test_a_pipe_is_told_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / 'seed1.json')
    (problem,) = problems(tmp_path / 'seed1.json')
    assert 'seed1.json: expected a file' in problem


def test_another_kind_of_result_is_told(tmp_path):
    path = handed_in(tmp_path, put('kind', 'alignment'))
    assert any('config' in problem for problem in problems(path))
    assert problems(path, predictions=False)


STEPS = (('recipe.max_epochs', 5), ('recipe.least_steps', 1000), ('recipe.patience', 3), ('recipe.patience_steps', 300))


@pytest.mark.slow
@pytest.mark.parametrize('said', [(), STEPS, (('recipe.max_epochs', 5),), (('recipe.published', 'true'),)])
def test_every_cell_asks_what_its_task_asks(said):
    model = select.Pick(select.select_models('eegnet')[0].spec, False)  # of a group: what does not fit is left out
    known = [task for versions in select.tasks().values() for task in versions]
    where = [(t, name) for t in known for name in filter(None, (t.datasets[0], t.simulated))]
    seen = 0
    for task, name in where:
        for cell in cells.make_cells([cells.Choice(task, select.find_dataset(name), True)], [model], said):
            result = {'schema': 3, 'task': task.full_name, 'task_version': task.version, 'model': 'eegnet'}
            result |= {'protocol': {'debug': False}, 'config': json.loads(json.dumps(to_json(cell)))}
            assert list(verify._protocol(result)) == [], (task.full_name, name)
            seen += bool(cell.overrides) or not said
    assert seen > 20


def test_steps_that_the_user_leaves_as_they_are_stay(monkeypatch):
    task = select.tasks()['p3'][-1]
    task = replace(task, recipe=replace(task.recipe, least_steps=1000, patience_steps=300))
    monkeypatch.setattr(select, 'tasks', lambda: {'p3': (task,)})
    place = cells.Choice(task, select.find_dataset(task.datasets[0]), True)
    (cell,) = cells.make_cells([place], select.select_models('eegnet'), STEPS)
    result = {'schema': 3, 'task': 'p3', 'task_version': task.version, 'model': 'eegnet', 'protocol': {'debug': False}}
    assert 'recipe.least_steps' not in dict(cell.overrides) and cell.task.recipe.least_steps == 1000
    assert list(verify._protocol({**result, 'config': to_json(cell)})) == []
