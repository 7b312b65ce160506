"""`--stage=search`: what a space may be, that validation alone decides, that trials are cells that are found again."""

from __future__ import annotations

import csv
import dataclasses
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import small

from jbench import run
from jbench.cli import search
from jbench.plan import select
from jbench.plan.request import Plan
from jbench.spec.errors import RequestError
from jbench.spec.identity import to_json
from jbench.spec.overrides import override

SPACE = """
def get():
    return {
        'recipe.lr': {'low': 1e-4, 'high': 1e-1, 'log': True},
        'recipe.batch_size': [16, 32, 64],
        'recipe.optimizer': ['adamw', 'adamax'],
    }
"""


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / 'space.py'
    path.write_text(SPACE)
    return path


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """P3 on six simulated subjects."""
    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)


def searched(tmp_path: Path, space: Path, score: Any, trials: int = 12) -> tuple[int, list[dict[str, Any]]]:
    """A search whose trials have a given validation score, and the opposite as their test score; the changes asked."""
    cell, asked = small.cell(), list[dict[str, Any]]()

    def attempt(values: dict[str, Any]) -> Any:
        asked.append(values)
        changed = cell
        for name, value in values.items():
            changed = dataclasses.replace(changed, task=override(changed.task, name, value))
        value = score(values)
        history = [{'monitor': value - 0.1}, {'monitor': value}, {'monitor': None}]
        result = {'status': 'done', 'history': history, 'config': to_json(changed)}
        return [changed], [{**result, 'headline': {'value': 1 - value}}] * 2

    args = Namespace(
        search=str(space),
        trials=trials,
        workdir=tmp_path,
        seeds=[1, 2],
        request='python -m x --trials 3 --search space.py --stage=search --format=json --workdir w',
        format='json',
    )
    return search.run(args, Plan([cell], '', []), attempt), asked


@pytest.mark.slow
def test_validation_alone_decides_and_the_same_search_asks_the_same(tmp_path: Path, space: Path, capsys: Any) -> None:
    """The best is near the best rate, though the test part says the opposite; a second run asks for the same points."""

    def score(values: dict[str, Any]) -> float:
        return 0.8 - abs(values.get('recipe.lr', 1e-4) - 0.01) if values else 0.3

    status, asked = searched(tmp_path / 'one', space, score)
    (told,) = json.loads(capsys.readouterr().out)
    known = [score(v) for v in asked]
    best = max(range(len(known)), key=lambda k: known[k])
    assert status == 0 and told['best']['number'] == best and told['best']['values'] == asked[best]
    assert told['unchanged'] == pytest.approx(0.3) and told['trials'] == 12 and 'test scores were not' in told['rule']
    assert asked[0] == {} and all({*v} == {'recipe.lr', 'recipe.batch_size', 'recipe.optimizer'} for v in asked[1:])
    assert all(1e-4 <= v['recipe.lr'] <= 0.1 and len(f'{v["recipe.lr"]:g}') <= 8 for v in asked[1:])
    assert {v['recipe.batch_size'] for v in asked[1:]} <= {16, 32, 64}
    assert searched(tmp_path / 'two', space, score)[1] == asked
    with open(next(p for p in map(Path, told['files']) if p.suffix == '.csv'), newline='') as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]] == ['trial', 'recipe.batch_size', 'recipe.lr', 'recipe.optimizer', 'validation', 'key', 'command']
    assert [float(r['validation']) for r in rows] == pytest.approx(known)
    assert rows[0]['command'] == 'python -m x --workdir w'
    assert rows[1]['command'].startswith('python -m x --workdir w --set=recipe.batch_size=')
    assert all(Path(p).stat().st_size for p in told['files'])


def test_a_trial_of_which_a_seed_failed_is_never_the_best(tmp_path: Path, space: Path, capsys: Any) -> None:
    cell = small.cell()
    failed = {'status': 'failed', 'history': [], 'config': to_json(cell)}
    done = {'status': 'done', 'history': [{'monitor': 0.9}], 'config': to_json(cell)}
    assert search._score(cell, [failed, done], [1, 2]) is None and search._score(cell, [done, done], [1, 2]) == 0.9
    trials = [search.Trial(0, {}, 'a', None), search.Trial(1, {}, 'b', 0.5), search.Trial(2, {}, 'c', 0.5)]
    found = search.best(cell, trials)
    assert found is not None and found.number == 1, 'the first of equals'
    assert search.best(cell, trials[:1]) is None


@pytest.mark.parametrize(
    ('fields', 'words'),
    [
        ("{'recipe.lrr': [1, 2]}", "did you mean 'recipe.lr'"),
        ("{'split.seed': [1, 2]}", 'of other windows'),
        ("{'window.start': [0.0, 0.1]}", 'of other windows'),
        ("{'recipe.final': ['all', 'chosen']}", 'of other windows'),
        ("{'recipe.lr': [1e-3]}", 'expected a list of choices'),
        ("{'recipe.lr': {'low': 1}}", 'expected a list of choices'),
        ("{'recipe.lr': {'low': 1, 'high': 0}}", 'two ascending numbers'),
        ("{'recipe.lr': {'low': 0, 'high': 1, 'log': True}}", 'low must be above 0'),
        ("{'recipe.batch_size': {'low': 8, 'high': 64, 'step': 0.5}}", 'step must be above 0, and whole'),
        ("{'recipe.lr': {'low': 0.1, 'high': 1.0, 'step': -0.1}}", 'step must be above 0'),
        ("{'recipe.optimizer': ['adamw', 'sgd']}", "recipe.optimizer: got 'sgd', expected one of adamw, adamax"),
        ("{'recipe.batch_size': {'low': 8.5, 'high': 64.5}}", 'recipe.batch_size'),
        ("{'recipe.adaptation': ['full', 'ridge_probe']}", 'the validation score decides'),
        ('{}', 'no field to search'),
        ('3', 'expected a function get()'),
    ],
)
def test_what_is_no_space_is_refused(fields: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / 'space.py'
    path.write_text(f'def get():\n    return {fields}\n')
    with pytest.raises(RequestError) as caught:
        search.read(str(path), small.cell())
    assert words in str(caught.value)


def test_values_have_the_type_of_their_field(tmp_path: Path) -> None:
    path = tmp_path / 'space.py'
    fields = "{'recipe.lr': {'low': 0, 'high': 1}, 'recipe.batch_size': list(np.arange(8, 10))}"
    path.write_text(f'import numpy as np\n\ndef get():\n    return {fields}\n')
    found = search.read(str(path), small.cell())
    assert repr(found['recipe.batch_size']) == '[8, 9]' and repr(found['recipe.lr']['low']) == '0.0'
    assert search.of(found)


@pytest.mark.parametrize(
    ('argv', 'words'),
    [
        (['--model=eegnet', '--stage=search'], '--search=FILE and --stage=search go together'),
        (['--model=eegnet', '--search={space}'], '--search=FILE and --stage=search go together'),
        (['--model=eegnet', '--stage=search,train', '--search={space}'], 'one after the other, alone'),
        (['--model=eegnet', '--stage=search', '--search={space}', '--jobs=2'], 'one after the other, alone'),
        (['--model=eegnet', '--stage=search', '--search={space}', '--trials=0'], 'expected at least 1'),
        (['--model=dummy', '--stage=search', '--search={space}'], 'dummy has none; name a network'),
        (['--model=eegnet,deep4net', '--stage=search', '--search={space}'], '2 cells; name one task'),
        (['--model=eegnet', '--stage=search', '--search={space}', '--set=split.folds=3'], 'leave none in a result'),
    ],
)
def test_what_cannot_be_searched_is_refused(
    argv: list[str], words: str, space: Path, tmp_path: Path, capsys: Any
) -> None:
    asked = [a.replace('{space}', str(space)) for a in argv]
    assert run.main(['--task=p3', '--simulated=yes', *asked, f'--workdir={tmp_path / "work"}']) == 2
    said = capsys.readouterr().err
    assert words in said and 'Traceback' not in said


@pytest.mark.slow
def test_trials_are_cells_that_are_found_again(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    path = tmp_path / 'space.py'
    path.write_text("def get():\n    return {'recipe.lr': {'low': 1e-4, 'high': 1e-1, 'log': True}}\n")
    work = tmp_path / 'work'
    base = ['--task=p3', '--model=eegnet', '--simulated=yes', '--debug', '--seeds=33', f'--workdir={work}']
    command = [*base, '--stage=search', f'--search={path}', '--trials=2']
    assert run.main(command) == 0
    said = capsys.readouterr()
    assert 'best validation bal_acc' in said.out and 'test scores were not looked at' in said.out
    results = sorted(work.glob('results/*/*/*/*/seed33.json'))
    assert len(results) == 3 and {json.loads(p.read_text())['key'] for p in results} == {p.parent.name for p in results}
    with open(next(work.glob('finders/**/search.csv')), newline='') as file:
        rows = list(csv.DictReader(file))
    assert [r['key'] in {p.parent.name for p in results} for r in rows] == [True] * 3
    kept = {p: p.read_bytes() for p in results}
    assert run.main(command) == 0 and capsys.readouterr().err.count('finished before') == 3, 'nothing is trained again'
    setting = rows[1]['command'].rpartition('--set=')[2]
    assert run.main([*base, f'--set={setting}']) == 0, 'what a person types is the same cell'
    assert 'finished before' in capsys.readouterr().err
    assert kept == {p: p.read_bytes() for p in work.glob('results/*/*/*/*/seed33.json')}
