"""Jobs on Dask clusters of real processes, of which any may be killed, and a line that may be cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask_processes
import pytest
from places import ROOT
from two_tasks import until

from jbench.grid import cluster, futures
from jbench.grid.job import Job
from jbench.spec.errors import RequestError

SHORT = ('--version',)


WAITS = """
import os, time
def note(what):
    with open(NOTES, 'a') as file:
        file.write(f'{what} {os.getpid()}\\n')
note('begin')
time.sleep(SECONDS)
note('end')
os._exit(0)
"""
DRIVER = """
import sys, pathlib
from jbench.grid import cluster, engine
from jbench.grid.job import Job
from jbench.progress import Progress, StopSignal
with StopSignal() as stop:
    grid = engine.Grid(pathlib.Path(sys.argv[3]), Progress(), stop)
    outcome = cluster.run([Job('waits', 'waits', (f'--task={sys.argv[1]}',))], sys.argv[2], grid)
sys.exit(engine.exit_status([Job('waits', 'waits', ())], outcome))
"""


class Waits:
    """A run of the engine, in a process of its own, of one job that only waits and keeps notes."""

    def __init__(self, folder: Path, address: str, seconds: float) -> None:
        self.notes, task = folder / 'notes', folder / 'waits.py'
        task.write_text(WAITS.replace('NOTES', repr(str(self.notes))).replace('SECONDS', str(seconds)))
        argv = [sys.executable, '-c', DRIVER, str(task), address, str(folder / 'work')]
        env = {**os.environ, 'PYTHONPATH': str(ROOT)}
        pipes: dict[str, Any] = {'stderr': subprocess.PIPE, 'text': True, 'start_new_session': True}
        self.process = subprocess.Popen(argv, **pipes, env=env)

    def lines(self) -> list[str]:
        return self.notes.read_text().split() if self.notes.exists() else []

    def job(self) -> int:
        """The process of the job, once it waits."""
        return int(until(lambda: self.lines()[1:2])[0])

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=400)
        return self.process.returncode, err


def dead(pid: int) -> bool:
    return not Path(f'/proc/{pid}').exists()


@pytest.mark.slow
def test_the_process_of_a_killed_worker_ends_and_its_job_begins_elsewhere(tmp_path):
    run = Waits(tmp_path, 'local:2', 15)
    job = run.job()
    os.kill(dask_processes.parent_of(job), signal.SIGKILL)
    until(lambda: dead(job), 60)
    status, err = run.end()
    assert status == 0 and 'Traceback' not in err, err
    assert run.lines()[::2] == ['begin', 'begin', 'end'] and run.lines()[1] != run.lines()[3] == run.lines()[5]


@pytest.mark.slow
@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_command_that_started_their_workers(how, tmp_path):
    run = Waits(tmp_path, 'local:1', 300)
    job = run.job()
    os.killpg(run.process.pid, how) if how == signal.SIGINT else run.process.kill()
    status, err = run.end()
    assert status == (75 if how == signal.SIGINT else -9) and 'Traceback' not in err, err
    until(lambda: dead(job), 60)
    assert run.lines()[::2] == ['begin']


@pytest.mark.slow
def test_without_its_client_a_job_ends_well_and_without_the_scheduler_it_ends_now(tmp_path):
    with dask_processes.running(tmp_path / 'dask', n_workers=1) as dask:
        first = Waits(tmp_path, dask.address, 5)
        first.job()
        first.process.kill()
        first.end()
        until(lambda: 'end' in first.lines(), 60)
        (tmp_path / 'two').mkdir()
        second = Waits(tmp_path / 'two', dask.address, 300)
        job = second.job()
        dask.scheduler.kill()
        status, err = second.end()
        assert status == 75 and 'the scheduler is lost' in err and 'Traceback' not in err, err
        until(lambda: dead(job), 100)
    assert second.lines()[::2] == ['begin']


@pytest.mark.slow
def test_a_worker_whose_line_to_the_scheduler_is_cut_leaves_and_its_job_begins_elsewhere(tmp_path):
    with (
        dask_processes.running(tmp_path / 'dask', n_workers=0) as dask,
        dask_processes.line(dask.address) as line,
        dask_processes.working(tmp_path / 'one', line.address),
    ):
        run = Waits(tmp_path, dask.address, 6)
        job = run.job()
        with dask_processes.working(tmp_path / 'two', dask.address):
            line.cut()
            until(lambda: dead(job), 60)
            status, err = run.end()
    assert status == 0 and 'Traceback' not in err, err
    assert run.lines()[::2] == ['begin', 'begin', 'end'] and run.lines()[1] != run.lines()[3] == run.lines()[5]


@pytest.mark.slow
def test_a_cell_that_kills_its_workers_is_given_up(tmp_path, grid, monkeypatch, capsys):
    monkeypatch.setattr(futures, 'KILLERS', 0)
    task = tmp_path / 'mine.py'
    task.write_text('import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(9)\n')
    killer = Job('killer', 'killer', (f'--task={task}', f'--workdir={tmp_path}'))
    found = cluster.run([killer, Job('good', 'good', SHORT)], 'local:2', grid)
    assert found == ({'killer': 1, 'good': 0}, False)
    assert 'killer: 4 workers died while it ran' in capsys.readouterr().err


@pytest.mark.slow
def test_workers_elsewhere_that_are_others(tmp_path, grid):
    job = Job('a', 'a', SHORT)
    other = tmp_path / 'other' / 'jbench'
    other.mkdir(parents=True)
    (other / '__init__.py').write_text("raise ImportError('there is none')")
    with (
        dask_processes.running(tmp_path / 'one', n_workers=1, PYTHONPATH=str(other.parent)) as dask,
        pytest.raises(RequestError, match='a worker cannot import what it needs'),
    ):
        cluster.run([job], dask.address, grid)


@pytest.mark.slow
def test_workers_of_this_machine_share_its_memory_and_leave_the_cores_to_jobs(grid):
    import dask

    with cluster.place('local:1', [Job('a', 'a', SHORT)], grid) as place:
        assert place._offer.shared > 0
        (found,) = place._client.run(dask.config.get, 'distributed').values()
    assert found['admin']['tick']['interval'] == cluster.QUIET['distributed.admin.tick.interval']
    assert not found['worker']['profile']['enabled']
