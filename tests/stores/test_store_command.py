"""The whole command on a store: a real S3 server, and machines that share nothing else."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask_processes
import pytest
import run_whole
import s3_server
from run_whole import FLAGS, At
from s3_server import Fault

from jbench.data.prepare import build_set

pytestmark = pytest.mark.slow
URL = f's3://{s3_server.BUCKET}'
DUMMY = ('--task=p3', '--model=dummy', '--seeds=33', '--format=json')
SHORT = ('--task=p3', '--model=eegnet', '--simulated=yes', '--debug', '--seeds=33')
LITTLE = (  # the command, to which files of 100 kB are large
    'from jbench.data.prepare import raw_files; from jbench.stores import recordings; from jbench import run; '
    'raw_files.SMALL = recordings.SMALL = 100_000; run.program()'
)
SECRETS = (s3_server.KEY, s3_server.SECRET)


@pytest.fixture(scope='module')
def server():
    with s3_server.serving() as url:
        yield url


class Machine:
    """A machine: an environment, a cache, and what was said on it."""

    def __init__(self, url: str, cache: Path) -> None:
        self.cache, self.env = cache, s3_server.machine(url, cache)

    def start(
        self, *flags: str, at: At | None = None, save_every: float = 60.0, code: str = ''
    ) -> subprocess.Popen[str]:
        """The command on six simulated recordings, or some `code`."""
        how = json.dumps({'at': at, 'save_every': save_every, 'url': None})
        return subprocess.Popen(
            [sys.executable, *(['-c', code] if code else [run_whole.__file__, how]), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            start_new_session=True,
        )

    def run(self, *flags: str, **how: Any) -> tuple[int, str, str]:
        """Its status, table and words; no credential is among these, or in a file."""
        process = self.start(*flags, **how)
        out, err = process.communicate(timeout=300)
        assert not any(s in out + err for s in SECRETS) and 'Traceback' not in err, err
        for log in self.cache.rglob('*'):
            if log.suffix in ('.log', '.json', '.jsonl'):
                assert not any(s in log.read_text() for s in SECRETS)
        return process.returncode, out, err


@pytest.fixture
def machine(server, tmp_path):
    """A new machine, by name."""
    return lambda name, url=server: Machine(url, tmp_path / name)


def file(server: str, folder: str, pattern: str) -> str:
    """The one file of a folder of the store whose name fits."""
    (name,) = (n for n in s3_server.names(server, f'{folder}/') if re.search(pattern, n))
    return name


def test_a_second_machine_finds_what_is_finished(server, machine):
    work = f'--workdir={URL}/second'
    status, table, err = machine('a').run(*SHORT, work)
    assert status == 0, err
    names = s3_server.names(server, 'second/')
    assert len([n for n in names if 'array_record' in n]) == run_whole.N_SUBJECTS
    assert {Path(n).suffix for n in names if '/results/' in n} == {'.json', '.npz', '.safetensors'}
    assert not [n for n in names if 'checkpoints' in n or n.endswith('.part')]
    b = machine('b')
    status, again, err = b.run(*SHORT, work)
    assert (status, again) == (0, table), err
    assert 'finished before' in err and 'prepare' not in err
    assert not list(b.cache.rglob('*array_record*')), 'no shard is needed to show a result'
    c = machine('c')
    status, report, err = c.run('--stage=report', work)
    assert (status, report) == (0, table), err
    results = [sys.executable, '-m', 'jbench.report', f'--results={URL}/second', '--also=simulated,debug']
    done = subprocess.run(results, env=c.env, capture_output=True, text=True, cwd=c.cache)
    assert done.returncode == 0 and 'eegnet' in done.stdout, done.stderr
    status, out, err = machine('d').run(*SHORT, work, '--dry_run', '--format=json')
    assert status == 0 and json.loads(out)['cells'][0]['finished'] == [33], out + err


def test_a_prepared_set_is_brought(server, machine):
    work = f'--workdir={URL}/sets'
    assert machine('a').run(*DUMMY, work, '--prepare')[0] == 0
    assert not [n for n in s3_server.names(server, 'sets/') if '/results/' in n]
    b = machine('b')
    status, _, err = b.run(*DUMMY, work)
    assert status == 0 and 'copy SimulatedP3 from' in err and 'prepare SimulatedP3' not in err, err
    (manifest,) = b.cache.rglob('manifest.json')
    build_set.verify(manifest.parent)
    assert file(server, 'sets', 'seed33.json')


def test_a_preempted_cell_goes_on_on_another_machine(server, machine):
    alone = machine('alone')
    assert alone.run(*FLAGS, f'--workdir={alone.cache}')[0] == 0
    work = f'--workdir={URL}/preempted'
    status, _, err = machine('a').run(*FLAGS, work, at=At('jbench.train.fit:shard', n=3), save_every=0.0)
    assert status == 75 and 'goes on' in err, err
    saves = {Path(x).parent.name for x in s3_server.names(server, 'preempted/') if x.endswith('/sha256.json')}
    assert len(saves) == 1
    status, _, err = machine('b').run(*FLAGS, work)
    assert status == 0, err
    there = json.loads(s3_server.content(server, f'bucket/{file(server, "preempted", "seed33.json")}'))
    assert len(there['resumed_at']) == 1
    assert not [n for n in s3_server.names(server, 'preempted/') if 'checkpoints' in n]
    predictions, weights, result = run_whole.outcome(alone.cache)
    assert s3_server.content(server, f'bucket/{file(server, "preempted", "seed33.npz")}') == predictions
    assert s3_server.content(server, f'bucket/{file(server, "preempted", "seed33.safetensors")}') == weights
    assert {k: v for k, v in there.items() if k not in run_whole.TIMES} == result


def test_a_machine_that_is_killed_costs_nothing_but_its_time(server, machine):
    work = f'--workdir={URL}/killed'
    flags = DUMMY
    for place in (
        At('jbench.stores.remote:Remote.write', 'array_record', n=3, number=signal.SIGKILL),
        At('jbench.stores.remote:Remote.write_absent', 'manifest.json', number=signal.SIGKILL),
        At('jbench.stores.remote:Remote.write', 'seed33.npz', number=signal.SIGKILL),
        At('jbench.stores.remote:Remote.write_absent', 'seed33.json', number=signal.SIGKILL),
    ):
        m = machine('a')
        shutil.rmtree(m.cache, ignore_errors=True)
        assert m.run(*flags, work, at=place)[0] == -signal.SIGKILL, place
        assert not [n for n in s3_server.names(server, 'killed/') if n.endswith('seed33.json')]
    status, table, err = machine('b').run(*flags, work)
    assert status == 0, err
    status, again, err = machine('c').run(*flags, work)
    assert (status, again) == (0, table) and 'finished before' in err


@pytest.mark.long
def test_two_machines_at_once_give_one_result(server, machine):
    flags = (*DUMMY, f'--workdir={URL}/both')
    runs = [machine(name).start(*flags) for name in 'abc']
    said = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    assert len({out for out, _ in said}) == 1
    status, out, err = machine('d').run(*flags)
    assert status == 0 and out == said[0][0] and 'finished before' in err


@pytest.mark.long
def test_a_bad_line_costs_only_time(server, machine):
    with s3_server.badly(server) as line:
        line.faults += [
            Fault('PUT', 'array_record', n=2, status=503, code='SlowDown'),
            Fault('PUT', 'seed33.json', lost=True),
            Fault('GET', 'array_record', n=2, cut=1000),
            Fault('', 'results', n=3, status=500, code='InternalError'),
        ]
        work = f'--workdir={URL}/bad'
        status, table, err = machine('a', line.url).run(*DUMMY, work)
        assert status == 0, err
        status, _, err = machine('b', line.url).run(*DUMMY, work, '--seeds=34')
        assert status == 0 and 'copy SimulatedP3 from' in err, err
        assert not any(f.n for f in line.faults)
    assert machine('c').run(*DUMMY, work)[:2] == (0, table)


def test_a_store_that_goes_away_loses_nothing(server, machine):
    with s3_server.badly(server) as line:
        a = machine('a', line.url)
        work = f'--workdir={URL}/away'
        line.faults.append(Fault('PUT', 'seed33.json', n=-1, status=403, code='AccessDenied'))
        status, _, err = a.run(*DUMMY, work)
        assert status == 2 and err.count('refused') == 1 and 'seed33.json' in err, err
        line.faults.clear()
        status, _, err = a.run(*DUMMY, work)
        assert status == 0 and 'finished before' in err, err
    assert file(server, 'away', 'seed33.json')


def whole(machine: Machine) -> list[Path]:
    """Recordings whose content is there."""
    return [p for p in machine.cache.rglob('*.edf') if p.stat().st_mtime]


def test_recordings_come_from_a_store_where_their_set_does_not(server, machine, data_dir):
    for path in sorted((data_dir / run_whole.SERVED).iterdir()):
        s3_server.make(server, f'bucket/raw/{run_whole.SERVED}/{path.name}', path.read_bytes())
    flags = ('--task=mental_arithmetic', '--model=dummy', '--seeds=33', '--format=json', f'--data_dir={URL}/raw')
    flags = (*flags, f'--workdir={URL}/real')
    a = machine('a')
    status, _, err = a.run(*flags, '--dry_run', code=LITTLE)
    assert status == 0 and not whole(a), err
    status, table, err = a.run(*flags, code=LITTLE)
    assert status == 0 and f'copy {run_whole.SERVED} from' in err and len(whole(a)) == 72, err
    b = machine('b')
    status, again, err = b.run(*flags, code=LITTLE)
    assert (status, again) == (0, table) and 'finished before' in err and not whole(b), err


WRONG = {
    'no bucket': (('--workdir=s3://nowhere/run',), {}, "these credentials see no bucket 'nowhere'"),
    'no credentials': (
        (f'--workdir={URL}/none',),
        {'AWS_ACCESS_KEY_ID': '', 'AWS_SECRET_ACCESS_KEY': ''},
        'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    ),
    'alignment': (('--task=alignment', '--model=pixels', f'--workdir={URL}/x'), {}, 'alignment works in a folder'),
    'a size': ((f'--workdir={URL}/small',), {'JBENCH_CACHE_SIZE': '1KB'}, 'JBENCH_CACHE_SIZE=SIZE allows more'),
}


@pytest.mark.parametrize('what', WRONG)
def test_wrong_requests_are_one_line(what, server, machine):
    flags, env, words = WRONG[what]
    m = machine('a')
    if what == 'a size':
        assert m.run(*DUMMY, *flags, '--prepare')[0] == 0
        m = machine('b')
    m.env = {k: v for k, v in {**m.env, **env}.items() if v} | {'HOME': str(m.cache)}
    status, _, err = m.run(*(f for f in DUMMY if what != 'alignment'), *flags)
    assert status == 2, err
    (line,) = (text for text in err.splitlines() if text.startswith('jbench: '))
    assert words in line


def test_a_plan_in_a_store_runs_and_is_looked_at_elsewhere(server, machine):
    work = f'--workdir={URL}/grid'
    status, out, err = machine('a').run(*DUMMY, work, '--plan')
    assert status == 0, err
    plan = json.loads(out)
    assert f'grid/plans/{Path(plan["plan"]).name}' in s3_server.names(server, 'grid/plans/')
    b = machine('b')
    launch = [sys.executable, '-m', 'jbench.launch', 'slurm', f'--plan={URL}/grid/plans/{Path(plan["plan"]).name}']
    done = subprocess.run(launch, env=b.env, capture_output=True, text=True, cwd=b.cache.parent)
    assert done.returncode == 0 and f'--cell={URL}/grid/cells/' in done.stdout, done.stderr
    assert machine('c').run('--status', work)[1].startswith('0 of 1 seeds done')
    for job in plan['jobs']:
        status, _, err = b.run(*job['argv'])
        assert status == 0, err
    assert machine('d').run('--status', work)[1].startswith('1 of 1 seeds done')
    d = machine('d')
    assert d.run(*DUMMY, work, '--plan')[0] == 0
    assert [*d.cache.rglob('seed33.json')] and not [*d.cache.rglob('seed*.npz')], 'a plan needs no predictions'


@pytest.mark.long
def test_workers_of_a_cluster_need_the_store_alone(server, machine, tmp_path):
    """A worker with a copy of its own runs a good cell and a bad one; a third machine sees how both ended."""
    a, b, work = machine('a'), machine('b'), f'--workdir={URL}/dask'
    bad = tmp_path / 'bad.py'
    bad.write_text('def broken(data):\n    raise ValueError("no such thing")\n')
    with dask_processes.running(tmp_path / 'dask', n_workers=1, **b.env) as dask:
        flags = ('--task=p3', f'--model=dummy,{bad}:broken', '--seeds=33', '--format=json', '--device=cpu')
        status, table, err = a.run(*flags, work, f'--cluster={dask.address}')
    assert status == 1, err
    assert [r['model'] for r in json.loads(table)] == ['dummy']
    assert [*b.cache.rglob('*array_record*')] and not [*a.cache.rglob('*array_record*')], 'all was done elsewhere'
    names = s3_server.names(server, 'dask/')
    assert not [n for n in names if '/running/' in n or n.endswith('.seen')]
    status, found, err = machine('c').run('--status', '--task=p3', f'--model=dummy,{bad}:broken', '--seeds=33', work)
    assert status == 0 and '1 of 2 seeds done (50 %), 0 running, 1 failed' in found, err
