"""A figure before it is made: its name, and what makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jbench.report.figures.style import Table


class Absent(Exception):
    """A figure that cannot be made, and why, in words."""


class Plan(NamedTuple):
    """One figure."""

    stem: str  # of its files
    kind: str  # 'bars', 'confusion'
    origin: str  # of its scores: 'own', 'published'
    task: str  # '' for a figure over tasks
    dataset: str
    title: str
    make: Callable[[], tuple[Figure, Table]]  # raises Absent


def there(table: Table, least: int, why: str) -> Table:
    """A table of so many rows. Raises: Absent."""
    if len(table) < least:
        raise Absent(why)
    return table
