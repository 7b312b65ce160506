"""The same numbers on any number of devices and processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from families import often
from networks import NETWORKS
from places import ROOT
from quick import QUICK

SOME = ('eegnet', 'eegconformer')  # batch statistics, attention
SCRIPT = ROOT / 'tests' / 'helpers' / 'devices.py'


def free_port() -> int:
    with socket.socket() as s:
        s.bind(('localhost', 0))
        return s.getsockname()[1]


def environment(n_devices: int, **more: str) -> dict[str, str]:
    """n simulated devices; the pool of threads holds one for each, or collectives could wait for ever. Programs are
    compiled as in other tests."""
    flags = f'--xla_force_host_platform_device_count={n_devices} {QUICK}'
    return {**os.environ, 'XLA_FLAGS': flags, 'NPROC': '8', 'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT), **more}


def processes(n: int, port: int) -> list[dict[str, str]]:
    """What tells each of n processes who it is."""
    told = {'JAX_COORDINATOR_ADDRESS': f'localhost:{port}', 'JAX_NUM_PROCESSES': str(n)}
    return [{**told, 'JAX_PROCESS_ID': str(i)} for i in range(n)]


def computed(folder: Path, alone: tuple[int, ...], two: tuple[int, ...]) -> dict[str, Any]:
    """What one process, and two beside each other, compute with some numbers of devices each."""
    small.prepared(folder)
    found = {}
    for n in alone:
        out = folder / f'{n}.npz'
        subprocess.run([sys.executable, SCRIPT, folder, out], check=True, env=environment(n), timeout=300)
        found[f'{n} devices'] = np.load(out)
    for n in two:
        out = folder / f'2x{n}.npz'
        command = [sys.executable, SCRIPT, folder, out, 'distributed']
        started = [subprocess.Popen(command, env=environment(n, **who)) for who in processes(2, free_port())]
        try:
            assert [p.wait(300) for p in started] == [0, 0]
        finally:
            for p in started:
                p.kill()
        found[f'2 processes x {n}'] = np.load(out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(('alone', 'two'), [((1, 4), (2,))])
def test_devices_and_processes_agree(alone, two, tmp_path):
    """One and four devices of one process, and two processes with two each."""
    runs = computed(tmp_path, alone, two)
    one = runs['1 devices']
    assert int(one['steps']) >= 50
    asked = {f'{n} devices': (1, n) for n in alone} | {f'2 processes x {n}': (2, 2 * n) for n in two}
    assert {k: (int(r['processes']), int(r['devices'])) for k, r in runs.items()} == asked
    for name, r in runs.items():
        np.testing.assert_array_equal(r['ids'], one['ids'], err_msg=f'{name}: the order of windows')
        assert len(r['outputs']) == int(r['n'])
        np.testing.assert_allclose(r['losses'], one['losses'], rtol=1e-5, err_msg=f'{name}: loss, gradient norm')
        for part in ('params', 'batch_stats', 'outputs'):
            np.testing.assert_allclose(r[part], one[part], rtol=1e-5, atol=1e-5, err_msg=f'{name}: {part}')


@pytest.mark.parametrize('names', often((tuple(NETWORKS), SOME), (SOME,)), ids=('every', 'some'))
def test_networks_agree(names, tmp_path):
    """Dropout, batch statistics and gradients of each, in float64, on one device and on four; losses of pretraining
    too, of which rows of other devices are candidates."""
    found = {}
    for n in (1, 4):
        env = environment(n, JAX_ENABLE_X64='1')
        out = tmp_path / f'{n}.npz'
        subprocess.run([sys.executable, SCRIPT, 'networks', out, ','.join(names)], check=True, env=env, timeout=600)
        found[n] = dict(np.load(out))
        assert found[n].pop('devices') == n
    assert {name.split('/')[0] for name in found[1]} == set(names)
    assert all(found[1][f'eegnet/{loss}/1/loss'] > 0.01 for loss in ('info_nce', 'next_window', 'reconstruction'))
    for name, value in found[1].items():
        np.testing.assert_allclose(found[4][name], value, rtol=1e-6, atol=1e-9, err_msg=name)


RUN = ['--task=p3', '--model=eegnet,dummy', '--seeds=33', '--set=recipe.max_epochs=9', '--set=recipe.patience=9']
MODELS = ('eegnet', 'dummy')


def whole(workdir: Path, n: int, *more: str) -> list[subprocess.Popen]:
    """The whole command as n processes."""
    command = [sys.executable, '-m', 'jbench.run', *RUN, f'--workdir={workdir}', *more]
    command += ['--distributed'] if n > 1 else []
    port = free_port()
    return [
        subprocess.Popen(command, env=environment(1, **who), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for who in (processes(n, port) if n > 1 else [{}])
    ]


def end(started: list[subprocess.Popen]) -> list[tuple[int, str, str]]:
    """Exit status, stdout and stderr of each."""
    try:
        texts = [p.communicate(timeout=300) for p in started]
    finally:
        for p in started:
            p.kill()
    return [(p.returncode, *t) for p, t in zip(started, texts, strict=True)]


def outcome(workdir: Path, model: str) -> tuple[dict, bytes]:
    (path,) = workdir.glob(f'results/*/*/{model}/*/seed33.json')
    return json.loads(path.read_text()), path.with_suffix('.npz').read_bytes()


@pytest.mark.slow
def test_the_whole_command_on_two_processes(tmp_path):
    """One result and one table, as from one process; interrupted, all stop together and go on to the same bits."""
    one, two, stopped = (tmp_path / name for name in ('one', 'two', 'stopped'))
    assert end(whole(one, 1))[0][0] == 0
    for other in (two, stopped):
        other.mkdir()
        (other / 'prepared').symlink_to(one / 'prepared')
    (status, out, err), (status_2, out_2, err_2) = end(whole(two, 2))
    assert (status, status_2) == (0, 0), err + err_2
    assert 'p3@2' in out and 'p3@2' not in out_2  # (gloo prints a line of its own on stdout)
    assert 'process 1' not in err_2, err_2
    for model in MODELS:
        (a, _), (b, _) = outcome(one, model), outcome(two, model)
        assert a['key'] == b['key'] and a['status'] == b['status'] == 'done'
    a, b = (outcome(w, 'eegnet')[0]['history'] for w in (one, two))
    np.testing.assert_allclose([h['train_loss'] for h in a[:3]], [h['train_loss'] for h in b[:3]], rtol=1e-4)

    started = whole(stopped, 2)
    for line in started[0].stderr:
        if 'seed 33: 1/9' in line:
            break
    began = time.monotonic()
    started[1].send_signal(signal.SIGTERM)  # one of them
    found = end(started)
    assert [status for status, _, _ in found] == [75, 75], found
    assert time.monotonic() - began < 30 and 'Traceback' not in found[0][2] + found[1][2]
    assert list(stopped.glob('checkpoints/*/seed33/*/sha256.json'))
    assert [status for status, _, _ in end(whole(stopped, 2))] == [0, 0]
    assert len(outcome(stopped, 'eegnet')[0]['resumed_at']) == 1
    assert outcome(stopped, 'eegnet')[1] == outcome(two, 'eegnet')[1]
    assert [status for status, _, _ in end(whole(two, 2))] == [0, 0], 'finished before'
    assert [status for status, _, _ in end(whole(two, 2, '--if_exists=fail'))] == [2, 2], 'refused by the first'


@pytest.fixture(scope='module')
def on_eight(tmp_path_factory):
    """A run on 8 devices, and its work folder; nobody told how many threads to take."""
    work = tmp_path_factory.mktemp('eight')
    env = {k: v for k, v in environment(8).items() if k != 'NPROC'}
    command = [sys.executable, '-m', 'jbench.run', '--task=p3', '--debug', '--seeds=33', f'--workdir={work}']
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=200), work


@pytest.mark.slow
def test_more_simulated_devices_than_cores_do_not_wait_for_each_other(on_eight):
    """8 is more than most machines of a test have."""
    found, _ = on_eight
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_a_batch_that_the_devices_cannot_share_is_refused(on_eight):
    _, work = on_eight
    command = [sys.executable, '-m', 'jbench.run', '--task=p3', '--debug', '--set=recipe.batch_size=62']
    command += [f'--workdir={work}']
    found = subprocess.run(command, env=environment(4), capture_output=True, text=True, timeout=200)
    assert found.returncode == 2, found.stderr
    assert 'recipe.batch_size: 62 cannot be split over 4 devices' in found.stderr


@pytest.mark.slow
def test_processes_that_find_nobody_say_so():
    command = [sys.executable, '-m', 'jbench.run', *RUN, '--distributed']
    found = subprocess.run(command, env=environment(1), capture_output=True, text=True, timeout=120)
    assert found.returncode == 2, found.stderr
    assert 'JAX_COORDINATOR_ADDRESS' in found.stderr and 'Traceback' not in found.stderr
