"""`--plan`, `--jobs`, `--cluster` and `--status`: cells as commands of their own, beside each other."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from jbench import afresh, files
from jbench.cli import tables
from jbench.grid import engine, plan, status
from jbench.grid.job import Job, n_cells
from jbench.grid.process import SAVED
from jbench.plan.request import Plan
from jbench.progress import Interrupted, say
from jbench.report.text import as_json, table
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.stores import mirror, results

FEW = 12  # jobs that are listed one by one
UNITS = ((1, 's'), (60, 'min'), (3600, 'h'))


def run(args: argparse.Namespace, found: Plan) -> int:
    """Write the cells and the plan; unless that is all, once there is a place where they run, and then run them and
    show the table. The exit status.

    Raises: RequestError for what cannot be written or reached.
    """
    told = _told(args)
    homes = [result_file.result_dir(args.workdir, cell) for cell in found.cells]
    results.bring(args.workdir, homes, suffixes=('.json',) if args.plan else ('.json', '.npz'))  # a job needs both
    anew = told.if_exists == 'overwrite' and 'train' in told.stages and not args.plan  # there each job begins by itself
    told = told._replace(if_exists='resume') if anew else told
    jobs = plan.jobs(found, told)
    write = partial(plan.write, found, jobs, told, args.request)
    if args.plan:
        print(_show(write(), args.format, args.verbose))
        return 0
    from jbench.progress import Progress, StopSignal

    cells = {cell.key: cell for cell in found.cells}
    with StopSignal() as stop, Progress() as progress:

        def finished(job: Job) -> bool:
            there = job.key in cells and plan.finished(cells[job.key], told)
            if there:
                progress.say(f'{job.title}: finished before, nothing to compute')
            return there

        def waits() -> None:
            progress.say_once(afresh.WAITS)
            if stop():
                raise Interrupted

        def begin() -> None:
            if anew:
                where, hold = (told.workdir, told.data_dir), partial(files.locked, waiting=waits)
                afresh.begin(found.cells, told.seeds, where, hold=hold, say=progress.say)
            write()

        try:
            outcome = _start(args, jobs, engine.Grid(args.workdir, progress, stop, finished, begin))
        except Interrupted as stopped:  # before the first job
            say(str(stopped))
            return SAVED
    ended = engine.exit_status(jobs, outcome)
    if outcome.interrupted:
        say(afresh.goes_on(args.if_exists))
    elif 'report' in args.stages:
        results.bring(args.workdir, homes)  # of workers elsewhere
        made = [r for key, cell in cells.items() if outcome.statuses.get(key, 2) != 2 for r in _results(cell, told)]
        if made or args.format == 'json':
            tables.report(made, args.format, [(key, seed) for key in cells for seed in args.seeds])
    return ended


def show_status(args: argparse.Namespace, found: Plan | None) -> int:
    """How far a request is, or without one all plans of the work folder and the sets that they make; 0.

    Raises: RequestError for none.
    """
    sets: list[status.SetState] = []
    if found is not None:
        for reason in found.absent:
            say(f'not counted: {reason}')
        wanted = status.of_cells(found.cells, args.seeds)
    else:
        mirror.bring(args.workdir, 'plans')
        plans = status.require(plan.kept(args.workdir), args.workdir)
        wanted, sets = status.of_plans(plans), status.of_sets(plans, args.workdir)
    states, damaged = status.everywhere(wanted, args.workdir)
    print(status.show(states, damaged, args.workdir, args.format, sets=sets, verbose=args.verbose))
    return 0


def _start(args: argparse.Namespace, jobs: list[Job], grid: engine.Grid) -> engine.Outcome:
    """Run jobs on the engine that was asked for."""
    if args.cluster:
        from jbench.grid import cluster

        return cluster.run(jobs, args.cluster, grid)
    from jbench.grid import local

    return local.run(jobs, args.jobs, args.device, grid)


def _told(args: argparse.Namespace) -> plan.Told:
    """What every job is told of the flags."""
    how: dict[str, Any] = {name: getattr(args, name) for name in ('workdir', 'data_dir', 'device', 'if_exists')}
    return plan.Told(
        **how,
        seeds=tuple(args.seeds),
        stages=tuple(s for s in args.stages if s != 'download'),
        keep_weights=args.keep_weights,
        gpus=args.gpus_per_cell,
        elsewhere=args.plan,
    )


def _results(cell: Cell, told: plan.Told) -> list[dict[str, Any]]:
    """Results of a cell that ran; of one that failed in the middle those that are whole."""
    home, found = result_file.result_dir(told.workdir, cell), []
    for seed in told.seeds:
        try:
            found.append(result_file.read(home / f'seed{seed}.json'))
        except (FileNotFoundError, RequestError):
            continue
    return found


def _show(kept: plan.Kept, form: str, verbose: bool) -> str:
    """A plan that was written: what it takes, and where it lies."""
    if form == 'json':
        return as_json({'plan': str(kept.path), 'commands': str(kept.commands), **files.read_json(kept.path)})
    jobs = kept.jobs
    made = [job for job in jobs if not job.devices]
    sets = sum(map(n_cells, made))
    head = (
        f'plan {kept.path.stem}: {len(jobs) - len(made)} cells of {len(kept.seeds)} seeds, {sets} sets to be prepared; '
    )
    head += f'expected {_time(sum(j.seconds for j in jobs))} one after the other, '
    head += f'the longest job {_time(max((j.seconds for j in jobs), default=0))}, '
    head += f'the largest {max((j.memory for j in jobs), default=0) / 1e9:.1f} GB'
    line = {job.key: k for k, job in enumerate(jobs, 1)}
    rows = [
        (line[j.key], j.title, _time(j.seconds), f'{j.memory / 1e9:.1f} GB', line[j.after] if j.after else '')
        for j in jobs
    ]
    listed = rows if verbose else rows[:FEW]
    more = [f'... and {len(rows) - FEW} more: --plan --verbose'] if len(rows) > len(listed) else []
    shown = table(('line', 'job', 'expected', 'memory', 'after line'), listed)
    return '\n'.join([head, '', shown, *more, '', f'written: {kept.path}, and the commands: {kept.commands}'])


def _time(seconds: float) -> str:
    """A duration in the unit that suits it."""
    size, unit = next((size, unit) for size, unit in UNITS if seconds < 120 * size or unit == 'h')
    return f'{seconds / size:.{int(unit == "h")}f} {unit}'
