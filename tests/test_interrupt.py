"""The whole command, stopped by signals and killed: what was done is kept, and the end is the same, bit for bit."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SEED = 20
COMMAND = [
    sys.executable,
    '-m',
    'jbench.run',
    '--task=p3',
    '--model=eegnet',
    '--seeds=33',
    '--set=recipe.max_epochs=25',
    '--set=recipe.patience=25',
    '--format=json',
]
TIMES = ('timings', 'memory', 'resumes', 'sha256')  # what may differ between an undisturbed run and a resumed one


def start(workdir: Path) -> subprocess.Popen:
    env = {k: v for k, v in os.environ.items() if not k.startswith(('JBENCH', 'JAX_'))} | {'NPROC': '2'}
    return subprocess.Popen(
        [*COMMAND, f'--workdir={workdir}'],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )


def finish(process: subprocess.Popen) -> tuple[int, str]:
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def outcome(workdir: Path) -> tuple[bytes, dict]:
    """Predictions as bytes, and the result without its timings."""
    (path,) = workdir.glob('results/*/*/*/*/seed33.json')
    result = json.loads(path.read_text())
    return path.with_suffix('.npz').read_bytes(), {k: v for k, v in result.items() if k not in TIMES}


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
    """One run without disturbance, and its work folder."""
    workdir = tmp_path_factory.mktemp('undisturbed')
    status, err = finish(start(workdir))
    assert status == 0, err
    return workdir


def again(undisturbed: Path, workdir: Path) -> Path:
    """A work folder with the same compiled programs, and nothing else."""
    shutil.copytree(undisturbed / 'xla', workdir / 'xla')
    return workdir


def wait_for(process: subprocess.Popen, word: str) -> None:
    """Read the log until a line holds a word."""
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError(f'{word!r} never came; exit status {process.wait()}')


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_training_saves_and_a_rerun_ends_alike(undisturbed, tmp_path, number):
    workdir = again(undisturbed, tmp_path)
    shutil.copytree(undisturbed / 'prepared', workdir / 'prepared')
    process = start(workdir)
    wait_for(process, 'seed 33: 1/25')
    process.send_signal(number)
    status, err = finish(process)
    assert status == 75, err
    assert 'goes on' in err
    assert 'Traceback' not in err
    assert list(workdir.glob('checkpoints/*/seed33/*/sha256.json'))
    status, err = finish(start(workdir))
    assert status == 0, err
    assert outcome(workdir) == outcome(undisturbed)
    assert not list(workdir.glob('checkpoints/*/seed33')), 'a finished seed leaves no checkpoint'


def test_a_signal_while_preparing_keeps_what_is_done(undisturbed, tmp_path):
    workdir = again(undisturbed, tmp_path)
    process = start(workdir)
    wait_for(process, 'prepare SimulatedP3: 0/')
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    status, err = finish(process)
    assert status == 75, err
    assert 'Traceback' not in err
    status, err = finish(start(workdir))
    assert status == 0, err
    assert outcome(workdir) == outcome(undisturbed)


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_alike(undisturbed, tmp_path):
    workdir, rng = again(undisturbed, tmp_path), random.Random(SEED)
    for _ in range(3):
        process = start(workdir)
        time.sleep(rng.uniform(2.0, 12.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    status, err = finish(start(workdir))
    assert status == 0, err
    assert outcome(workdir) == outcome(undisturbed)
    status, err = finish(start(workdir))
    assert status == 0, err
    assert 'train' not in err, 'a finished seed is skipped'
