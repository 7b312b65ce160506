"""Stretches of a recording in which nothing changes: what was never recorded, or was lost on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from jbench.data.recording import Finding
from jbench.spec.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np

EDGE = 1.0  # s at either end of a file that may be padding (to fill the last record of an EDF file, for one)
SHORTEST = 1.0  # s: what is shorter is no stretch (between trials MOABB lays up to 0.98 s of zeros in some sets)
KEPT = 'kept as it is (the protocol keeps bad channels)'  # a bad channel
FEWEST = 10  # samples of a stretch: where a second has few, some are alike by chance


class Stretch(NamedTuple):
    """Equal samples in a row."""

    start: int
    stop: int


def stretches(still: np.ndarray, sfreq: float) -> list[Stretch]:
    """The stretches that are long enough, ends of the recording left aside.

    Args:
        still: bool [T - 1], whether sample k + 1 equals sample k.
        sfreq: Hz.
    """
    import numpy as np

    least, edge = max(math.ceil(SHORTEST * sfreq), FEWEST), math.ceil(EDGE * sfreq)
    step = (least - 1) // 2  # of pieces of this length a stretch holds one whole: mostly there is none, soon seen
    if not still[: len(still) // step * step].reshape(-1, step).all(1).any():
        return []
    borders = np.flatnonzero(np.diff(still.view(np.int8), prepend=0, append=0))
    starts, stops = borders[::2], borders[1::2] + 1
    inside = np.minimum(stops, len(still) + 1 - edge) - np.maximum(starts, edge)
    return [Stretch(int(starts[k]), int(stops[k])) for k in np.flatnonzero(inside >= least)]


def findings(
    everywhere: list[Stretch], alone: Mapping[str, list[Stretch]], sfreq: float, dataset: Dataset, where: str
) -> Iterator[Finding]:
    """What is to be said: of a stretch on all channels a refusal, unless the dataset allows it; else a note.

    Args:
        everywhere: stretches in which no channel changes.
        alone: those of single channels, by name.
        sfreq: Hz.
    """
    limit = math.inf if dataset.constant is None else dataset.constant
    long = [s for s in everywhere if (s.stop - s.start) / sfreq >= limit]
    if everywhere:
        first, n = (long or everywhere)[0], len(long or everywhere)
        found = f'that no channel changes from {first.start / sfreq:.1f} to {first.stop / sfreq:.1f} s'
        found += f' ({(first.stop - first.start) / sfreq:.1f} s)' + f', nor in {n - 1} more such stretches' * (n > 1)
        remedy = 'the file may be truncated or padded: fetch it again, or cut that part off'
        expected = f'changes within {limit:g} s'
        yield Finding(where, 'the signal must not stand still', found, expected, remedy, 'fatal' if long else 'note')
    some = {
        name: left
        for name, own in alone.items()
        if (left := [s for s in own if not any(s.start < e.stop and e.start < s.stop for e in everywhere)])
    }
    if some:
        longest, name = max((s.stop - s.start, name) for name, own in some.items() for s in own)
        found = f'{len(some)} of them constant for a while, {name} for {longest / sfreq:.1f} s'
        yield Finding(where, 'channels should not stand still', found, f'below {SHORTEST:g} s', KEPT, 'note')
