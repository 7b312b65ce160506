"""Where channels lie on the head, from their names; for networks that ask (`ModelSpec.asks`)."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import mne
import numpy as np

from jbench.spec.errors import RequestError
from jbench.spec.model import Position

NETS = ('GSN-HydroCel-129',)  # montages of MNE whose electrodes have names of their own


@functools.lru_cache(1)
def montage() -> mne.channels.DigMontage:
    """The 10-05 electrodes on the Colin 27 head; MNE 1.13 renamed it, the positions are the same."""
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage('colin27_1005' if 'colin27_1005' in known else 'standard_1005')


def positions(ch_names: Sequence[str]) -> tuple[Position, ...]:
    """Positions of channels in metres, in MNE's head coordinates; None of one whose place is not known.

    Those of recordings that carry this montage. A name that the montage lacks is looked up by what stands before its
    first '-' (the anode of a bipolar channel). References have none of their own. The montage is the 10-05 system, or
    the one of `NETS` that has all of the names.

    Raises: RequestError where no channel has a position.
    """

    def of(electrodes: mne.channels.DigMontage) -> list[np.ndarray | None]:
        places = electrodes.get_positions()['ch_pos']
        return [places.get(name, places.get(name.split('-')[0])) for name in ch_names]

    nets = map(mne.channels.make_standard_montage, NETS)
    electrodes = next((net for net in nets if set(ch_names) <= set(net.ch_names)), montage())
    found = of(electrodes)
    if all(place is None for place in found):
        raise RequestError(
            f'no channel is an electrode of the 10-05 system or of {", ".join(NETS)}, so that none has a position: '
            f'{", ".join(ch_names)}'
        )
    to_head = mne.channels.compute_native_head_t(electrodes)['trans']
    known = iter(mne.transforms.apply_trans(to_head, np.array([p for p in found if p is not None])).tolist())
    where: list[Position] = []
    for place in found:
        x, y, z = (0, 0, 0) if place is None else next(known)
        where.append(None if place is None else (x, y, z))
    return tuple(where)
