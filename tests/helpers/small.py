"""A small prepared set for tests of loading and training: five simulated subjects of the P3 task."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from once import once

from jbench.data.load import prepared_set
from jbench.data.prepare import build_set
from jbench.models import MODELS
from jbench.plan import select
from jbench.spec.cell import Cell
from jbench.spec.overrides import override

N_SUBJECTS = 5


def cell(**recipe: object) -> Cell:
    """The P3 task on its simulation, with a short recipe."""
    task, dataset = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']
    for name, value in {'max_epochs': 3, 'patience': 3, 'lr': 1e-2, **recipe}.items():
        task = override(task, f'recipe.{name}', value)
    return Cell(task=task, dataset=dataset, model=MODELS['eegnet'])


def prepared(root: Path) -> prepared_set.PreparedSet:
    """Windows of the first subjects, in `root`."""
    c = cell()
    refs = build_set.find_recordings(c.dataset, None)[:N_SUBJECTS]
    dataset = dataclasses.replace(c.dataset, n_subjects=N_SUBJECTS)
    folder = once('small', root / 'small', lambda at: build_set.prepare(c.task, dataset, at, refs, lambda *facts: None))
    return prepared_set.open_set(folder, c.task)
