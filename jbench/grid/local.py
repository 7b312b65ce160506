"""Jobs beside each other on this machine: `--jobs=N`. Each has a process, and where there are accelerators one of them,
or a share of one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from jbench.data.prepare.workers import free_memory
from jbench.grid import engine, process
from jbench.grid.engine import Grid, Outcome
from jbench.grid.job import Job
from jbench.spec.errors import RequestError

PLUGINS = ('jax_cuda12_plugin', 'jax_cuda13_plugin', 'jax_rocm60_plugin', 'jax_rocm7_plugin', 'libtpu')
COUNT = (
    'import jax; d = jax.local_devices(); print(d[0].platform, len(d))'  # in a process of its own: it takes them all
)
SHARED = 0.9  # share of the memory of an accelerator that the jobs on it have together
TPU = {'TPU_CHIPS_PER_PROCESS_BOUNDS': '1,1,1', 'TPU_PROCESS_BOUNDS': '1,1,1'}  # one chip to a process


class Devices(NamedTuple):
    """The accelerators of this machine."""

    kind: str  # 'gpu', 'tpu'; '': none
    names: tuple[str, ...]  # as the variable has them that hides the others


class Slot(NamedTuple):
    """Room for one job."""

    environment: Mapping[str, str] = {}
    trains: bool = True  # jobs of cells
    prepares: bool = True  # jobs that prepare


def run(jobs: Sequence[Job], wanted: str, device: str | None, grid: Grid) -> Outcome:
    """Run jobs to their end, as `engine.run`.

    Args:
        jobs: what runs.
        wanted: how many at once, or 'auto': one an accelerator, and without any one for every two cores.
        device: as --device.
        grid: folders, progress, signals, and what is finished already.
    Raises: RequestError where a log cannot be written, or the accelerators cannot be counted.
    """
    place = Local(slots(wanted, accelerators(device), max((job.devices for job in jobs), default=1)))
    try:
        return engine.run(jobs, place, grid)
    finally:
        place.close()


class Local:
    """Slots on this machine, and the processes in them; a thread watches each."""

    def __init__(self, slots: Sequence[Slot], budget: int | None = None) -> None:
        self._free = list(slots)
        self._budget = free_memory() if budget is None else budget
        self._threads = ThreadPoolExecutor(max(1, len(slots)))
        self._running: dict[Future[int], tuple[Job, Slot]] = {}
        self._stopped = False

    def has_room(self, job: Job) -> bool:
        """A free slot, and the memory that is expected: of what was free at the beginning, and of what is now."""
        if not self._running:
            return True
        if self._slot(job) is None:
            return False
        held = sum(other.memory for other, _ in self._running.values())
        return held + job.memory <= self._budget and job.memory <= free_memory()

    def start(self, job: Job, log: Path) -> None:
        """Start a job in a process."""
        slot = self._slot(job)
        assert slot is not None
        self._free.remove(slot)
        ended = self._threads.submit(process.run, job, log, lambda: self._stopped, slot.environment)
        self._running[ended] = job, slot

    def ended(self, seconds: float) -> dict[str, int]:
        """Exit statuses of the processes that ended. Raises: RequestError where a log cannot be written."""
        statuses = {}
        for future in futures.wait(self._running, seconds, futures.FIRST_COMPLETED).done:
            job, slot = self._running.pop(future)
            self._free.append(slot)
            statuses[job.key] = future.result()
        return statuses

    def stop(self) -> None:
        """Tell every process, once."""
        self._stopped = True

    def close(self) -> None:
        """Stop what still runs, and wait for it."""
        self.stop()
        self._threads.shutdown()

    def _slot(self, job: Job) -> Slot | None:
        """A free one for a job."""
        return next((s for s in self._free if (s.trains if job.devices else s.prepares)), None)


def slots(wanted: str, devices: Devices, each: int = 1) -> list[Slot]:
    """As many slots as are wanted. With accelerators each has one, or `each`, or a share of that, and there is one more
    slot, which prepares on the processor.

    Raises: RequestError for a number that cannot be.
    """
    names = devices.names
    if each > 1:
        names = _grouped(devices, each)
    if not names:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1
        return [Slot()] * (max(1, cores // 2) if wanted == 'auto' else int(wanted))
    n = len(names) if wanted == 'auto' else int(wanted)
    if devices.kind == 'tpu' and n > len(names):
        raise RequestError(f'--jobs={n}: there are {len(names)} chips, and processes cannot share one')
    sharing = -(-n // len(names))
    return [
        *(Slot(_alone(devices.kind, names[k % len(names)], sharing), prepares=False) for k in range(n)),
        Slot({'JAX_PLATFORMS': 'cpu'}, trains=False),
    ]


def _grouped(devices: Devices, each: int) -> tuple[str, ...]:
    """GPUs that a cell has together, as the variable has them. Raises: RequestError where there are too few."""
    if devices.kind != 'gpu' or len(devices.names) < each:
        n = len(devices.names) if devices.kind == 'gpu' else 0
        raise RequestError(
            f'--gpus_per_cell={each}: this machine has {n} GPUs; ask for at most so many, or leave it out'
        )
    return tuple(','.join(devices.names[k : k + each]) for k in range(0, len(devices.names) - each + 1, each))


def accelerators(device: str | None) -> Devices:
    """The accelerators of this machine, counted in a process of its own, which gives them back.

    `device`: as --device. Raises: RequestError where they cannot be counted.
    """
    none = Devices('', ())
    if device == 'cpu' or os.environ.get('JAX_PLATFORMS') == 'cpu' or not any(map(importlib.util.find_spec, PLUGINS)):
        return none
    more = {'JAX_PLATFORMS': {'gpu': 'cuda'}.get(device, device)} if device else {}
    asked = subprocess.run(
        [sys.executable, '-c', COUNT],
        capture_output=True,
        text=True,
        env={**os.environ, **more},
        start_new_session=True,  # Ctrl-C is for us alone; the engine looks at it before it starts anything
    )
    kind, _, number = asked.stdout.strip().partition(' ')
    if asked.returncode or not number.isdigit():
        last = (asked.stderr.strip().splitlines() or ['no answer'])[-1]
        raise RequestError(
            f'--jobs: jax cannot count the devices of this machine ({last}); --device=cpu leaves them out'
        )
    if kind == 'cpu':
        return none
    visible = os.environ.get('TPU_VISIBLE_CHIPS' if kind == 'tpu' else 'CUDA_VISIBLE_DEVICES', '')
    names = [name for name in visible.split(',') if name] or [str(k) for k in range(int(number))]
    return Devices(kind, tuple(names[: int(number)]))


def _alone(kind: str, name: str, sharing: int) -> dict[str, str]:
    """What a process is told so that it sees its accelerators alone, and takes its share of the memory."""
    if kind == 'tpu':
        return {'TPU_VISIBLE_CHIPS': name, **TPU}
    given = os.environ.get('XLA_PYTHON_CLIENT_MEM_FRACTION')
    share = {'XLA_PYTHON_CLIENT_MEM_FRACTION': given or f'{SHARED / sharing:.3f}'} if sharing > 1 else {}
    return {'CUDA_VISIBLE_DEVICES': name, **share}
