"""`jbench report robustness` of several results: what lies on one figure, and what each row is called."""

from __future__ import annotations

from typing import Any

import pytest

from jbench import run, trained
from jbench.cli import robustness as command
from jbench.report import robustness

ROW = {
    **{'task': 'p3', 'task_version': 2, 'dataset': 'SimulatedP3', 'simulated': True, 'model': 'eegnet'},
    **{'key': 'a' * 16, 'seed': 33, 'split_hash': 's', 'changes': 'simulated', 'metric': 'bal_acc'},
    **{'share': 0.0, 'score': 0.7, 'low': 0.6, 'high': 0.8, 'n_subjects': 5, 'chance': 0.5},
}


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """The exit status for rows, one of each result."""

    def show(*rows: dict[str, Any]) -> int:
        given = iter(rows)
        monkeypatch.setattr(trained, 'load_model', lambda path, model: path)
        monkeypatch.setattr(command, '_curve', lambda model, shares: [ROW | next(given)])
        paths = [f'{k}/seed33.json' for k in range(len(rows))]
        return run.main(['report', 'robustness', *paths, '--share=0', f'--out={tmp_path}'])

    return show


@pytest.mark.parametrize(
    ('other', 'words'),
    [
        ({'metric': 'auroc'}, 'scored by bal_acc, split s and of p3@2/SimulatedP3, scored by auroc, split s'),
        ({'split_hash': 't'}, 'split s and of p3@2/SimulatedP3, scored by bal_acc, split t'),
        ({'dataset': 'Other'}, 'and of p3@2/Other'),
    ],
)
def test_results_that_are_not_of_one_protocol_are_refused(other, words, shown, capsys):
    assert shown({}, other) == 2
    assert words in capsys.readouterr().err


def test_what_departs_from_the_task_stands_in_the_title_and_keys_tell_models_apart(shown, capsys):
    assert shown({}, {'key': 'b' * 16, 'changes': 'simulated, custom'}) == 0
    said = capsys.readouterr().out
    assert 'p3@2/SimulatedP3 (simulated, custom)' in said and 'eegnet aaaaaa' in said and 'eegnet bbbbbb' in said


def test_a_model_of_one_key_is_called_by_its_name():
    found = robustness.keys([ROW, ROW | {'share': 0.5}, ROW | {'model': 'biot'}])
    assert found == {('eegnet', ROW['key']): '', ('biot', ROW['key']): ''}
