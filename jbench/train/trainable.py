"""Which parameters are trained, and at which share of the learning rate (`Recipe.trainable`).

A pattern is that of `fnmatch`, of the dotted path of a parameter ('block_0.*', '*.bias'); the first that fits decides,
and where none fits the factor is 1. A factor of 0 freezes, as `requires_grad=False` does in PyTorch: no gradient, no
update, no weight decay, no share in the norm that is clipped. Batch statistics are no parameters: those of a frozen
layer still follow the data while it trains.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import jax

from jbench.spec.errors import RequestError

Patterns = tuple[tuple[str, float], ...]
SHOWN = 40  # paths in a message


def factor(path: Any, patterns: Patterns) -> float:
    """Of the rate of the parameter at a path (of jax.tree_util)."""
    return next((value for pattern, value in patterns if fnmatchcase(_dotted(path), pattern)), 1.0)


def divide(params: Any, patterns: Patterns) -> tuple[Any, Any]:
    """Parameters as (those that are trained, those that are frozen), each with None where the other has its arrays.

    Raises: RequestError for a pattern that decides about no parameter, and where nothing is left to train.
    """
    if not patterns:
        return params, jax.tree.map(lambda p: None, params)
    check(patterns, [_dotted(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)])

    def part(trained: bool) -> Any:
        return jax.tree_util.tree_map_with_path(
            lambda path, p: p if (factor(path, patterns) > 0) == trained else None, params
        )

    return part(True), part(False)


def join(trained: Any, frozen: Any) -> Any:
    """The inverse of `divide`."""
    return jax.tree.map(lambda a, b: b if a is None else a, trained, frozen, is_leaf=lambda p: p is None)


def check(patterns: Patterns, names: Iterable[str]) -> None:
    """Refuse patterns that mean nothing for parameters of these names.

    Raises: RequestError for a pattern that decides about no parameter, and where nothing is left to train.
    """
    left = there = sorted(names)
    trained = False
    for pattern, value in patterns:
        fitting = {name for name in left if fnmatchcase(name, pattern)}
        if not fitting:
            taken = any(fnmatchcase(name, pattern) for name in there)
            why = 'fits only what an earlier pattern fits; put it first' if taken else 'fits no parameter'
            more = f', and {len(there) - SHOWN} more' if len(there) > SHOWN else ''
            raise RequestError(f'recipe.trainable: {pattern!r} {why}; there are {", ".join(there[:SHOWN])}{more}')
        trained = trained or value > 0
        left = [name for name in left if name not in fitting]
    if not trained and not left:
        raise RequestError('recipe.trainable: every parameter is frozen; expected a factor above 0 for at least one')


def _dotted(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator='.')
