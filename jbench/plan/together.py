"""Cells whose tasks one encoder learns together (`recipe.together`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.model import ModelSpec
from jbench.spec.recipe import LORA

# fields of a recipe that are of all its tasks or of none: whose turn it is, the one optimiser, and what of the one
# encoder learns and is read
ALIKE = (
    *('task_temperature', 'optimizer', 'schedule', 'trainable', 'layer_decay'),
    *('adaptation', 'layer', 'aggregation', 'head', 'last_k', 'head_epochs', *LORA),
)
FLAG = '--set recipe.together=yes'


def asked(cell: Cell) -> bool:
    """Whether a cell is to be learnt together with others."""
    return cell.task.recipe.together == 'yes'


def joined(cells: Sequence[Cell]) -> list[Cell]:
    """The same cells; each that is learnt together knows its companions: all such cells of its model.

    Raises: RequestError for one that would be alone, or could not move the same weights.
    """
    return [dataclasses.replace(c, companions=_companions(c, cells)) if asked(c) else c for c in cells]


def without_lone(cells: Sequence[Cell], models: Collection[ModelSpec]) -> tuple[list[Cell], list[str]]:
    """Cells without those of `models`, of a group, that would be learnt together and fit one task alone; and why."""
    lone = [m for m in models if len([c for c in cells if asked(c) and c.model == m]) == 1]
    names = ', '.join(m.full_name for m in lone)
    left = [c for c in cells if not (asked(c) and c.model in lone)]
    return left, [f'{names}: {FLAG} needs several tasks, and only one fits'] if lone else []


def from_files(cells: Sequence[Cell]) -> list[Cell]:
    """Cells as files state them; those that say no companions, and are to have some, are joined.

    Raises: RequestError where a companion is not among them, or is another cell than it was; as `joined`.
    """
    named: dict[str, set[str]] = {}
    for cell in cells:
        named.setdefault(cell.name, set()).add(_key_alone(cell))
    for cell in cells:
        if lacking := [name for name, _ in cell.companions if name not in named]:
            raise RequestError(
                f'{cell.title} was learnt together with {", ".join(lacking)}: name a file of each by a further --cell'
            )
        if other := [name for name, key in cell.companions if key not in named[name]]:
            raise RequestError(
                f'{cell.title} was learnt together with another cell {other[0]} than that of these files; expected '
                'files of one request'
            )
        if cell.companions and (cell.name, _key_alone(cell)) not in cell.companions:
            raise RequestError(f'{cell.title}: it is not among its companions; expected a cell as --dry_run gives it')
    alone = iter(joined([c for c in cells if not c.companions]))
    return [c if c.companions else next(alone) for c in cells]


def groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells in the order in which they run: those that are learnt together as one group, at the place of its first, in
    the order of their names; any other alone."""
    found: dict[object, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.companions or cell.key, []).append(cell)
    return [sorted(group, key=lambda c: c.name) for group in found.values()]


def _companions(cell: Cell, cells: Sequence[Cell]) -> tuple[tuple[str, str], ...]:
    mine = [c for c in cells if asked(c) and c.model == cell.model]
    if len(mine) < 2:
        raise RequestError(
            f'{FLAG}: {cell.model.full_name} has one task, {cell.name}; expected several that it fits (--task=A,B)'
        )
    for field in ALIKE:
        if len(values := {getattr(c.task.recipe, field): c.name for c in mine}) > 1:
            told = ', '.join(f'{value} of {name}' for value, name in values.items())
            raise RequestError(f'{FLAG}: recipe.{field} is {told}; --set recipe.{field}=... makes it the same')
    return tuple(sorted((c.name, _key_alone(c)) for c in mine))


def _key_alone(cell: Cell) -> str:
    """The key of a cell without companions."""
    return dataclasses.replace(cell, companions=()).key
