"""Pretraining from the command to a probe on another task, on simulated recordings."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from families import often
from places import ROOT
from safetensors.numpy import load_file

import jbench
from jbench.cli import autopsy
from jbench.data.load import prepared_set
from jbench.data.sources import simulated
from jbench.models import seen
from jbench.spec.errors import RequestError

CHANS = ('C3', 'Cz', 'C4', 'Pz')
METRICS = {'movies': 'moment_top1', 'masked': 'hidden_r2', 'next': 'next_top1'}
SIGNAL = {'signal.picks': CHANS, 'signal.sfreq': 64.0, 'signal.band': (0.5, 30.0)}


def run(task: str, workdir: Path, model: str = 'eegnet', **more: object) -> tuple[dict, Path]:
    """The result of a task with few epochs, and its file."""
    changes = {**SIGNAL, 'recipe.max_epochs': 3, **more.pop('changes', {})}  # type: ignore[arg-type]
    (result,) = jbench.run(task, model, seeds=[33], workdir=workdir, simulated=True, changes=changes, **more)
    return result, next(workdir.glob(f'results/**/{result["key"]}/seed33.json'))


def test_the_benchmark_says_what_is_not_there_and_takes_other_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    module = importlib.import_module('pretraining')
    work = f'--workdir={tmp_path}'
    assert module.main([work, '--real', f'--data_dir={tmp_path}/absent']) == 2
    assert capsys.readouterr().err.endswith(f'pretraining: --data_dir={tmp_path}/absent: no such folder\n')
    asked = []
    monkeypatch.setattr(simulated, 'SEED', simulated.SEED)
    monkeypatch.setattr(module, 'table', lambda args: asked.append((args.workdir, simulated.SEED)))
    assert module.main([work]) == module.main([work, '--population=2']) == 0
    assert asked == [(tmp_path, 1), (tmp_path / 'population2', 3)]


@pytest.mark.parametrize('task', often(METRICS, ('movies', 'masked')))
def test_what_is_pretrained_becomes_an_encoder_of_another_task(task: str, tmp_path: Path) -> None:
    result, path = run(f'pretrain/{task}', tmp_path)
    assert result['headline']['name'] == METRICS[task] and result['headline']['value'] > result['chance']
    assert json.loads(path.read_text())['simulated'] and len(result['per_subject']) == 6
    weights = path.with_suffix('.safetensors')
    assert seen.declared(weights)['task'] == f'pretrain/{task}@1' and seen.datasets(weights) == ('SimulatedFilm',)
    probed, _ = run('p3', tmp_path, weights=str(weights), changes={'recipe.adaptation': 'probe'})
    assert probed['model'].startswith('eegnet:weights=') and probed['overlap'] == 'clean'
    assert probed['pretraining'] == ['SimulatedFilm'] and probed['n_parameters']['trainable'] < 200
    again, _ = run(f'pretrain/{task}', tmp_path, weights=str(weights))
    assert again['overlap'] == 'overlap', 'what its weights were learnt on'
    with pytest.raises(RequestError, match='an autopsy is of tasks that have labels'):
        autopsy.load(path)
    if task == 'masked':
        _reads_whole_windows(path)


def _reads_whole_windows(path: Path) -> None:
    """Features of a trained network hide nothing, whatever else is in their batch; its answers need what is hidden."""
    model = jbench.load_model(path)
    found, x = model.features(split='test'), model._data()
    windows = prepared_set.read(x, x.rows('test')[:40], x.clamp)
    for rows in (windows, windows[7:]):
        np.testing.assert_allclose(model.features(rows), found.values[40 - len(rows) : 40], rtol=1e-4, atol=1e-5)
    assert model.predict().shape == (len(found.ids), 6)
    with pytest.raises(RequestError, match=r'predict: .*/masked/.* hides samples of the windows of its set alone'):
        model.predict(windows)
    with pytest.raises(RequestError, match=r'seed33\.json: channels that fail'):
        model.masked(0.2)


@pytest.mark.slow
def test_one_person_who_validates_is_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody shares a moment with this person."""
    with pytest.raises(RequestError, match='no result'):
        run('pretrain/movies', tmp_path, changes={'split.valid': 0.01})
    told = capsys.readouterr().err
    assert "no window of the validation part ('S24') shows a moment that another person saw" in told
    assert 'compiling' not in told and not [*tmp_path.glob('results/**/seed33.json')]


@pytest.mark.slow
def test_two_sets_are_one_and_their_people_are_apart(tmp_path: Path) -> None:
    result, path = run('pretrain/next/SimulatedFilm+SimulatedP3', tmp_path)
    people = {name for part in result['subjects'].values() for name in part}
    assert len(people) == 60 and {name.partition('.')[0] for name in people} == {'SimulatedFilm', 'SimulatedP3'}
    assert seen.datasets(path.with_suffix('.safetensors')) == ('SimulatedFilm', 'SimulatedP3')


@pytest.mark.long
def test_a_network_whose_tensors_have_no_reference_is_pretrained_and_probed(tmp_path: Path) -> None:
    """Its weights over time fit windows of the length that it learnt."""
    short = {'window.duration': 0.5, 'recipe.max_epochs': 1}
    learnt = {**short, 'window.stride': 0.5}
    result, path = run('pretrain/masked', tmp_path, 'multiscale_ssm', changes=learnt)
    weights = path.with_suffix('.safetensors')
    more = {**short, 'recipe.adaptation': 'probe'}
    probed, path = run('p3', tmp_path, 'multiscale_ssm', weights=str(weights), changes=more)
    assert probed['pretraining'] == ['SimulatedFilm'] and probed['overlap'] == 'clean'
    assert result['headline']['value'] > 0 and probed['n_parameters']['trainable'] == 2 * (64 + 1), 'one region'
    begun, kept = load_file(weights), load_file(path.with_suffix('.safetensors'))
    encoder = {n: a for n, a in begun.items() if not n.startswith('params.linear.')}
    assert {*kept} == {f'encoder.{n}' for n in encoder} | {'head.0.weight', 'head.0.bias'}
    assert all((kept[f'encoder.{n}'] == a).all() for n, a in encoder.items())
