"""Processes that prepare recordings beside each other, and end with the process that started them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

CGROUP = Path('/sys/fs/cgroup')  # what limits the container of this process, as containers see it


def n_workers(n_jobs: int, n_bytes: int) -> int:
    """How many processes to start: one a core, no more than jobs, nor than fit into free memory at `n_bytes` each."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1
    return max(1, min(n_jobs, n_cores, free_memory() // n_bytes))


def free_memory() -> int:
    """Bytes of memory that new processes may use, as Linux estimates it; elsewhere half of what there is."""
    with contextlib.suppress(OSError):
        if found := re.search(r'^MemAvailable: +(\d+) kB', Path('/proc/meminfo').read_text(), re.MULTILINE):
            return min(int(found[1]) << 10, _left_to_container())
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 2


def _left_to_container() -> int:
    """Bytes that the container of this process may still take (cgroup v2); 2^62 where nothing limits it."""
    with contextlib.suppress(OSError, ValueError):  # no such file; 'max'
        limit, used = (int((CGROUP / name).read_text()) for name in ('memory.max', 'memory.current'))
        return max(0, limit - used)
    return 1 << 62


@contextlib.contextmanager
def workers(n_jobs: int, n_bytes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes with one numerical thread each for jobs that need `n_bytes` of memory; when the body raises they are
    killed, not waited for."""
    limits = dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'), '1')
    before, others = {k: os.environ.get(k) for k in limits}, set(multiprocessing.active_children())
    os.environ.update(limits)
    try:
        context = multiprocessing.get_context('spawn')  # never fork: jax may run threads here
        with ProcessPoolExecutor(n_workers(n_jobs, n_bytes), context, _end_with_parent) as pool:
            try:
                yield pool
            except BaseException:
                workers = set(multiprocessing.active_children()) - others
                for worker in workers:
                    worker.kill()
                for worker in workers:
                    worker.join(10)
                pool.shutdown(wait=True, cancel_futures=True)  # its thread holds what a process must not leave behind
                raise
    finally:
        for k, v in before.items():
            os.environ.pop(k, None) if v is None else os.environ.__setitem__(k, v)


@contextlib.contextmanager
def sheltered() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C and SIGTERM for good (the parent ends them), and do not import the
    parent's main program (which may import jax, or lack a `__main__` guard)."""
    main, sys.modules['__main__'] = sys.modules['__main__'], types.ModuleType('__main__')
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sys.modules['__main__'] = main


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
