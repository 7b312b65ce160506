"""How long a list of jobs takes on so many devices: what engines do, each device taking the next job, without them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple


class Finish(NamedTuple):
    """How a list of jobs ends."""

    wall: float  # s until the last job has ended
    tail: float  # s of these after the first device found no job left
    idle: float  # share of devices x wall in which none computes


def finish(seconds: Iterable[float], n_devices: int) -> Finish:
    """Jobs on devices that are all alike: whichever is free first takes the next one.

    Args:
        seconds: of the jobs, in the order in which they begin.
        n_devices: how many there are, at least 1.
    """
    free, total = [0.0] * n_devices, 0.0  # when each device has ended what it took; a list of zeros is a heap
    for s in seconds:
        heapq.heapreplace(free, free[0] + s)
        total += s
    wall = max(free)
    return Finish(wall, wall - min(free), 1 - total / (n_devices * wall) if wall else 0.0)
