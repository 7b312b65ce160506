"""Where channels lie on the head, from their names; for networks that ask (`ModelSpec.asks`)."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import mne
import numpy as np

from jbench.spec.errors import RequestError
from jbench.spec.model import Position

NETS = ('GSN-HydroCel-129', 'easycap-M10')  # montages of MNE whose electrodes have names of their own
# Electrodes that a recording calls by numbers: the nearest of the 10-05 system, as NeuralBench reads them for REVE (MIT
# licence, Meta Platforms, models/channel_mappings/reve.json). '{}' is the number.
_NUMBERED = {
    'EEG {:03}': """
        1:AFF1 2:AFF1h 3:AFF2h 4:FFC5h 5:F3 6:F2 7:F4 8:FC5 9:FC3 10:FC3 11:FC1 12:FFC1h 13:FCz 14:FC2 15:FFC4h
        16:FFC6h 17:T7 18:FTT7h 19:FCC5h 20:C1 21:FCC2h 22:FCC4h 23:FCC6h 24:FTT8h 25:TP7 26:TTP7h 27:CCP5h 28:CCP3h
        29:CCP3h 30:CCP1h 31:CCP2h 32:CP2 33:CCP4h 34:CCP6h 35:CP6 36:P7 37:TPP7h 38:CP3 39:CP1 40:CPz 41:CP2
        42:CPP6h 43:TPP8h 44:P5 45:P3 46:P3 47:P1 48:Pz 49:Pz 50:P2 51:P4 52:P4 53:PO5 54:PPO5h 55:PPO2 56:PO4
        57:PO3 58:POO1 59:POO2 60:OI1h
    """,  # a cap inside an MEG helmet
    '{}': """
        1:CPz 2:FCC2h 3:C2 4:CP2 5:Pz 6:CP1 7:C1 8:Fz 9:FC2 10:FCC4h 11:C4 12:CPP4h 13:PPO2 14:PPO2h 15:PPO1
        16:CPP3h 17:C3 18:FCC3h 19:FFC1h 20:AFz 21:F4 22:FFC6h 23:FCC6h 24:CP6 25:P6 26:PPO6h 27:POO4h 28:POO1
        29:PPO5h 30:P5 31:CP5 32:FCC5h 33:FFC5h 34:F3 35:Fpz 36:Fp2 37:F8 38:FT8 39:T8 40:TP8 41:PPO10h 42:POO10h
        43:OI2h 44:POO9h 45:PPO9h 46:TP7 47:T7 48:FT7 49:F7 50:Fp1 51:F10 52:FTT10h 53:TP10 54:P10 55:PO10 56:Iz
        57:I1 58:P9 59:TP9 60:FTT9h 61:F9
    """,  # an equidistant cap of 61
    'EEG{}': '3:C3 8:Cz 13:C4',
}
NEAREST = {
    form.format(int(number)): name
    for form, pairs in _NUMBERED.items()
    for number, _, name in (pair.partition(':') for pair in pairs.split())
} | {'C-A1': 'Cz'}  # of DREAMS: C3 or Cz, and its file does not say of which patient which


@functools.lru_cache(1)
def montage() -> mne.channels.DigMontage:
    """The 10-05 electrodes on the Colin 27 head; MNE 1.13 renamed it, the positions are the same."""
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage('colin27_1005' if 'colin27_1005' in known else 'standard_1005')


def positions(ch_names: Sequence[str]) -> tuple[Position, ...]:
    """Positions of channels in metres, in MNE's head coordinates; None of one whose place is not known.

    Those of recordings that carry this montage. A name that the montage lacks is looked up by what stands before its
    first '-' (the anode of a bipolar channel), or by its number (`NEAREST`). References have none of their own. The
    montage is the 10-05 system, or the one of `NETS` that has all of the names.

    Raises: RequestError where no channel has a position.
    """

    def of(electrodes: mne.channels.DigMontage) -> list[np.ndarray | None]:
        places = electrodes.get_positions()['ch_pos']
        return [places.get(name, places.get(NEAREST.get(name, name.split('-')[0]))) for name in ch_names]

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
