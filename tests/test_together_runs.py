"""`--set recipe.together=yes`: several tasks of a request, one encoder, a result each."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import two_tasks

from jbench import load_model, run
from jbench.models import seen
from jbench.plan import cell_file, together
from jbench.results import forged, result_file
from jbench.results.predictions import load_predictions
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import to_json
from jbench.train import fit

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


@pytest.mark.slow
def test_cell_files_of_all_or_none(flags: list[str], done: Path, tmp_path: Path, capsys: Any) -> None:
    data, names = flags[1], {json.loads(p.read_text())['task']: p for p in stored_together(done)}
    for stage in ((), ('--stage=report',)):
        assert run.main([f'--cell={names["eyes"]}', data, f'--workdir={tmp_path}', *stage]) == 2
        said = capsys.readouterr().err
        assert 'was learnt together with side@1/SixPeople: name a file of each by a further --cell' in said
    again = [f'--cell={names[n]}' for n in ('side', 'eyes')]  # in whatever order
    assert run.main([*again, data, '--seeds=33', f'--workdir={done}']) == 0
    assert capsys.readouterr().err.count('finished before, nothing to compute') == 2


def planned(asked: list[str], capsys: Any) -> dict[str, Any]:
    """Configs of a plan by task."""
    assert run.main([*asked, '--dry_run', '--format=json']) == 0
    return {c['config']['task']['name']: c['config'] for c in json.loads(capsys.readouterr().out)['cells']}


def test_cell_files_of_two_requests_stay_two(flags: list[str], tmp_path: Path, capsys: Any) -> None:
    one, two = (
        planned(command(flags, tmp_path, TOGETHER, f'--set=recipe.task_temperature={t}'), capsys) for t in (1, 2)
    )

    def of_files(*configs: dict[str, Any]) -> list[Cell]:
        paths = [tmp_path / f'{k}.json' for k in range(len(configs))]
        for path, config in zip(paths, configs, strict=True):
            path.write_text(json.dumps(config))
        where = Path(flags[1].partition('=')[2]), tmp_path
        return cell_file.plan([str(p) for p in paths], *where).cells

    mixed = one['side'], two['eyes'], one['eyes'], two['side']
    found = of_files(*mixed)
    assert [to_json(c.companions) for c in found] == [c['companions'] for c in mixed]
    assert [[c.task.name for c in g] for g in together.groups(found)] == [['eyes', 'side']] * 2
    with pytest.raises(RequestError, match=r'another cell side@1/SixPeople than that of these files'):
        of_files(one['eyes'], two['side'])
    with pytest.raises(RequestError, match='not among its companions'):
        of_files(one['eyes'] | {'companions': [one['side']['companions'][1]]}, one['side'])
    with pytest.raises(RequestError, match='has one task, eyes@1/SixPeople'):
        of_files(one['eyes'] | {'companions': []})
    whole = of_files(*[c | {'companions': []} for c in one.values()])
    assert [to_json(c.companions) for c in whole] == [c['companions'] for c in one.values()]


def test_what_all_tasks_share_must_be_asked_of_all(flags: list[str], tmp_path: Path, capsys: Any) -> None:
    odd = tmp_path / 'odd.py'
    home = Path(flags[0].partition('=')[2])
    odd.write_text(home.read_text().replace('lr=1e-2', "lr=1e-2, trainable=(('head', 1.0),) * (name == 'eyes')"))
    assert run.main([f'--task={odd}', *flags[1:], '--model=eegnet', f'--workdir={tmp_path}', TOGETHER]) == 2
    said = capsys.readouterr().err
    assert 'recipe.trainable is' in said and '--set recipe.trainable=... makes it the same' in said


def test_models_of_a_group_that_fit_one_task_are_left_out_with_a_line() -> None:
    cells = [small.cell(together='yes'), small.cell(together='yes', max_epochs=3)]
    lone = dataclasses.replace(cells[0], model=dataclasses.replace(cells[0].model, name='lone'))
    left, why = together.without_lone([*cells, lone], [lone.model, cells[0].model])
    assert left == cells and why == ['lone: --set recipe.together=yes needs several tasks, and only one fits']
    assert together.without_lone([*cells, lone], [])[0] == [*cells, lone]  # each is named


@pytest.mark.slow
def test_a_stop_between_the_results_of_a_seed_goes_on(flags: list[str], done: Path, tmp_path: Path, monkeypatch: Any):
    write = result_file.write

    def full(home: Path, result: dict[str, Any], *rest: Any) -> dict[str, Any]:
        if result['task'] == 'side':
            raise RequestError('the disk is full')
        return write(home, result, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(result_file, 'write', full)
        patch.setattr(fit, 'next_save', lambda began: 0.0)
        assert run.main(command(flags, tmp_path, TOGETHER)) == 2
    assert [*stored(tmp_path)] == ['eyes']
    assert run.main(command(flags, tmp_path, TOGETHER)) == 0
    found = {name: json.loads(path.read_text()) for name, path in stored(tmp_path).items()}
    assert found['eyes']['resumed_at'] == [] and found['side']['resumed_at'], 'from the checkpoint'
    whole = json.loads(next(p for p in stored_together(done) if '/side' in str(p)).read_text())
    assert found['side']['history'] == whole['history'] and found['side']['metrics'] == whole['metrics']
    assert not list(tmp_path.glob('checkpoints/*/*'))


@pytest.mark.slow
def test_people_that_a_companion_learnt_from_are_said(flags: list[str], tmp_path: Path) -> None:
    home, odd = Path(flags[0].partition('=')[2]), tmp_path / 'odd.py'
    text = home.read_text().replace('import Classes,', 'import ByGroup, Classes,')
    odd.write_text(text.replace('lr=1e-2),', "lr=1e-2), split=ByGroup(seed={'eyes': 1, 'side': 2}[name]),"))
    assert (
        run.main([f'--task={odd}', *flags[1:], '--model=eegnet', '--seeds=33', f'--workdir={tmp_path}', TOGETHER]) == 0
    )
    for path in stored(tmp_path).values():
        result = result_file.read(path)
        (other,) = [n for n, _ in result['config']['companions'] if not n.startswith(result['task'])]
        assert (
            result['overlap'] == 'overlap' and f'overlap: {other} learnt from people of this test' in result['warnings']
        )
        assert not result_file.verify(path)
        lied = json.loads(path.read_text()) | {'overlap': 'clean'}
        assert any(p.startswith('overlap') for p in forged.problems(path, lied, None))


@pytest.mark.slow
def test_where_one_fails_the_others_say_why(flags: list[str], tmp_path: Path, capsys: Any) -> None:
    assert run.main(command(flags, tmp_path, TOGETHER, '--set=recipe.microbatch=16')) == 2
    said = capsys.readouterr().err
    assert 'recipe.microbatch: this network has batch statistics' in said
    assert 'side/SixPeople eegnet: not run, because it is learnt together with eyes@1/SixPeople, which failed' in said


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
