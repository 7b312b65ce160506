"""What a table, a figure or an export says beside a score that is not the protocol of its task: simulated, debug,
partial, as published, custom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jbench.report.aggregate import Score


CHANGES = ('simulated: ', 'debug: ', 'custom: ', 'partial: ')  # how warnings of a result begin that say so


def of(changes: Iterable[str]) -> list[str]:
    """The first word of each of the changes of a score, once: 'partial: subjects' is 'partial'."""
    return list(dict.fromkeys(change.partition(':')[0] for change in changes))


def of_many(scores: Sequence[Score]) -> list[str]:
    """The marks of several scores: 'simulated' where all are, 'some simulated' where some are."""
    each = [of(s.changes) for s in scores]
    every = sorted({mark for marks in each for mark in marks})
    return [f'{"" if all(mark in marks for marks in each) else "some "}{mark}' for mark in every]


def titled(title: str, changes: Iterable[str]) -> str:
    """A title that says so where recordings were generated, and how else a protocol departs from its task's own."""
    marks = ', '.join(of(changes))
    return f'{title} ({marks})' if marks else title
