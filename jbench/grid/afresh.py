"""`--if_exists=overwrite` begins: once for a whole request, before anything runs, which then goes on as with `resume`.

So every interruption, further turn and second worker goes on with what is not computed yet, and none takes an old
result for a new one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from jbench.data.load import prepared_set
from jbench.data.prepare import build_set
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.task import ByGroup
from jbench.stores import checkpoints, replaced


def begin(
    cells: Sequence[Cell], seeds: Sequence[int], workdir: Path, data_dir: Path | None, say: Callable[[str], object]
) -> None:
    """Set the results of cells aside, and remove their checkpoints, here and in the store of the work folder; `say` how
    many there were. Raises: RequestError where the store or the disk refuses."""
    keys = [one.key for cell in cells for one in (cell, *_folds(cell, workdir, data_dir))]
    checkpoints.forget(workdir, keys, seeds)
    n = replaced.set_aside(workdir, [result_file.result_dir(workdir, cell) for cell in cells], seeds)
    if n:
        say(f'overwrite: {n} result{"s" * (n != 1)} set aside (seed*{replaced.ASIDE}) until the new ones are written')


def goes_on(if_exists: str) -> str:
    """What an interrupted command says."""
    again = 'the same command' if if_exists == 'resume' else 'the same command with --if_exists=resume'
    anew = '; with overwrite it begins anew' if if_exists == 'overwrite' else ''
    return f'interrupted: what was done is saved; {again} goes on from there{anew}'


def _folds(cell: Cell, workdir: Path, data_dir: Path | None) -> list[Cell]:
    """The folds of a cross-validation, each a cell; none before its set is prepared, without which none was trained."""
    split = cell.task.split
    if isinstance(split, ByGroup) and split.folds:
        from jbench.training import fold_of  # which imports jax

        with contextlib.suppress(RequestError):  # which the cell tells when it runs
            folder, _ = build_set.locate(cell.task, cell.dataset, data_dir, workdir)
            if folder is not None and build_set.is_ready(folder):
                return [fold_of(cell, name) for name in prepared_set.fold_names(folder, cell.task)]
    return []
