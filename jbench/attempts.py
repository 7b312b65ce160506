"""What becomes of cells that fail: it is said, and kept where --status finds it, while the others run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar

from jbench.context import Context
from jbench.progress import Interrupted
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.stores import notes

Value = TypeVar('Value')


class Attempts:
    """What is tried with one cell after the other: where it fails it is said, and the other cells still run."""

    def __init__(self, context: Context, *, keep: bool, alone: bool) -> None:
        self.refused: list[Cell] = []  # the request or the data are wrong
        self.broken: list[Cell] = []  # ours, or a library's fault
        self.reasons: dict[str, str] = {}  # by source, of the first that was refused
        self._said: set[str] = set()  # reasons: what holds of many cells is said once
        self._context, self._keep, self._alone = context, keep, alone

    def __call__(self, cell: Cell, work: Callable[[], Value]) -> Value | None:
        """What `work` gives; None where it failed. Raises: Interrupted; RequestError if another process would wait."""
        try:
            return work()
        except RequestError as error:
            if not self._alone:  # the others may not have met it, and would wait for this process
                raise
            if str(error) not in self._said:
                self._context.progress.say(f'jbench: {error}')
            self._said.add(str(error))
            self.reasons.setdefault(cell.source, str(error))
            self.refuse(cell, str(error))
        except Interrupted:
            raise
        except Exception as error:
            self._context.progress.say(failure(error, cell, self._context))
            self.broken.append(cell)
            if not self._alone:  # as above
                raise RequestError('stopped: the other processes may not have met this') from error
        return None

    def refuse(self, cell: Cell, reason: str) -> None:
        """Count a cell as refused; why is kept where it was to be prepared or to train."""
        self.refused.append(cell)
        if self._keep:
            _keep(f'{reason}\n', cell, self._context)

    def refuse_with(self, name: str, cells: Sequence[Cell]) -> None:
        """Count cells as refused whose encoder was to learn with a cell, called `name`, that failed."""
        failed = next((c for c in (*self.refused, *self.broken) if c.name == name), None)
        why = self.reasons.get(failed.source, '') if failed else ''
        for cell in cells:
            reason = f'{cell.title}: not run, because it is learnt together with {name}, which failed'
            self._context.progress.say(f'jbench: {reason}')
            self.refuse(cell, f'{reason}: {why}' if why else reason)


def failure(error: Exception, cell: Cell, context: Context) -> str:
    """One line on a cell that broke, its traceback in a file. A smaller batch is never taken by itself: the score
    would be another."""
    reason = f'{type(error).__name__}: {error}'
    if isinstance(error, MemoryError) or 'RESOURCE_EXHAUSTED' in reason:
        size = cell.task.recipe.batch_size
        reason = (
            f'memory ran out; a smaller batch needs less: --set recipe.batch_size=N, below {size}, or, for the same '
            'training of a network without batch statistics, a divisor of it as --set recipe.microbatch=N'
        )
    return f'failed: {cell.title}: {reason}; {_keep(traceback.format_exc(), cell, context)}'


def _keep(text: str, cell: Cell, context: Context) -> str:
    """Keep the error of a cell; where that is, or why it could not be written."""
    try:
        return f'the details are in {notes.keep(context.workdir, cell.key, text)}'
    except RequestError as full:
        return str(full)
