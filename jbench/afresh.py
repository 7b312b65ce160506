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
from jbench.progress import Interrupted
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.task import ByGroup
from jbench.stores import checkpoints, replaced, sets

EARLY = 'interrupted before all old results were set aside: the same command, with overwrite, begins anew'
WAITS = 'overwrite: another command trains cells of this one; it waits until they have ended'
Hold = Callable[[Path], contextlib.AbstractContextManager[None]]


def begin(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    where: tuple[Path, Path | None],
    *,
    hold: Hold,
    say: Callable[[str], object],
    works: bool = True,
) -> None:
    """Set the results of cells aside, and remove their checkpoints, here and in the store of the work folder.

    Args:
        cells, seeds: of the request.
        where: the work folder, and that of the data.
        hold: takes the lock of a cell, which waits while another process trains it.
        say: is told how many results there were.
        works: False in a process that only holds the locks, with the one that works.
    Raises: RequestError where the store or the disk refuses; Interrupted, with what is to be said, where `hold` does.
    """
    n, (workdir, data_dir) = 0, where
    try:
        for cell in cells:
            home = result_file.result_dir(workdir, cell)
            with hold(home / '.lock'):
                if works:
                    checkpoints.forget(workdir, [one.key for one in (cell, *_folds(cell, workdir, data_dir))], seeds)
                    n += replaced.set_aside(workdir, [home], seeds)
    except Interrupted:
        raise Interrupted(EARLY) from None
    if n:
        say(replaced.told(n))


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
            if folder is not None and (build_set.is_ready(folder) or sets.stored(workdir, folder)):
                return [fold_of(cell, name) for name in prepared_set.fold_names(folder, cell.task)]
    return []
