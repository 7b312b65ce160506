"""The channels that LaBraM knows, and how those of a recording are found among them."""

from __future__ import annotations

from collections.abc import Sequence

from jbench.models.foundation.meg_channels import SENSORS

# The 128 names of the checkpoint: channel i has row i + 1 of its table, row 0 is the class token's.
# T3, T4, T5, T6 have rows of their own beside T7, T8, P7, P8; the last eight are pairs of a bipolar montage.
NAMES = tuple(
    """
    FP1 FPZ FP2 AF9 AF7 AF5 AF3 AF1 AFZ AF2 AF4 AF6 AF8 AF10 F9 F7 F5 F3 F1 FZ F2 F4 F6 F8 F10
    FT9 FT7 FC5 FC3 FC1 FCZ FC2 FC4 FC6 FT8 FT10 T9 T7 C5 C3 C1 CZ C2 C4 C6 T8 T10
    TP9 TP7 CP5 CP3 CP1 CPZ CP2 CP4 CP6 TP8 TP10 P9 P7 P5 P3 P1 PZ P2 P4 P6 P8 P10
    PO9 PO7 PO5 PO3 PO1 POZ PO2 PO4 PO6 PO8 PO10 O1 OZ O2 O9 CB1 CB2 IZ O10 T3 T5 T4 T6 M1 M2 A1 A2
    CFC1 CFC2 CFC3 CFC4 CFC5 CFC6 CFC7 CFC8 CCP1 CCP2 CCP3 CCP4 CCP5 CCP6 CCP7 CCP8 T1 T2
    FTT9h TTP7h TPP9h FTT10h TPP8h TPP10h FP1-F7 F7-T7 T7-P7 P7-O1 FP2-F8 F8-T8 T8-P8 P8-O2
    """.split()
)

# Electrodes that a recording calls by numbers: the nearest that LaBraM knows, as NeuralBench reads them (MIT licence,
# Meta Platforms). '{}' is the number.
_NUMBERED = {
    'E{}': """
        1:F10 2:AF8 3:AF4 4:F2 6:FCZ 9:FP2 11:FZ 13:FC1 14:FPZ 16:AFZ 19:F1 22:FP1 23:AF3 24:F3 26:AF7 27:F5 28:FC5
        29:FC3 30:C1 32:F9 33:F7 34:FT7 36:C3 37:CP1 38:FT9 41:C5 42:CP3 44:T9 45:T7 46:TP7 47:CP5 51:P5 52:P3 55:CPZ
        57:TP9 58:P7 60:P1 62:PZ 64:P9 65:PO7 67:PO3 70:O1 72:POZ 75:OZ 77:PO4 83:O2 85:P2 87:CP2 90:PO8 92:P4 93:CP4
        95:P10 96:P8 97:P6 98:CP6 100:TP10 102:TP8 103:C6 104:C4 105:C2 108:T8 111:FC4 112:FC2 114:T10 116:FT8 117:FC6
        121:FT10 122:F8 123:F6 124:F4
    """,  # a Geodesic net
    '{}': """
        1:CPZ 2:FCZ 3:C2 4:CP2 5:PZ 6:CP1 7:C1 8:FZ 9:FC2 10:FC4 11:CCP4 12:P4 13:P2 14:POZ 15:P1 16:P3 17:CCP3 18:FC3
        19:FC1 20:AFZ 21:F4 22:FC4 23:C6 24:CCP6 25:P6 26:PO6 27:PO2 28:PO1 29:PO5 30:P5 31:CCP5 32:C5 33:FC3 34:F3
        35:FPZ 36:AF6 37:F8 38:FT8 39:T8 40:TP8 41:PO8 42:O2 43:IZ 44:O1 45:PO7 46:TP7 47:T7 48:FT7 49:F7 50:AF5 51:F10
        52:FTT10h 53:TP10 54:P10 55:PO10 56:IZ 57:PO9 58:P9 59:TP9 60:FTT9h 61:F9
    """,  # an equidistant cap of 61
    'EEG {:03}': """
        1:AF1 2:AF1 3:AF2 4:F5 5:F3 6:F2 7:F4 8:FC5 9:FC3 10:FC3 11:FC1 12:FCZ 13:FCZ 14:FC2 15:FC4 16:FC4 17:T7 18:C5
        19:C3 20:C1 21:CZ 22:C4 23:C6 24:C6 25:TP7 26:TTP7h 27:CCP5 28:CCP3 29:CCP1 30:CZ 31:CZ 32:CCP2 33:CCP4 34:CCP6
        35:CP6 36:P7 37:CP5 38:CP3 39:CP1 40:CPZ 41:CP2 42:CP4 43:TPP8h 44:P5 45:P3 46:P3 47:P1 48:PZ 49:PZ 50:P2 51:P4
        52:P4 53:PO5 54:PO3 55:PO2 56:PO4 57:PO3 58:PO1 59:PO2 60:OZ
    """,  # a cap inside an MEG helmet
    'EEG{}': '3:C3 8:CZ 13:C4',
}
NUMBERED = SENSORS | {
    form.format(int(number)): name
    for form, pairs in _NUMBERED.items()
    for number, _, name in (pair.partition(':') for pair in pairs.split())
}
_CANONICAL = {name.upper(): name for name in NAMES}


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as which of `NAMES`: {'Fp1': 'FP1', 'Fpz-Cz': 'FPZ'}.

    The first that fits: `NUMBERED` (sensors of MEG among them, 'MLC11-1609' too); the name itself, in capitals or not;
    what stands before the hyphen of a bipolar 'A-B'. Two channels may be read as one name; a channel that is left out
    changes nothing for the others.
    """
    found = {name: _known(name) for name in ch_names}
    return {name: known for name, known in found.items() if known is not None}


def _known(name: str) -> str | None:
    if name in NUMBERED:
        return NUMBERED[name]
    anode, *rest = name.split('-')
    if anode in SENSORS:
        return SENSORS[anode]
    found = _CANONICAL.get(name.upper())
    return found or (_CANONICAL.get(anode.upper()) if len(rest) == 1 and rest[0] else None)
