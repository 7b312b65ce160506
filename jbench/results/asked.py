"""What a result was asked, as a digest: results with unlike ones are never compared.

A model may want its own signal and recipe (`ModelSpec.overrides`), and still be compared with others. So of these two
parts of a task only that counts which nobody who may change them changed: the task for the dataset, the dataset, the
model, the user (whose changes every table names).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from jbench.spec.cell import WORDS
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, spec_hash, to_json, without_defaults
from jbench.spec.model import ModelSpec
from jbench.spec.task import Task, full_name
from jbench.tasks import registered

MODELS_OWN = ('signal', 'recipe')  # what a model may want otherwise
IN_STEPS = {'recipe.max_epochs': 'recipe.least_steps', 'recipe.patience': 'recipe.patience_steps'}  # follow epochs
DEBUG = ('recipe.max_epochs', 'recipe.least_steps')  # which a try sets


def digest(config: Mapping[str, Any], known: ModelSpec | None) -> str:
    """16 digits, of window, target, split, exclusions, metric and level, and of what in signal and recipe is neither
    the task's nor changed by who may.

    Args:
        config: of a result, of any schema.
        known: the model of that name in the table; it says itself what it wants otherwise.
    Raises: KeyError, TypeError, AttributeError for a config that no run writes.
    """
    task, dataset = config['task'], config['dataset']
    core = {k: v for k, v in task.items() if k not in (*WORDS, *MODELS_OWN, 'overrides', 'exclude')}
    core['exclude'] = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset['name']]
    return _digest(json.dumps([core, _departures(config, known)], sort_keys=True))


@functools.cache
def _digest(text: str) -> str:
    """Of a task as JSON, without words. Fields with their defaults do not count: a later version may add some."""
    core, departures = json.loads(text)
    excluded = core.pop('exclude')
    try:
        task = from_json(Task, {**core, 'category': '', 'title': '', 'datasets': []})
    except RequestError:  # of an older schema, with fields that are gone
        return spec_hash([core, excluded, departures])
    whole = {k: v for k, v in without_defaults(task).items() if k not in WORDS}
    return spec_hash([whole, excluded, departures])


def _departures(config: Mapping[str, Any], known: ModelSpec | None) -> dict[str, Any]:
    """Fields of signal and recipe, by path, that are not those of the registered task, though nobody changed them."""
    task = config['task']
    ours = _registered().get((full_name(task['device'], task['name']), task['version']))
    if ours is None:  # of one's own: the file says all of it
        return {}
    found: dict[str, Any] = {}
    for part in MODELS_OWN:
        if task[part] != ours[part]:
            given = {f'{part}.{k}': v for k, v in task[part].items() if ours[part].get(k, ...) != v}
            found |= {path: v for path, v in given.items() if path not in DEBUG or not _debug(config)}
    if not found:
        return {}
    changed = [p for p, _ in _changes(config, known, ours)]
    changed += [IN_STEPS[p] for p in changed if p in IN_STEPS]
    return {
        p: v for p, v in found.items() if not any(f'{p}.'.startswith(f'{c}.') or c.startswith(f'{p}.') for c in changed)
    }


def _debug(config: Mapping[str, Any]) -> bool:
    """Whether a result is a try; those of schema 1 do not say so in their config."""
    return bool(config.get('debug', 'model' not in config))


def _changes(config: Mapping[str, Any], known: ModelSpec | None, ours: Mapping[str, Any]) -> list[Any]:
    """(path, value) of all who may change a signal or a recipe."""
    dataset, model = config['dataset'], config.get('model', {})
    of_task = [pair for name, pairs in ours['overrides'] if name == dataset['name'] for pair in pairs]
    same = known is not None and known.version == model.get('version', known.version)
    of_model = known.overrides if known is not None and same else model.get('overrides', [])
    return [*of_task, *dataset.get('recipe', []), *of_model, *config.get('overrides', [])]


@functools.cache
def _registered() -> dict[tuple[str, int], dict[str, Any]]:
    """All tasks of jbench as JSON, by name and version."""
    return {(task.full_name, task.version): to_json(task) for task in registered()}
