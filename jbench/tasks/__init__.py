"""What is asked of recordings: one module per category holds `TASKS`, a tuple of `jbench.spec.task.Task`.

The file name is the registry. To add a task, add a `Task` to the module of its category, or a new module.
"""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module
from typing import Any

from jbench.spec.task import Recipe, Task, Value

REVISION = 'facebookresearch/neuroai@af8ce00'  # of NeuralBench, that its protocols were read from
FITS = 'baselines were fitted on the validation part, too'  # which every version 2 mends
# s, from onsets of pictures as MOABB has them in ERP CORE: it counts samples from 0 that its files count from 1, and
# overwrites what it adds for the screen, which showed them 26 ms later
SEEN_LATER = 0.026 - 1 / 1024


LENGTH = ('lr', 'max_epochs', 'patience', 'least_steps', 'patience_steps')  # what `in_steps` leaves to who says it


def registered() -> list[Task]:
    """All tasks, every version of each."""
    modules = [import_module(f'{__name__}.{m.name}') for m in pkgutil.iter_modules(__path__)]
    return [task for module in modules for task in getattr(module, 'TASKS', ())]


def published(**fields: Any) -> Task:
    """A task of NeuralBench, version 1: the published protocol, the fits of its baselines included."""
    recipe = replace(fields.pop('recipe', Recipe()), published=True)
    return Task(revision=REVISION, recipe=recipe, **fields)


def corrected(task: Task, why: str = '', **fields: Any) -> Task:
    """The next version of a task, fitted our way, and why there is one (of NeuralBench's: docs/differences.md)."""
    recipe = replace(fields.pop('recipe', task.recipe), published=False)
    reasons = '; '.join(filter(None, (why, FITS if task.recipe.published else '')))
    return replace(task, version=task.version + 1, supersedes=(task.version, reasons), recipe=recipe, **fields)


def in_steps(task: Task) -> Task:
    """The task, learnt long enough on few windows too, where an epoch is a few steps. One whose recipe says any of
    `LENGTH` itself, or is `published`, stays as it is."""
    if task.recipe.published or any(getattr(task.recipe, name) != getattr(Recipe(), name) for name in LENGTH):
        return task
    return replace(task, recipe=replace(task.recipe, lr=3e-3, least_steps=1000, patience_steps=300))


def scaled(task: Task) -> Task:
    """The task, its values learnt centred and scaled: a network that begins near 0 takes long to reach an age. One of
    another target, or whose recipe is `published`, stays as it is."""
    if not isinstance(task.target, Value) or task.recipe.published:
        return task
    return replace(task, target=replace(task.target, scaled=True))
