"""Models learn every simulated task by the plain recipe of its set, and nothing where targets are shuffled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from jbench import progress, stages, training
from jbench.context import Context
from jbench.plan import cells, select
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.metrics import METRICS
from jbench.targets.score import evaluate, per_subject, pooled

DIAGNOSES = [f'{name}_diagnosis' for name in ('dementia', 'depression', 'parkinsons', 'schizophrenia')]
BEST = {  # the model of a task, where it is not eegnet: what a person shows is in the spectrum of many windows
    **dict.fromkeys(DIAGNOSES, 'band_power_lr'),
    'sex': 'band_power_lr',
    'fmri/image': 'fmri_linear',
    'emg/typing': 'emg2qwerty',
}
OFTEN = ('p3',)  # in .ci/run; the others take a quarter of an hour together
TASKS = [
    pytest.param(name, marks=pytest.mark.slow if name in OFTEN else pytest.mark.long)
    for name, versions in select.tasks().items()
    if versions[-1].simulated
]
SHUFFLES = 100


@pytest.fixture(scope='module')
def context(tmp_path_factory):
    return Context(tmp_path_factory.mktemp('learning'), None, progress.Progress(), progress.StopSignal(), 'resume')


def shuffled(data: stages.prepared_set.PreparedSet, number: int) -> stages.prepared_set.PreparedSet:
    """The same windows, where those that are learnt from have the targets of others."""
    rng, order = np.random.default_rng(number), np.arange(len(data.y))
    for part in ('train', 'valid'):
        order[data.rows(part)] = rng.permutation(data.rows(part))
    groups = None if data.groups is None else data.groups[order]
    return dataclasses.replace(data, y=data.y[order], groups=groups)


def luck(cell: Cell, predictions: dict[str, np.ndarray]) -> float:
    """The share of shuffles of the tested targets that score as well as the true ones, by the task's headline (of
    retrieval by its mean over subjects, which takes a fraction of the time)."""
    kind = 'classes' if cell.task.target.kind == 'state' else cell.task.target.kind
    outputs, y, subjects = pooled(kind, predictions, cell.task.level)
    sign = -1 if METRICS[cell.task.metric].better == 'lower' else 1

    def score(order: np.ndarray) -> float:
        if kind == 'embedding':
            about = {**predictions, 'group': predictions['group'][order]}
            each = per_subject(kind, cell.task.metric, outputs, y[order], subjects, about)
            return float(np.mean(list(each.values())))
        about = {'cell': predictions['cell']} if 'cell' in predictions else {}
        return sign * (evaluate(kind, outputs, y[order], about)[cell.task.metric] or 0.0)

    rng, true = np.random.default_rng(1), score(np.arange(len(y)))
    return float(np.mean([score(rng.permutation(len(y))) >= true for _ in range(SHUFFLES)]))


@pytest.mark.parametrize('name', TASKS)
def test_above_chance_with_targets_and_at_chance_with_shuffled_ones(context, name, monkeypatch):
    (choice,) = (cells.choose_dataset(t, d, None, context.workdir, 'auto') for t, d in select.select_tasks(name))
    assert choice.dataset.simulated
    (cell,) = cells.make_cells([choice], select.select_models(BEST.get(name, 'eegnet')), ())
    prepared, compiler, found = stages.prepare(cell, context), stages.Compiler(), []
    write = result_file.write
    monkeypatch.setattr(
        result_file,
        'write',
        lambda home, facts, predictions, *more: found.append(predictions) or write(home, facts, predictions, *more),
    )
    (result,) = training.train(cell, prepared, [33], compiler, context)
    assert result['simulated']
    assert luck(cell, found[0]) < 0.05, result['headline']
    sign = -1 if result['headline']['better'] == 'lower' else 1
    assert sign * (result['headline']['value'] - result['chance']) > 0, result['headline']

    opened, lucks = stages.prepared_set.open_set, list[float]()
    monkeypatch.setattr(
        stages.prepared_set, 'open_set', lambda folder, task: shuffled(opened(folder, task), len(lucks))
    )
    while not any(lucks) and len(lucks) < 3:  # who learnt nothing answers by what varies most: that may fit once
        (result,) = training.train(cell, prepared, [34 + len(lucks)], compiler, context)
        lucks.append(luck(cell, found[-1]))
    assert any(lucks), result['headline']
