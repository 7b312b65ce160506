"""One line of the table: a task on a dataset with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jbench.spec.dataset import Dataset
from jbench.spec.identity import spec_hash, to_json
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import Override
from jbench.spec.task import Task


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table: (task@version, dataset, model, recipe); seeds run inside it."""

    task: Task  # with every override applied
    dataset: Dataset
    spec: ModelSpec
    overrides: tuple[Override, ...] = ()  # the user's own, in canonical order
    debug: bool = False

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.spec.name

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'{self.task.full_name}/{self.dataset.name} {self.model}'

    @property
    def source(self) -> str:
        """What decides the prepared set: cells with equal ones share it."""
        task = to_json(self.task)
        return spec_hash([self.dataset.name, [task[k] for k in ('signal', 'window', 'target')]])

    @property
    def key(self) -> str:
        """Identity of the cell: hash of what was asked, never of words about it, machine, paths or device count."""
        return cell_key(to_json(self.task), self.dataset.name, self.model, self.debug)


def cell_key(task: dict[str, Any], dataset: str, model: str, debug: bool) -> str:
    """The key of a cell from the JSON of its task."""
    asked = {k: v for k, v in task.items() if k not in ('category', 'paradigm', 'title', 'datasets', 'simulated')}
    asked['overrides'] = []  # applied already, those of this dataset
    asked['exclude'] = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset]
    return spec_hash({'task': asked, 'dataset': dataset, 'model': model, 'debug': debug})
