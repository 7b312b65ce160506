"""Several processes that run one command on one work folder: who they are, and what they agree on.

They take the same decisions at the same moments: the first one takes those that could differ, works on files, and
speaks.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jbench import files
from jbench.spec.errors import RequestError


def connect() -> None:
    """Join the other processes: found by jax on TPU pods, Slurm, Open MPI and Kubernetes, else told by the environment.

    Raises: RequestError where neither tells who they are, or they do not answer.
    """
    jax.config.update('jax_enable_preemption_service', False)  # it would take SIGTERM away from us
    given = [os.environ.get(name) for name in ('JAX_COORDINATOR_ADDRESS', 'JAX_NUM_PROCESSES', 'JAX_PROCESS_ID')]
    try:
        if all(given):
            jax.distributed.initialize(given[0], *map(int, given[1:]))  # type: ignore[arg-type]
        else:
            jax.distributed.initialize()
    except (RuntimeError, ValueError) as error:
        raise RequestError(
            f'--distributed: jax cannot join the other processes ({str(error).splitlines()[0]}); outside of TPU pods, '
            'Slurm, Open MPI and Kubernetes give each process JAX_COORDINATOR_ADDRESS=HOST:PORT of the first one, '
            'JAX_NUM_PROCESSES and JAX_PROCESS_ID=0, 1, ...'
        ) from error


def leave() -> None:
    """Wait for the other processes, so that none ends while another still needs it."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def name() -> str:
    """What this process puts before what it says; '' for the first one."""
    return '' if first() else f'process {jax.process_index()}: '


def first() -> bool:
    """Whether this process is the one that decides, writes and speaks."""
    return jax.process_index() == 0


def agreed(flags: np.ndarray) -> np.ndarray:
    """What the first process says; every process comes here at the same moment."""
    if jax.process_count() == 1:
        return flags
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.broadcast_one_to_all(flags))


def anywhere(flag: bool) -> bool:
    """Whether any process says yes; every process comes here at the same moment."""
    if jax.process_count() == 1:
        return flag
    from jax.experimental import multihost_utils

    return bool(np.any(multihost_utils.process_allgather(np.array(flag))))


def devices() -> dict[str, Any]:
    """What computes: on one machine kind with these equal, bits are equal."""
    return {
        'backend': jax.default_backend(),
        'count': jax.device_count(),
        'kind': f'{jax.devices()[0].device_kind} {platform.machine()}',
        'nproc': int(os.environ.get('NPROC', os.cpu_count() or 1)),
    }


@contextlib.contextmanager
def locked(path: Path, check: Callable[[], None]) -> Iterator[None]:
    """The lock `path`, held by the first process for all; while it waits all of them meet in `check`."""

    def held(mine: bool) -> bool:
        check()
        return bool(agreed(np.array(mine)))

    if first():
        with files.locked(path, lambda: held(False)):
            held(True)
            yield
    else:
        while not held(True):
            pass
        yield
