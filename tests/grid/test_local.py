"""Jobs beside each other on this machine, as processes: the same results, whatever is killed or stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import two_tasks
from preparing import content
from two_tasks import finish, outcome, pid_of, start, until

from jbench.grid import local
from jbench.grid.job import Job
from jbench.grid.local import Devices, Local, Slot, slots
from jbench.progress import StopSignal
from jbench.spec.errors import RequestError

SHORT = ('--version',)


# ---- slots ----


def test_without_accelerators_slots_are_alike():
    none = Devices('', ())
    assert slots('3', none) == [Slot()] * 3 and len(slots('auto', none)) >= 1


def test_each_slot_has_an_accelerator_and_one_prepares():
    found = slots('auto', Devices('gpu', ('4', '6')))
    assert [s.environment for s in found] == [
        {'CUDA_VISIBLE_DEVICES': '4'},
        {'CUDA_VISIBLE_DEVICES': '6'},
        {'JAX_PLATFORMS': 'cpu'},
    ]
    assert [(s.trains, s.prepares) for s in found] == [(True, False), (True, False), (False, True)]


def test_more_jobs_than_accelerators_share_their_memory(monkeypatch):
    monkeypatch.delenv('XLA_PYTHON_CLIENT_MEM_FRACTION', raising=False)
    found = [s.environment for s in slots('5', Devices('gpu', ('0', '1')))][:5]
    assert [e['CUDA_VISIBLE_DEVICES'] for e in found] == ['0', '1', '0', '1', '0']
    assert {e['XLA_PYTHON_CLIENT_MEM_FRACTION'] for e in found} == {'0.300'}
    monkeypatch.setenv('XLA_PYTHON_CLIENT_MEM_FRACTION', '0.1')
    assert {s.environment.get('XLA_PYTHON_CLIENT_MEM_FRACTION') for s in slots('3', Devices('gpu', ('0',)))[:3]} == {
        '0.1'
    }


def test_a_chip_is_not_shared():
    assert slots('2', Devices('tpu', ('0', '1')))[1].environment['TPU_VISIBLE_CHIPS'] == '1'
    with pytest.raises(RequestError, match='--jobs=3: there are 2 chips'):
        slots('3', Devices('tpu', ('0', '1')))


def test_a_cell_may_have_several_gpus():
    found = slots('auto', Devices('gpu', ('0', '1', '2', '3', '4')), 2)
    assert [s.environment.get('CUDA_VISIBLE_DEVICES') for s in found] == ['0,1', '2,3', None]
    shared = slots('3', Devices('gpu', ('0', '1', '2', '3')), 2)
    assert [s.environment.get('CUDA_VISIBLE_DEVICES') for s in shared] == ['0,1', '2,3', '0,1', None]
    for devices, n in ((Devices('gpu', ('0', '1')), 2), (Devices('tpu', ('0',) * 4), 0), (Devices('', ()), 0)):
        with pytest.raises(RequestError, match=f'--gpus_per_cell=3: this machine has {n} GPUs'):
            slots('auto', devices, 3)


def test_accelerators_are_not_looked_for_where_none_is_wanted():
    assert local.accelerators('cpu') == Devices('', ())


@pytest.mark.slow
def test_accelerators_are_counted_in_another_process(monkeypatch):
    monkeypatch.setattr(local, 'PLUGINS', ('jax',))
    monkeypatch.setenv('JAX_PLATFORMS', '')
    assert local.accelerators(None) == Devices('', ()), 'what is counted are processors'
    with pytest.raises(RequestError, match='cannot count the devices of this machine'):
        local.accelerators('tpu')


def test_ctrl_c_while_devices_are_counted_is_for_the_command_alone(grid, monkeypatch):
    """The child that counts is in a session of its own, and nothing begins afterwards."""
    look = 'import os, signal, sys; os.kill(os.getppid(), signal.SIGINT); print("cpu 1")'
    monkeypatch.setattr(local, 'PLUGINS', ('json',))
    monkeypatch.setattr(local, 'COUNT', f'{look}; sys.exit(os.getsid(0) != os.getpid())')
    monkeypatch.delenv('JAX_PLATFORMS', raising=False)
    with StopSignal() as stop:
        assert local.run([Job('a', 'a', SHORT)], '2', None, grid._replace(stop=stop)) == ({}, True)


# ---- processes ----


def test_jobs_are_processes_with_logs(grid, capsys):
    jobs = [Job('good', 'good', SHORT), Job('bad', 'bad', ('--task=p33',)), Job('after', 'after', SHORT, 'bad')]
    found = local.run(jobs, '2', 'cpu', grid)
    assert found == ({'good': 0, 'bad': 2, 'after': 2}, False)
    assert (grid.workdir / 'logs' / 'good.log').read_text().startswith('jbench ')
    said = capsys.readouterr().err
    assert 'failed: bad: exit status 2; ' in said and "unknown task 'p33'" in said and 'not run: after' in said


def test_jobs_wait_for_memory_but_one_always_runs(tmp_path):
    place = Local([Slot()] * 3, budget=100)
    try:
        large = Job('large', 'large', SHORT, memory=1 << 60)
        assert place.has_room(large), 'nothing else runs'
        place.start(Job('first', 'first', SHORT, memory=60), tmp_path / 'log')
        assert not place.has_room(large)
        assert not place.has_room(Job('second', 'second', SHORT, memory=41))
        assert place.has_room(Job('second', 'second', SHORT, memory=40))
        until(lambda: place.ended(0.1))
        assert place.has_room(large)
    finally:
        place.close()


def test_a_job_that_prepares_takes_no_accelerator(tmp_path):
    place = Local(slots('1', Devices('gpu', ('0',))), budget=1 << 40)
    try:
        place.start(Job('cell', 'cell', SHORT), tmp_path / 'log')
        assert not place.has_room(Job('other', 'other', SHORT))
        assert place.has_room(Job('set', 'set', SHORT, devices=0))
    finally:
        place.close()


# ---- the whole command ----


@contextlib.contextmanager
def running(*flags: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process, which is gone at the end, whatever fails meanwhile; its jobs end with it."""
    process = start(*flags)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def trains(work: Path) -> list[str]:
    """Keys of cells whose logs tell of an epoch."""
    return [p.stem for p in work.glob('logs/*.log') if 'seed 1: ' in p.read_text()]


def halted(work: Path, but: str = '') -> tuple[str, int]:
    """The key of a cell that trains, and its process, which stands still from now on."""
    key = until(lambda: [key for key in trains(work) if key != but])[0]
    pid = until(lambda: pid_of(f'--cell={work}/cells/{key}.json'))
    os.kill(pid, signal.SIGSTOP)
    return key, pid


def pending(pid: int, number: int) -> bool:
    """Whether a signal waits for a process that stands still."""
    lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    (mask,) = (int(line.split()[1], 16) for line in lines if line.startswith('ShdPnd:'))
    return bool(mask >> (number - 1) & 1)


def states(work: Path) -> dict[str, dict[str, Any]]:
    """What --status says of each cell."""
    status, out, err = finish(start('--status', f'--workdir={work}', '--format=json'))
    assert status == 0, err
    return {cell['key']: cell for cell in json.loads(out)['cells']}


SLOW_EPOCHS = 60


@pytest.fixture(scope='module')
def flags(tmp_path_factory) -> list[str]:
    home = tmp_path_factory.mktemp('home')
    return [*two_tasks.write(home), '--model=eegnet,dummy', '--seeds=1,2', '--format=json']


@pytest.fixture(scope='module')
def undisturbed(flags, tmp_path_factory):
    """The plain command: its work folder, and what it showed."""
    work = tmp_path_factory.mktemp('plain')
    status, out, err = finish(start(*flags, f'--workdir={work}'))
    assert status == 0, err
    return work, json.loads(out)


@pytest.mark.slow
def test_cells_at_once_give_the_files_and_the_table_of_the_plain_command(flags, undisturbed, tmp_path):
    status, out, err = finish(start(*flags, f'--workdir={tmp_path}', '--jobs=2'))
    assert status == 0, err
    assert outcome(tmp_path) == outcome(undisturbed[0]) and len(outcome(tmp_path)) == 20
    shown, plain = (
        [{k: v for k, v in row.items() if k != 'seconds'} for row in rows] for rows in (json.loads(out), undisturbed[1])
    )
    assert shown == plain
    assert 'jobs: 5/5' in err and len([*tmp_path.glob('logs/*.log')]) == 5
    assert [*tmp_path.glob('errors/*')] == []
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('seed*')}
    status, again, err = finish(start(*flags, f'--workdir={tmp_path}', '--jobs=2'))
    assert (status, again) == (0, out) and err.count('finished before, nothing to compute') == 4
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('seed*')} == before
    status, out, _ = finish(start('--status', f'--workdir={tmp_path}'))
    assert status == 0 and out.startswith('8 of 8 seeds done (100 %)')


@pytest.mark.long
def test_sets_at_once_are_those_of_the_plain_command(flags, tmp_path):
    """Two signals, so two jobs, each of the sets of two tasks."""
    argv = [f.replace('eegnet,dummy', 'eegnet,cbramod') for f in flags] + ['--weights=none', '--stage=prepare']
    for name, more in (('a', ()), ('b', ('--jobs=2',))):
        status, _, err = finish(start(*argv, f'--workdir={tmp_path}/{name}', *more))
        assert status == 0, err
    sets = [{p.parent.name: content(p.parent) for p in (tmp_path / name).rglob('manifest.json')} for name in ('a', 'b')]
    assert sets[0] == sets[1] and len(sets[0]) == 4
    assert 'jobs: 2/2' in err and len([*tmp_path.glob('b/logs/prepare-*.log')]) == 2
    status, out, _ = finish(start('--status', f'--workdir={tmp_path}/b'))
    assert status == 0 and out.startswith('4 of 4 sets ready, 0 running, 0 failed, 0 missing'), out


@pytest.mark.slow
def test_a_killed_job_is_told_and_stopped_ones_go_on(flags, tmp_path):
    home = tmp_path / 'home'
    own = [*two_tasks.write(home, SLOW_EPOCHS), '--model=eegnet', '--seeds=1', '--format=json']
    plain, work = tmp_path / 'plain', tmp_path / 'work'
    command = (*own, f'--workdir={work}', '--jobs=2')
    with running(*command) as grid:
        first, one = halted(work)
        second, other = halted(work, first)
        found = states(work)
        assert (found[first]['running'], found[second]['running']) == ([1], [1]), 'processes hold their locks'
        os.kill(one, signal.SIGKILL)
        until(lambda: (work / 'errors' / f'{first}.log').exists())
        grid.send_signal(signal.SIGINT)
        until(lambda: pending(other, signal.SIGTERM))
        os.kill(other, signal.SIGCONT)
        status, out, err = finish(grid)
    assert status == 75 and out == '' and 'killed by SIGKILL' in err and 'the same command goes on' in err, err
    assert pid_of(f'--workdir={work}') is None, 'no process is left'
    found = states(work)
    assert found[first]['failed'] == [1] and found[second]['missing'] == [1]
    status, out, err = finish(start(*command))
    assert status == 0, err
    assert finish(start(*own, f'--workdir={plain}'))[0] == 0
    assert outcome(work) == outcome(plain)
    resumed = {p.parent.name: json.loads(p.read_text())['resumed_at'] for p in work.rglob('seed1.json')}
    assert len(resumed[second]) == 1, 'the stopped one went on'


@pytest.mark.slow
def test_a_failed_cell_does_not_stop_the_others(flags, undisturbed, tmp_path):
    model = tmp_path / 'mine.py'
    model.write_text("def broken(data):\n    raise ValueError('no such thing')\n")
    argv = [f.replace('eegnet,dummy', f'{model}:broken,dummy') for f in flags]
    found = [
        finish(start(*argv, f'--workdir={tmp_path}/{name}', *more)) for name, more in (('a', ()), ('b', ('--jobs=2',)))
    ]
    assert [status for status, _, _ in found] == [1, 1], found
    assert all('no such thing' in err for _, _, err in found)
    rows = [{(r['task'], r['model']) for r in json.loads(out)} for _, out, _ in found]
    assert rows[0] == rows[1] and ('side', 'dummy') in rows[0]
    assert outcome(tmp_path / 'a') == outcome(tmp_path / 'b')
    _, out, _ = finish(start('--status', f'--workdir={tmp_path}/b', '--format=json'))
    seeds = json.loads(out)['seeds']
    assert seeds == {'done': 4, 'running': 0, 'failed': 4, 'missing': 0}


@pytest.mark.slow
def test_jobs_end_with_the_command_however_it_ends(flags, tmp_path):
    own = [*two_tasks.write(tmp_path / 'home', 10_000), '--model=eegnet', '--seeds=1']
    command = (*own, f'--workdir={tmp_path}', '--jobs=2')
    with running(*command) as grid:
        (key, *_) = until(lambda: trains(tmp_path))
        grid.kill()
    until(lambda: pid_of(f'--workdir={tmp_path}') is None)
    assert 'interrupted: what was done is saved' in (tmp_path / 'logs' / f'{key}.log').read_text()
    with running(*command) as grid:
        until(lambda: (tmp_path / 'logs' / f'{key}.log').read_text().count('seed 1: ') > 3)
        grid.send_signal(signal.SIGINT)
        time.sleep(0.1)
        grid.send_signal(signal.SIGINT)
        assert finish(grid)[0] in (75, 130), 'at once, unless all was saved before'
    until(lambda: pid_of(f'--workdir={tmp_path}') is None)
