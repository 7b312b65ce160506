"""Models of the table as parameters of a test: those that were pretrained are large, and take their time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from jbench.spec.model import ModelSpec

# Encoders for `.ci/run` where a test goes over all.
OFTEN = ('labram', 'biot', 'cbramod', 'luna_base', 'signal_jepa', 'signal_jepa_pre_local', 'eegpt', 'codebrain')


def params(models: Iterable[ModelSpec]) -> list[Any]:
    """One parameter a model, by its name; of the family `foundation` marked slow, all but `OFTEN` marked long."""
    found = []
    for m in models:
        mark = pytest.mark.slow if m.name in OFTEN else pytest.mark.long
        found.append(pytest.param(m, id=m.name, marks=[mark] if m.family == 'foundation' else []))
    return found


def often(names: Iterable[Any], chosen: Iterable[Any]) -> list[Any]:
    """One parameter a name: those of `chosen` are for `.ci/run`, the others for a person (`-m long`)."""
    names, chosen = list(names), set(chosen)
    assert chosen <= set(names), chosen - set(names)
    return [pytest.param(n, marks=pytest.mark.slow if n in chosen else pytest.mark.long) for n in names]
