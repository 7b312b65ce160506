"""Cells whose tasks one encoder learns together (`recipe.together`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError

ALIKE = ('optimizer', 'schedule')  # fields of a recipe: moments and their steps are those of one optimiser
FLAG = '--set recipe.together=yes'


def joined(cells: Sequence[Cell]) -> list[Cell]:
    """The same cells; each that is learnt together knows its companions: all such cells of its model.

    Raises: RequestError for one that would be alone, or could not move the same weights.
    """
    return [dataclasses.replace(c, companions=_companions(c, cells)) if asked(c) else c for c in cells]


def asked(cell: Cell) -> bool:
    """Whether a cell is to be learnt together with others."""
    return cell.task.recipe.together == 'yes'


def require_whole(cells: Sequence[Cell], stated: Sequence[Cell]) -> None:
    """Raises: RequestError for a cell that was stated with other companions than it has among `cells`."""
    for cell, before in zip(cells, stated, strict=True):
        here = {name for name, _ in cell.companions}
        if before.companions and (lacking := [name for name, _ in before.companions if name not in here]):
            raise RequestError(
                f'{cell.title} was learnt together with {", ".join(lacking)}: name a file of each by a further --cell'
            )


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
    return tuple(sorted((c.name, dataclasses.replace(c, companions=()).key) for c in mine))
