"""Events of a night from its sleep stages."""

from __future__ import annotations

import numpy as np

FIRST = 1200.0  # s before sleep that `SleepOnset` holds at most


def merged(
    onset: np.ndarray, duration: np.ndarray, stage: np.ndarray, period: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Epochs [n >= 1] in time order, of which those of one stage that follow each other without a gap become one.

    `period` numbers what epochs are not joined across: how often the lights went on or off before each.
    """
    stop = onset + duration
    other = (stage[1:] != stage[:-1]) | (period[1:] != period[:-1])
    first = np.flatnonzero(np.r_[True, other | (onset[1:] > stop[:-1] + 1e-3)])
    last = np.r_[first[1:], len(stage)] - 1
    return onset[first], stop[last] - onset[first], stage[first]


def night(onset: np.ndarray, duration: np.ndarray, stage: np.ndarray) -> dict[str, np.ndarray]:
    """The event table of a night.

    Args:
        onset, duration: of each stage, s.
        stage: W, N1, N2, N3 or R.

    Returns: `SleepStage` events with `stage`; and where there is N2 after the start, `SleepOnset`, the 20 minutes (or
    what there is of them) before the first one begins, with that time in `n2_onset` (s).
    """
    asleep = onset[stage == 'N2']
    n2 = float(asleep.min()) if len(asleep) else 0.0
    begins = np.array([max(0.0, n2 - FIRST)] if n2 > 0 else [])
    kinds = ['SleepOnset'] * len(begins)
    return {
        'onset': np.concatenate([onset, begins]),
        'duration': np.concatenate([duration, n2 - begins]),
        'type': np.array(['SleepStage'] * len(onset) + kinds, dtype='U11'),
        'stage': np.array([*stage, *('' for _ in kinds)], dtype='U2'),
        'n2_onset': np.repeat([np.nan, n2], [len(onset), len(kinds)]),
    }
