"""Cells as jobs, and a plan of them on disk, which engines elsewhere number by its lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.data.load import prepared_set
from jbench.data.prepare import build_set
from jbench.data.prepare.siblings import same_signal
from jbench.data.recording import RecordingRef
from jbench.data.stimuli import embed
from jbench.grid import estimates
from jbench.grid.engine import ordered
from jbench.grid.job import Job, line
from jbench.plan.request import Plan
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import spec_hash, to_json
from jbench.stores import mirror, sets

SCHEMA = 1
COSTS = ('seconds', 'memory')  # what is brought up to date of a plan that is there
FACTS = ('task', 'dataset', 'model')  # of a job on disk, beside its fields


class Told(NamedTuple):
    """What every job of a command is told."""

    workdir: Path
    data_dir: Path | None
    seeds: tuple[int, ...]
    stages: tuple[str, ...]
    device: str | None = None
    if_exists: str = 'resume'
    keep_weights: bool = True
    gpus: int = 1  # of a cell
    elsewhere: bool = False  # jobs run on machines that nobody knows yet


class Kept(NamedTuple):
    """A plan as it lies on disk."""

    path: Path  # of its JSON
    request: str  # the command that made it
    seeds: tuple[int, ...]
    jobs: list[Job]
    facts: list[dict[str, str]]  # of each job: FACTS; the model of one that prepares is ''

    @property
    def commands(self) -> Path:
        """The same as text: a command a line, in the order of `jobs`."""
        return self.path.with_suffix('.commands')


class Source(NamedTuple):
    """The prepared set of some cells."""

    folder: Path | None
    refs: list[RecordingRef]
    ready: bool


def jobs(plan: Plan, told: Told) -> list[Job]:
    """A job for the prepared sets that are not there yet, one for those that are cut from the same signal, and one for
    each cell; what is to be waited for longest first.

    Raises: RequestError for recordings that may not be read, and for cells that one process has to train.
    """
    if joined := [cell.title for cell in plan.cells if cell.companions]:
        raise RequestError(
            f'{joined[0]}: recipe.together=yes trains {len(joined)} cells in one process; leave out --jobs, --cluster '
            'and --plan'
        )
    sources: dict[str, Source] = {}
    lacking: dict[str, list[Cell]] = {}  # one cell of each set that a job prepares
    makers: dict[str, str] = {}  # the job of each set
    cells = []
    for cell in plan.cells:
        if cell.source not in sources:
            source = sources[cell.source] = locate(cell, told)
            if source.folder is not None and not source.ready:
                makers[cell.source] = maker = _maker(cell, source.folder, lacking)
                lacking.setdefault(maker, []).append(cell)
        source = sources[cell.source]
        size = estimates.windows(cell, source.folder, len(source.refs))
        cost = estimates.of_cell(cell, len(told.seeds), size, told.workdir)
        argv = _argv([cell], told, 'prepare,train', plan)
        cells.append(Job(cell.key, cell.title, argv, makers.get(cell.source, ''), *cost, told.gpus))
    needed = []
    for key, made in lacking.items():
        costs = [estimates.of_set(cell, sources[cell.source].refs, elsewhere=told.elsewhere) for cell in made]
        seconds, memory = (max(column) for column in zip(*costs, strict=True))
        title, argv = f'prepare {made[0].dataset.name}', _argv(made, told, 'prepare')
        folders = [folder for cell in made if (folder := sources[cell.source].folder)]
        names = tuple(f'{folder.parent.name}/{folder.name}' for folder in folders)
        needed.append(Job(key, title, argv, '', seconds, memory, 0, names))
    return ordered([*needed, *(cells if 'train' in told.stages else [])])


def _maker(cell: Cell, folder: Path, lacking: Mapping[str, Sequence[Cell]]) -> str:
    """The job that prepares the set of a cell: that of another set which is cut from the same signal, else its own."""
    for key, (first, *_) in lacking.items():
        if first.dataset == cell.dataset and same_signal(first.task, cell.task):
            return key
    return f'prepare-{cell.dataset.name}-{folder.name}'


def locate(cell: Cell, told: Told) -> Source:
    """Where the data of a cell are prepared, and whether they are."""
    folder, refs = build_set.locate(cell.task, cell.dataset, told.data_dir, told.workdir)
    return Source(folder, refs, folder is not None and is_ready(cell, folder, told.workdir))


def is_ready(cell: Cell, folder: Path, workdir: Path) -> bool:
    """Whether the prepared set of a cell is whole, here or in the store of the work folder, with its embeddings."""
    whole = build_set.is_ready(folder) or sets.stored(workdir, folder)
    return whole and embed.are_here(cell.task, folder)


def finished(cell: Cell, told: Told) -> bool:
    """Whether every seed of a cell has a result that counts, so that its job need not run."""
    if told.if_exists not in ('skip', 'resume'):
        return False
    home = result_file.result_dir(told.workdir, cell)
    if not all((home / f'seed{seed}.json').exists() for seed in told.seeds):
        return False
    source = locate(cell, told)
    if source.folder is None or not source.ready:
        return False
    digest = prepared_set.digest(source.folder)
    return all(result_file.finished(home, seed, digest)[0] is not None for seed in told.seeds)


def cell_path(workdir: Path, key: str) -> Path:
    """Where a plan keeps a cell."""
    return workdir / 'cells' / f'{key}.json'


def write(plan: Plan, made: Sequence[Job], told: Told, request: str) -> Kept:
    """Write the cells and the plan into the work folder, and its store. Of a plan that is there the lines stay, which
    engines may have numbered; what its jobs are expected to take is brought up to date.

    Args:
        plan: what was asked for.
        made: by `jobs`.
        told: what they are told.
        request: the command, in words.
    Raises: RequestError where the disk refuses, or the plan that is there is damaged.
    """
    cells = {cell.key: cell for cell in plan.cells}
    mirror.bring(told.workdir, 'plans')
    for key, cell in cells.items():
        files.write_atomic(cell_path(told.workdir, key), (json.dumps(to_json(cell), indent=1) + '\n').encode())
    commands = sorted(_argv([cell], told, 'prepare,train', plan) for cell in cells.values())
    asked = [commands, told.stages, *([told.gpus] if told.gpus > 1 else [])]
    path = told.workdir / 'plans' / f'{spec_hash(asked)[:12]}.json'
    listed = [{**job._asdict(), **_facts(job, cells[cell_of(job)])} for job in made]
    if not files.write_absent(path, _text(request, told.seeds, listed)):
        kept, costs = read(path), {job.key: {name: getattr(job, name) for name in COSTS} for job in made}
        old = [{**job._asdict(), **facts} for job, facts in zip(kept.jobs, kept.facts, strict=True)]
        listed = [{**job, **costs.get(job['key'], {})} for job in old]
        if listed != old:
            files.write_atomic(path, _text(kept.request, kept.seeds, listed))
    kept = read(path)
    files.write_atomic(kept.commands, ''.join(f'{line(job)}\n' for job in kept.jobs).encode())
    mirror.take(told.workdir, [*(cell_path(told.workdir, key) for key in cells), path, kept.commands])
    return kept


def read(path: str | Path) -> Kept:
    """A plan on disk. Raises: RequestError where there is none, or it is damaged."""
    path, how = Path(path), 'expected a plan, as --plan writes it'
    try:
        found = files.read_json(path)
    except FileNotFoundError:
        raise RequestError(f'{path}: no such file; {how}') from None
    if not isinstance(found, dict):
        raise RequestError(f'{path}: {how}; remove it and make it anew')
    try:
        if found['schema'] != SCHEMA:
            raise RequestError(f'{path}: of schema {found["schema"]}, expected {SCHEMA}; make it anew with --plan')
        made = [
            Job(**{**{f: job[f] for f in Job._fields}, 'argv': tuple(job['argv']), 'sets': tuple(job['sets'])})
            for job in ({'sets': (), **job} for job in found['jobs'])
        ]
        facts = [{name: job[name] for name in FACTS} for job in found['jobs']]
        return Kept(path, found['request'], tuple(found['seeds']), made, facts)
    except (KeyError, TypeError) as error:
        raise RequestError(f'{path}: {how}, found one that lacks {error}; remove it and make it anew') from error


def kept(workdir: Path) -> list[Kept]:
    """All plans of a work folder, by name. Raises: RequestError for a damaged one."""
    return [read(path) for path in sorted((workdir / 'plans').glob('*.json'))]


def cell_of(job: Job) -> str:
    """The key of the cell that a job runs; of one that prepares for several, that of the first."""
    return cells_of(job)[0]


def cells_of(job: Job) -> list[str]:
    """The keys of the cells that a job is told: one, or one for each set that it prepares."""
    return [Path(word.partition('=')[2]).stem for word in job.argv if word.startswith('--cell=')]


def _text(request: str, seeds: Sequence[int], listed: Sequence[dict[str, Any]]) -> bytes:
    """A plan as its file has it."""
    return (
        json.dumps({'schema': SCHEMA, 'request': request, 'seeds': seeds, 'jobs': listed}, indent=1) + '\n'
    ).encode()


def _facts(job: Job, cell: Cell) -> dict[str, Any]:
    """Which cell a job is of, in words."""
    task = f'{cell.task.full_name}@{cell.task.version}'
    return {'task': task, 'dataset': cell.dataset.name, 'model': cell.model.full_name if job.devices else ''}


def _argv(cells: Sequence[Cell], told: Told, stages: str, plan: Plan | None = None) -> tuple[str, ...]:
    """The arguments of a job; with `plan`, of one that trains a cell."""
    workdir = mirror.name(told.workdir.absolute())
    flags = [*(f'--cell={workdir}/cells/{cell.key}.json' for cell in cells), f'--workdir={workdir}']
    flags += [f'--data_dir={mirror.name(told.data_dir.absolute())}'] if told.data_dir else []
    if plan is not None:
        flags += [f'--seeds={",".join(map(str, told.seeds))}']
        weights = plan.weights.get(cells[0].model.weights)
        flags += [f'--weights={weights.absolute()}'] if weights else []
        flags += [f'--device={told.device}'] if told.device else []
        flags += [f'--if_exists={told.if_exists}', f'--keep_weights={"yes" if told.keep_weights else "no"}']
    return (*flags, f'--stage={stages}')
