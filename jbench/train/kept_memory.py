"""Memory that a program has freed stays with the process, on Linux with glibc, and is used by its next call."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any, NamedTuple
from weakref import WeakSet

TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8  # of mallopt(3)
MUCH = 64 << 20  # bytes: programs that ask for less at once are not waited for
ROOM = 16 << 20  # bytes of a block beside what is asked for: an aligned one is cut out of a larger one
BEHIND = 1 << 20  # bytes that stay behind it, so that it does not melt into what is free there
PATIENCE = 0.05  # s


class _Info(ctypes.Structure):
    """`struct mallinfo2` of glibc 2.33 and later."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in 'a b c d e f g in_use i j'.split())


class _Heap(NamedTuple):
    """Functions of glibc."""

    malloc: Any
    free: Any
    info: Any


_heap: _Heap | None = None  # once memory is kept
_met: WeakSet[Any] = WeakSet()  # programs
_in_use = 0  # bytes, when the last program was called


def keep() -> None:
    """Let `malloc` take large blocks from its heap, and never give freed ones back to the operating system.

    A compiled program on the processor asks for all its memory in each call: gigabytes for a large network. By default
    each call gets new pages, which the system has to hand out and to clear: a quarter of the processor time of an
    evaluation step of STEEGFormer (`benchmarks/train_step.py`). Threads that begin after the call share one heap,
    unless earlier threads made others: large blocks of those come from the system each time. It takes some calls of a
    program until its memory is found again. Without glibc nothing changes.
    """
    global _heap
    if sys.platform != 'linux':
        return
    libc = ctypes.CDLL(None)
    mallopt = getattr(libc, 'mallopt', None)
    if mallopt is None:  # which musl lacks
        return
    mallopt(ARENA_MAX, 1)
    mallopt(MMAP_MAX, 0)
    mallopt(TRIM_THRESHOLD, -1)
    if hasattr(libc, 'mallinfo2'):
        libc.mallinfo2.restype = _Info
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
        libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
        _heap = _Heap(libc.malloc, libc.free, libc.mallinfo2)


def make_room(program: Any) -> None:
    """To be called before each call of a compiled program: its memory will be that of its last call.

    A program answers some milliseconds before its memory is free. One that is called meanwhile would take as much again
    from the system, time and again: of LaBraM in batches of 64, 13 GB instead of 7 (`benchmarks/encoder_memory.py`). So
    this waits for it (at most `PATIENCE`), and keeps a place for the first call. Nothing happens without glibc 2.33 and
    `keep`.
    """
    global _in_use
    if _heap is None:
        return
    until = time.monotonic() + PATIENCE
    while _in_use and _heap.info().in_use > _in_use + MUCH and time.monotonic() < until:
        time.sleep(0.0005)
    if program not in _met:
        _met.add(program)
        _reserve(_heap, program)
    _in_use = _heap.info().in_use


def _reserve(heap: _Heap, program: Any) -> None:
    """Leave a free block that the program fits into; no page of it is there before it is used."""
    analysis = getattr(program, 'memory_analysis', lambda: None)()  # none of one that is not compiled yet
    if analysis is not None and analysis.temp_size_in_bytes > MUCH:
        block = heap.malloc(analysis.temp_size_in_bytes + ROOM)
        heap.malloc(BEHIND)
        heap.free(block)
