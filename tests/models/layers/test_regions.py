"""Regions of the scalp: known electrodes are where an atlas has them, and every channel is in one region."""

from __future__ import annotations

import pytest

from jbench.data.electrodes import positions
from jbench.models.layers.regions import NEAREST_TO, REGIONS, region, regions

KNOWN = {
    'frontal': 'Fp1 AFz AF7 F5 Fz F8 F10 FC3 FC4'.split(),
    'parietal': 'Cz C1 C2 CP1 CPz CP4 P1 Pz P4'.split(),
    'temporal': 'T7 T8 TP7 TP8 TP10 P7 P8'.split(),
    'occipital': 'O1 Oz O2 Iz PO7 PO8 POz'.split(),
}


@pytest.mark.parametrize('name', KNOWN)
def test_electrodes_are_in_their_regions(name: str) -> None:
    found = {e: region(p) for e, p in zip(KNOWN[name], positions(KNOWN[name]), strict=True)}
    assert found == dict.fromkeys(KNOWN[name], name)


def test_the_table_is_that_of_the_montage() -> None:
    """In millimetres, rounded."""
    for known in NEAREST_TO.values():
        for (_, there), place in zip(known.items(), positions(list(known)), strict=True):
            assert there == tuple(round(1000 * v) for v in place)


def test_every_channel_is_in_one_region_and_unknown_ones_are_elsewhere() -> None:
    names = ('Oz', 'EOG', 'Fz', 'O2', 'M7', 'T8')
    found = regions(positions(names))
    assert found == (('frontal', (2,)), ('temporal', (5,)), ('occipital', (0, 3)), ('elsewhere', (1, 4)))
    assert [name for name, _ in found] == [name for name in REGIONS if name in dict(found)]
    assert regions((None, None)) == (('elsewhere', (0, 1)),)


def test_the_one_channel_of_dreams_is_central():
    assert [name for name, _ in regions(positions(['C-A1']))] == ['parietal']
