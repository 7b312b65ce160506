"""Memory that is freed and asked for again is handed out by the operating system once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from jbench.train import kept_memory
{first}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(200_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
thread = ThreadPoolExecutor(1)
ask = (lambda: thread.submit(faults).result()) if {in_thread} else faults
ask()
print(ask())
"""


@pytest.mark.skipif(sys.platform != 'linux', reason='mallopt is of glibc on Linux; elsewhere nothing is set')
@pytest.mark.parametrize('in_thread', [False, True])
def test_a_block_that_was_freed_is_used_again(in_thread: bool) -> None:
    """Also one of a thread, as those are in which jax runs programs."""
    kept, new = (
        int(subprocess.check_output([sys.executable, '-c', PROGRAM.format(first=first, in_thread=in_thread)]))
        for first in ('kept_memory.keep()', '')
    )
    assert kept < 10 < new  # pages, of 4 kB or 2 MB
