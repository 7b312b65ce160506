"""The table of models: one line each; the module of a model is imported only when it runs.

The lines stand in the folder of their family; a network that is added gets a file there, and a line.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from jbench.models import baselines, classic, foundation, user_model
from jbench.spec.model import ModelSpec

FAMILIES = (classic, foundation, baselines)  # folders: groups of --model
MODELS = {m.name: m for family in FAMILIES for m in family.MODELS}


def factory(model: ModelSpec) -> Callable[..., Any]:
    """What builds a model, its module imported now; RequestError where one's own file fails."""
    if model.family == 'user':
        return user_model.load(model)
    module, _, name = model.target.partition(':')
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
