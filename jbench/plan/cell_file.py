"""Cells as JSON (`--cell=FILE`): each runs as it stands, under the key that it has.

What decides a score is the file's: every field of the task, which data, which model. What belongs to jbench's tables
(words about a task, facts about a dataset, where the code of a model is) is theirs: no file can name other code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from jbench import files
from jbench.data.sources import mixture
from jbench.models import options, user_model
from jbench.plan import cells, places, select, together, user_files, weights
from jbench.plan.evaluations import EVALUATIONS, evaluation
from jbench.plan.request import Plan
from jbench.spec.cell import WORDS, Cell
from jbench.spec.checkpoints import CHECKPOINTS
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import from_json, to_json
from jbench.spec.model import SCRATCH, ModelSpec
from jbench.spec.overrides import Override, paths
from jbench.spec.task import Task
from jbench.stores import mirror

HOW = 'expected a cell, as --dry_run --format=json gives it ("config" of each), or a result file'


def plan(
    paths: Sequence[str], data_dir: Path | None, workdir: Path, asked: str | None = None, *, trained: bool = True
) -> Plan:
    """The cells of some files, if their data are here, their models fit, and weights are here where one is `trained`.

    Args:
        paths: each as --cell. A cell that several hold, as results of its seeds do, runs once.
        asked: as --weights: for those that start from weights.
    Raises: RequestError.
    """
    given = {cell.key: cell for cell in map(read, paths)}
    here = [_here(cell, data_dir, workdir) for cell in given.values()]
    taken = any(cell.model.weights not in ('', SCRATCH) for cell in here)
    found, files_ = list[Cell](), dict[str, Path]()
    for cell in here:
        digest = cell.model.weights
        mine = asked if digest not in ('', SCRATCH) or not taken else None
        own = weights.find(cell.model, mine, data_dir, needed=trained)
        if digest or cell.model.name in CHECKPOINTS:
            model = weights.with_weights(cell.model, digest, data_dir, own.get(digest))
            cell = dataclasses.replace(cell, model=places.found(model, data_dir, workdir, needed=trained))
        found.append(cell)
        files_ |= own
    joined = together.from_files(found)
    return Plan(joined, cells.simulated([cells.Choice(c.task, c.dataset, True) for c in joined]), [], files_)


def _here(cell: Cell, data_dir: Path | None, workdir: Path) -> Cell:
    """A cell that can run here. Raises: RequestError where its data are not, or its model does not fit."""
    from jbench.data.prepare.build_set import locate

    cells.fits(select.Pick(cell.model, True), cell.task)
    if locate(cell.task, cell.dataset, data_dir, workdir)[0] is None:
        raise cells.absent(cell.task, cell.dataset, data_dir)
    return cell


def read(path: str) -> Cell:
    """The cell that a file holds: its JSON, or `config` of a result.

    Raises: RequestError where there is no such file, it holds no cell, or this jbench would run another one.
    """
    what = f'--cell={path}'
    try:
        found = files.read_json(mirror.file(path, '--cell'))
    except FileNotFoundError:
        raise RequestError(f'{what}: no such file; {HOW}') from None
    except RequestError as error:
        reason = str(error).removeprefix(f'{path}: ').partition(';')[0]
        raise RequestError(f'{what}: {reason}; {HOW}') from error
    given = found.get('config', found) if isinstance(found, dict) else found
    if not isinstance(given, dict) or 'task' not in given:
        raise RequestError(f'{what}: {HOW}')
    if 'model' not in given:
        raise RequestError(
            f'{what}: lacks the field "model", as results of schema 1 do; name what it was by --task and --model'
        )
    cell = from_json(Cell, given, f'{what}: cell')
    dataset, model = _dataset(cell.dataset, what), _model(cell.model, what)
    task = user_files.typed(_worded(cell.task), what)
    own = _changed(task, dataset, model, cell)
    return dataclasses.replace(cell, task=task, dataset=dataset, model=model, overrides=own)


def _dataset(given: Dataset, what: str) -> Dataset:
    """The dataset of that name in the tables, else the given one. Raises: RequestError if theirs is another."""
    mixed = given.source == mixture.__name__
    ours = select.find_dataset(given.name) if mixed else select.datasets().get(given.name)
    if ours is None:
        if given.source not in select.sources():
            raise unknown(f'source in {what}', given.source, select.sources())
        return user_files.typed(given, what)
    _same(given, ours, ('revision', 'source', 'simulated'), what)
    return ours


def _model(given: ModelSpec, what: str) -> ModelSpec:
    """The model of that name in the table, or in the file that the target names. Raises: RequestError if it is another.

    A target without a folder, as results have it, is looked for in the current one.
    """
    if given.family != 'user':
        if given.name not in select.MODELS:
            raise unknown(f'model in {what}', given.name, select.MODELS)
        ours = select.select_models(given.name)[0].spec
    else:
        try:
            ours = user_model.find(given.target)
        except RequestError as error:
            raise RequestError(
                f'{what}: model {given.name!r} is the file at model.target: {error}; run this where that file lies'
            ) from error
        if ours.name != given.name:
            where = user_model.file_of(ours)
            raise RequestError(f'{what}: model {given.name!r}: {where} changed, and is {ours.name!r} now')
    if given.name in CHECKPOINTS or (given.weights and ours.kind == 'network'):
        if not given.weights:
            raise RequestError(f'{what}: {given.name} has no weights; expected their SHA-256, or {SCRATCH!r}')
        kept = ('weights', 'own_weights', 'pretraining', 'places', 'own_places')
        ours = dataclasses.replace(ours, **{field: getattr(given, field) for field in kept})
    _same(given, ours, ('version', 'weights', 'kind'), what)
    return options.with_options(ours, dict(given.options), what)


def _same(given: Dataset | ModelSpec, ours: Dataset | ModelSpec, fields: tuple[str, ...], what: str) -> None:
    """Raises: RequestError where the scores would be those of something else."""
    for field in fields:
        theirs, here = getattr(given, field), getattr(ours, field)
        if theirs != here:
            raise RequestError(
                f'{what}: {given.name} has {field} {theirs!r}; with this jbench it has {here!r}, which is another cell'
            )


def _worded(task: Task) -> Task:
    """The task with the words of the tables about it. Raises: RequestError for a version that these have not."""
    if task.full_name not in select.tasks():
        return task
    ours = select.version(select.tasks()[task.full_name], task.full_name, task.version)
    return dataclasses.replace(task, **{word: getattr(ours, word) for word in WORDS})


def _changed(task: Task, dataset: Dataset, model: ModelSpec, cell: Cell) -> tuple[Override, ...]:
    """The user's own settings of a cell: those that it says, and those that a change of the file made. Their values
    are those of the task. Raises: RequestError for a setting of a field that there is not."""
    known = [*cells.options(task), 'split']
    if strange := [path for path, _ in cell.overrides if path not in known]:
        raise unknown('field of its overrides', strange[0], known)
    words = {('split', word) for word in EVALUATIONS if evaluation(word, task) == task.split}
    says = tuple((p, v if (p, v) in words else to_json(attrgetter(p)(task))) for p, v in cell.overrides)
    if task.full_name not in select.tasks():
        return says
    ours = select.version(select.tasks()[task.full_name], task.full_name, task.version)
    plain, given = (_values(one, dataset) for one in (cells.apply(ours, dataset, (), model), task))
    differ = [p for p in dict.fromkeys((*plain, *given)) if plain.get(p, ...) != given.get(p, ...)]
    told = [f'{path}.' for path, _ in cell.overrides]
    left_out = {'recipe.max_epochs', 'recipe.least_steps'} if cell.debug else set()
    left_out |= {p for p in differ for t in told if f'{p}.'.startswith(t) or t.startswith(f'{p}.')}
    says = tuple((p, v) for p, v in says if any(f'{d}.'.startswith(f'{p}.') or p.startswith(f'{d}.') for d in differ))
    return (*says, *((p, to_json(given.get(p))) for p in differ if p not in left_out))


def _values(task: Task, dataset: Dataset) -> dict[str, Any]:
    """What decides the scores of a task on a dataset, by path."""
    found = {p: attrgetter(p)(task) for p in paths(task) if p not in (*WORDS, 'overrides')}
    return {**found, 'exclude': [e for e in task.exclude if e.dataset == dataset.name]}
