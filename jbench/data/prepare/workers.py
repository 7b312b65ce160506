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

CGROUP = Path('/sys/fs/cgroup')  # what limits containers, and jobs of a queue
OWN = Path('/proc/self/cgroup')  # the group of this process, as 'number:kinds:/group' (version 2: without kinds)
LIMITS = {  # kinds -> limit and use of a group, in bytes, and what of the use is files that Linux lets go of first
    '': ('memory.max', 'memory.current', 'inactive_file'),
    'memory': ('memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_inactive_file'),
}


def n_workers(n_jobs: int, n_bytes: int) -> int:
    """How many processes to start: one a core, no more than jobs, nor than fit into free memory at `n_bytes` each."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1
    return max(1, min(n_jobs, n_cores, free_memory() // n_bytes))


def free_memory() -> int:
    """Bytes of memory that new processes may use, as Linux estimates it; elsewhere half of what there is."""
    with contextlib.suppress(OSError):
        if found := re.search(r'^MemAvailable: +(\d+) kB', Path('/proc/meminfo').read_text(), re.MULTILINE):
            return min(int(found[1]) << 10, _left_to_groups())
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 2


def _left_to_groups() -> int:
    """Bytes that the container or the job of this process may still take: of its group, and of each that it lies in
    (cgroup, version 1 and 2), the least; 2^62 where nothing limits them."""
    left = 1 << 62
    with contextlib.suppress(OSError):
        for line in OWN.read_text().splitlines():
            _, kinds, name = line.split(':', 2)
            if names := LIMITS.get(kinds):
                own = CGROUP / kinds / name.lstrip('/')  # in a container this may be a folder that only its host has
                left = min([left, *(_left_to(group, *names) for group in (own, *own.parents))])
    return left


def _left_to(group: Path, limit: str, used: str, files: str) -> int:
    """Bytes that the processes of a group may still take; 2^62 where it has no limit."""
    try:
        most, now = (int((group / name).read_text()) for name in (limit, used))
    except (OSError, ValueError):  # no such file; 'max'
        return 1 << 62
    with contextlib.suppress(OSError):
        if cached := re.search(rf'^{files} (\d+)$', (group / 'memory.stat').read_text(), re.MULTILINE):
            now -= int(cached[1])
    return max(0, most - now)


@contextlib.contextmanager
def workers(n_jobs: int, n_bytes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes with one numerical thread each for jobs that need `n_bytes` of memory; when the body raises they are
    killed, not waited for."""
    limits = dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'), '1')
    before, others = {k: os.environ.get(k) for k in limits}, set(multiprocessing.active_children())
    os.environ.update(limits)
    try:
        context = multiprocessing.get_context('spawn')  # never fork: jax may run threads here
        with ProcessPoolExecutor(n_workers(n_jobs, n_bytes), context, end_with_parent) as pool:
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


def end_with_parent() -> None:
    """Ends this process, which multiprocessing started, as soon as its parent has ended, killed or not."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
