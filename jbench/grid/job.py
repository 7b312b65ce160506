"""A cell as a command of its own, as a person would type it: what every engine runs."""

from __future__ import annotations

import shlex
import sys
from typing import NamedTuple


class Job(NamedTuple):
    """A command of a plan. Running it twice does no harm: what is finished is not computed again."""

    key: str  # of the cell; of a job that prepares, the name of the prepared set
    title: str
    argv: tuple[str, ...]  # of `python -m jbench.run`
    after: str = ''  # key of the job that must have ended well before; '': none
    seconds: float = 0.0  # expected
    memory: int = 0  # expected, bytes
    devices: int = 1  # accelerators that it uses, where there are some; 0: it prepares, on the processor
    sets: tuple[str, ...] = ()  # DATASET/FOLDER of each set that it prepares, in the order of the cells that it is told


AFRESH = ('--if_exists=overwrite', '--if_exists=skip')  # with these a turn would throw away what the one before did


def again(job: Job) -> Job:
    """The same job for a further turn: it goes on from what the one before has saved."""
    return job._replace(argv=tuple('--if_exists=resume' if word in AFRESH else word for word in job.argv))


def n_cells(job: Job) -> int:
    """How many cells a job is told of: one, or of one that prepares, one for each set."""
    return sum(word.startswith('--cell=') for word in job.argv)


def command(job: Job) -> list[str]:
    """The command of a job, by the Python that runs now."""
    return [sys.executable, '-m', 'jbench.run', *job.argv]


def line(job: Job) -> str:
    """The command of a job for a shell of another machine."""
    return shlex.join(['python', '-m', 'jbench.run', *job.argv])
