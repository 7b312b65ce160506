"""The 19 electrodes of the TUEG corpus in the order of pretraining, and how those of a recording are found."""

from __future__ import annotations

from collections.abc import Sequence

from jbench.models.foundation.adapters import RENAMED

# In the order of pretraining, which is CBraMod's. T3, T4, T5, T6 are called T7, T8, P7, P8 since 1991.
NAMES = tuple('FP1 FP2 F3 F4 C3 C4 P3 P4 O1 O2 F7 F8 T3 T4 T5 T6 FZ CZ PZ'.split())
_SLOTS = {RENAMED.get(name, name).upper(): name for name in NAMES}


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as which of `NAMES`: {'Fp1': 'FP1', 'T7': 'T3'}.

    A name fits in capitals or not, or through `adapters.RENAMED`. Of two channels that would be the same electrode the
    first is used; a channel that is left out changes nothing for the others.
    """
    found: dict[str, str] = {}
    for name in ch_names:
        slot = _SLOTS.get(RENAMED.get(name, RENAMED.get(name.upper(), name)).upper())
        if slot is not None and slot not in found.values():
            found[name] = slot
    return found


def places(ch_names: Sequence[str]) -> dict[int, int]:
    """Which place of `NAMES` has which channel, in the order of `NAMES`: {0: 3, 1: 0}."""
    index = {slot: ch_names.index(name) for name, slot in channels(ch_names).items()}
    return {place: index[slot] for place, slot in enumerate(NAMES) if slot in index}
