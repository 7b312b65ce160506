"""What is asked of recordings: one module per category holds `TASKS`, a tuple of `jbench.spec.task.Task`.

The file name is the registry. To add a task, add a `Task` to the module of its category, or a new module.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from jbench.spec.task import Task

REVISION = 'facebookresearch/neuroai@af8ce00'  # of NeuralBench, that its protocols were read from
published = partial(Task, revision=REVISION)  # a task of NeuralBench, version 1


def corrected(task: Task, why: str, **fields: Any) -> Task:
    """The next version of a task, and why there is one (of NeuralBench's: docs/differences.md)."""
    return replace(task, version=task.version + 1, supersedes=(task.version, why), **fields)
