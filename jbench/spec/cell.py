"""One line of the table: a task on a dataset with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jbench.spec.dataset import Dataset
from jbench.spec.identity import spec_hash, to_json
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import Override
from jbench.spec.task import Task

WORDS = ('category', 'paradigm', 'title', 'datasets', 'simulated', 'doi', 'revision', 'supersedes')  # about a task


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table: (task@version, dataset, model, recipe); seeds run inside it."""

    task: Task  # with every override applied, those of the model among them
    dataset: Dataset
    model: ModelSpec
    overrides: tuple[Override, ...] = ()  # the user's own, in canonical order
    debug: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'{self.task.full_name}/{self.dataset.name} {self.model.name}'

    @property
    def source(self) -> str:
        """What decides the prepared set: cells with equal ones share it."""
        task = to_json(self.task)
        return spec_hash([self.dataset.name, [task[k] for k in ('signal', 'window', 'target')]])

    @property
    def key(self) -> str:
        """Identity of the cell: hash of what was asked, never of words about it, machine, paths or device count."""
        return cell_key(to_json(self))


def cell_key(cell: dict[str, Any]) -> str:
    """The key of a cell from its JSON: the task, which data, and which model (its version and weights included)."""
    task, dataset, model = cell['task'], cell['dataset'], cell['model']
    asked = {k: v for k, v in task.items() if k not in WORDS}
    asked['overrides'] = []  # applied already, those of this dataset
    asked['exclude'] = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset['name']]
    return spec_hash(
        {
            'task': asked,
            'dataset': [dataset['name'], dataset['revision']],
            'model': [model['name'], model['version'], model['weights']],
            'debug': cell['debug'],
        }
    )
