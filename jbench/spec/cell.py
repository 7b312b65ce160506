"""One line of the table: a task on a dataset with a model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from jbench.spec.dataset import Dataset
from jbench.spec.identity import spec_hash, to_json, without_defaults
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import Override
from jbench.spec.recipe import seeds_draw
from jbench.spec.task import SignalSpec, Task

WORDS = ('category', 'paradigm', 'title', 'datasets', 'simulated', 'doi', 'revision', 'supersedes')  # about a task


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table: (task@version, dataset, model, recipe); seeds run inside it."""

    task: Task  # with every override applied, those of the model among them
    dataset: Dataset
    model: ModelSpec
    overrides: tuple[Override, ...] = ()  # the user's own, in canonical order
    debug: bool = False
    # cells that one encoder learns together with this one, and itself: (name, key without companions), by name
    companions: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What results call it, whatever the model: 'p3@2/SimulatedP3'."""
        return f'{self.task.full_name}@{self.task.version}/{self.dataset.name}'

    @property
    def title(self) -> str:
        """What messages call it."""
        fold = getattr(self.task.split, 'fold', '')
        return f'{self.task.full_name}/{self.dataset.name} {self.model.full_name}' + (f' fold {fold}' if fold else '')

    @property
    def own_band(self) -> bool:
        """Whether the band is neither the default nor the model's, so that every recording must hold it."""
        return self.task.signal.band not in (SignalSpec.band, dict(self.model.overrides).get('signal.band'))

    @property
    def source(self) -> str:
        """Cells with an equal one share a prepared set, and what is asked of its recordings."""
        task = to_json(self.task)
        kept = [task[k] for k in ('signal', 'window', 'target', 'exclude', 'exclude_bad')]
        return spec_hash([self.dataset.name, kept, self.own_band])

    @property
    def key(self) -> str:
        """Identity of the cell: hash of what was asked (the task, which data, which model), never of words about it,
        machine, paths or device count. Fields that have their defaults do not count (`without_defaults`)."""
        task = {k: v for k, v in without_defaults(self.task).items() if k not in (*WORDS, 'overrides', 'exclude')}
        out = [[e.subject, e.after_split] for e in self.task.exclude if e.dataset == self.dataset.name]
        model = [self.model.with_options, self.model.version, self.model.weights]
        model += [self.model.places_digest] if self.model.places else []
        data = [self.dataset.name, self.dataset.revision]
        asked = {'task': task, 'exclude': out, 'dataset': data, 'model': model, 'debug': self.debug}
        asked |= {'drawn': 'by seed'} if seeds_draw(self.task.recipe) else {}
        # 2: what no weights hold learns, too, and layers that no head reads are none
        asked |= {'adaptation': 2} if self.task.recipe.adapts or self.task.recipe.together == 'yes' else {}
        return spec_hash(asked | ({'companions': [key for _, key in self.companions]} if self.companions else {}))


def choosing(cell: Cell) -> Cell:
    """The cell whose validation part chooses how many epochs a cell with `recipe.final=all` learns: the same, less
    that."""
    recipe = dataclasses.replace(cell.task.recipe, final='chosen')
    others = tuple((path, value) for path, value in cell.overrides if path != 'recipe.final')
    return dataclasses.replace(cell, task=dataclasses.replace(cell.task, recipe=recipe), overrides=others)
