"""The log of epochs: written while training runs, whole after interruptions, and never in its way."""

from __future__ import annotations

import math

import pytest

from jbench import epochs, run


def test_epochs_that_run_again_count_once(tmp_path):
    path = epochs.log_file(tmp_path, 'abc', 33)
    for epoch, loss in ((0, 1.0), (1, 0.9), (2, 0.8), (1, 0.7), (2, math.nan)):
        epochs.append(path, {'epoch': epoch, 'train_loss': loss})
    assert [(e['epoch'], e['train_loss']) for e in epochs.read(path)] == [(0, 1.0), (1, 0.7), (2, None)]
    epochs.append(path, {'epoch': 1, 'train_loss': 0.5})
    assert [e['epoch'] for e in epochs.read(path)] == [0, 1]
    epochs.append(path, {'epoch': 0, 'train_loss': 0.4})
    assert [e['train_loss'] for e in epochs.read(path)] == [0.4]


def test_a_line_that_is_cut_off_is_passed_over(tmp_path):
    path = epochs.log_file(tmp_path, 'abc', 33)
    epochs.append(path, {'epoch': 0, 'train_loss': 1.0})
    with path.open('a') as file:
        file.write('\n[1]\n{"epoch": "x"}\n{"epoch": 1, "trai')
    assert [e['epoch'] for e in epochs.read(path)] == [0]
    epochs.append(path, {'epoch': 1})
    epochs.append(path, {'epoch': 2})
    assert [e['epoch'] for e in epochs.read(path)] == [0, 1, 2]


def test_a_disk_that_refuses_stops_nothing(tmp_path):
    (tmp_path / 'epochs').write_text('a file where the folder should be')
    epochs.append(epochs.log_file(tmp_path, 'abc', 33), {'epoch': 0})


@pytest.mark.slow
def test_a_run_logs_what_its_result_says_at_the_end(tmp_path):
    asked = {'seeds': [33], 'workdir': tmp_path, 'simulated': 'yes', 'changes': {'recipe.max_epochs': 2}}
    (result,) = run.results('p3', 'eegnet', **asked)
    found = epochs.read(epochs.log_file(tmp_path, result['key'], 33))
    names = ('epoch', 'train_loss', 'grad_norm', 'monitor')
    assert [{k: e[k] for k in names} for e in found] == [{k: e[k] for k in names} for e in result['history']]
    assert {(e['model'], e['metric'], e['seed']) for e in found} == {('eegnet', 'bal_acc', 33)}
    assert found[0]['time'] <= found[1]['time']
