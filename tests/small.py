"""A small prepared set for tests of loading and training: five simulated subjects of the P3 task."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from jbench import plan
from jbench.data import cache, prepared_set
from jbench.models import MODELS
from jbench.overrides import override
from jbench.spec import Cell

N_SUBJECTS = 5


def cell(**recipe: object) -> Cell:
    """The P3 task on its simulation, with a short recipe."""
    task, dataset = plan.tasks()['p3'][-1], plan.datasets()['SimulatedP3']
    for name, value in {'max_epochs': 3, 'patience': 3, 'lr': 1e-2, **recipe}.items():
        task = override(task, f'recipe.{name}', value)
    return Cell(task=task, dataset=dataset, spec=MODELS['eegnet'])


def prepared(root: Path) -> prepared_set.PreparedSet:
    """Windows of the first subjects, made once in `root`."""
    c = cell()
    refs = cache.find_recordings(c.dataset, None)[:N_SUBJECTS]
    folder = root / 'small'
    cache.prepare(c.task, dataclasses.replace(c.dataset, n_subjects=N_SUBJECTS), folder, refs, lambda *facts: None)
    return prepared_set.open_set(folder, c.task)
