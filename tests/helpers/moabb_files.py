"""Files as MOABB keeps them: what several tests read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.io import savemat

EEG = 1e-5  # V, the size of what is written


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def nakanishi(root: Path) -> dict[float, int]:
    """A MATLAB file of trials; MOABB puts 50 empty samples before and behind each."""
    path = root / 'MNE-nakanishi-data' / 'mnakanishi' / '12JFPM_SSVEP' / 'raw' / 'master' / 'data' / 's1.mat'
    path.parent.mkdir(parents=True)
    savemat(path, {'eeg': noise(12, 8, 1114, 15) * EEG * 1e6})
    return {(1214 * k + 50) / 256: k // 15 + 1 for k in range(180)}
