"""Jobs on Dask clusters: what is refused, what jobs ask of workers, and one path for all; workers are threads."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stores
from places import ROOT

from jbench import files
from jbench.grid import cluster, engine, futures, worker
from jbench.grid.engine import Grid
from jbench.grid.futures import Futures, Offer, resources
from jbench.grid.job import Job
from jbench.plan import user_files
from jbench.progress import Progress
from jbench.spec.errors import RequestError

SHORT = ('--version',)


def file_of(folder: Path, text: str) -> str:
    """A file for --cluster."""
    path = folder / 'mine.py'
    path.write_text(text)
    return str(path)


THREADS = """
def get():
    from distributed import LocalCluster

    return LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, resources={})
"""


# ---- what can be wrong ----


@pytest.mark.parametrize(
    ('address', 'reason'),
    [
        ('local:', 'expected local:N, N workers on this machine, as local:4'),
        ('local:0', 'expected local:N'),
        ('local:two', 'expected local:N'),
        ('absent.py', 'no such file'),
    ],
)
def test_what_names_no_cluster(address, reason, grid):
    with pytest.raises(RequestError) as error:
        cluster.run([Job('a', 'a', SHORT)], address, grid)
    assert f'--cluster={address}' in str(error.value) and reason in str(error.value)


@pytest.mark.parametrize(
    ('address', 'reason'),
    [
        ('127.0.0.1', 'missing port number in address'),
        ('tcp://', 'missing port number'),
        ('1:2:3', 'ipv6 needs brackets'),
        ('tcp://127.0.0.1:port', 'its port is no number'),
        ('http://127.0.0.1:1', "unknown address scheme 'http'"),
        ('tls://127.0.0.1:1', ''),
        ('a..b:8786', ''),
        ('nowhere:8786', ''),
        ('127.0.0.1:1', ''),
    ],
)
def test_a_client_that_does_not_come_up_is_closed(address, reason, grid, monkeypatch):
    """Dask leaves some half open: when one is freed while another starts, both wait for one lock for ever."""
    from distributed import Client

    monkeypatch.setattr(cluster, 'ANSWER', 0.3)
    made = []
    monkeypatch.setattr(Client, '__new__', lambda cls: made.append(object.__new__(cls)) or made[-1])
    with pytest.raises(RequestError) as error:
        cluster.run([Job('a', 'a', SHORT)], address, grid)
    said = str(error.value)
    assert f'--cluster={address}: no Dask scheduler answers there (' in said and reason in said
    assert [client.status for client in made] == ['closed']


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('def take(): pass', 'expected a function get() that returns a Dask cluster'),
        ('get = 3', 'expected a function get()'),
        ('def get(): return 3', 'get() returns 3, which is no Dask cluster'),
        ('def get(): return 1 / 0', 'get(): ZeroDivisionError: division by zero'),
        ('def get(): raise SystemExit(3)', 'get(): SystemExit'),
        ('def get(): import no_such_package', "get(): ModuleNotFoundError: No module named 'no_such_package'"),
        ('1 / 0', 'line 1: ZeroDivisionError'),
    ],
)
def test_a_file_that_gives_no_cluster(text, reason, grid, tmp_path):
    with pytest.raises(RequestError) as error:
        cluster.run([Job('a', 'a', SHORT)], file_of(tmp_path, text), grid)
    assert reason in str(error.value)


def test_without_dask_the_extra_is_named(grid, monkeypatch):
    monkeypatch.setitem(sys.modules, 'distributed', None)
    with pytest.raises(RequestError, match=r"needs distributed, .*pip install 'jbench\[cluster\]'"):
        cluster.run([Job('a', 'a', SHORT)], 'local:2', grid)


def test_devices_that_no_worker_has():
    jobs = [Job('a', 'a', SHORT), Job('b', 'b', SHORT, devices=4)]
    with pytest.raises(RequestError, match='--device=gpu: no worker offers the resource GPU; start workers with it'):
        cluster.check_resources(jobs, Offer(2, 0, 0), 'x:1', 'gpu')
    with pytest.raises(RequestError, match='a job needs 4 GPUs, and no worker offers more than 2'):
        cluster.check_resources(jobs, Offer(2, 2, 0), 'x:1', None)
    cluster.check_resources(jobs[:1], Offer(2, 0, 0), 'x:1', None)
    with pytest.raises(RequestError, match='a job needs 4 GPUs, and no worker offers more than 0'):
        cluster.check_resources(jobs, Offer(2, 0, 0), 'x:1', None)
    cluster.check_resources(jobs, Offer(2, 4, 0), 'x:1', 'gpu')


def test_a_job_asks_for_what_workers_offer_at_all():
    job = Job('a', 'a', SHORT, memory=5 << 30)
    assert resources(job, Offer(2, 0, 0)) == {}
    assert resources(job, Offer(2, 2, 0)) == {'GPU': 1}
    assert resources(job, Offer(2, 2, 8 << 30)) == {'GPU': 1, 'MEMORY': 5 << 30}
    assert resources(job, Offer(2, 0, 3 << 30)) == {'MEMORY': 3 << 30}, 'else it would wait for ever'
    assert resources(job._replace(devices=0), Offer(2, 2, 0)) == {}, 'it prepares'


def test_workers_that_share_their_memory_are_given_no_more_than_it_holds(tmp_path):
    place = Futures.__new__(Futures)
    place._offer, place._futures, place._jobs = Offer(2, 0, 0, shared=100), {}, {}
    large, small = (Job(name, name, SHORT, memory=n) for name, n in (('large', 1000), ('small', 60)))
    assert place.has_room(large), 'nothing else is there'
    place._jobs = {'a': (small, tmp_path)}
    assert not place.has_room(small) and place.has_room(small._replace(memory=40))
    place._offer = Offer(2, 0, 0)
    assert place.has_room(large), 'each worker has its own'


def test_what_dask_sets_is_taken_back_and_no_more(monkeypatch):
    for name, value in {'OMP_NUM_THREADS': '1', 'MKL_NUM_THREADS': '4', 'PYTHONHASHSEED': '6640'}.items():
        monkeypatch.setenv(name, value)
    worker.undo_environment()
    assert 'OMP_NUM_THREADS' not in os.environ and 'PYTHONHASHSEED' not in os.environ
    assert os.environ['MKL_NUM_THREADS'] == '4'


SCRIPTS = {  # configs/NAME_cluster.py -> lines of its job script
    'slurm': (
        *('#SBATCH -p gpu', '#SBATCH --cpus-per-task=8', '#SBATCH --mem=60G', '#SBATCH -t 24:00:00'),
        '#SBATCH --gres=gpu:1',
    ),
    'pbs': ('#PBS -q gpu', '#PBS -l select=1:ncpus=8:ngpus=1:mem=64gb', '#PBS -l walltime=24:00:00'),
    'sge': ('#$ -q gpu.q', '#$ -l gpu=1,mem_free=8G', '#$ -l h_rt=24:00:00', '#$ -pe smp 8'),
    'lsf': (
        *('#BSUB -q gpu', '#BSUB -n 8', '#BSUB -R "span[hosts=1]"', '#BSUB -M 64000000', '#BSUB -W 24:00'),
        '#BSUB -gpu "num=1"',
    ),
    'htcondor': ('RequestCpus = 8', 'request_gpus = 1', 'MY.DaskWorkerDisk = 10000000000'),
}


@pytest.mark.parametrize('name', SCRIPTS)
def test_the_example_for_a_queue_asks_for_what_a_cell_needs(name, monkeypatch, tmp_path):
    from dask.utils import parse_timedelta

    monkeypatch.chdir(tmp_path)  # it makes a folder of logs
    monkeypatch.setenv('LSF_ENVDIR', str(tmp_path))  # without a file of LSF, memory is in kB
    made = user_files.names_in('--cluster', str(ROOT / 'configs' / f'{name}_cluster.py'))['get']()
    try:
        script = made.job_script()
    finally:
        made.close()
    for line in SCRIPTS[name]:
        assert f'{line}\n' in script
    assert re.search(r'--resources GPU=1,MEMORY=64e9\b', script) and '--nthreads 1 ' in script
    assert '--death-timeout 60' in script
    assert '--gres' not in script or name == 'slurm'
    if name in ('pbs', 'sge', 'lsf'):
        assert parse_timedelta(re.search(r'--lifetime (\S+)', script)[1]) == 24 * 3600 - 600


@pytest.mark.slow
def test_the_example_for_kubernetes_gives_gpus_and_the_volume_to_workers():
    """And the schemas of Kubernetes know every field of its pods."""
    pytest.importorskip('dask_kubernetes', reason='no dask-kubernetes here: pip install dask-kubernetes')
    validate = pytest.importorskip('kubernetes_validate', reason='pip install kubernetes-validate').validate
    made = user_files.names_in('--cluster', str(ROOT / 'configs' / 'kubernetes_cluster.py'))['spec']()
    pods = [made['spec'][part]['spec'] for part in ('worker', 'scheduler')]
    for pod in pods:
        validate({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'x'}, 'spec': pod}, '1.29', strict=True)
    limits = [pod['containers'][0]['resources'].get('limits') for pod in pods]
    assert limits == [{'nvidia.com/gpu': '1'}, None]
    (volume,), (mount,) = pods[0]['volumes'], pods[0]['containers'][0]['volumeMounts']
    assert (volume['name'], volume['persistentVolumeClaim']) == (mount['name'], {'claimName': 'bench'})
    assert mount['mountPath'] == '/mnt'
    words = ' '.join(pods[0]['containers'][0]['args'])
    assert f'--nthreads 1 --resources GPU=1,MEMORY={64 << 30} --name $(DASK_WORKER_NAME)' in words


# ---- one path for all clusters, here with workers that are threads ----


def test_jobs_on_a_cluster_of_a_file(grid, tmp_path, capsys):
    jobs = [Job('good', 'good', SHORT), Job('bad', 'bad', ('--task=p33',)), Job('after', 'after', SHORT, 'bad')]
    found = cluster.run(jobs, file_of(tmp_path, THREADS), grid)
    assert found == ({'good': 0, 'bad': 2, 'after': 2}, False)
    assert (grid.workdir / 'logs' / 'good.log').read_text().startswith('jbench ')
    err = capsys.readouterr().err
    assert "unknown task 'p33'" in err and 'is shown at' not in err, 'it has no dashboard'
    assert [p.name for p in grid.workdir.glob('logs/.*')] == []


def test_workers_need_a_store_alone(tmp_path, monkeypatch):
    """Whether they see it is asked there; the log of a job that fails is put there."""
    with stores.in_memory(tmp_path) as machines:
        work = machines.on('a')
        grid = Grid(work, Progress(), lambda: False)
        found = cluster.run(
            [Job('good', 'good', SHORT), Job('bad', 'bad', ('--task=p33',))], file_of(tmp_path, THREADS), grid
        )
        assert found.statuses == {'good': 0, 'bad': 2} and (work / 'logs' / 'good.log').exists()
        assert machines.names() == ['errors/bad.log', 'logs/bad.log']
        monkeypatch.setattr(worker, '_sees', lambda path: False)
        with pytest.raises(RequestError, match=f'does not see {machines.url}; its environment must name the same'):
            cluster.run([Job('good', 'good', SHORT)], file_of(tmp_path, THREADS), grid)
        assert machines.names('logs') == ['logs/bad.log']


@pytest.mark.parametrize(
    ('page', 'shown'),
    [(b'<title>Dask: Status</title>', True), (b'<p>Dask needs bokeh for the dashboard.</p>', False), (None, False)],
)
def test_a_dashboard_is_named_where_there_is_one(page, shown, monkeypatch):
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if page is None else 200)
            self.end_headers()
            self.wfile.write(page or b'')

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(('127.0.0.1', 0), Page) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        link = f'http://127.0.0.1:{server.server_port}/status'
        assert cluster._dashboard(SimpleNamespace(dashboard_link=link)) == (link if shown else '')
        server.shutdown()
    for none in (None, '', link):
        assert cluster._dashboard(SimpleNamespace(dashboard_link=none)) == ''


def test_a_job_that_expects_more_memory_than_there_is_runs_and_is_told(grid, tmp_path, capsys):
    offered = file_of(tmp_path, THREADS.replace('resources={}', "resources={'MEMORY': 2e9}"))
    jobs = [Job('a', 'job a', SHORT, memory=3 * 10**9), Job('b', 'job b', SHORT, memory=10**9)]
    assert cluster.run(jobs, offered, grid).statuses == {'a': 0, 'b': 0}
    err = capsys.readouterr().err
    assert 'job a is expected to take 3.0 GB, more than the 2.0 GB there are; it runs with no other job' in err
    assert 'job b is expected' not in err


def test_a_gpu_that_no_worker_has_is_told_before_anything_runs(grid, tmp_path):
    job = Job('a', 'a', (*SHORT, '--device=gpu'))
    with pytest.raises(RequestError, match='no worker offers the resource GPU'):
        cluster.run([job], file_of(tmp_path, THREADS), grid)
    assert not (grid.workdir / 'logs' / 'a.log').exists()
    offered = THREADS.replace('resources={}', "resources={'GPU': 1}")
    assert cluster.run([job], file_of(tmp_path, offered), grid).statuses == {'a': 0}
    with pytest.raises(RequestError, match='a job needs 2 GPUs, and no worker offers more than 1'):
        cluster.run([job._replace(devices=2)], file_of(tmp_path, offered), grid)


@pytest.mark.parametrize(('memory', 'at_once'), [(60, 1), (1000, 1), (40, 2)])
def test_a_worker_runs_as_many_cells_as_the_memory_that_it_offers_holds(memory, at_once, grid, tmp_path, monkeypatch):
    """It has two threads; of a cell that is expected to take more than it has, one runs."""
    running = files.make_dir(tmp_path / 'running')

    def work(job: Job, *more: Any) -> int:
        (running / job.key).touch()
        time.sleep(0.2)
        with open(tmp_path / 'seen', 'a') as file:
            file.write(f'{len([*running.iterdir()])}\n')
        (running / job.key).unlink()
        return 0

    monkeypatch.setattr(worker, 'work', work)
    jobs = [Job(name, name, (), memory=memory) for name in 'abcd']
    offered = THREADS.replace('resources={}', "resources={'MEMORY': 100}")
    assert set(cluster.run(jobs, file_of(tmp_path, offered), grid).statuses.values()) == {0}
    assert max(map(int, (tmp_path / 'seen').read_text().split())) == at_once


def test_a_log_that_cannot_be_written_fails_its_job_alone(grid, tmp_path, capsys):
    (grid.workdir / 'logs' / 'bad.log').mkdir(parents=True)
    found = cluster.run([Job('bad', 'bad', SHORT), Job('good', 'good', SHORT)], file_of(tmp_path, THREADS), grid)
    assert found.statuses == {'bad': 2, 'good': 0}
    assert 'jbench: bad: cannot write' in capsys.readouterr().err


def test_what_a_queue_stops_begins_again_and_not_for_ever(grid, tmp_path, monkeypatch):
    begun = tmp_path / 'begun'
    monkeypatch.setattr(futures, 'AGAIN', 2)

    def taken_away(job: Job, *more: Any) -> int:
        with open(begun, 'a') as file:
            file.write(f'{job.key}\n')
        return 75 if job.key == 'often' or begun.read_text().split().count(job.key) == 1 else 0

    monkeypatch.setattr(worker, 'work', taken_away)
    found = cluster.run([Job('once', 'once', ()), Job('often', 'often', ())], file_of(tmp_path, THREADS), grid)
    assert found == ({'once': 0, 'often': 75}, True)
    assert sorted(begun.read_text().split()) == ['often'] * 3 + ['once'] * 2


def test_a_further_turn_goes_on_from_what_the_first_has_saved(grid, tmp_path, monkeypatch):
    begun = tmp_path / 'begun'

    def taken_away(job: Job, *more: Any) -> int:
        with open(begun, 'a') as file:
            file.write(f'{job.argv[0]}\n')
        return 75 if begun.read_text().count('\n') == 1 else 0

    monkeypatch.setattr(worker, 'work', taken_away)
    cluster.run([Job('a', 'a', ('--if_exists=overwrite',))], file_of(tmp_path, THREADS), grid)
    assert begun.read_text().split() == ['--if_exists=overwrite', '--if_exists=resume']


def test_a_job_that_kills_its_workers_begins_once_more(grid, tmp_path, monkeypatch, capsys):
    from distributed.scheduler import KilledWorker

    begun = tmp_path / 'begun'

    def kills(job: Job, *more: Any) -> int:
        with open(begun, 'a') as file:
            file.write('begun\n')
        raise KilledWorker(job.key, SimpleNamespace(address='tcp://w:1'), 3)

    monkeypatch.setattr(worker, 'work', kills)
    found = cluster.run([Job('killer', 'killer', ())], file_of(tmp_path, THREADS), grid)
    assert found.statuses == {'killer': 1} and begun.read_text().split() == ['begun'] * 2
    assert 'killer: 8 workers died while it ran' in capsys.readouterr().err


def test_the_longest_begins_first_and_few_futures_are_held(grid, tmp_path, monkeypatch):
    begun = tmp_path / 'begun'

    def note(job: Job, *more: Any) -> int:
        with open(begun, 'a') as file:
            file.write(f'{job.key}\n')
        return 0

    monkeypatch.setattr(worker, 'work', note)
    one = file_of(tmp_path, THREADS.replace('threads_per_worker=2', 'threads_per_worker=1'))
    jobs = [Job(str(k), str(k), (), seconds=k % 7) for k in range(40)]
    held = []
    with cluster.place(one, jobs, grid) as place:
        start = place.start
        monkeypatch.setattr(place, 'start', lambda job, log: (start(job, log), held.append(place.count()))[0])
        assert set(engine.run(jobs, place, grid).statuses.values()) == {0}
    assert max(held) == 4, 'twice the slots and two'
    assert begun.read_text().split() == [job.key for job in engine.ordered(jobs)]
