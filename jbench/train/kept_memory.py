"""Memory that a program has freed stays with the process, on Linux with glibc."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8  # of mallopt(3)


def keep() -> None:
    """Let `malloc` take large blocks from its heap, and never give freed ones back to the operating system.

    A compiled program on the processor asks for all its memory in each call: gigabytes for a large network. By default
    each call gets new pages, which the system has to hand out and to clear: a quarter of the processor time of an
    evaluation step of STEEGFormer (`benchmarks/train_step.py`). Threads that begin after the call share one heap,
    unless earlier threads made others: large blocks of those come from the system each time. It takes some calls of a
    program until its memory is found again. Without glibc nothing changes.
    """
    if sys.platform != 'linux':
        return
    mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
    if mallopt is not None:  # which musl lacks
        mallopt(ARENA_MAX, 1)
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, -1)
