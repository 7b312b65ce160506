"""What the recorder of braindecode's networks of joint angles and the test against them share. No torch here."""

from __future__ import annotations

import numpy as np

PEERS = {'vemg2pose': 'VEMG2Pose', 'neuropose': 'NeuroPose'}  # names in braindecode.models
N_CHANS, N_JOINTS, SFREQ = 16, 20, 2000.0
N_TIMES = {'vemg2pose': 2404, 'neuropose': 1400}  # no whole number of steps
CONTEXT = {'vemg2pose': 1790}  # samples before a window
EVERY = 37  # samples: of answers, those that are recorded
ROWS = 2


def windows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Windows f32 [B, C, T] and angles f32 [B, joints, T]."""
    rng = np.random.default_rng([ROWS, N_TIMES[name]])
    x = rng.standard_normal((ROWS, N_CHANS, N_TIMES[name])) * rng.uniform(0.3, 2, (ROWS, N_CHANS, 1))
    y = rng.standard_normal((ROWS, N_JOINTS, N_TIMES[name]))
    return x.astype(np.float32), y.astype(np.float32)


def with_context(name: str, x: np.ndarray) -> np.ndarray:
    """Windows as braindecode's network is given them: mirrored at their start."""
    n = CONTEXT.get(name, 0)
    return np.concatenate([x[..., 1 : n + 1][..., ::-1], x], -1)
