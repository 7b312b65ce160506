"""What speaks against a result that somebody hands in, by the registered tasks too: was it asked what its task asks?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.report import verify_alignment, verify_folds
from jbench.results import checked, place, result_file
from jbench.spec.cell import WORDS, Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json
from jbench.spec.model import ModelSpec
from jbench.spec.task import Task

LEFT_OUT = (*WORDS, 'overrides', 'exclude')  # of a task: words, what is applied, and what is compared by dataset
IN_STEPS = (('recipe.max_epochs', 'recipe.least_steps'), ('recipe.patience', 'recipe.patience_steps'))


def problems(path: str | Path, *, predictions: bool = True) -> list[str]:
    """One text a problem; [] for none: those of `result_file.verify`, and each field of the task that is not as the
    registered task has it, with what its overrides for the dataset, the dataset, the model and the user change. Of a
    result of folds that lie below it, whether it is what they make together; each of them is a result by itself.

    Args:
        path: of the result.
        predictions: whether they must lie beside it.
    """
    path = Path(path)
    try:
        result = checked.read(path)
    except FileNotFoundError:
        return [f'{path}: {checked.absent(path)}']
    except RequestError as error:
        return [str(error)]
    if result['kind'] == 'alignment':
        return verify_alignment.problems(path, predictions=predictions)
    npz, found = path.with_suffix('.npz'), []
    if predictions and result['predictions_sha256'] and not npz.is_file():
        found = [f'{npz}: no such file: put the predictions there, or take scores as written: --without_predictions']
    found += result_file.verify(path, predictions=predictions and not found)
    try:
        found += [f'{path}: {problem}' for problem in _protocol(result, place.is_fold(path))]
        return found + (verify_folds.problems(path, result) if predictions and not found else [])
    except (FileNotFoundError, RequestError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f'its task cannot be compared with the registered one: {type(error).__name__}: {error}'
        return found or [f'{path}: {reason}']


def _protocol(result: Mapping[str, Any], fold: bool = False) -> Iterator[str]:
    """What of a result's task is neither of the registered task nor of who may change it; nothing of tasks of one's
    own, of which nobody knows what they ask. `fold`: whether it lies among the folds of another result."""
    config = result['config']
    known = {t.version: t for t in select.tasks().get(result['task'], ())}
    if not known:
        return
    ours = known.get(result['task_version'])
    if ours is None:
        there = ', '.join(map(str, known))
        yield f'task_version: written {result["task_version"]}, expected one of {there}; a newer jbench may have it'
        return
    given = from_json(Task, config['task'], 'config.task')
    dataset = from_json(Dataset, config['dataset'], 'config.dataset')
    yield from _words(given, ours, dataset)
    model, told = _model(config, result['model'])
    yield from told
    expected, free = _expected(ours, _registered(dataset), model, result)
    if fold:
        expected = dataclasses.replace(expected, split=verify_folds.one_of(expected.split, given.split))
    asked = config['task'] if result['schema'] < 3 else to_json(given)  # of older ones, what is there
    for name, mine, theirs in _differing(_values(asked, dataset), _values(to_json(expected), dataset)):
        if not any(f'{name}.'.startswith(f'{path}.') for path in free):
            yield f'config.task.{name}: written {mine}, expected {theirs}, as {result["task"]}@{ours.version} has it'


def _registered(dataset: Dataset) -> Dataset:
    """The dataset of that name in the tables, else this one; a simulation with its own recipe, which has no version."""
    ours = select.datasets().get(dataset.name, dataset)
    return dataclasses.replace(ours, recipe=dataset.recipe) if ours.simulated else ours


def _words(given: Task, ours: Task, dataset: Dataset) -> Iterator[str]:
    """Words about a task and a dataset by which tables are sorted."""
    if given.datasets[:1] != ours.datasets[:1]:
        yield f'config.task.datasets: the first is {"".join(given.datasets[:1]) or "none"}, expected {ours.datasets[0]}'
    mine = _registered(dataset)
    if dataset.simulated != mine.simulated:
        yield f'config.dataset.simulated: written {dataset.simulated}, expected {mine.simulated}'


def _model(config: Mapping[str, Any], name: str) -> tuple[ModelSpec | None, list[str]]:
    """The model of a result, and what it says wrongly of what it wants otherwise. A model that the table has in another
    version, or not at all, may want its own signal and recipe; schema 1 says nothing but its name."""
    if 'model' not in config:
        return MODELS.get(name), []
    given = from_json(ModelSpec, config['model'], 'config.model')
    known = MODELS.get(given.name)
    if known is None:
        return given, []
    wants, may = to_json(given.overrides), to_json(known.overrides)
    if known.version == given.version:
        wrong = f'config.model.overrides: written {wants}, expected {may}, as {known.name}@{known.version} has them'
        return known, [wrong] if wants != may else []
    if given.version > known.version:
        return given, [f'config.model.version: written {given.version}, expected {known.version} or an older one']
    strange = [path for path, _ in given.overrides if path.partition('.')[0] not in ('signal', 'recipe')]
    return given, [f'config.model.overrides: {path} is not for a model to say' for path in strange]


def _expected(
    ours: Task, dataset: Dataset, model: ModelSpec | None, result: Mapping[str, Any]
) -> tuple[Task, list[str]]:
    """The registered task as it runs on a dataset with a model and the user's settings; paths that may be anything."""
    config = result['config']
    free = [steps for steps in ('recipe.max_epochs', 'recipe.least_steps') if result['protocol']['debug']]
    plain = cells.apply(ours, dataset, (), model)
    if 'overrides' not in config:  # of schema 1, which keeps them as text
        return plain, free + [text.partition('=')[0] for text in result['protocol']['custom']]
    user = from_json(Cell, config, 'config').overrides
    said = {path for path, _ in user}
    kept = tuple((s, attrgetter(s)(plain)) for e, s in IN_STEPS if e in said and s not in said)  # not changed, if said
    try:
        return cells.apply(ours, dataset, (*user, *kept), model), free
    except (KeyError, TypeError, RequestError):  # of --cell=FILE, which changes what --set cannot
        return plain, [*free, *said, *(f'{path.partition(".")[0]}.kind' for path in said)]


def _values(task: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """What decides the scores of a task on a dataset, as JSON."""
    left_out = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset.name]
    return {**{k: v for k, v in task.items() if k not in LEFT_OUT}, 'exclude': left_out}


def _differing(given: Any, expected: Any, where: str = '') -> Iterator[tuple[str, Any, Any]]:
    """Path, value and expected value of the fields that differ, of those that are given."""
    if isinstance(given, dict) and isinstance(expected, dict):
        for name in {**given, **expected}:
            path = f'{where}.{name}'.lstrip('.')
            if name in given:
                yield from _differing(given[name], expected.get(name), path)
    elif given != expected:
        yield where, given, expected
