"""Regions of the scalp, from positions of channels.

A channel belongs to the region of the electrode of the 10-20 system that is nearest to it, of `NEAREST_TO`: central
electrodes count as parietal, those at the back of the temples (P7, P8: T5 and T6 of old) as temporal. A channel whose
place is not known (eyes, references, names that no montage has) belongs to the region `elsewhere`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jbench.spec.model import Position

REGIONS = ('frontal', 'parietal', 'temporal', 'occipital', 'elsewhere')
NEAREST_TO = {  # mm in MNE's head coordinates (right, front, up), electrodes of the 10-05 montage of MNE
    'frontal': {
        'Fp1': (-31, 115, 28),
        'Fp2': (28, 115, 28),
        'F7': (-72, 73, 26),
        'F3': (-52, 87, 79),
        'Fz': (-1, 93, 103),
        'F4': (50, 87, 77),
        'F8': (71, 75, 25),
    },
    'parietal': {
        'C3': (-67, 23, 105),
        'Cz': (-1, 28, 140),
        'C4': (65, 24, 104),
        'P3': (-55, -44, 100),
        'Pz': (-2, -45, 127),
        'P4': (54, -44, 101),
    },
    'temporal': {'T7': (-86, 15, 31), 'T8': (83, 15, 31), 'P7': (-74, -42, 41), 'P8': (71, -42, 41)},
    'occipital': {'O1': (-32, -81, 55), 'Oz': (-2, -83, 61), 'O2': (28, -80, 55)},
}
_PLACES = np.array([place for known in NEAREST_TO.values() for place in known.values()]) / 1000
_OF_PLACE = [region for region, known in NEAREST_TO.items() for _ in known]


def region(position: Position) -> str:
    """The region of a channel at a position in metres, in MNE's head coordinates."""
    if position is None:
        return REGIONS[-1]
    return _OF_PLACE[int(((_PLACES - np.array(position)) ** 2).sum(1).argmin())]


def regions(positions: Sequence[Position]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The regions that have a channel, in the order of `REGIONS`, each with the numbers of its channels."""
    own = [region(position) for position in positions]
    found = ((name, tuple(k for k, mine in enumerate(own) if mine == name)) for name in REGIONS)
    return tuple((name, channels) for name, channels in found if channels)
