"""Networks learn simulated paradigms by the plain recipe of their sets, and nothing where labels are shuffled."""

from __future__ import annotations

import numpy as np
import pytest

from jbench import metrics, plan, progress, results, stages
from jbench.data import loader

CELLS = (  # emg/typing takes minutes, and its shuffled keys teach which words are frequent: better than the dummy
    *((name, 'eegnet') for name in ('cvep', 'mental_imagery', 'motor_execution', 'motor_imagery', 'p3', 'ssvep')),
    ('mental_arithmetic', 'eegnet'),
    ('meg/image', 'eegnet'),
    ('fmri/image', 'fmri_linear'),
)


@pytest.fixture(scope='module')
def context(tmp_path_factory):
    return stages.Context(
        tmp_path_factory.mktemp('learning'), None, progress.Progress(), progress.StopSignal(), 'resume'
    )


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'model'), CELLS)
def test_above_chance_with_labels_and_at_chance_with_shuffled_ones(context, name, model, monkeypatch):
    (choice,) = (plan.choose_dataset(t, d, None, context.workdir, 'auto') for t, d in plan.select_tasks(name))
    assert choice.dataset.simulated
    (cell,) = plan.make_cells([choice], plan.select_models(model), ())
    prepared, compiler = stages.prepare(cell, context), stages.Compiler()
    (result,) = stages.train(cell, prepared, [33], compiler, context)
    assert result['simulated']
    assert result['headline']['interval'][0] > result['chance'], result['headline']
    assert result['headline']['differs_from_chance']

    rng = np.random.default_rng(0)

    class Shuffled(loader.Loader):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            self.y = rng.permutation(self.y)

    monkeypatch.setattr(stages.loader, 'Loader', Shuffled)
    found = {}
    monkeypatch.setattr(results, 'write', lambda home, facts, predictions: found.update(predictions) or facts)
    stages.train(cell, prepared, [34], compiler, context)
    _, each, *_ = metrics.level_score(cell.task.target.kind, cell.task.metric, found, cell.task.level)
    low, high = metrics.interval(each)
    assert low <= result['chance'], 'an interval that lies above chance'
    assert high < result['headline']['value']
