"""The plan that a launcher writes down: read from its file, and checked."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jbench.grid import plan as on_disk
from jbench.grid import status
from jbench.grid.engine import ordered
from jbench.grid.job import AFRESH, Job, line
from jbench.spec.errors import RequestError
from jbench.stores import mirror

TYPES = {'key': str, 'title': str, 'after': str, 'seconds': int | float, 'memory': int, 'devices': int}
PLACES = ('--workdir', '--data_dir', '--weights')  # of a command: what the machine that runs it must see


@dataclasses.dataclass(frozen=True)
class Planned:
    """Jobs of a plan, those that prepare and those that train, longest first."""

    name: str  # of a Slurm job, a Kubernetes object, a SkyPilot task
    prepare: tuple[Job, ...]
    cells: tuple[Job, ...]
    done: int = 0  # cells of the plan that are left out: they have their results, or run now

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.prepare + self.cells


def read(path: str, *, everything: bool = False) -> Planned:
    """The plan of a file, without the cells that have all their results or run now, unless `everything` is asked for.

    Raises: RequestError where there is none, it is damaged or of another version, or every cell is done or runs.
    """
    try:
        kept, name = on_disk.read(mirror.file(path, '--plan')), Path(path).stem
    except FileNotFoundError:
        raise RequestError(f'{path}: no such file; expected a plan, as --plan writes it') from None
    whole = planned(name, kept.jobs, path)
    jobs = kept.jobs if everything else _missing(kept)
    if not jobs:
        raise RequestError(f'{path}: every cell has its results, or runs now; --everything launches them all the same')
    left = planned(name, jobs, path)
    return dataclasses.replace(left, done=len(whole.cells) - len(left.cells))


def _missing(kept: on_disk.Kept) -> list[Job]:
    """Jobs of cells that lack a result and do not run, and those that prepare for them. Raises: RequestError."""
    workdir = value(kept.jobs[0], '--workdir')
    if not workdir or any(value(job, '--if_exists') == 'overwrite' for job in kept.jobs):
        return kept.jobs
    try:
        states, _ = status.everywhere(status.of_plans([kept]), mirror.local(workdir, '--workdir'))
    except RequestError as error:
        raise RequestError(f'{error}; --everything launches all jobs without a look at what is done') from error
    done = {s.key for s in states if not (s.missing or s.failed)}  # what runs has its lock
    needed = {job.after for job in kept.jobs if job.key not in done}
    if not done:
        return kept.jobs
    return [job for job in kept.jobs if (job.key not in done if job.devices else job.key in needed)]


def planned(name: str, jobs: Sequence[Job], where: str = 'plan') -> Planned:
    """Jobs in the order in which they start. Raises: RequestError for none, or for one that no engine could run."""
    if not jobs:
        raise RequestError(f'{where}: it has no jobs, so there is nothing to launch')
    for job in jobs:
        if wrong := [field for field, kind in TYPES.items() if not isinstance(getattr(job, field), kind)]:
            raise RequestError(f'{where}: {wrong[0]} of a job is {getattr(job, wrong[0])!r}; make the plan anew')
    keys = Counter(job.key for job in jobs)
    for job in jobs:
        if keys[job.key] > 1 or (job.after and job.after not in keys):
            what = 'is there twice' if keys[job.key] > 1 else f'waits for {job.after}, which is not in the plan'
            raise RequestError(f'{where}: job {job.key} {what}; make the plan anew')
        if not line(job).isprintable():
            raise RequestError(f'{where}: the command of job {job.key} holds a line break or another control character')
    order = ordered(jobs)
    word = re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')[:40]
    prepare, cells = (tuple(job for job in order if bool(job.devices) == trains) for trains in (False, True))
    return Planned(f'jbench-{word}'.strip('-'), prepare, cells)


def value(job: Job, flag: str) -> str:
    """What a command says of a flag, as --workdir; '' where it does not."""
    return next((a.partition('=')[2] for a in job.argv if a.startswith(f'{flag}=')), '')


def is_store(folder: str) -> bool:
    """Whether a folder is one of an object store, as s3://bucket/prefix, which every machine sees."""
    return '://' in folder


def logs(plan: Planned) -> str:
    """The folder for what the jobs print: in the work folder, where that is one of this machine."""
    workdir = value(plan.jobs[0], '--workdir') or 'jbench-work'
    return 'jbench-logs' if is_store(workdir) else f'{workdir.rstrip("/")}/logs'


def check_seen(plan: Planned, mounts: Iterable[str], engine: str) -> None:
    """Raises: RequestError for a folder that the machines of an engine would not see below any of `mounts`."""
    places = [mount.rstrip('/') for mount in mounts]
    for flag in PLACES:
        for folder in sorted({value(job, flag) for job in plan.jobs} - {'', 'none'}):
            inside = any(folder == place or folder.startswith(f'{place}/') for place in places)
            if not inside and not is_store(folder):
                raise RequestError(
                    f'the plan has {flag}={folder}, which the machines of {engine} do not see: make the plan with an '
                    f'address ({flag}=s3://..., gs://..., az://...), or mount what holds it: --volume=NAME:/FOLDER, '
                    'with the absolute path that the plan has'
                )


def check_again(plan: Planned, engine: str) -> None:
    """Raises: RequestError for jobs of which a further turn would throw away what the one before did."""
    for word in AFRESH:
        if any(word in job.argv for job in plan.jobs):
            raise RequestError(
                f'the plan has {word}, with which a cell that {engine} stops and starts again would begin afresh each '
                'time: make the plan without it (--if_exists=resume)'
            )


def alone(plan: Planned) -> list[str]:
    """A line of shell for each cell. None needs another job: a cell prepares its windows where nobody has."""
    return [line(job) for job in plan.cells or plan.prepare]


def memory(jobs: Iterable[Job], asked: str, unit: str) -> str:
    """What is asked for, as `16G`, else the largest expected memory of jobs, in whole GiB; '' where nobody knows."""
    largest = -(-max((job.memory for job in jobs), default=0) // 2**30)
    n = asked.rstrip('GiB') or str(largest or '')
    return f'{n}{unit}' if n else ''


def words(plan: Planned) -> str:
    """What a text says that it holds."""
    n = len(plan.cells or plan.prepare)
    what = f'{n} {"cell" if plan.cells else "set"}{"s" * (n != 1)}'
    return f'{plan.name}: {what}, longest first' + (
        f'; {plan.done} more of the plan are done, or run' if plan.done else ''
    )


def indented(lines: Iterable[str], n: int) -> str:
    """Lines of a block of YAML."""
    return '\n'.join(' ' * n + one for one in lines)


def listed(commands: Iterable[str]) -> list[str]:
    """A function of bash that prints commands, a line each; nothing in them is expanded."""
    return ["commands() { cat <<'END'", *commands, 'END', '}']
