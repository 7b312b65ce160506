"""Folds of a cell: trained each, one result in the end; what is there is not computed again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import small

from jbench import run, training
from jbench.models import MODELS, factory, seen
from jbench.plan import select
from jbench.progress import Interrupted
from jbench.results import result_file
from jbench.results.predictions import load_predictions
from jbench.spec.checkpoints import place_of
from jbench.spec.model import Signal
from jbench.targets import score

BASE = ['--task=p3', '--debug', '--seeds=33']


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """P3 on six simulated subjects."""
    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)


def results(workdir: Path) -> list[Path]:
    return sorted(workdir.glob('results/*/*/*/*/seed*.json'))


@pytest.mark.slow
def test_all_folds_make_one_result_in_which_every_subject_is_tested_once(few: None, tmp_path: Path, capsys) -> None:
    command = [*BASE, '--model=erp_lr', '--set=split.folds=3', f'--workdir={tmp_path}']
    assert run.main(command) == 0
    (path,) = results(tmp_path)
    result, arrays = result_file.read(path), load_predictions(path)
    assert result['subjects']['test'] == sorted(result['subjects']['test']) and len(result['subjects']['test']) == 6
    assert result['headline']['n_subjects'] == 6 == len(result['per_subject'])
    assert result['protocol']['custom'] == ['split.folds=3'] and result['protocol']['suite'] is None
    assert result_file.verify(path) == [] and result['weights'] is None
    folds = sorted((path.parent / 'folds').glob('*/seed33.json'))
    assert [p.parent.name for p in folds] == ['1_of_3', '2_of_3', '3_of_3']
    parts = [load_predictions(p) for p in folds]
    assert sorted(np.concatenate([p['id'] for p in parts]).tolist()) == arrays['id'].tolist()
    for part in parts:
        here = np.isin(arrays['id'], part['id'])
        np.testing.assert_array_equal(arrays['outputs'][here], part['outputs'])
        assert len(set(part['subject'])) == 2
    value = score.evaluate('classes', arrays['outputs'], arrays['y'])['bal_acc']
    assert result['headline']['value'] == value and result['dummy'] == 0.5
    said = ''.join(capsys.readouterr())
    assert '3 folds, as many models' in said and 'fold 2/3' in said
    assert run.main(command) == 0
    assert 'finished before' in ''.join(capsys.readouterr())


@pytest.mark.slow
def test_seeds_learn_from_few_windows_of_their_own_unless_their_draw_is_numbered(few: None, tmp_path: Path) -> None:
    found, before = {}, list[Path]()
    for draw in ('0', '33'):
        few_of = ['--set=recipe.few_shot=2', f'--set=recipe.few_shot_draw={draw}', '--set=recipe.max_epochs=1']
        assert run.main(['--task=p3', '--seeds=33,34', '--model=eegnet', *few_of, f'--workdir={tmp_path}']) == 0
        found[draw] = [result_file.read(path) for path in results(tmp_path) if path not in before]
        before = results(tmp_path)
    every = [r for two in found.values() for r in two]
    assert len({(r['split_hash'], r['n_records']['train']) for r in every}) == 1, 'tables keep seeds together'
    (one, other), (same, numbered) = ([r['predictions_sha256'] for r in two] for two in found.values())
    assert one == same and other != numbered


@pytest.mark.slow
def test_an_interrupted_cross_validation_goes_on_behind_its_last_fold(few: None, tmp_path: Path, capsys) -> None:
    command = [*BASE, '--model=erp_lr', '--set=split.folds=3', f'--workdir={tmp_path}']
    assert run.main(command) == 0
    (path,) = results(tmp_path)
    first, kept = json.loads(path.read_text()), {p: p.read_bytes() for p in path.parent.glob('folds/*/seed33.json')}
    path.unlink()
    gone = path.parent / 'folds' / '2_of_3' / 'seed33.json'
    gone.unlink()
    capsys.readouterr()
    assert run.main(command) == 0
    said = ''.join(capsys.readouterr())
    assert 'fold 1/3: finished before' in said and 'fold 2/3: finished before' not in said
    assert all(p.read_bytes() == content for p, content in kept.items() if p != gone)
    again = json.loads(path.read_text())
    assert {k: again[k] for k in result_file.SCORES} == {k: first[k] for k in result_file.SCORES}
    assert again['predictions_sha256'] == first['predictions_sha256'] and again['split_hash'] == first['split_hash']


@pytest.mark.slow
def test_an_interrupted_overwrite_of_folds_goes_on_from_no_old_fold_and_no_old_checkpoint(
    few: None, tmp_path: Path, monkeypatch, capsys
) -> None:
    command = [*BASE, '--model=erp_lr', '--set=split.folds=3', f'--workdir={tmp_path}']
    assert run.main(command) == 0
    (path,) = results(tmp_path)
    folds = sorted((path.parent / 'folds').glob('*/seed33.json'))
    old = {p: p.read_bytes() for p in (path, *folds)}
    saves = [
        tmp_path / 'checkpoints' / json.loads(text)['key'] / 'seed33' / '1' / 'sha256.json' for text in old.values()
    ]
    for save in saves:
        save.parent.mkdir(parents=True)
        save.write_text('{}')
    fitted, calls = training.fit_estimator, list[int]()

    def stopped(*args):
        calls.append(1)
        if len(calls) == 2:
            raise Interrupted
        return fitted(*args)

    with monkeypatch.context() as change:
        change.setattr(training, 'fit_estimator', stopped)
        assert run.main([*command, '--if_exists=overwrite']) == 75
    assert not any(save.exists() for save in saves)
    assert [p for p in old if p.exists()] == folds[:1] and folds[0].read_bytes() != old[folds[0]]
    assert [p for p in old if p.with_name('seed33.json.replaced').exists()] == [path, *folds[1:]]
    capsys.readouterr()
    assert run.main([*command, '--if_exists=resume']) == 0
    said = ''.join(capsys.readouterr())
    assert 'fold 1/3: finished before' in said and 'fold 2/3: finished before' not in said
    assert all(p.read_bytes() != content for p, content in old.items())
    assert not [*tmp_path.rglob('*.replaced')]


@pytest.mark.slow
def test_a_fold_that_fails_fails_the_seed_and_is_named(few: None, tmp_path: Path, monkeypatch, capsys) -> None:
    from jbench.train import fit

    real, calls = fit.fit, list[int]()

    def second_breaks(*args, **named):
        calls.append(1)
        if len(calls) == 2:
            raise fit.NonFinite('for the test')
        return real(*args, **named)

    monkeypatch.setattr(fit, 'fit', second_breaks)
    assert run.main([*BASE, '--model=eegnet', '--set=split.folds=3', f'--workdir={tmp_path}']) == 1
    (path,) = results(tmp_path)
    result = result_file.read(path)
    assert result['status'] == 'failed' and result['headline']['value'] is None
    assert result['warnings'][-1] == '1 of 3 folds failed, the first of them: for the test'
    assert run.main([*BASE, '--model=eegnet', '--set=split.folds=3', f'--workdir={tmp_path}']) == 0
    assert len(calls) == 4, 'the others are not trained again'


@pytest.mark.slow
def test_within_a_subject_a_model_learns_from_that_subject_alone(few: None, tmp_path: Path, capsys) -> None:
    asked = ['--set=split=cross_session', '--set=split.by=_index', '--set=split.folds=2', '--set=split.stratify=code']
    assert run.main([*BASE, '--model=dummy,erp_lr', *asked, f'--workdir={tmp_path}']) == 0
    dummy, erp = (result_file.read(p) for p in results(tmp_path))
    assert dummy['subjects']['test'] == erp['subjects']['test'] and len(dummy['subjects']['test']) == 6
    place = Path(next(iter(tmp_path.glob('results/*/*/erp_lr/*/folds'))))
    assert {p.name for p in place.iterdir()} == {f'{u}_{k}_of_2' for u in range(1, 7) for k in (1, 2)}
    for path in place.glob('*/seed33.json'):
        subjects = json.loads(path.read_text())['subjects']
        assert subjects['train'] == subjects['test'] and len(subjects['train']) == 1
    custom = erp['protocol']['custom']
    assert custom[0] == 'split=cross_session' and 'split.folds=2' in custom


@pytest.mark.slow
def test_chance_is_of_one_rule_for_all_folds(tmp_path: Path) -> None:
    """Each fold's own commonest class is the one that its test part lacks: together these answers are all wrong."""
    command = ['--task=sex', '--debug', '--seeds=33', '--model=dummy', '--simulated=yes', f'--workdir={tmp_path}']
    assert run.main([*command, '--set=split=cross_subject', '--set=split.folds=6']) == 0
    (path,) = results(tmp_path)
    assert result_file.read(path)['chance'] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(('asked', 'n_tested'), [('2', 3), ('all', 1)])
def test_folds_by_subject(asked: str, n_tested: int, few: None, tmp_path: Path, capsys) -> None:
    command = [*BASE, '--model=dummy', f'--workdir={tmp_path}']
    assert run.main([*command, f'--set=split.folds={asked}']) == 0
    assert 'windows were tested, each' in capsys.readouterr().out
    folds = [json.loads(p.read_text())['subjects'] for p in tmp_path.glob('results/*/*/*/*/folds/*/seed33.json')]
    assert [len(parts['test']) for parts in folds] == [n_tested] * (6 // n_tested)
    for parts in folds:
        assert len({s for part in parts.values() for s in part}) == sum(map(len, parts.values())) == 6


@pytest.mark.slow
def test_what_a_fold_says_of_its_training_is_said_of_all(few: None, tmp_path: Path) -> None:
    quick = ['--set=recipe.max_epochs=1', '--set=recipe.lr=1e-6', '--set=split.folds=3', '--simulated=yes']
    assert run.main(['--task=p3', '--seeds=33', '--model=eegnet', *quick, f'--workdir={tmp_path}']) == 0
    (path,) = results(tmp_path)
    warnings = result_file.read(path)['warnings']
    assert sum(w.startswith('training ended before it learnt: 3 of 3 folds') for w in warnings) == 1


def test_paths_of_several_lengths_are_padded() -> None:
    from jbench.results.pool import joined

    parts = [{'outputs': np.ones((2, 3)), 'id': np.arange(2)}, {'outputs': np.zeros((1, 5)), 'id': np.array([7])}]
    assert joined(parts)['outputs'].tolist() == [[1, 1, 1, -1, -1]] * 2 + [[0] * 5]


def test_what_kept_weights_say_of_places(tmp_path: Path) -> None:
    """Without a file of places of electrodes a header names what that of the weights that ship does."""
    network = factory(MODELS['eegnet'])(Signal(n_chans=3, n_times=64, sfreq=128.0), 2)
    outcome = {'network': network, 'variables': network.init(jax.random.key(0))}
    data = SimpleNamespace(subjects=np.array(['S1', 'S2']), rows=lambda *parts: np.array([0]))
    context = SimpleNamespace(keep_weights=True)

    def said(where: str) -> dict:
        cell = small.cell()
        cell = dataclasses.replace(cell, model=dataclasses.replace(cell.model, places=where))
        (tmp_path / 'w').write_bytes(training._weights(cell, data, 33, outcome, context, ()) or b'')
        return seen.declared(tmp_path / 'w')

    assert {*said('')} == {*seen.declared(place_of('jbench_tiny', Path()))}
    assert said('positions.json@1a2b') == {**said(''), 'places': '1a2b'}
