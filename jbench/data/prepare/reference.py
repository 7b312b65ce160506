"""Channels against others, before any filter: common average, neighbours on a shaft, means of regions of the brain.

The Laplacian is that of Neuroprobe (insight-neuro/neuroprobe@2d25f3d, examples/eval_utils.py, after BrainBERT): from
each contact the mean of the contacts before and behind it by number, of those that are there; a contact that has
neither is left out (as by default there; its population baseline keeps it as it is). On a grid, whose rows are numbered
on, the last of a row so has the first of the next one for a neighbour. Channels that are marked bad are taken from no
other, and count in no region.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from jbench.data.recording import regions_of
from jbench.spec.errors import RequestError
from jbench.spec.task import SignalSpec

if TYPE_CHECKING:
    import mne
    import numpy as np

IN_THE_BRAIN = ('seeg', 'ecog', 'dbs')


def mixed(raw: mne.io.BaseRaw, spec: SignalSpec) -> mne.io.BaseRaw:
    """A recording, V, whose channels are mixed as a task says, of the channels that are picked.

    Args:
        raw: the recording; one that is laid out by channels is read in pieces.
        spec: `reference` and `regions` are used. Where regions are asked for, channels without one are left out.

    Raises: RequestError where no channel has a neighbour, or a region.
    """
    from jbench.data.prepare import by_channel

    names, weights = _referenced(raw, spec.reference)
    renamed: dict[str, str] = {}
    if spec.regions:
        renamed, weights = _by_region(names, weights, _good_regions(raw))
        names = list(renamed)
    out = by_channel.combined(raw, names, weights)
    return out.rename_channels(renamed) if renamed else out


def neighbours(names: Sequence[str], bad: Collection[str] = ()) -> dict[str, list[str]]:
    """The contacts before and behind each one on its shaft, by name, less the bad ones: T1bIc3 and T1bIc5 of T1bIc4;
    those without any are left out. Zeros before a number do not count."""
    found = {name: re.fullmatch(r'(.*\D)(\d+)', name) for name in names}
    at = {(m[1], int(m[2])): name for name, m in found.items() if m and name not in bad}
    beside = {
        name: [at[key] for d in (1, -1) if (key := (m[1], int(m[2]) + d)) in at] for name, m in found.items() if m
    }
    return {name: others for name, others in beside.items() if others}


def _referenced(raw: mne.io.BaseRaw, how: str) -> tuple[list[str], np.ndarray]:
    """The channels that are left, and how each is made of all, f64 [left, C]."""
    import numpy as np

    every = raw.ch_names
    weights = np.eye(len(every))
    kinds = set(raw.get_channel_types())
    if how == 'average':
        if len(kinds) > 1 and not kinds <= {*IN_THE_BRAIN}:
            raise RequestError(
                f'signal.reference=average: found channels of types {", ".join(sorted(kinds))}, whose mean says '
                'nothing; expected one type (signal.picks), or contacts in the brain'
            )
        good = np.array([name not in raw.info['bads'] for name in every])
        if not good.any():
            raise RequestError(
                'signal.reference=average: every channel is marked bad, and the mean is that of good ones'
            )
        return list(every), weights - good / good.sum()
    if how == 'none':
        return list(every), weights
    outside, beside = kinds - {*IN_THE_BRAIN}, neighbours(every, raw.info['bads'])
    if outside or not beside:
        found = f'channels of type {", ".join(sorted(outside))}' if outside else 'none beside another'
        raise RequestError(
            f'signal.reference=laplacian: found {found}, expected contacts in the brain, numbered along their shaft '
            f'(T1bIc1, T1bIc2): {", ".join(every[:5])}; take average or none'
        )
    for name, others in beside.items():
        for other in others:
            weights[every.index(name), every.index(other)] -= 1 / len(others)
    return list(beside), weights[[every.index(name) for name in beside]]


def _good_regions(raw: mne.io.BaseRaw) -> dict[str, str]:
    """The regions of the channels that are not marked bad."""
    return {name: region for name, region in regions_of(raw).items() if name not in raw.info['bads']}


def _by_region(
    names: Sequence[str], weights: np.ndarray, regions: Mapping[str, str]
) -> tuple[dict[str, str], np.ndarray]:
    """The first channel of each region, with the region's name, and the means over regions, f64 [R, C]."""
    import numpy as np

    there = sorted({regions[name] for name in names if regions.get(name)})
    if not there:
        raise RequestError('signal.regions: no channel of the recording has a region; leave it false')
    mine = np.array([[regions.get(name) == region for name in names] for region in there])
    first = [names[int(row.argmax())] for row in mine]
    return dict(zip(first, there, strict=True)), (mine / mine.sum(1, keepdims=True)) @ weights
