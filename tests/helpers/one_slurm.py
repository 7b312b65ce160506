"""A real Slurm of one node, of this user alone: controller, node and clients, without munge, accounting or cgroups."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

DAEMONS = ('slurmctld', 'slurmd')
# cred_expire: how long a job that was sent back waits before it may start, at least 5 s, else 120. config_overrides:
# more processors than the machine has. Devices of Gres: files that are there everywhere.
SETTINGS = """ClusterName=test SlurmctldHost={host}(127.0.0.1) SlurmctldPort={ports[0]} SlurmdPort={ports[1]}
SlurmUser={user} SlurmdUser={user} AuthType=auth/none CredType=cred/none AuthInfo=cred_expire=5
StateSaveLocation={folder}/state SlurmdSpoolDir={folder}/spool SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid SlurmctldLogFile={folder}/slurmctld.log SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid TaskPlugin=task/none JobAcctGatherType=jobacct_gather/none MpiDefault=none
AccountingStorageType=accounting_storage/none SelectType=select/cons_tres SelectTypeParameters=CR_CPU
SwitchType=switch/none ReturnToService=2 SlurmctldTimeout=10 SlurmdTimeout=10 InactiveLimit=0 KillWait=20
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=100000
MinJobAge=300 JobRequeue=1 SlurmdParameters=config_overrides GresTypes=gpu MaxArraySize=1001"""
NODE = """
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=64000 Gres=gpu:2 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=60 DefaultTime=10 State=UP
"""


class Slurm(NamedTuple):
    """One that runs: the environment in which its clients speak to it, and its settings."""

    env: Mapping[str, str]
    conf: Path

    def ask(self, *command: str) -> str:
        """What a client says. Raises: AssertionError where it refuses."""
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f'{command}: {done.stderr}'
        return done.stdout.strip()

    def fact(self, job: str, name: str) -> str:
        """One fact of a job, as `JobState`."""
        words = dict(w.split('=', 1) for w in self.ask('scontrol', 'show', 'job', job).split() if '=' in w)
        return words[name]

    def ended(self, *jobs: str, seconds: float = 120) -> dict[str, tuple[str, str]]:
        """State and exit status (STATUS:SIGNAL) of jobs that have ended, waited for."""
        wait(
            lambda: not self.ask('squeue', '--noheader', '--array', f'--jobs={",".join(jobs)}'), seconds, ','.join(jobs)
        )
        return {job: (self.fact(job, 'JobState'), self.fact(job, 'ExitCode')) for job in jobs}


def wait(true: Callable[[], object], seconds: float, what: str) -> None:
    """Until something is true. Raises: AssertionError where it is not in that time."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f'waited {seconds} s for {what}'
        time.sleep(0.1)


def require() -> None:
    """Skip, with the reason, where no Slurm is installed; with JBENCH_SLURM=required fail."""
    lacking = [name for name in (*DAEMONS, 'sbatch') if shutil.which(name) is None]
    if lacking:
        reason = f'no {", ".join(lacking)} here: apt-get install slurmctld slurmd slurm-client'
        (pytest.fail if os.environ.get('JBENCH_SLURM') == 'required' else pytest.skip)(reason)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Slurm]:
    """A Slurm whose files lie in `folder`; with it end its daemons, and every process of its jobs."""
    conf = configure(folder)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(('SLURM', 'SBATCH', 'SRUN'))}
    slurm = Slurm(kept | {'SLURM_CONF': str(conf)}, conf)
    daemons = []
    try:
        for name in DAEMONS:
            with open(folder / f'{name}.err', 'w') as said:
                argv, how = [name, '-D', '-f', str(conf)], {'stdin': subprocess.DEVNULL, 'start_new_session': True}
                daemons.append(subprocess.Popen(argv, env=slurm.env, stderr=said, **how))

        def idle() -> bool:
            texts = [(folder / f'{name}.err').read_text() for name in DAEMONS]
            assert all(daemon.poll() is None for daemon in daemons), texts
            found = subprocess.run(['sinfo', '-ho%T'], env=slurm.env, capture_output=True, text=True)
            return found.stdout.strip() == 'idle'

        wait(idle, 30, f'a node that is idle; see {folder}')
        yield slurm
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(20)
        while pids := list(left(conf)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def configure(folder: Path) -> Path:
    """Write the settings, with ports that are free now; their path."""
    held = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    for name in ('state', 'spool'):
        (folder / name).mkdir()
    user = subprocess.check_output(['id', '-un'], text=True).strip()
    host = socket.gethostname().split('.')[0]
    text = '\n'.join(SETTINGS.split()) + NODE
    (folder / 'slurm.conf').write_text(text.format(host=host, user=user, ports=ports, folder=folder))
    (folder / 'gres.conf').write_text('Name=gpu File=/dev/null,/dev/zero\n')
    return folder / 'slurm.conf'


def left(conf: Path) -> Iterator[int]:
    """Processes of a Slurm, by the environment that they started with: SLURM_CONF reaches its jobs in any case."""
    for entry in Path('/proc').glob('[0-9]*/environ'):
        with contextlib.suppress(OSError):
            if f'SLURM_CONF={conf}\0'.encode() in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                yield int(entry.parent.name)
