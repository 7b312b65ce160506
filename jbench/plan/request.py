"""What was asked for, in the words of the command line, as cells in the order of the table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jbench.plan import cells, select, together, user_files, weights
from jbench.spec import validate
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.overrides import Override
from jbench.spec.recipe import Recipe


class Request(NamedTuple):
    """What was asked for."""

    tasks: str  # as --task
    models: str  # as --model
    changes: tuple[Override, ...] = ()  # of fields of the tasks
    simulated: str = 'auto'  # as --simulated
    debug: bool = False
    device: str | None = None  # as --device: which models a group holds
    weights: str | None = None  # as --weights
    trained: bool = True  # False: no stage needs the weights that models start from


class Plan(NamedTuple):
    """What runs, and what does not."""

    cells: list[Cell]
    simulated: str  # which tasks run on generated recordings, and why; '': none
    absent: list[str]  # why some of what was asked for is left out
    weights: Mapping[str, Path] = {}
    takers: str = ''  # which models --weights is for, where others train from random ones

    @property
    def told(self) -> list[str]:
        """What to say before anything runs, a line each."""
        return [*filter(None, (self.simulated, self.takers)), *(f'not run: {reason}' for reason in self.absent)]


def changes(settings: Iterable[str], config: str | None) -> tuple[Override, ...]:
    """Fields that `--set` and `--config` change, in canonical order; `--set` has the last word. Raises RequestError."""
    typed = cells.parse_overrides(settings)
    return tuple(sorted(dict((*user_files.config_overrides(config), *typed)).items())) if config else typed


def plan(request: Request, data_dir: Path | None, workdir: Path) -> Plan:
    """The cells of a request: every task on its dataset with every model that fits.

    Raises: RequestError where a name or a field is wrong, or nothing can run.
    """
    picks = select.select_models(request.models, request.device)
    models, files, unweighted, takers = weights.resolve(
        picks, request.weights, data_dir, workdir, needed=request.trained
    )
    selected = select.select_tasks(request.tasks)
    if request.simulated == 'yes' and all(d is not None and not d.simulated for _, d in selected):
        raise RequestError('--simulated=yes: unused, because every dataset is named, and a named one is never replaced')
    choices, absent = [], unweighted
    for task, dataset in selected:
        try:
            choices.append(cells.choose_dataset(task, dataset, data_dir, workdir, request.simulated))
        except RequestError as error:
            if dataset is not None or len(selected) == 1:
                raise
            absent.append(str(error))  # one of several tasks, its dataset not named: the others run
    found: list[Cell] = []
    for choice, model in itertools.product(choices, models):
        try:
            found += cells.make_cells([choice], [model], request.changes, request.debug)
        except cells.UnfitError as error:
            if len(choices) == 1:
                raise
            absent.append(str(error))
    grouped = [m for m, named in models if not named]
    found, lone = together.without_lone(list({c.key: c for c in found}.values()), grouped)
    absent += lone
    if not found:
        absent = absent or [f'no model of --model={request.models} fits; one that is named runs on every paradigm']
        raise RequestError('no task can run:\n  ' + '\n  '.join(absent))
    recipes = [cell.task.recipe for cell in found]
    validate.require_read(recipes, 'loss', validate.OF_LOSSES)
    _refuse_unread_smoothing(recipes, request.changes)
    recipe = [p for p, _ in request.changes if p.startswith('recipe.') and p != 'recipe.published']
    if recipe and all(m.kind == 'estimator' for m, _ in models):
        names = ', '.join(m.name for m, _ in models)
        raise RequestError(f'--set {recipe[0]}: unused, because {names} follows no recipe')
    return Plan(together.joined(found), cells.simulated(choices), absent, files, takers)


def _refuse_unread_smoothing(recipes: Sequence[Recipe], changes: Sequence[Override]) -> None:
    """Refuse a smoothing of labels that was asked for and no loss reads. It is not one of `OF_LOSSES`: tasks of other
    losses say 0, which is not its default. Raises RequestError."""
    losses, smoothing = sorted({recipe.loss for recipe in recipes}), recipes[0].label_smoothing
    if 'recipe.label_smoothing' in dict(changes) and smoothing and 'cross_entropy' not in losses:
        raise RequestError(
            f'--set recipe.label_smoothing: {smoothing!r} is unused with recipe.loss={" and ".join(losses)}; '
            'it is for cross_entropy'
        )
