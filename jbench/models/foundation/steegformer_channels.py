"""The channels that STEEGFormer knows, and how those of a recording are found among them."""

from __future__ import annotations

from collections.abc import Sequence

# The names of rows 0 to 141 of the checkpoint's table (Yang et al., `senloc_file/sen_chan_idx.pkl`, MIT licence); it
# has 145, of which the last three were never used. T3 and T7, T5 and P7, A1 and M1 have rows of their own each: what a
# recording calls its electrode decides.
NAMES = tuple(
    """
    C1 Pz C4 F6 FTT8h Oz Fp1 FCC5h TPP8h CPP6h C2 F4 OI2h AF4 FCz CCP6h TP8 POO10h FC1 FC6 C5 P8 FT8 P6 P9 Fz
    AFF1 TPP10h AFF2 P10 CPP2h M1 FCC6h FTT7h FC2 PPO2 AFp3h AF7 PO10 AF8 CPP1h P7 F1 AFp4h PO9 FT9 CP2 Iz FCC1h
    FC5 T5 CP5 CP6 FFC5h F2 M2 POO9h AFF5h PO4 POO3h Fp2 T3 CP4 POz TTP7h T7 A2 CCP4h T8 PPO10h FC3 F3 F5 A1 P3
    FC4 FCC2h FFC6h FFT8h CCP2h CPP4h T6 FTT9h PPO6h CP3 CP1 AF3 FT10 OI1h TPP9h P5 I2 CCP1h T4 CCP3h O1 PO5
    PPO9h PPO5h P1 AFz PO6 PO3 O2 CPP5h FFC1h FCC4h FFT7h FFC2h FFC4h Cz TP7 Fpz FTT10h PO7 CPP3h P4 P2 F8 CPz
    FCC3h FFC3h FT7 I1 TTP8h AFF6h CCP5h C6 PPO1 PO8 C3 POO4h TPP7h F7 T9 TP9 T10 TP10 POO1 POO2 PPO1h PPO2h
    """.split()
)
ROWS = 145  # of the table
INDEX = {name.upper(): i for i, name in enumerate(NAMES)}


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as which of `NAMES`: {'FP1': 'Fp1'}; in capitals or not.

    A channel that has no row is left out, and that changes nothing for the others.
    """
    return {name: NAMES[INDEX[name.upper()]] for name in ch_names if name.upper() in INDEX}
