"""Pretraining from the command to a probe on another task, on simulated recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jbench
from jbench.cli import autopsy
from jbench.models import seen
from jbench.spec.errors import RequestError

CHANS = ('C3', 'Cz', 'C4', 'Pz')
METRICS = {'movies': 'moment_top1', 'masked': 'hidden_r2', 'next': 'next_top1'}
SIGNAL = {'signal.picks': CHANS, 'signal.sfreq': 64.0, 'signal.band': (0.5, 30.0)}


def run(task: str, workdir: Path, **more: object) -> tuple[dict, Path]:
    """The result of a task with few epochs, and its file."""
    changes = {**SIGNAL, 'recipe.max_epochs': 3, **more.pop('changes', {})}  # type: ignore[arg-type]
    (result,) = jbench.run(task, 'eegnet', seeds=[33], workdir=workdir, simulated=True, changes=changes, **more)
    return result, next(workdir.glob(f'results/**/{result["key"]}/seed33.json'))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('task', 'metric'), [('movies', 'moment_top1'), ('masked', 'hidden_r2'), ('next', 'next_top1')]
)
def test_what_is_pretrained_becomes_an_encoder_of_another_task(task: str, metric: str, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_two_sets_are_one_and_their_people_are_apart(tmp_path: Path) -> None:
    result, path = run('pretrain/next/SimulatedFilm+SimulatedP3', tmp_path)
    people = {name for part in result['subjects'].values() for name in part}
    assert len(people) == 60 and {name.partition('.')[0] for name in people} == {'SimulatedFilm', 'SimulatedP3'}
    assert seen.datasets(path.with_suffix('.safetensors')) == ('SimulatedFilm', 'SimulatedP3')
