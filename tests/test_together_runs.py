"""`--set recipe.together=yes`: several tasks of a request, one encoder, a result each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import two_tasks

from jbench import load_model, run
from jbench.models import seen
from jbench.results import result_file
from jbench.results.predictions import load_predictions

TOGETHER = '--set=recipe.together=yes'


@pytest.fixture(scope='module')
def flags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two tasks on six people; 40 training windows of each in an epoch, 4 epochs."""
    return two_tasks.write(tmp_path_factory.mktemp('two'))


def command(flags: list[str], workdir: Path, *more: str) -> list[str]:
    return [*flags, '--model=eegnet', '--seeds=33', f'--workdir={workdir}', *more]


def stored(workdir: Path) -> dict[str, Path]:
    """Results by task."""
    return {json.loads(p.read_text())['task']: p for p in workdir.glob('results/*/*/*/*/seed33.json')}


@pytest.fixture(scope='module')
def done(flags: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp('together')
    assert run.main(command(flags, workdir, TOGETHER)) == 0
    return workdir


@pytest.mark.slow
def test_each_task_has_a_result_that_names_the_others(done: Path) -> None:
    paths = stored(done)
    assert sorted(paths) == ['eyes', 'side']
    for name, path in paths.items():
        result, other = result_file.read(path), ({*paths} - {name}).pop()
        assert [n for n, _ in result['config']['companions']] == ['eyes@1/SixPeople', 'side@1/SixPeople']
        custom = result['protocol']['custom']
        assert custom == ['recipe.together=yes', 'companions=eyes@1/SixPeople + side@1/SixPeople']
        assert f'together: one encoder learnt this task and {other}@1/SixPeople' in result['warnings']
        assert len(result['history']) == 4 and result['overlap'] == 'clean'  # both were tested on the same people
        assert not result_file.verify(path)
        model = load_model(path)
        outputs = model.predict()
        np.testing.assert_array_equal(outputs, load_predictions(path)['outputs'])
        told = seen.declared(path.with_suffix('.safetensors'))
        assert told['datasets'] == ['SixPeople'] and not {*told['subjects']} & {*result['subjects']['test']}


@pytest.mark.slow
def test_alone_is_another_cell(flags: list[str], done: Path) -> None:
    assert run.main(command(flags, done)) == 0
    keys = {p.parent.name for p in done.glob('results/eyes@1/SixPeople/eegnet/*/seed33.json')}
    assert len(keys) == 2


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_a_lost_result_is_made_again(
    flags: list[str], done: Path, tmp_path: Path, capsys: Any
) -> None:
    before = two_tasks.outcome(done)
    assert run.main(command(flags, done, TOGETHER)) == 0
    assert capsys.readouterr().err.count('finished before, nothing to compute') == 2
    path = next(p for p in stored_together(done) if json.loads(p.read_text())['task'] == 'side')
    for part in path.parent.glob('seed33*'):
        part.unlink()
    assert run.main(command(flags, done, TOGETHER)) == 0
    assert two_tasks.outcome(done) == before


def stored_together(workdir: Path) -> list[Path]:
    found = workdir.glob('results/*/*/*/*/seed33.json')
    return [p for p in found if json.loads(p.read_text())['config']['companions']]


def test_cell_files_of_all_or_none(flags: list[str], done: Path, tmp_path: Path, capsys: Any) -> None:
    paths = stored_together(done)
    data = flags[1]
    names = {json.loads(p.read_text())['task']: p for p in paths}
    assert run.main([f'--cell={names["eyes"]}', data, f'--workdir={tmp_path}']) == 2
    assert 'has one task, eyes@1/SixPeople' in capsys.readouterr().err
    again = [f'--cell={names[n]}' for n in ('side', 'eyes')]  # in whatever order
    assert run.main([*again, data, '--seeds=33', f'--workdir={done}']) == 0
    assert capsys.readouterr().err.count('finished before, nothing to compute') == 2


@pytest.mark.parametrize(
    'more, said',
    [
        (('--set=recipe.adaptation=probe', '--weights=none'), r'recipe.together=yes: not with recipe.adaptation=probe'),
        (('--set=recipe.final=all',), 'recipe.together=yes: not with recipe.final=all'),
        (('--set=split.folds=3',), 'recipe.together=yes: not with split.folds'),
        (('--model=dummy',), 'learns no weights step by step'),
        (('--jobs=2',), 'trains 2 cells in one process'),
        (('--set=recipe.task_temperature=0',), 'recipe.task_temperature: 0.0 must be above 0'),
    ],
)
def test_what_cannot_be_is_refused(flags: list[str], tmp_path: Path, capsys: Any, more: Any, said: str) -> None:
    asked = command(flags, tmp_path, TOGETHER)
    if more[0].startswith('--model'):
        asked = [a for a in asked if not a.startswith('--model')]
    assert run.main([*asked, *more]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob('results/*'))
