"""`--stage=find_lr` and `find_batch`: a value with its rule on stdout, pictures and CSV in the work folder."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from small import N_SUBJECTS

from jbench import run
from jbench.cli import arguments, found
from jbench.plan import select
from jbench.report.figures import finders
from jbench.spec.errors import RequestError
from jbench.train import batch_finder, lr_finder

ASK = ('--task=p3', '--simulated=yes', '--seeds=33')


@pytest.fixture()
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five simulated subjects."""
    known = select.datasets()
    small = dataclasses.replace(known['SimulatedP3'], n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS)
    monkeypatch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': small})
    monkeypatch.delenv('JBENCH_DATA', raising=False)


@pytest.mark.slow
def test_both_finders_show_a_value_and_its_curve(few, tmp_path: Path, monkeypatch, capsys):
    """And change nothing: no result, no checkpoint; of the estimator it is said why it is left out."""
    monkeypatch.setattr(lr_finder, 'STEPS', 40)
    monkeypatch.setattr(batch_finder, 'LARGEST', 8)
    status = run.main(
        [*ASK, '--model=eegnet,xdawn_lda', '--stage=find_lr,find_batch', '--debug', f'--workdir={tmp_path}']
    )
    shown = capsys.readouterr()
    assert status == 1 and 'looks at the steps of a network, and xdawn_lda takes none' in shown.err
    assert 'find_lr: p3/SimulatedP3 eegnet, simulated, debug: few windows' in shown.out
    assert 'not applied: recipe.lr is 0.01' in shown.out and 'not applied: recipe.batch_size is 64' in shown.out
    assert shown.out.count('  rule: ') == 2
    assert not (tmp_path / 'results').exists() and not (tmp_path / 'checkpoints').exists()
    for name, columns in (
        ('find_lr', ['step', 'rate', 'loss', 'smoothed']),
        ('find_batch', ['batch_size', 'megabytes']),
    ):
        (at,) = (tmp_path / 'finders').rglob(f'{name}.csv')
        rows = list(csv.DictReader(at.open()))
        assert list(rows[0])[: len(columns)] == columns and len(rows) > 3
        assert at.with_suffix('.png').read_bytes()[:4] == b'\x89PNG' and '</svg>' in at.with_suffix('.svg').read_text()
        assert str(at) in shown.out


@pytest.mark.slow
def test_an_estimator_alone_is_refused_before_anything_is_prepared(few, tmp_path: Path, capsys):
    assert run.main([*ASK, '--model=xdawn_lda', '--stage=find_lr', f'--workdir={tmp_path}']) == 2
    err = capsys.readouterr().err
    assert 'xdawn_lda takes none' in err and 'Traceback' not in err
    assert not (tmp_path / 'prepared').exists()


@pytest.mark.parametrize(
    ('argv', 'words'),
    [
        (['--stage=find_lr,train'], 'find_lr shows a curve and changes nothing; ask for train in another run'),
        (['--stage=find_batch,check'], 'ask for check in another run'),
        (['--stage=find_lr', '--distributed'], 'leave --distributed out'),
        (['--stage=find_rate'], "did you mean 'find_lr'|unknown stage 'find_rate'"),
    ],
)
def test_what_finders_do_not_go_with(argv: list[str], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        arguments.parse(['--task=p3', *argv])


FACTS = {
    'cell': 'p3/X eegnet',
    'simulated': False,
    'debug': False,
    'stage': 'find_lr',
    'field': 'recipe.lr',
    'value': 0.00123,
    'now': 1e-4,
    'rule': 'a rule',
    'said': ['more'],
    'files': ['a.png'],
}


def test_a_value_is_told_with_its_rule() -> None:
    lines = found.text([FACTS], 'table').splitlines()
    assert lines[:3] == [
        'find_lr: p3/X eegnet',
        '  recipe.lr=0.0012 (not applied: recipe.lr is 0.0001; --set recipe.lr=0.0012 sets it)',
        '  rule: a rule',
    ]
    assert '  no value (not applied: recipe.lr is 0.0001)' in found.text([{**FACTS, 'value': None}], 'table')
    assert json.loads(found.text([FACTS], 'json')) == [FACTS]


@pytest.mark.slow
def test_pictures_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    """With a value and without, of a step that did not run too."""
    rates = [{'step': k, 'rate': 10.0 ** (k - 5), 'loss': 1.0 - 0.1 * k, 'smoothed': 1.0 - 0.1 * k} for k in range(4)]
    size = {'free_megabytes': 9.0, 'fits': True, 'seconds': 0.1, 'windows_per_second': 10.0}
    sizes = [
        {'batch_size': 1, 'megabytes': 2.0, **size},
        {'batch_size': 2, 'megabytes': 12.0, **size, 'windows_per_second': None},
    ]
    for name, table, value in (('find_lr', rates, 1e-3), ('find_batch', sizes, 1), ('find_batch', sizes, None)):
        a, b = (
            finders.write(name, table, tmp_path / f'{at}-{value}', model='eegnet', title='of a task', value=value)
            for at in (1, 2)
        )
        assert [p.suffix for p in a] == ['.png', '.svg', '.csv']
        assert [p.read_bytes() for p in a] == [p.read_bytes() for p in b]
