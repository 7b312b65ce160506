"""What is asked of recordings: one module per category holds `TASKS`, a tuple of `jbench.spec.task.Task`.

The file name is the registry. To add a task, add a `Task` to the module of its category, or a new module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jbench.spec.task import Task

REVISION = 'facebookresearch/neuroai@af8ce00'  # that NeuralBench's protocols were read from


def published(*tasks: Task) -> tuple[Task, ...]:
    """Tasks of which every version 1 is NeuralBench's, and says which commit of its code it was read from."""
    return tuple(replace(task, revision=REVISION) if task.version == 1 else task for task in tasks)


def corrected(task: Task, why: str, **fields: Any) -> Task:
    """The next version of a task, and why there is one (docs/differences.md)."""
    return replace(task, version=task.version + 1, supersedes=(task.version, why), **fields)
