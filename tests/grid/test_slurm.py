"""The script of a plan on a real Slurm of one node: arrays, what ends a task, and going on where it was sent back."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import one_slurm
import pytest
import run_whole
import two_tasks
from one_slurm import Slurm, wait
from places import HELPERS, ROOT

from jbench import launch
from jbench.grid.job import Job
from jbench.grid.plan import FACTS, SCHEMA

SLOW, LONG = pytest.mark.slow, pytest.mark.long
STUB = """#!/bin/bash
# python, in place of it: writes down who it is, and does what --do says
workdir=; what=0
for a in "$@"; do case $a in --do=*) what=${a#--do=};; --workdir=*) workdir=${a#--workdir=};; esac; done
me="$SLURM_ARRAY_TASK_ID turn ${SLURM_RESTART_COUNT:-0}"
echo "$me cpus $NPROC gpus ${CUDA_VISIBLE_DEVICES-none} $what" >> "$workdir/calls"
case $what in
wait) trap 'trap "" TERM; echo "$SLURM_ARRAY_TASK_ID saved" >> "$workdir/calls"; exit 75' TERM
    while :; do sleep 0.1; done;;
late) trap 'trap "" TERM; echo "$me saved" >> "$workdir/calls"; exit 75' TERM
    [ ${SLURM_RESTART_COUNT:-0} -gt 0 ] && exit 0; while :; do sleep 0.1; done;;
stay) trap '' TERM; while :; do sleep 0.1; done;;
kill) kill -9 $$;;
esac
exit $what
"""
CELL = """#!/bin/bash
# python, on few recordings; it saves after every chunk while it is to be disturbed
every=60; [ "${{SLURM_RESTART_COUNT:-0}}" -ge 2 ] || every=0
exec {python} {script} "{{\\"at\\": null, \\"save_every\\": $every, \\"url\\": null}}" "${{@:3}}"
"""
EPOCHS = 16


@pytest.fixture(scope='module')
def slurm(tmp_path_factory) -> Iterator[Slurm]:
    """A Slurm for this file."""
    one_slurm.require()
    with one_slurm.running(tmp_path_factory.mktemp('slurm')) as found:
        yield found
    assert not list(one_slurm.left(found.conf))


def install(folder: Path, python: str) -> None:
    """Another `python`, for the tasks of a test."""
    (folder / 'bin').mkdir()
    (folder / 'bin' / 'python').write_text(python)
    (folder / 'bin' / 'python').chmod(0o755)


def submit(slurm: Slurm, folder: Path, plan: Path, *flags: str) -> list[str]:
    """Launch a plan as a person does, with the `python` of a folder; the numbers of its arrays."""
    script = folder / f'{plan.stem}.sh'
    usual = ['--time=10:00', '--cpus=1', f'--setup=PATH={shlex.quote(str(folder / "bin"))}:$PATH']
    assert launch.main(['slurm', f'--plan={plan}', f'--out={script}', *usual, *flags]) == 0
    done = subprocess.run(['bash', str(script)], cwd=folder, env=slurm.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return re.match(r'submitted: ([\d ]+);', done.stdout)[1].split()


def planned(folder: Path, **does: str) -> Path:
    """A plan of cells in this order, and of a set that the last of them waits for, where `does` has one."""
    install(folder, STUB)
    last = list(does)[-1] if 'made' in does else ''
    said = {key: (f'--workdir={folder}', f'--do={what}') for key, what in does.items()}
    jobs = [Job(key, key, said[key], 'made' if key == last else '', -float(k)) for k, key in enumerate(does)]
    listed = [job._replace(devices=int(job.key != 'made'))._asdict() | dict.fromkeys(FACTS, job.key) for job in jobs]
    text = json.dumps({'schema': SCHEMA, 'request': '', 'seeds': [33], 'jobs': listed})
    (folder / 'plan.json').write_text(text)
    return folder / 'plan.json'


def calls(workdir: Path) -> list[str]:
    """What the stubs wrote down, in order of tasks."""
    path = workdir / 'calls'
    return sorted(path.read_text().splitlines()) if path.exists() else []


@SLOW
def test_arrays_run_and_say_how_their_tasks_ended(slurm, tmp_path):
    """A task is a cell with a device of its own; cells that wait start when what prepares has ended, well or not."""
    prepare, ready, waiting = submit(slurm, tmp_path, planned(tmp_path, made='1', a='0', b='3', c='kill'))
    tasks = [f'{prepare}_1', f'{ready}_1', f'{ready}_2', f'{waiting}_1']
    states = [('FAILED', '1:0'), ('COMPLETED', '0:0'), ('FAILED', '3:0'), ('FAILED', '137:0')]
    assert slurm.ended(*tasks) == dict(zip(tasks, states, strict=True))
    said = calls(tmp_path)
    assert re.fullmatch(r'1 turn 0 cpus 1 gpus \d 0', said[0]) and re.fullmatch(
        r'1 turn 0 cpus 1 gpus \d kill', said[1]
    )
    assert said[2] == '1 turn 0 cpus 1 gpus none 1' and re.fullmatch(r'2 turn 0 cpus 1 gpus \d 3', said[3])
    logs = sorted((tmp_path / 'logs').iterdir())
    assert [path.name for path in logs] == [f'jbench-plan-{task}.log' for task in sorted(tasks)]
    assert all(path.read_text().startswith('python -m jbench.run ') for path in logs)


@SLOW
def test_cancelled_tasks_save_and_stay_cancelled(slurm, tmp_path):
    """One in its first turn, one that its limit sent back once."""
    (array,) = submit(slurm, tmp_path, planned(tmp_path, a='wait', b='wait'))
    wait(lambda: len(calls(tmp_path)) == 2, 60, 'two tasks')
    slurm.ask('scancel', '--batch', '--signal=USR1', f'{array}_2')
    wait(lambda: any(one.startswith('2 turn 1') for one in calls(tmp_path)), 60, 'the second turn')
    slurm.ask('scancel', array)
    ended = slurm.ended(f'{array}_1', f'{array}_2')
    assert {state for state, _ in ended.values()} == {'CANCELLED'}, ended
    assert [one[:8] for one in calls(tmp_path)] == ['1 saved', '1 turn 0', '2 saved', '2 saved', '2 turn 0', '2 turn 1']


@LONG
def test_a_time_limit_that_comes_sends_a_task_back(slurm, tmp_path):
    """A limit of one minute: a task that saves when it is warned is sent back and ends; one that stays is killed."""
    flags = ('--time=1', '--sbatch=--signal=B:USR1@10')  # the usual 120 s would be before its start
    began = time.monotonic()
    (array,) = submit(slurm, tmp_path, planned(tmp_path, a='late', b='stay'), *flags)
    ended = slurm.ended(f'{array}_1', f'{array}_2', seconds=240)
    assert ended[f'{array}_1'] == ('COMPLETED', '0:0') and ended[f'{array}_2'][0] == 'TIMEOUT', ended
    assert (slurm.fact(f'{array}_1', 'Restarts'), slurm.fact(f'{array}_2', 'Restarts')) == ('1', '0')
    assert [one for one in calls(tmp_path) if 'saved' in one] == ['1 turn 0 saved']
    assert [one[:8] for one in calls(tmp_path)] == ['1 turn 0', '1 turn 0', '1 turn 1', '2 turn 0']
    assert time.monotonic() - began > 60, 'the second has had its minute'


@SLOW
def test_a_cell_that_is_sent_back_goes_on_and_ends_alike(slurm, tmp_path):
    """From --plan to the result: one cell is undisturbed; one is warned of its time limit in its first turn, sent back
    by Slurm in its second, and ends in its third with the same bits."""
    script = HELPERS / 'run_whole.py'
    install(tmp_path, CELL.format(python=shlex.quote(sys.executable), script=shlex.quote(str(script))))
    recipe = [f'--set=recipe.max_epochs={EPOCHS}', f'--set=recipe.patience={EPOCHS}']
    asked = ['--task=p3', '--model=eegnet', '--seeds=33', *recipe, '--plan', '--format=json']
    works = {name: tmp_path / name for name in ('calm', 'disturbed')}
    plans = {name: run_whole.start(work, *asked) for name, work in works.items()}
    arrays = {}
    for name, process in plans.items():
        said, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        plan = Path(json.loads(said)['plan'])
        arrays[name] = submit(slurm, tmp_path, plan.rename(plan.with_stem(name)), '--accelerator=none')
    assert [len(found) for found in arrays.values()] == [2, 2], 'what prepares, then the cell'
    task, work = f'{arrays["disturbed"][1]}_1', works['disturbed']

    def saves() -> set[Path]:
        return set(work.glob('checkpoints/*/seed33/*/sha256.json'))

    wait(saves, 200, 'a save in the first turn')
    slurm.ask('scancel', '--batch', '--signal=USR1', task)
    wait(lambda: slurm.fact(task, 'JobState') == 'PENDING', 60, 'the end of the first turn')
    there = saves()
    wait(lambda: saves() - there, 100, 'a save in the second turn')
    slurm.ask('scontrol', 'requeue', task)
    ended = slurm.ended(*(f'{array}_1' for found in arrays.values() for array in found), seconds=200)
    assert set(ended.values()) == {('COMPLETED', '0:0')}, ended
    assert slurm.fact(task, 'Restarts') == '2'
    assert run_whole.outcome(work) == run_whole.outcome(works['calm'])
    (path,) = work.rglob('seed33.json')
    assert len(json.loads(path.read_text())['resumed_at']) == 2
    assert (work / 'logs' / f'jbench-disturbed-{task}.log').read_text().count('goes on from there') == 2


@SLOW
def test_a_worker_of_dask_is_a_job(slurm, tmp_path, monkeypatch):
    """As `--cluster=FILE` has it of dask-jobqueue: one worker, one job, one device, one task."""
    dask_jobqueue = pytest.importorskip('dask_jobqueue', reason='no dask-jobqueue here: pip install jbench[cluster]')
    from distributed import Client

    monkeypatch.setenv('SLURM_CONF', str(slurm.conf))
    settings = {'queue': 'debug', 'cores': 1, 'processes': 1, 'memory': '500MB', 'walltime': '00:10:00'}
    settings |= {'job_extra_directives': ['--gres=gpu:1', '--requeue'], 'worker_extra_args': ['--resources GPU=1']}
    settings |= {'interface': 'lo', 'log_directory': str(tmp_path), 'local_directory': str(tmp_path)}
    here = {'scheduler_options': {'dashboard_address': ':0'}, 'death_timeout': 60}
    with dask_jobqueue.SLURMCluster(**settings, **here) as cluster, Client(cluster) as client:
        cluster.scale(1)
        names = ('SLURM_JOB_ID', 'CUDA_VISIBLE_DEVICES')
        number, device = client.gather([client.submit(os.getenv, name, resources={'GPU': 1}) for name in names])
        assert (slurm.fact(number, 'JobState'), device) == ('RUNNING', '0')
        assert slurm.ask('squeue', '--noheader', '--format=%i') == number
    assert slurm.ended(number)[number][0] in ('CANCELLED', 'COMPLETED')


@SLOW
def test_tasks_of_srun_are_processes_of_one_cell(slurm, tmp_path):
    """`--distributed`: jax finds the other process by what Slurm says."""
    asked = [*two_tasks.write(tmp_path, epochs=2), '--model=eegnet', '--seeds=33', '--device=cpu']
    tasks = tmp_path / 'tasks.py'
    tasks.write_text(tasks.read_text().replace("('side', 'side')", ''))  # one is enough
    run = [sys.executable, '-m', 'jbench.run', *asked, '--distributed', f'--workdir={tmp_path}/work']
    env = {**slurm.env, 'PYTHONPATH': str(ROOT), 'NPROC': '2'}
    srun = ['srun', '--ntasks=2', '--time=10', '--label', *run]
    done = subprocess.run(srun, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = [json.loads(path.read_text()) for path in tmp_path.glob('work/results/*/*/*/*/seed33.json')]
    assert [(one['status'], one['devices']['count']) for one in found] == [('done', 2)]
    assert '0: ' in done.stdout and 'eyes' in done.stdout
