"""Memory that is freed and asked for again is handed out by the operating system once."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from jbench.train import kept_memory

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


WAIT = """
import ctypes, threading
from jbench.train import kept_memory
kept_memory.PATIENCE = 60.0
kept_memory.keep()
kept_memory.make_room(threading)
heap, freed = kept_memory._heap, []
block = heap.malloc(4 * kept_memory.MUCH)
threading.Timer(0.3, lambda: (freed.append(True), heap.free(block))).start()
kept_memory.make_room(threading)
print(len(freed))
"""

STEPS = """
import resource
import jax
import jax.numpy as jnp
from jbench.train import kept_memory
kept_memory.keep()

def step(weights, x):
    def loss(weights):
        y = x
        for w in weights:
            y = y + jnp.tanh(y @ w)
        return (y ** 2).mean()
    value, grads = jax.value_and_grad(loss)(weights)
    return [w - g for w, g in zip(weights, grads)], value

weights, x = [jnp.full((64, 64), 1e-3)] * 12, jnp.ones((65536, 64))
program = jax.jit(step, donate_argnums=0).lower(weights, x).compile()
weights = [w.copy() for w in weights]
peaks = []
for _ in range(25):
    kept_memory.make_room(program)
    weights, value = program(weights, x)
    float(value)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(program.memory_analysis().temp_size_in_bytes >> 20, peaks[0], peaks[-1])
"""


GLIBC = pytest.mark.skipif(
    sys.platform != 'linux' or not hasattr(ctypes.CDLL(None), 'mallinfo2'), reason='mallinfo2 is of glibc 2.33 on Linux'
)


@GLIBC
def test_a_call_waits_until_memory_of_the_last_one_is_free() -> None:
    assert answers(WAIT) == [1]


@GLIBC
@pytest.mark.slow
def test_a_program_takes_the_memory_of_its_last_call() -> None:
    """A busy machine may be later than a call waits for it, and then gives it twice, once: hence the best of three."""
    assert any(grown() < 0.5 for _ in range(3))


def grown() -> float:
    """By how many of its blocks a program's peak of memory grows after its first call."""
    needed, first, last = answers(STEPS)
    assert needed > kept_memory.MUCH >> 20
    return (last - first) / needed


def answers(program: str) -> list[float]:
    """The numbers that a Python program prints."""
    return [float(word) for word in subprocess.check_output([sys.executable, '-c', program]).split()]
