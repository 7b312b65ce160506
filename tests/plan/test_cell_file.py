"""A cell as JSON: the same key, its own settings marked, and no other code or data under an old key."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from jbench.models import MODELS
from jbench.plan import cell_file, cells, request, select
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import to_json

MODEL = "def net(signal, n_out):\n    '''A network.'''\n"


def asked(tasks: str = 'p3', models: str = 'eegnet', **more: Any) -> Cell:
    """The cell of a request, on a simulation."""
    (cell,) = request.plan(request.Request(tasks, models, **more), None, Path('absent')).cells
    return cell


def saved(folder: Path, cell: Cell, **changes: Any) -> str:
    """The file of a cell; changes by dotted path, with '__' for '.'."""
    found = to_json(cell)
    for path, value in changes.items():
        *heads, last = path.split('__')
        part = found
        for head in heads:
            part = part[head]
        part[last] = value
    (folder / 'cell.json').write_text(json.dumps(found))
    return str(folder / 'cell.json')


@pytest.mark.parametrize(
    'cell',
    [
        asked(),
        asked('p3@1', 'dummy', debug=True),
        asked('eeg-core-1.0/p3', 'chance'),
        asked(changes=(('recipe.lr', '1e-3'), ('signal.band', (1.0, 40.0)), ('split.valid', 0.25))),
    ],
    ids=['plain', 'debug', 'suite', 'changed'],
)
def test_it_comes_back_as_it_was(cell, tmp_path):
    found = cell_file.read(saved(tmp_path, cell))
    assert found == cell and found.key == cell.key
    (tmp_path / 'result.json').write_text(json.dumps({'schema': 2, 'config': to_json(cell)}))
    assert cell_file.read(str(tmp_path / 'result.json')) == cell


def test_every_kind_of_task_runs_from_its_json(tmp_path):
    for task in {(t.target.kind, t.split.kind): t for t, _ in select.select_tasks('all')}.values():
        known = select.datasets()[task.datasets[0]]
        cell = Cell(task=cells.apply(task, known, (), MODELS['dummy']), dataset=known, model=MODELS['dummy'])
        assert cell_file.read(saved(tmp_path, cell)) == cell


def test_a_field_that_the_file_changes_is_one_of_the_users(tmp_path):
    cell = asked(changes=(('recipe.patience', 3),))
    found = cell_file.read(saved(tmp_path, cell, task__recipe__lr=0.5, task__exclude=[], task__title='Better'))
    assert found.overrides == (('recipe.patience', 3), ('recipe.lr', 0.5)) and found.key != cell.key
    assert found.task.title == cell.task.title, 'words are those of the table'
    earlier = cell_file.read(saved(tmp_path, asked('p3@1'), task__recipe__published=False))  # before version 1 said it
    assert earlier.overrides == (('recipe.published', False),)
    split = {'kind': 'predefined', 'field': 'session', 'test': ['1']}
    paths = dict(cell_file.read(saved(tmp_path, cell, task__split=split)).overrides)
    assert paths['split.test'] == ['1'] and 'split.stratify' in paths


WRONG = {  # what the file says otherwise, and what is said of it
    'field': ({'task__recipe__rl': 1.0}, "unknown field of --cell={file}: cell.task.recipe 'rl'"),
    'type': ({'task__window__start': 'now'}, "cell.task.window.start: found 'now', expected float"),
    'value': ({'task__recipe__batch_size': 0}, "--cell={file}: Task 'p3': recipe.batch_size: 0 must be at least 1"),
    'version of the task': ({'task__version': 9}, "task 'p3' has no version '9'; it has 1, 2"),
    'other code': ({'model__name': 'system', 'model__target': 'os:system'}, "unknown model in --cell={file} 'system'"),
    'mended model': ({'model__version': 7}, 'eegnet has version 7; with this jbench it has 1, which is another cell'),
    'other data': ({'dataset__revision': '2.0'}, "SimulatedP3 has revision '2.0'; with this jbench it has ''"),
    'reader': ({'dataset__name': 'Mine', 'dataset__source': 'antigravity'}, "unknown source in --cell={file} 'antigr"),
    'folder': ({'dataset__name': '../Mine'}, "--cell={file}: Dataset '../Mine': name: expected letters"),
    'task in a folder': ({'task__name': '../p3'}, "--cell={file}: Task '../p3': name: expected letters"),
    'schema 1': ({'model': None}, 'lacks the field "model", as results of schema 1 do'),
    'no task': ({'task': None}, '--cell={file}: expected a cell, as --dry_run --format=json gives it'),
}


@pytest.mark.parametrize('what', WRONG)
def test_what_would_run_another_cell_is_refused(what, tmp_path):
    changes, words = WRONG[what]
    file = saved(tmp_path, asked(), **changes)
    if None in changes.values():
        found = {k: v for k, v in json.loads(Path(file).read_text()).items() if k not in changes}
        Path(file).write_text(json.dumps(found))
    with pytest.raises(RequestError, match=re.escape(words.format(file=file))):
        cell_file.read(file)


@pytest.mark.parametrize('text', ['', '[]', '3', '{"x": NaN}', '{"config": {}}', '{', '\udcff'])
def test_what_is_no_cell_is_refused(text, tmp_path):
    (tmp_path / 'cell.json').write_text(text, errors='surrogateescape')
    with pytest.raises(RequestError, match=re.escape(f'--cell={tmp_path}/cell.json: ') + '.*expected a cell'):
        cell_file.read(str(tmp_path / 'cell.json'))
    with pytest.raises(RequestError, match=r'cannot read .*expected a cell'):
        cell_file.read(str(tmp_path))


def test_a_model_of_the_user_is_the_file_that_it_was(tmp_path, monkeypatch):
    (tmp_path / 'net.py').write_text(MODEL)
    cell = asked(models=f'{tmp_path}/net.py:net')
    file = saved(tmp_path, cell)
    assert cell_file.read(file) == cell
    kept = saved(tmp_path, cell, model__target='net.py:net')  # as results name it
    monkeypatch.chdir(tmp_path)
    assert cell_file.read(kept) == cell
    (tmp_path / 'net.py').write_text(MODEL + '    return 1\n')
    with pytest.raises(RequestError, match=r"model 'net@.*': .*/net\.py changed, and is 'net@"):
        cell_file.read(file)
    (tmp_path / 'net.py').unlink()
    with pytest.raises(RequestError, match=r"model 'net@.*' is the file at model\.target: .*net\.py: no such file"):
        cell_file.read(file)


def test_its_data_must_be_here_and_its_model_fit(tmp_path):
    real = select.datasets()['Kalunga2016Online']
    task = cells.apply(select.tasks()['ssvep'][-1], real, ())
    cell = Cell(task=task, dataset=real, model=MODELS['eegnet'])
    with pytest.raises(RequestError, match='Kalunga2016Online holds no recording; put there'):
        cell_file.plan([saved(tmp_path, cell)], None, tmp_path)
    unfit = dataclasses.replace(asked(), model=MODELS['emg2qwerty'])
    with pytest.raises(RequestError, match="'emg2qwerty' predicts targets of kind"):
        cell_file.plan([saved(tmp_path, unfit)], None, tmp_path)
    found, notice, absent, *_ = cell_file.plan([saved(tmp_path, asked())], None, tmp_path)
    assert found == [asked()] and 'generated recordings' in notice and not absent


def test_a_cell_that_several_files_hold_runs_once(tmp_path):
    """As results of its seeds do; in the order in which they are named."""
    paths = []
    for name, cell in (('a', asked()), ('b', asked(models='dummy')), ('c', asked())):
        (tmp_path / name).mkdir()
        paths.append(saved(tmp_path / name, cell))
    assert cell_file.plan(paths, None, tmp_path).cells == [asked(), asked(models='dummy')]
