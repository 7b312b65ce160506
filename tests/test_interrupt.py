"""The whole command, stopped by signals, killed, on full disks and beside itself: what was done is kept, and the end is
the same, bit for bit."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import run_whole
from families import often
from run_whole import At, finish, outcome, start

SEED = 20
CAN_MOUNT = shutil.which('unshare') and not subprocess.run(['unshare', '-rm', 'true'], capture_output=True).returncode
SAVES, FULL = 0.0, 'No space left on device; free space there'  # a save after every chunk


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
    """One run without disturbance, and its work folder."""
    workdir = tmp_path_factory.mktemp('undisturbed')
    status, err = finish(start(workdir))
    assert status == 0, err
    return workdir


@pytest.fixture
def workdir(undisturbed, tmp_path):
    """A work folder with the same compiled programs, and nothing else."""
    shutil.copytree(undisturbed / 'xla', tmp_path / 'xla')
    return tmp_path


def whole(workdir: Path) -> None:
    """Nothing that is half done counts as done, or lies about."""
    for path in workdir.rglob('seed33.json'):
        assert path.with_suffix('.npz').exists() and path.with_suffix('.safetensors').exists()
    for path in workdir.glob('prepared/*/*/manifest.json'):
        assert len(list(path.parent.iterdir())) == run_whole.N_SUBJECTS + 4


STOPS = {  # in the order in which a run comes by; each goes on where the one before was stopped
    'while recordings are prepared': At('jbench.progress:Progress.update', n=2),
    'while a network compiles': At('jbench.train.parallel:compile_programs', number=signal.SIGINT),
    'killed before the manifest': At('jbench.files:write_atomic', 'manifest.json', number=signal.SIGKILL),
    'with nobody who reads its log': At('jbench.train.fit:shard', n=2, number=signal.SIGINT),
    'in an epoch': At('jbench.train.fit:shard', n=2, number=signal.SIGINT),
    'in a validation': At('jbench.train.fit:predict', n=2),
    'in a save': At('jbench.files:sha256_file', '/checkpoints/', n=9),
    'killed in a save': At('jbench.files:sha256_file', '/checkpoints/', n=9, number=signal.SIGKILL),
    'killed before a save counts': At('jbench.files:write_atomic', 'sha256.json', n=2, number=signal.SIGKILL),
    'killed before old saves go': At('shutil:rmtree', '/checkpoints/', n=2, number=signal.SIGKILL),
    'in the test': At('jbench.train.parallel:predict'),
    'killed between predictions and weights': At('jbench.files:write_atomic', 'seed33.', n=2, number=signal.SIGKILL),
    'killed between weights and result': At('jbench.files:write_atomic', 'seed33.', n=3, number=signal.SIGKILL),
    'killed before the checkpoint goes': At('jbench.train.checkpoint:remove', number=signal.SIGKILL),
}


SOME = (  # one of most stages, for `.ci/run`
    'while recordings are prepared',
    'with nobody who reads its log',
    'in a save',
    'killed in a save',
    'in the test',
    'killed between weights and result',
    'killed before the checkpoint goes',
)


@pytest.mark.parametrize('places', often((tuple(STOPS), SOME), (SOME,)), ids=('all', 'some'))
def test_stopped_anywhere_it_goes_on_and_ends_alike(undisturbed, workdir, places):
    for place in places:
        at = STOPS[place]
        process = start(workdir, at=at, save_every=SAVES)
        if place == 'with nobody who reads its log':
            process.stderr.close()  # as Ctrl-C ends `| tee log` too
        status, err = finish(process)
        assert status == (-signal.SIGKILL if at.number == signal.SIGKILL else 75), f'{place}: {err}'
        assert ('goes on' in err) == (status == 75) or not err, f'{place}: {err}'
        assert 'Traceback' not in err, f'{place}: {err}'
        whole(workdir)
    status, err = finish(start(workdir))
    assert status == 0, err
    assert 'finished before' in err, 'the last kill came after the result'
    assert outcome(workdir) == outcome(undisturbed)
    (path,) = workdir.rglob('seed33.json')
    assert len(json.loads(path.read_text())['resumed_at']) >= len(places) // 2, 'it went on, it did not start again'


DISKS = {  # too small for what the stage writes there
    'prepared': ({'prepared': '300k'}, r'/prepared/'),
    'checkpoint': ({'checkpoints': '1000k', 'xla': '100k'}, r'/checkpoints/'),
    'result': ({'results': '4k'}, r'/results/.*seed33\.npz'),
    'weights': ({'results': '12k'}, r'/results/.*seed33\.safetensors'),
}


@pytest.mark.skipif(not CAN_MOUNT, reason='no small disk can be mounted here')
@pytest.mark.slow
@pytest.mark.parametrize('stages', [tuple(DISKS)], ids=('all',))
def test_a_full_disk_is_named_and_a_rerun_with_space_ends_alike(undisturbed, workdir, stages):
    for stage, (disks, path) in ((s, DISKS[s]) for s in stages):
        status, err = finish(start(workdir, disks=disks, save_every=SAVES))
        assert status == 2, f'{stage}: {err}'
        (line,) = (line for line in err.splitlines() if line.startswith('jbench: cannot write'))
        assert re.search(path, line) and 'bytes needed' in line and FULL in line, f'{stage}: {err}'
        assert 'Traceback' not in err and 'Warning' not in err, f'{stage}: {err}'
        assert err.count('compiled programs are not kept') == ('xla' in disks), f'{stage}: {err}'
        whole(workdir)
    status, err = finish(start(workdir))
    assert status == 0, err
    assert outcome(workdir) == outcome(undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize('n', [8])
def test_processes_at_once_give_one_result(undisturbed, workdir, n):
    flags = ('--task=p3', '--model=dummy', '--seeds=33', '--format=json')
    runs = [start(workdir, *flags) for _ in range(n)]
    said = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0] * n, said
    assert len({out for out, _ in said}) == 1, 'all show the one result'
    assert sum('prepare SimulatedP3: 6/6' in err for _, err in said) == 1, 'one prepares, the others wait'
    assert sum('dummy: finished before' in err for _, err in said) == n - 1, 'one works, the others wait'
    (before, after) = (next(d.glob('prepared/*/*/manifest.json')).read_bytes() for d in (undisturbed, workdir))
    assert before == after
    for path in (workdir, *workdir.rglob('*')):  # no clock decides whether something is done
        os.utime(path, (4e9, 4e9))
    status, err = finish(start(workdir, *flags))
    assert (status, 'dummy: finished before' in err) == (0, True), err


@pytest.mark.slow
def test_what_was_trained_answers_in_another_process_with_the_same_bits(undisturbed):
    (path,) = undisturbed.glob('results/*/*/*/*/seed33.json')
    code = (
        'import sys, jbench; from jbench import results; model = jbench.load_model(sys.argv[1]); '
        "print((model.predict() == results.load_predictions(sys.argv[1])['outputs']).all())"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith('JAX_')}
    env |= {'NPROC': '2', 'PYTHONPATH': str(run_whole.ROOT)}
    done = subprocess.run([sys.executable, '-c', code, str(path)], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout == 'True\n', done.stderr


@pytest.mark.long
def test_killed_at_random_moments_it_ends_alike(data_dir, tmp_path):
    """From the first byte of the download to the table; `benchmarks/kill_sweep.py` does so more often."""
    program = [sys.executable, str(run_whole.ROOT / 'benchmarks' / 'kill_sweep.py'), f'--data_dir={data_dir}']
    done = subprocess.run([*program, '--kills=3', f'--seed={SEED}'], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '3 of 3' in done.stdout
