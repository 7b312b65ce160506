"""What a grid costs beside its cells: jobs on a Dask cluster, --status of many results, how long large grids take.

- jobs: 1,000 commands that do nothing (`--version`) on two workers of a scheduler of their own, in blocks, in turns
  with the same commands without Dask, as many at once; what is more is Dask's and the engine's. The scheduler's memory
  before, and after each block.
- cells: twenty real cells (`chance --debug` on a simulated task) on two workers, and the same without Dask.
- status: `--status` of 50,000 generated results (as benchmarks/aggregate.py makes them) and 5 % that are missing.
- simulation: how long 4,947 experiments of 1,751 GPU-hours take on 8, 64 and 256 GPUs, by order. Nothing runs: times
  are scaled ones of other machines (grid_simulation.py). --write puts the tables into docs/scale.md.
- core: the Core suite of 1,512 runs by what benchmarks/accelerator.py measured; without that it says so (grid_core.py).

Command: python benchmarks/grid.py [--parts=jobs,cells,status,simulation,core] [--jobs=1000] [--cells=20]
    [--results=50000] [--keep=FOLDER] [--write]
Minutes on 2 cores: jobs 5, cells 3, status 3, simulation 1; --jobs=7000 half an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'benchmarks')]
import aggregate  # noqa: E402
import grid_core  # noqa: E402
import grid_simulation  # noqa: E402
import marks  # noqa: E402

from jbench.grid import cluster, engine, plan  # noqa: E402
from jbench.grid.futures import Futures  # noqa: E402
from jbench.grid.job import Job, command  # noqa: E402
from jbench.models import MODELS  # noqa: E402
from jbench.plan import request  # noqa: E402
from jbench.progress import Progress  # noqa: E402
from jbench.spec.errors import RequestError, unknown  # noqa: E402

PARTS = ('jobs', 'cells', 'status', 'simulation', 'core')
PAGE = ROOT / 'docs' / 'scale.md'
WORKERS = 2
BLOCKS, MOST = 5, 500  # of jobs: at least so many blocks, of at most so many jobs
LEAST = {'jobs': BLOCKS, 'cells': 2, 'results': 1}
MISSING = 20  # of so many cells one has no results


# ---- jobs that do nothing ----


@contextlib.contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Address of a scheduler with two workers, as quiet as of `local:2`; their processes, the scheduler's first."""
    import dask

    at = folder / 'scheduler.json'
    begin = [sys.executable, '-m']
    env = {**os.environ, 'PYTHONPATH': str(ROOT), 'DASK_INTERNAL_INHERIT_CONFIG': dask.config.serialize(cluster.QUIET)}
    quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL, 'env': env}
    where = ['--scheduler-file', str(at), '--no-dashboard']
    more = ['--nthreads', '1', '--nworkers', str(WORKERS), '--local-directory', str(folder)]
    started = [subprocess.Popen([*begin, 'distributed.cli.dask_scheduler', '--port', '0', *where], **quiet)]
    try:
        while not at.exists():
            time.sleep(0.1)
        started.append(subprocess.Popen([*begin, 'distributed.cli.dask_worker', *where, *more], **quiet))
        yield json.loads(at.read_text())['address'], [process.pid for process in started]
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def held(pid: int) -> float:
    """MiB that a process holds now."""
    return int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 2**20


def cpu(pids: Sequence[int], *, waited: bool = True) -> float:
    """Seconds of the cores that processes and their children took, those that they `waited` for, too."""
    ticks, fields = 0, slice(11, 15 if waited else 13)  # of proc(5): utime, stime, and both of the waited for
    for pid in {p for first in pids for p in family(first)}:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[fields]))
    return ticks / os.sysconf('SC_CLK_TCK')


def run(jobs: Sequence[Job]) -> list[int]:
    """Exit statuses of the commands of jobs, as many at once as there are workers."""

    def status(job: Job) -> int:
        env = os.environ | {'PYTHONPATH': str(ROOT)}
        quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
        return subprocess.run(
            command(job), **quiet, env=env, start_new_session=True
        ).returncode  # as a job of an engine

    with ThreadPoolExecutor(WORKERS) as pool:
        return [*pool.map(status, jobs)]


def bare(jobs: Sequence[Job]) -> None:
    """The commands of jobs, without anything else; all end well."""
    assert not any(run(jobs))


class Beside(NamedTuple):
    """ms a job: by the clock (times the workers), and of the cores."""

    clock: float
    cores: float


def compare(block: Sequence[Job], alone: Sequence[Job], place: Futures, grid: engine.Grid, pids: list[int]) -> Beside:
    """Print what jobs take with Dask, and what as many commands take without it; what is more."""
    size, all_of = len(block), [*pids, os.getpid()]
    before, idle, began = cpu(all_of), cpu(all_of, waited=False), time.perf_counter()
    ended = engine.run(block, place, grid)
    taken = time.perf_counter() - began, cpu(all_of) - before
    engines = 1e3 * (cpu(all_of, waited=False) - idle) / size  # no job runs at either moment
    assert set(ended.statuses.values()) == {0} and len(ended.statuses) == size, ended
    before, began = cpu([os.getpid()]), time.perf_counter()
    bare(alone)
    own = time.perf_counter() - began, cpu([os.getpid()]) - before
    with_dask, without = (Beside(1e3 * s[0] * WORKERS / size, 1e3 * s[1] / size) for s in (taken, own))
    more = Beside(with_dask.clock - without.clock, with_dask.cores - without.cores)
    print(
        f'{size} jobs on {WORKERS} workers: {with_dask.clock:.0f} ms a job ({with_dask.cores:.0f} of the cores), '
        f'without Dask {without.clock:.0f} ({without.cores:.0f}): {more.clock:.1f} ms more ({more.cores:.1f}); '
        f'Dask and this command themselves took {engines:.1f} ms of the cores a job'
    )
    return more


def tell(more: Sequence[Beside]) -> None:
    """Print what a job takes beyond its own process."""
    clock, cores = (statistics.median(m[k] for m in more) for k in range(2))
    print(f'beyond its own process a job takes {clock:.1f} ms, {cores:.1f} ms of the cores (medians of {len(more)})')


def blocks(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Jobs in blocks of one size, at least BLOCKS; those that would be less than a block are left out."""
    size = min(MOST, len(jobs) // BLOCKS)
    return [jobs[k * size : (k + 1) * size] for k in range(len(jobs) // size)]


def measure_jobs(n: int) -> None:
    """Print what a job costs beyond its own process, by the clock and in time of the cores; the scheduler's memory."""
    jobs = [Job(f'{k:016x}', f'job {k}', ('--version',), devices=0) for k in range(n)]
    with tempfile.TemporaryDirectory() as temp, scheduler(Path(temp)) as (address, pids), Progress() as progress:
        grid = engine.Grid(
            Path(temp, 'work'), progress, lambda: False
        )  # no job is finished before: nothing is looked up
        with cluster.place(address, jobs, grid) as place:
            engine.run(jobs[:20], place, grid)  # files are read once
            bare(jobs[:20])
            print(f'scheduler before: {held(pids[0]):.1f} MiB')
            more, done = list[Beside](), 0
            for block in blocks(jobs):
                more.append(compare(block, block, place, grid, pids))
                done += len(block)
                print(f'scheduler after {done} jobs: {held(pids[0]):.1f} MiB', flush=True)
            tell(more)


# ---- real cells ----


def real_cells(workdir: Path, n: int) -> tuple[list[Job], Callable[[Job], bool]]:
    """Cells of `chance --debug` on a simulated task that differ in a number which it does not use, and whether one is
    finished, as the command asks; their set is prepared."""
    told, jobs, known = plan.Told(workdir, None, (33,), ('prepare', 'train')), list[Job](), {}
    argv = [f'--workdir={workdir}', '--task=p3', '--simulated=yes', '--debug', '--prepare']
    assert run([Job('set', 'set', tuple(argv))]) == [0]
    for k in range(n):
        changes = (('recipe.lr', 0.01 + k / 1000),)
        asked = request.Request('p3', 'chance', changes, 'yes', True, None, None, True)
        found = request.plan(asked, None, workdir)
        made = plan.jobs(found, told)
        plan.write(found, made, told, 'benchmarks/grid.py')
        jobs += made
        known |= {cell.key: cell for cell in found.cells}
    assert len({job.key for job in jobs}) == n == len(jobs), 'no set lacks'
    return jobs, lambda job: plan.finished(known[job.key], told)


def measure_cells(n: int) -> None:
    """Print what real cells cost beyond their own processes, on workers as of `measure_jobs`; two halves, in turns."""
    with tempfile.TemporaryDirectory() as temp, scheduler(Path(temp)) as (address, pids), Progress() as progress:
        (jobs, finished), (alone, _) = (real_cells(Path(temp, name), n) for name in ('dask', 'alone'))
        grid = engine.Grid(Path(temp, 'dask'), progress, lambda: False, finished)
        with cluster.place(address, jobs, grid) as place:
            halves = (slice(None, n // 2), slice(n // 2, None))
            tell([compare(jobs[half], alone[half], place, grid, pids) for half in halves])


# ---- status ----


def plan_of(results: Path, workdir: Path) -> int:
    """A plan of the cells that have results, and of as many more that one in MISSING is missing; how many cells."""
    homes = sorted({path.parent for path in results.rglob('seed*.json')})
    found = [(*home.relative_to(results).parts,) for home in homes]
    found += [(task, dataset, model, f'f{k:015x}') for k, (task, dataset, model, _) in enumerate(found[::MISSING])]
    jobs = [
        {
            **Job(key, f'{task}/{dataset} {model}', (f'--cell={workdir}/cells/{key}.json',))._asdict(),
            **{'task': task, 'dataset': dataset, 'model': model},
        }
        for task, dataset, model, key in found
    ]
    path = workdir / 'plans' / 'generated.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({'schema': 1, 'request': 'generated', 'seeds': [*range(aggregate.SEEDS)], 'jobs': jobs}))
    return len(found)


class Memory(threading.Thread):
    """Watches the most memory that a process and those that it starts hold together; what they share counts once."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.most, self.go_on = pid, 0.0, True

    def run(self) -> None:
        while self.go_on:
            self.most = max(self.most, sum(map(share, family(self.pid))))
            time.sleep(0.2)


def family(pid: int) -> list[int]:
    """A process and those that it started, and so on."""
    found = [pid]
    for process in found:
        with contextlib.suppress(OSError):
            for task in Path(f'/proc/{process}/task').iterdir():
                found += map(int, (task / 'children').read_text().split())
    return found


def share(pid: int) -> float:
    """MiB of a process, shared pages divided among those that share them."""
    with contextlib.suppress(OSError):
        lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith('Pss:')) / 1024
    return 0.0


def measure_status(n: int, keep: Path | None) -> None:
    """Print how long `--status` takes, and the memory."""
    with tempfile.TemporaryDirectory() as temp:
        workdir = keep or Path(temp)
        if not (workdir / 'results').is_dir():
            size = aggregate.generate(workdir / 'results', n)
            print(f'{n} results of {size / n / 1e3:.1f} kB on average')
        n_cells = plan_of(workdir / 'results', workdir)
        argv = [sys.executable, '-m', 'jbench.run', '--status', f'--workdir={workdir}', '--format=json']
        for k in range(2):
            began = time.perf_counter()
            with open(Path(temp, 'said'), 'w+') as out:
                process = subprocess.Popen(argv, stdout=out, env={**os.environ, 'PYTHONPATH': str(ROOT)})
                memory = Memory(process.pid)
                memory.start()
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = status
                seconds, memory.go_on = time.perf_counter() - began, False
                memory.join()
                out.seek(0)
                said = json.load(out)
            assert status == 0 and len(said['cells']) == n_cells, status
            print(
                f'--status, run {k + 1}: {seconds:.1f} s, {memory.most:.0f} MiB, '
                f'{used.ru_utime + used.ru_stime:.1f} s of the cores; {n_cells} cells, {said["seeds"]}'
            )


def main(argv: Sequence[str]) -> int:
    """Measure and print; 2 for what cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--parts', default=','.join(PARTS), help=f'of {",".join(PARTS)} [all]')
    parser.add_argument('--jobs', type=int, default=1000, help='[1000]')
    parser.add_argument('--cells', type=int, default=20, help='[20]')
    parser.add_argument('--results', type=int, default=50_000, help='[50000]')
    parser.add_argument('--keep', type=Path, help='a work folder for the generated results, which stay')
    parser.add_argument('--write', action='store_true', help='write the tables of the simulation into docs/scale.md')
    args = parser.parse_args(argv)
    try:
        measure(args.parts.split(','), args)
    except RequestError as error:
        print(f'grid: {error}', file=sys.stderr)
        return 2
    return 0


def measure(parts: Sequence[str], args: argparse.Namespace) -> None:
    """Measure these parts. Raises: RequestError for one that is not known, and too few of something."""
    for part in parts:
        if part not in PARTS:
            raise unknown('part', part, PARTS)
    for name, least in LEAST.items():
        if (n := getattr(args, name)) < least:
            raise RequestError(f'--{name}={n}: expected at least {least}')
    if args.write and 'simulation' not in parts:
        raise RequestError('--write: only the part simulation has tables to write; expected --parts=simulation')
    if 'jobs' in parts:
        measure_jobs(args.jobs)
    if 'cells' in parts:
        measure_cells(args.cells)
    if 'status' in parts:
        measure_status(args.results, args.keep)
    if 'simulation' in parts:
        tables = grid_simulation.tables()
        print(f'SIMULATED: {grid_simulation.GPU_HOURS:.0f} GPU-hours', *tables.values(), sep='\n\n')
        if args.write:
            marks.write(PAGE, 'grid', tables)
    if 'core' in parts:
        networks = [
            name
            for name in grid_simulation.PEERS
            if MODELS[name].kind == 'network' and MODELS[name].family != 'baselines'
        ]
        print(grid_core.report(ROOT / 'build' / 'accelerator.json', networks, grid_simulation.SEEDS))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
