"""Models of the table as parameters of a test: those that were pretrained are large, and take their time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from jbench.spec.model import ModelSpec


def params(models: Iterable[ModelSpec]) -> list[Any]:
    """One parameter a model, by its name; of the family `foundation` marked slow."""
    return [pytest.param(m, id=m.name, marks=[pytest.mark.slow] if m.family == 'foundation' else []) for m in models]


def often(names: Iterable[Any], chosen: Iterable[Any]) -> list[Any]:
    """One parameter a name: those of `chosen` are for `.ci/run`, the others for a person (`-m long`)."""
    chosen = set(chosen)
    return [pytest.param(n, marks=pytest.mark.slow if n in chosen else pytest.mark.long) for n in names]
