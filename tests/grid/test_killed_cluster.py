"""The whole command on Dask, while its worker, client, scheduler or line is killed: a rerun completes, and what is left
equals what the plain command leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask_processes
import pytest
import two_tasks
from two_tasks import finish, outcome, pid_of, until

EPOCHS = 150
BOTH = ('--model=eegnet,cov_ts_lr', '--seeds=1', '--format=json')
ONE = ('--model=eegnet', '--seeds=1', '--format=json')


@pytest.fixture(scope='module')
def data(tmp_path_factory) -> list[str]:
    """The flags that name two tasks and their data."""
    return two_tasks.write(tmp_path_factory.mktemp('home'), EPOCHS)


@pytest.fixture
def one(data) -> list[str]:
    """The flags of one cell."""
    return [f'{data[0]}:eyes', *data[1:], *ONE]


@pytest.fixture(scope='module')
def plain(data, tmp_path_factory) -> dict[str, Any]:
    """What the plain command leaves."""
    work = tmp_path_factory.mktemp('plain')
    status, _, err = finish(two_tasks.start(*data, *BOTH, f'--workdir={work}'))
    assert status == 0, err
    return outcome(work)


def of_one(plain: dict[str, Any]) -> dict[str, Any]:
    """What it leaves of that one cell."""
    return {name: found for name, found in plain.items() if '/eyes@' in name and '/eegnet/' in name}


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the command; whatever becomes of the test, it ends with it."""
    started = []

    def begin(*argv: str, **how: Any) -> subprocess.Popen[str]:
        started.append(two_tasks.start(*argv, **how))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def training(work: Path) -> tuple[str, int]:
    """The key of a cell that trains now, and its process."""
    (log, *_) = until(lambda: [p for p in work.glob('logs/[!p]*.log') if ' loss ' in p.read_text()])
    return log.stem, until(lambda: pid_of(f'--cell={work}/cells/{log.stem}.json'))


def gone(work: Path) -> None:
    """Wait until no process works there."""
    until(lambda: pid_of(f'--workdir={work}') is None, 200)


def resumed(work: Path) -> int:
    """How many results were continued from a checkpoint."""
    return sum(bool(json.loads(p.read_text())['resumed_at']) for p in work.rglob('seed1.json'))


@pytest.fixture
def busy_port() -> Iterator[None]:
    """The port of a dashboard is taken, by this test or by another program."""
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(('127.0.0.1', 8787))
            taken.listen()
        yield


@pytest.mark.slow
@pytest.mark.usefixtures('busy_port')
def test_a_worker_is_killed(data, plain, start, tmp_path):
    command = start(*data, *BOTH, f'--workdir={tmp_path}', '--cluster=local:2')
    key, job = training(tmp_path)
    os.kill(dask_processes.parent_of(job), signal.SIGKILL)
    until(lambda: not Path(f'/proc/{job}').exists(), 100)
    status, out, err = finish(command)
    assert status == 0 and len(json.loads(out)) == 4, err
    assert outcome(tmp_path) == plain
    assert resumed(tmp_path) == 1, 'it saved when its worker died, and went on elsewhere'
    assert (tmp_path / 'logs' / f'{key}.log').read_text().count('stopping') == 1
    assert 'Traceback' not in err and 'distributed' not in err, err
    gone(tmp_path)


@pytest.mark.long
def test_a_terminal_that_interrupts_all_its_processes(one, plain, start, tmp_path):
    command = start(*one, f'--workdir={tmp_path}', '--cluster=local:2', start_new_session=True)
    training(tmp_path)
    os.killpg(command.pid, signal.SIGINT)
    status, out, err = finish(command)
    assert (status, out) == (75, '') and 'the same command goes on' in err and 'Traceback' not in err, err
    gone(tmp_path)
    status, _, err = finish(start(*one, f'--workdir={tmp_path}', '--cluster=local:2'))
    assert status == 0, err
    assert outcome(tmp_path) == of_one(plain) and resumed(tmp_path) == 1


@pytest.mark.long
def test_the_client_is_killed(one, plain, start, tmp_path):
    with dask_processes.running(tmp_path / 'dask') as dask:
        work = tmp_path / 'work'
        argv = (*one, f'--workdir={work}', f'--cluster={dask.address}')
        first = start(*argv)
        key, job = training(work)
        first.kill()
        finish(first)
        assert Path(f'/proc/{job}').exists(), 'what runs goes on'
        status, out, err = finish(start(*argv))
        assert status == 0 and len(json.loads(out)) == 1, err
    assert outcome(work) == of_one(plain)
    log = (work / 'logs' / f'{key}.log').read_text()
    assert resumed(work) == 0 and log.count('finished before') <= 1, log


@pytest.mark.long
def test_the_client_with_its_own_workers_is_killed(one, plain, start, tmp_path):
    first = start(*one, f'--workdir={tmp_path}', '--cluster=local:2')
    training(tmp_path)
    first.kill()
    finish(first)
    gone(tmp_path)
    status, _, err = finish(start(*one, f'--workdir={tmp_path}', '--cluster=local:2'))
    assert status == 0, err
    assert outcome(tmp_path) == of_one(plain) and resumed(tmp_path) == 1


@pytest.mark.long
def test_the_scheduler_is_killed(one, plain, start, tmp_path):
    work = tmp_path / 'work'
    with dask_processes.running(tmp_path / 'one') as dask:
        command = start(*one, f'--workdir={work}', f'--cluster={dask.address}')
        training(work)
        dask.scheduler.kill()
        status, out, err = finish(command)
        assert (status, out) == (75, '') and 'the scheduler is lost' in err and 'Traceback' not in err, err
        gone(work)
    with dask_processes.running(tmp_path / 'two') as dask:
        status, _, err = finish(start(*one, f'--workdir={work}', f'--cluster={dask.address}'))
    assert status == 0, err
    assert outcome(work) == of_one(plain) and resumed(work) == 1


@pytest.mark.long
def test_the_line_to_the_scheduler_is_cut(one, plain, start, tmp_path):
    work = tmp_path / 'work'
    with dask_processes.running(tmp_path / 'dask') as dask, dask_processes.line(dask.address) as line:
        command = start(*one, f'--workdir={work}', f'--cluster={line.address}')
        _, job = training(work)
        line.cut()
        status, out, err = finish(command)
        assert (status, out) == (75, '') and 'the scheduler is lost' in err and 'Traceback' not in err, err
        assert Path(f'/proc/{job}').exists(), 'scheduler and workers live, and what runs goes on'
        status, out, err = finish(start(*one, f'--workdir={work}', f'--cluster={dask.address}'))
        assert status == 0 and len(json.loads(out)) == 1, err
    assert outcome(work) == of_one(plain) and resumed(work) == 0
