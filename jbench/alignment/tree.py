"""The tree of benchmarks, and what a parent's score is: the mean of its children's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

# parent of each inner node; '' : a root. Brain-Score's site keeps the tree; its benchmarks name their parents
PARENTS = {
    'average_vision': '',
    'neural_vision': 'average_vision',
    'behavior_vision': 'average_vision',
    **dict.fromkeys(('V1', 'V2', 'V4', 'IT'), 'neural_vision'),
    **dict.fromkeys(
        (
            'V1-orientation',
            'V1-spatial_frequency',
            'V1-response_selectivity',
            'V1-receptive_field_size',
            'V1-surround_modulation',
            'V1-texture_modulation',
            'V1-response_magnitude',
        ),
        'V1',
    ),
    'Geirhos2021': 'behavior_vision',
    'engineering_vision': '',
    'average_language': '',
    'neural_language': 'average_language',
    'behavior_language': 'average_language',
}


class Node(NamedTuple):
    """A place in the tree."""

    name: str
    score: float  # nan: no child has one
    n_scored: int  # children with a score
    n_children: int


def path(parent: str) -> tuple[str, ...]:
    """From the parent of a benchmark to its root."""
    found = [parent] if parent else []
    while found and PARENTS.get(found[-1]):
        found.append(PARENTS[found[-1]])
    return tuple(found)


def scores(leaves: Mapping[str, str], values: Mapping[str, float], *, missing: float | None = 0.0) -> dict[str, Node]:
    """The score of every inner node: the unweighted mean of its children, bottom-up.

    Args:
        leaves: the parent of every benchmark that is counted, by its identifier; '' counts nowhere.
        values: of a model, by identifier; absent or nan: missing.
        missing: what a missing child counts (Brain-Score's board: 0); None: it is left out of the mean.
    """
    children: dict[str, list[str]] = {}
    for name, parent in leaves.items():
        if parent:
            children.setdefault(parent, []).append(name)
    for name, parent in PARENTS.items():
        if parent and _holds(name, leaves):
            children.setdefault(parent, []).append(name)
    found: dict[str, Node] = {}

    def value(name: str) -> float:
        if name not in children:
            return float(values.get(name, math.nan))
        each = [value(child) for child in children[name]]
        there = [v for v in each if not math.isnan(v)]
        counted = there if missing is None else [*there, *[missing] * (len(each) - len(there))]
        score = sum(counted) / len(counted) if there else math.nan
        found[name] = Node(name, score, len(there), len(each))
        return score

    for root in [name for name in children if not PARENTS.get(name)]:
        value(root)
    return found


def _holds(name: str, leaves: Mapping[str, str]) -> bool:
    """Whether a benchmark hangs below a node."""
    return any(name in path(parent) for parent in leaves.values())
