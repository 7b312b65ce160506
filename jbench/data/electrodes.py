"""Where channels lie on the head, from their names; for networks that ask (`ModelSpec.asks`)."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import mne
import numpy as np

from jbench.spec.errors import RequestError
from jbench.spec.model import NO_POSITION, Position

NETS = ('GSN-HydroCel-129',)  # montages of MNE whose electrodes have names of their own


@functools.lru_cache(1)
def montage() -> mne.channels.DigMontage:
    """The 10-05 electrodes on the Colin 27 head; MNE 1.13 renamed it, the positions are the same."""
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage('colin27_1005' if 'colin27_1005' in known else 'standard_1005')


def positions(ch_names: Sequence[str]) -> tuple[Position, ...]:
    """Positions of channels, each axis scaled to [0, 1] over those that have one.

    As NeuralBench's `ChannelPositions` gives them for recordings that carry this montage: MNE's head coordinates; a
    name that the montage lacks is looked up by what stands before its first '-' (the anode of a bipolar channel); one
    that has no position there either gets `NO_POSITION`. References have none of their own. The montage is the 10-05
    system, or the one of `NETS` that has all of the names.

    Raises: RequestError where no channel has a position.
    """

    def of(electrodes: mne.channels.DigMontage) -> list[np.ndarray | None]:
        places = electrodes.get_positions()['ch_pos']
        return [places.get(name, places.get(name.split('-')[0])) for name in ch_names]

    nets = map(mne.channels.make_standard_montage, NETS)
    electrodes = next((net for net in nets if set(ch_names) <= set(net.ch_names)), montage())
    found = of(electrodes)
    known = np.array([place is not None for place in found], bool)
    if not known.any():
        raise RequestError(
            f'no channel is an electrode of the 10-05 system or of {", ".join(NETS)}, so that none has a position: '
            f'{", ".join(ch_names)}'
        )
    to_head = mne.channels.compute_native_head_t(electrodes)['trans']
    head = mne.transforms.apply_trans(to_head, np.array([place for place in found if place is not None]))
    low, extent = head.min(0), np.ptp(head, axis=0)
    scaled = np.full((len(known), 3), NO_POSITION)
    scaled[known] = (head - low) / np.where(extent == 0, 1, extent)
    return tuple((x, y, z) for x, y, z in scaled.tolist())
