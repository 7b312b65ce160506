"""Plans as text for Slurm, Kubernetes and SkyPilot: the texts to the letter, and what their scripts do in a shell."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import result_files
import yaml
from each import each
from places import FIXTURES, ROOT

from jbench import files, launch
from jbench.cli import launch as arguments
from jbench.grid.job import Job
from jbench.grid.launchers import kubernetes, planned, skypilot, slurm

FACTS = {'task': 'p3@2', 'dataset': 'SimulatedP3', 'model': 'eegnet'}  # of a job on disk, beside its fields
PLAN = FIXTURES / 'launch' / '4f2a91c07be3.json'
GOLDEN = {  # what was asked -> the text; after a change: python -m jbench.launch ... > tests/fixtures/launch/...
    'slurm.sh': ('slurm', '--setup=. /data/venv/bin/activate', '--sbatch=--partition=gpu', '--at_once=64'),
    'slurm_plain.sh': ('slurm', '--accelerator=none', '--array_size=2'),
    'kubernetes.yaml': (
        *('kubernetes', '--image=ghcr.io/me/jbench:1', '--volume=bench:/data', '--queue=brains', '--secret=store'),
        *('--setup=nvidia-smi', '--at_once=8'),
    ),
    'skypilot.yaml': ('skypilot', '--setup=pip install jbench[cloud]', '--volume=bench:/data', '--memory=16G'),
}


@pytest.fixture()
def ask(capsys):
    """Run the command in this process: exit status, stdout, stderr."""

    def answer(*argv: str) -> tuple[int, str, str]:
        status = launch.main(list(argv))
        return status, *capsys.readouterr()

    return answer


def job(key: str, *argv: str, after: str = '', **facts: Any) -> Job:
    """A cell; what the stub of `python` does is in its arguments."""
    return Job(key, key, ('--workdir=s3://bucket/bench', *argv, '--stage=prepare,train'), after, **facts)


def stub(folder: Path, name: str, text: str) -> None:
    """A program of this name."""
    (folder / 'bin').mkdir(exist_ok=True)
    (folder / 'bin' / name).write_text(f'#!/bin/bash\n{text}\n')
    (folder / 'bin' / name).chmod(0o755)


@pytest.fixture()
def shell(tmp_path):
    """An environment in which `python` writes down its arguments, then does what --do says."""
    stub(
        tmp_path,
        'python',
        'echo "$NPROC $*" >> calls; what=; for a in "$@"; do case $a in --do=*) what=${a#--do=};; esac; done\n'
        'case $what in wait) trap "touch saving; sleep 0.1; exit 75" TERM; touch ready;; esac\n'
        '[ "$what" = wait ] && for k in {1..999}; do sleep 0.02; done\n'
        'case $what in kill) kill -9 $$;; esac; exit ${what:-0}',
    )
    stub(tmp_path, 'scontrol', 'echo "$*" >> told; exit 1')  # it would end the task: here the task goes on
    kept = {k: v for k, v in os.environ.items() if not k.startswith(('SLURM', 'SBATCH'))}
    return kept | {'PATH': f'{tmp_path / "bin"}:{os.environ["PATH"]}'}


def appears(path: Path, process: subprocess.Popen) -> None:
    """Wait for a file that a process makes."""
    until = time.monotonic() + 20
    while not path.exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.01)


def lines(path: Path) -> list[str]:
    """What was written down; nothing where nothing was."""
    return path.read_text().splitlines() if path.exists() else []


# ---- the texts ----


@each('name', GOLDEN)
def test_the_text_is_the_golden_one(name, ask):
    status, text, err = ask(*GOLDEN[name], f'--plan={PLAN}')
    assert (status, err) == (0, '')
    assert text == (FIXTURES / 'launch' / name).read_text()


def test_kubernetes_knows_every_field_of_the_golden_text():
    """By the schemas of its API that kubernetes-validate brings: of the oldest version that will do, and a newer."""
    check = pytest.importorskip('kubernetes_validate', reason='pip install kubernetes-validate')
    texts = yaml.safe_load_all((FIXTURES / 'launch' / 'kubernetes.yaml').read_text())
    assert [check.validate(one, v, strict=True) for one in texts for v in ('1.29', '1.33')] == ['1.29', '1.33'] * 2
    with pytest.raises(check.ValidationError, match='podReplacement'):
        job = {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'x'}, 'spec': {'podReplacement': 'x'}}
        check.validate(job, '1.29', strict=True)


@pytest.mark.slow
def test_skypilot_reads_the_golden_text(tmp_path, monkeypatch):
    """As its own code does before it asks any cloud."""
    monkeypatch.setenv('HOME', str(tmp_path))  # it keeps what it knows there
    sky = pytest.importorskip('sky', reason='no SkyPilot here: pip install skypilot')
    path = FIXTURES / 'launch' / 'skypilot.yaml'
    task = sky.Task.from_yaml(str(path))
    (resources,) = task.resources
    assert (task.name, task.envs) == ('jbench-4f2a91c07be3', {'RANK': '0', 'MACHINES': '1'})
    assert (resources.accelerators, resources.use_spot) == ({'L4': 1}, True)
    assert (resources.cpus, resources.memory, task.volumes) == ('4+', '16+', {'/data': 'bench'})
    (tmp_path / 'odd.yaml').write_text(path.read_text().replace('use_spot', 'use_spots'))
    with pytest.raises(Exception, match='use_spots'):
        sky.Task.from_yaml(str(tmp_path / 'odd.yaml'))


def test_the_text_goes_to_a_file_as_well(ask, tmp_path):
    status, out, err = ask('slurm', f'--plan={PLAN}', f'--out={tmp_path}/new/grid.sh')
    assert (status, out) == (0, '') and f'{tmp_path}/new/grid.sh' in err
    assert (tmp_path / 'new' / 'grid.sh').read_text() == ask('slurm', f'--plan={PLAN}')[1]


def test_what_is_done_is_left_out(ask, tmp_path):
    """Two of three cells of a plan have results, of one seed or of both."""
    made = job('made', devices=0)
    found = [result_files.make('eegnet', seed=seed, key='a' * 16) for seed in (33, 34)]
    found.append(result_files.make('dummy', seed=33, key='b' * 16))
    for one in found:
        result_files.store(tmp_path, one['model'], key=one['key'], seed=one['seed'], task_version=2)
    facts = {'task': 'p3@2', 'dataset': 'Real'}
    models = {'a' * 16: 'eegnet', 'b' * 16: 'dummy', 'c' * 16: 'eegnet'}
    cells = [Job(key, key, (f'--workdir={tmp_path}', f'--cell={key}'), '', 1.0) for key in models]
    cells[0] = cells[0]._replace(after='made')
    listed = [{**made._asdict(), **FACTS}, *({**c._asdict(), **facts, 'model': models[c.key]} for c in cells)]
    listed[0] |= {'argv': [f'--workdir={tmp_path}', '--stage=prepare'], 'model': ''}
    path = tmp_path / 'plan.json'
    path.write_text(json.dumps({'schema': 1, 'request': '', 'seeds': [33, 34], 'jobs': listed}))
    text = ask('slurm', f'--plan={path}')[1]
    assert re.findall(r'--cell=(\w)', text) == ['b', 'c'] and '--stage=prepare' not in text
    assert 'jbench-plan: 2 cells, longest first; 1 more of the plan are done, or run. Submit' in text
    assert re.findall(r'--cell=(\w)', ask('slurm', f'--plan={path}', '--everything')[1]) == ['b', 'c', 'a']
    (home,) = tmp_path.glob(f'results/*/*/*/{"b" * 16}')
    with files.locked(home / '.lock'):
        text = ask('slurm', f'--plan={path}')[1]
        assert re.findall(r'--cell=(\w)', text) == ['c'] and '2 more of the plan are done, or run' in text
        assert re.findall(r'--cell=(\w)', ask('slurm', f'--plan={path}', '--everything')[1]) == ['b', 'c', 'a']
    path.write_text(json.dumps({'schema': 1, 'request': '', 'seeds': [33, 34], 'jobs': [*listed[:2]]}))
    status, _, err = ask('slurm', f'--plan={path}')
    assert status == 2 and 'every cell has its results, or runs now; --everything' in err


def test_a_plan_says_how_many_gpus_a_cell_has(ask, tmp_path):
    path = tmp_path / 'plan.json'
    path.write_text(PLAN.read_text().replace('"devices": 1', '"devices": 4'))
    text = ask('slurm', f'--plan={path}')[1]
    assert re.findall(r'--gres=(\S+)', text) == ['gpu:4'] * 2
    assert re.findall(r'--gres=(\S+)', ask('slurm', f'--plan={path}', '--accelerator=h100:2')[1]) == ['h100:2'] * 2
    text = ask('kubernetes', f'--plan={path}', '--image=x', '--volume=bench:/data')[1]
    assert 'limits: {"nvidia.com/gpu": "4"}' in text
    assert 'accelerators: "L4:4"' in ask('skypilot', f'--plan={path}', '--setup=x', '--volume=bench:/data')[1]


def test_it_starts_without_jax():
    code = 'import sys, jbench.launch; print(sorted({"jax", "mne", "yaml"} & set(sys.modules)))'
    assert subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout == '[]\n'


# ---- what is wrong is one line ----

WRONG = {  # arguments -> words of the message
    'no engine': ((), 'which engine?'),
    'a flag first': (('--plan=x',), 'which engine?'),
    'engine': (('slrum', '--plan=x'), "unknown engine 'slrum'; did you mean 'slurm'"),
    'no plan': (('slurm',), '--plan'),
    'flag': (('slurm', '--plan={plan}', '--tiem=1'), "unknown argument '--tiem'; did you mean '--time'"),
    'flag of another engine': (('slurm', '--plan={plan}', '--image=x'), "unknown argument '--image'"),
    'time': (('slurm', '--plan={plan}', '--time=soon'), '--time=soon: expected minutes'),
    'accelerator': (('slurm', '--plan={plan}', '--accelerator=gpu 1'), '--accelerator=gpu 1: expected'),
    'memory': (('slurm', '--plan={plan}', '--memory=lots'), '--memory=lots: expected gigabytes'),
    'cpus': (('slurm', '--plan={plan}', '--cpus=0'), '--cpus=0: expected at least 1'),
    'no number': (('slurm', '--plan={plan}', '--cpus=four'), "invalid int value: 'four'"),
    'array size': (('slurm', '--plan={plan}', '--array_size=0'), '--array_size=0: expected at least 1'),
    'at once': (('slurm', '--plan={plan}', '--at_once=-1'), '--at_once=-1: expected at least 0'),
    'option of sbatch': (('slurm', '--plan={plan}', '--sbatch=partition=gpu'), 'as --sbatch=--partition=gpu'),
    'two lines': (('slurm', '--plan={plan}', '--sbatch=--qos=x\nrm'), 'expected an option of sbatch'),
    'no image': (('kubernetes', '--plan={plan}'), '--image'),
    'image': (('kubernetes', '--plan={plan}', '--image=a b'), '--image=a b: expected the name of an image'),
    'volume': (('kubernetes', '--plan={plan}', '--image=x', '--volume=data'), '--volume=data: expected a name and'),
    'secret': (('kubernetes', '--plan={plan}', '--image=x', '--secret=A B'), '--secret=A B: expected the name of'),
    'queue': (('kubernetes', '--plan={plan}', '--image=x', '--queue=A'), '--queue=A: expected the name of'),
    'folder that pods lack': (
        ('kubernetes', '--plan={plan}', '--image=x', '--volume=bench:/dat'),
        '--workdir=/data/bench, which the machines of Kubernetes do not see',
    ),
    'folder that clouds lack': (
        ('skypilot', '--plan={plan}', '--setup=x'),
        'do not see: make the plan with an address',
    ),
    'nothing installs jbench': (('skypilot', '--plan={plan}'), 'say what installs jbench'),
    'spot': (('skypilot', '--plan={plan}', '--setup=x', '--spot=maybe'), "invalid choice: 'maybe'"),
    'plan': (('slurm', '--plan={tmp}/absent.json'), '/absent.json: no such file; expected a plan'),
    'plan that is a folder': (('slurm', '--plan={tmp}'), 'cannot read'),
    'begins afresh in each pod': (
        ('kubernetes', '--plan={afresh}', '--image=x'),
        '--if_exists=overwrite, with which a',
    ),
    'begins afresh on each machine': (
        ('skypilot', '--plan={afresh}', '--setup=x'),
        '--if_exists=overwrite, with which',
    ),
    'place of the text': (('slurm', '--plan={plan}', '--out=/proc/grid.sh'), 'cannot write /proc/grid.sh'),
}
DAMAGED = {  # what becomes of the text of a plan -> words of the message
    'cut': (lambda text: text[:500], 'the file is damaged'),
    'a list': (lambda text: '[]', 'expected a plan'),
    'no jobs': (lambda text: json.dumps({**json.loads(text), 'jobs': []}), 'it has no jobs'),
    'another schema': (lambda text: text.replace('"schema": 1', '"schema": 2'), 'of schema 2, expected 1'),
    'no schema': (lambda text: text.replace('"schema"', '"scheme"'), "lacks 'schema'"),
    'no commands': (lambda text: text.replace('"argv"', '"arg"'), "lacks 'argv'"),
    'a number in words': (lambda text: text.replace('310.5', '"310.5"'), "seconds of a job is '310.5'"),
    'words where a number is': (
        lambda text: text.replace('"devices": 0', '"devices": "no"'),
        "devices of a job is 'no'",
    ),
    'a list as a key': (lambda text: text.replace('"key": "c1"', '"key": ["c1"]'), "key of a job is ['c1']"),
    'waits for a stranger': (
        lambda text: text.replace('"after": "prepare', '"after": "prepar'),
        'job c3 waits for prepar-',
    ),
    'twice': (lambda text: text.replace('"key": "c2"', '"key": "c1"'), 'job c1 is there twice'),
    'a line break': (
        lambda text: text.replace('/cells/c1', '/cells\\n/c1'),
        'the command of job c1 holds a line break',
    ),
}


@each('name', WRONG)
def test_a_wrong_request_is_one_line(name, ask, tmp_path):
    argv, words = WRONG[name]
    (tmp_path / 'afresh.json').write_text(
        PLAN.read_text().replace('=resume', '=overwrite').replace('"/data', '"s3://b')
    )
    places = {'{plan}': str(PLAN), '{tmp}': str(tmp_path), '{afresh}': f'{tmp_path}/afresh.json'}
    for place, path in places.items():
        argv = tuple(a.replace(place, path) for a in argv)
    status, out, err = ask(*argv)
    assert (status, out) == (2, '') and words in err, err
    assert err.startswith('jbench.launch: ') and err.count('\n') == 1 + ('unknown' in words or name == 'two lines')


@each('name', DAMAGED)
def test_a_damaged_plan_is_one_line(name, ask, tmp_path):
    change, words = DAMAGED[name]
    path = tmp_path / 'plan.json'
    path.write_text(change(PLAN.read_text()))
    status, out, err = ask('slurm', f'--plan={path}')
    assert (status, out) == (2, '') and words in err, err
    assert err.startswith(f'jbench.launch: {path}: ') and err.count('\n') == 1


def test_what_the_page_shows_is_understood():
    page = (ROOT / 'docs' / 'cluster.md').read_text()
    shown = [shlex.split(one)[3:] for one in re.findall(r'^python -m jbench\.launch .*$', page, re.M)]
    assert [arguments.parse(argv)[0] for argv in shown] == list(arguments.ENGINES)


@each('engine', arguments.ENGINES)
def test_every_flag_is_explained(engine):
    for action in arguments.parser(engine)._actions:
        assert action.help and action.option_strings


def test_help(capsys):
    for argv, words in ((['--help'], 'slurm|kubernetes|skypilot'), (['slurm', '--help'], '--array_size')):
        with pytest.raises(SystemExit) as leave:
            launch.main(argv)
        assert leave.value.code == 0 and words in capsys.readouterr().out


# ---- Slurm ----


def script(folder: Path, jobs: list[Job], **options: Any) -> Path:
    """The script of a plan."""
    path = folder / 'grid.sh'
    path.write_text(slurm.text(planned.planned('x', jobs), slurm.Options(**options)))
    return path


def submitted(folder: Path, env: dict[str, str], jobs: list[Job], **options: Any) -> list[list[str]]:
    """What sbatch is told when a person runs the script of a plan."""
    stub(folder, 'sbatch', 'echo "$*" >> told; echo "$((100 + $(wc -l < told)));cluster"')
    path = script(folder, jobs, **options)
    done = subprocess.run(['bash', path.name], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('submitted: 101')
    return [shlex.split(one) for one in lines(folder / 'told')]


def task_of(folder: Path, env: dict[str, str], jobs: list[Job], **more: str) -> subprocess.Popen:
    """The task of the first job, as Slurm starts it."""
    of_slurm = {'SLURM_ARRAY_JOB_ID': '7', 'SLURM_ARRAY_TASK_ID': '1', 'SLURM_JOB_ID': '7', 'SLURM_CPUS_PER_TASK': '3'}
    path = script(folder, jobs)
    return subprocess.Popen(['bash', path, '0'], cwd=folder, env={**env, **of_slurm, **more}, stdout=subprocess.DEVNULL)


ENDS = {  # what the cell does, the signal, turns so far -> the exit status, and what scontrol is told
    'the limit comes': ('wait', 'USR1', '', 75, ['requeue 7_1']),
    'the limit comes again': ('wait', 'USR1', '19', 75, ['requeue 7_1']),
    'the limit comes too often': ('wait', 'USR1', '20', 75, []),
    'cancelled': ('wait', 'TERM', '', 75, []),
    'cancelled beside the limit': ('wait', 'USR1 TERM', '', 75, []),
    'well': ('0', '', '', 0, []),
    'failed': ('1', '', '', 1, []),
    'refused': ('2', '', '', 2, []),
    'killed': ('kill', '', '', 137, []),
    'saved, and nobody knows why': ('75', '', '', 75, []),
}


@pytest.mark.parametrize('name', ENDS)
def test_a_task_goes_back_to_the_queue_only_when_its_limit_came(name, shell, tmp_path):
    does, numbers, turns, status, told = ENDS[name]
    process = task_of(tmp_path, shell, [job('a', f'--do={does}')], **({'SLURM_RESTART_COUNT': turns} if turns else {}))
    for number, sign in zip(numbers.split(), ('ready', 'saving'), strict=False):
        appears(tmp_path / sign, process)
        process.send_signal(getattr(signal, f'SIG{number}'))
    try:
        assert process.wait(20) == status
    finally:
        process.kill()
    assert lines(tmp_path / 'told') == told
    assert lines(tmp_path / 'calls') == [
        f'3 -m jbench.run --workdir=s3://bucket/bench --do={does} --stage=prepare,train'
    ]


@each('value', ['overwrite', 'skip', 'fail', 'resume'])
def test_a_further_turn_goes_on_from_what_the_first_has_saved(value, shell, tmp_path):
    ran = []
    for turns in ('0', '1'):
        (tmp_path / 'calls').unlink(missing_ok=True)
        assert task_of(tmp_path, shell, [job('a', f'--if_exists={value}')], SLURM_RESTART_COUNT=turns).wait(20) == 0
        ran += lines(tmp_path / 'calls')
    later = 'resume' if value in ('overwrite', 'skip') else value
    assert [re.search(r'--if_exists=(\w+)', one)[1] for one in ran] == [value, later]


def test_a_task_without_a_line_does_not_end_well(shell, tmp_path):
    assert task_of(tmp_path, shell, [job('a')], SLURM_ARRAY_TASK_ID='2').wait(20) == 2
    assert lines(tmp_path / 'calls') == []


def test_each_task_runs_its_line_whatever_is_in_it(shell, tmp_path):
    words = ["--cell=it's here.json", '--do=0', '--cell=$HOME `id` "\\', '--cell=*']
    jobs = [job(f'j{k}', words[k], seconds=float(-k)) for k in range(4)]
    for start, index in ((0, '2'), (2, '1'), (2, '2')):
        path = script(tmp_path, jobs)
        env = {**shell, 'SLURM_ARRAY_TASK_ID': index, 'SLURM_CPUS_PER_TASK': '1'}
        subprocess.run(['bash', path, str(start)], cwd=tmp_path, env=env, capture_output=True)
    said = [one.split(' ', 1)[1] for one in lines(tmp_path / 'calls')]
    assert said == [f'-m jbench.run --workdir=s3://bucket/bench {words[k]} --stage=prepare,train' for k in (1, 2, 3)]


def test_arrays_are_longest_first_and_cells_wait_for_what_prepares(shell, tmp_path):
    made = Job('set', 'set', ('--workdir=s3://b/p', '--stage=prepare'), seconds=9, memory=2**30 + 1, devices=0)
    few = [job('waits', after='set', seconds=5), job('short', seconds=1), job('long', seconds=7, memory=3 << 30)]
    told = submitted(tmp_path, shell, [made, *few], time='1:00:00')
    own = [[a for a in one if not a.startswith(('--output', '/'))] for one in told]
    assert own == [
        ['--parsable', '--array=1-1', '--mem=2G', '0'],
        ['--parsable', '--array=1-2', '--gres=gpu:1', '--mem=3G', '1'],
        ['--parsable', '--array=1-1', '--dependency=afterany:101', '--gres=gpu:1', '3'],
    ]
    assert {one[-2] for one in told} == {str(tmp_path / 'grid.sh')}
    assert {one[1] for one in told} == {'--output=jbench-logs/%x-%A_%a.log'} and (tmp_path / 'jbench-logs').is_dir()
    listed = re.findall(r'^python .*$', (tmp_path / 'grid.sh').read_text(), re.M)
    assert listed[1:3] == ['python -m jbench.run --workdir=s3://bucket/bench --stage=prepare,train'] * 2


def test_no_array_is_larger_than_slurm_takes(shell, tmp_path):
    jobs = [job(f'j{k}', f'--cell={k}', seconds=float(k)) for k in range(2300)]
    told = submitted(tmp_path, shell, jobs)
    assert [(one[2], one[-1]) for one in told] == [
        ('--array=1-1000', '0'),
        ('--array=1-1000', '1000'),
        ('--array=1-300', '2000'),
    ]
    listed = re.findall(r'--cell=(\d+)', (tmp_path / 'grid.sh').read_text())
    assert listed == [str(k) for k in reversed(range(2300))]


def test_a_limit_of_tasks_holds_over_all_arrays(shell, tmp_path):
    """Slurm's limit is one of an array, so the next array waits for the one before."""
    told = submitted(tmp_path, shell, [job(f'j{k}') for k in range(5)], at_once=2, array_size=2)
    assert [[a for a in one if a.startswith(('--array', '--dep'))] for one in told] == [
        ['--array=1-2%2'],
        ['--array=1-2%2', '--dependency=afterany:101'],
        ['--array=1-1%2', '--dependency=afterany:102'],
    ]


def test_a_refused_array_ends_the_submission(shell, tmp_path):
    stub(tmp_path, 'sbatch', 'echo "sbatch: error: Invalid job array specification" >&2; exit 1')
    path = script(tmp_path, [job('a')])
    done = subprocess.run(['bash', path], cwd=tmp_path, env=shell, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == '' and 'Invalid job array' in done.stderr


# ---- Kubernetes ----

KNOWN = {  # fields of the API (batch/v1, v1) that the manifest uses, by where they are
    'ConfigMap': {'apiVersion', 'kind', 'metadata', 'immutable', 'data'},
    'Job': {'apiVersion', 'kind', 'metadata', 'spec'},
    'spec': {
        *('completionMode', 'completions', 'parallelism', 'backoffLimitPerIndex', 'podReplacementPolicy'),
        *('podFailurePolicy', 'template'),
    },
    'pod': {'restartPolicy', 'terminationGracePeriodSeconds', 'containers', 'volumes'},
    'container': {'name', 'image', 'command', 'args', 'env', 'envFrom', 'resources', 'volumeMounts'},
}
NAME = r'[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'


def manifest(jobs: list[Job], **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ConfigMap and the Job of a plan."""
    text = kubernetes.text(planned.planned('A plan_1', jobs), kubernetes.Options('image', **options))
    config, made = yaml.safe_load_all(text)
    return config, made


def test_the_manifest_is_an_indexed_job_that_kubernetes_takes():
    config, made = manifest([job(f'j{k}', seconds=float(k)) for k in range(3)], at_once=2, queue='123', secret='store')
    assert set(config) == KNOWN['ConfigMap'] and (config['apiVersion'], config['kind']) == ('v1', 'ConfigMap')
    assert set(made) == KNOWN['Job'] and (made['apiVersion'], made['kind']) == ('batch/v1', 'Job')
    spec = made['spec']
    assert set(spec) == KNOWN['spec'] and spec['completionMode'] == 'Indexed'
    assert (spec['completions'], spec['parallelism']) == (3, 2) == (len(config['data']['commands'].splitlines()), 2)
    assert re.fullmatch(NAME, config['metadata']['name']) and config['metadata']['name'] == made['metadata']['name']
    assert made['metadata']['labels']['kueue.x-k8s.io/queue-name'] == '123'
    assert all(isinstance(v, str) for v in made['metadata']['annotations'].values())
    pod = spec['template']['spec']
    (container,) = pod['containers']
    assert set(pod) == KNOWN['pod'] and set(container) == KNOWN['container']
    assert pod['restartPolicy'] == 'Never'  # else podFailurePolicy is refused
    assert all(isinstance(e['value'], str) for e in container['env'])
    assert all(isinstance(v, str) for part in container['resources'].values() for v in part.values())
    assert {m['name'] for m in container['volumeMounts']} == {v['name'] for v in pod['volumes']}
    assert pod['volumes'][0]['configMap']['name'] == config['metadata']['name']
    rules = [(r['action'], r.get('onExitCodes', {}).get('values')) for r in spec['podFailurePolicy']['rules']]
    assert rules == [('Ignore', None), ('Ignore', [75]), ('FailIndex', [1, 2])]  # the first that fits counts
    assert spec['podReplacementPolicy'] == 'Failed'  # never two pods of one cell


def test_a_plan_without_wishes_has_none_in_its_manifest():
    _, made = manifest([job('a')], accelerator='')
    (container,) = made['spec']['template']['spec']['containers']
    assert 'annotations' not in made['metadata'] and 'envFrom' not in container
    assert container['resources'] == {'requests': {'cpu': '4'}, 'limits': {}}


def test_memory_is_asked_for_and_not_limited():
    _, made = manifest([job('a', memory=5 << 30)], accelerator='')
    (container,) = made['spec']['template']['spec']['containers']
    assert container['resources'] == {'requests': {'cpu': '4', 'memory': '5Gi'}, 'limits': {}}


def test_other_commands_are_other_objects():
    """A ConfigMap and a Job cannot be changed: of the same names the old commands would run."""
    names = []
    for jobs in ([job('a', '--cell=1')], [job('a', '--cell=1')], [job('a', '--cell=2')]):
        config, made = manifest(jobs)
        names.append(config['metadata']['name'])
        assert made['metadata']['name'] == names[-1] and len(names[-1]) < 57, 'and pods add their number'
    assert names[0] == names[1] != names[2]


def test_a_pod_runs_the_line_of_its_index(shell, tmp_path):
    config, made = manifest(
        [job('a', "--cell=it's", seconds=2), job('b', '--cell=$HOME', '--do=2')], setup='export NPROC=8'
    )
    (tmp_path / 'commands').write_text(config['data']['commands'])
    (container,) = made['spec']['template']['spec']['containers']
    assert container['command'] == ['bash', '-c']
    (text,) = container['args']
    text = text.replace('/plan/', f'{tmp_path}/')
    for index, status in (('0', 0), ('1', 2), ('2', 2)):  # of the last there is no line
        env = {**shell, 'JOB_COMPLETION_INDEX': index}
        assert subprocess.run(['bash', '-c', text], cwd=tmp_path, env=env).returncode == status
    said = [one.replace('--workdir=s3://bucket/bench ', '') for one in lines(tmp_path / 'calls')]
    assert said == [
        "8 -m jbench.run --cell=it's --stage=prepare,train",
        '8 -m jbench.run --cell=$HOME --do=2 --stage=prepare,train',
    ]


def test_a_pod_hears_that_it_has_to_stop(shell, tmp_path):
    """The command takes the place of the shell: Kubernetes tells the first process alone."""
    config, made = manifest([job('a', '--do=wait')])
    (tmp_path / 'commands').write_text(config['data']['commands'])
    (text,) = made['spec']['template']['spec']['containers'][0]['args']
    process = subprocess.Popen(['bash', '-c', text.replace('/plan/', f'{tmp_path}/')], cwd=tmp_path, env=shell)
    appears(tmp_path / 'ready', process)
    process.terminate()
    assert process.wait(20) == 75


def test_more_commands_than_a_config_map_holds_are_refused(ask, tmp_path):
    jobs = [job(f'j{k}', f'--cell={"x" * 1000}')._asdict() | FACTS for k in range(1100)]
    (tmp_path / 'large.json').write_text(json.dumps({**json.loads(PLAN.read_text()), 'jobs': jobs}))
    status, _, err = ask('kubernetes', f'--plan={tmp_path}/large.json', '--image=x', '--everything')
    assert status == 2 and '1100 commands of ' in err and 'holds 1000000: make several plans' in err


# ---- SkyPilot ----


def of_sky(jobs: list[Job], **options: Any) -> dict[str, Any]:
    """The file of a plan."""
    return yaml.safe_load(skypilot.text(planned.planned('x', jobs), skypilot.Options(**options)))


def test_the_file_of_skypilot_is_one_task():
    made = of_sky([job('a', memory=5 << 30)], image='me/jbench', volumes=(('v', '/mnt'),), setup='a\nb')
    assert set(made) == {'name', 'resources', 'volumes', 'envs', 'setup', 'run'}
    resources = {'accelerators': 'L4:1', 'use_spot': True, 'cpus': '4+', 'memory': '5+', 'image_id': 'docker:me/jbench'}
    assert made['resources'] == resources and made['envs'] == {'RANK': '0', 'MACHINES': '1'}
    assert made['volumes'] == {'/mnt': 'v'} and made['setup'] == 'a\nb\n'
    assert set(of_sky([job('a')], accelerator='')['resources']) == {'use_spot', 'cpus'}


@each(
    'machine, does, ran, status',
    [
        (('0', '1'), ('0', '0', '0', '0'), [0, 1, 2, 3], 0),
        (('0', '3'), ('0', '0', '0', '0'), [0, 3], 0),
        (('2', '3'), ('0', '0', '0', '0'), [2], 0),
        (('5', '6'), ('0', '0', '0', '0'), [], 0),
        (('0', '1'), ('1', '2', '0', '1'), [0, 1, 2, 3], 2),  # what fails does not stop the others
        (('0', '1'), ('0', '75', '0', '0'), [0, 1], 75),  # told to stop
    ],
)
def test_a_machine_runs_its_share(machine, does, ran, status, shell, tmp_path):
    (tmp_path / 'calls').unlink(missing_ok=True)
    jobs = [job(f'j{k}', f'--cell={k} $HOME', f'--do={does[k]}', seconds=float(-k)) for k in range(4)]
    env = {**shell, 'RANK': machine[0], 'MACHINES': machine[1]}
    done = subprocess.run(['bash', '-c', of_sky(jobs)['run']], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    assert done.returncode == status
    assert [int(re.search(r'--cell=(\d)', one)[1]) for one in lines(tmp_path / 'calls')] == ran


def test_memory_is_in_the_words_of_each_engine():
    jobs = [job('a', memory=(5 << 30) + 1)]
    for asked, n in (('', 6), ('16G', 16), ('16Gi', 16), ('16GB', 16)):
        assert f' --mem={n}G ' in slurm.text(planned.planned('x', jobs), slurm.Options(memory=asked))
        container = manifest(jobs, memory=asked)[1]['spec']['template']['spec']['containers'][0]
        assert container['resources']['requests']['memory'] == f'{n}Gi'
        assert of_sky(jobs, memory=asked)['resources']['memory'] == f'{n}+'


def test_stores_are_seen_everywhere():
    stored = Job('a', 'a', ('--workdir=gs://b/p', '--data_dir=s3://d', '--weights=none', '--stage=prepare,train'))
    of_sky([stored])
    manifest([stored])
