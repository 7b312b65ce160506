"""A helmet of MEG sensors around the sphere of the simulated head, as Neuromag builds them.

Each place holds a magnetometer, which reads the field that leaves the head (T), and two planar gradiometers, which read
how that changes along the helmet in two directions (T/m). Places are evenly spread over a cap.
"""

from __future__ import annotations

from collections.abc import Sequence

import mne
import numpy as np

RADIUS = 0.12  # m from the middle of the head: some 3 cm from the scalp
LOWEST = -0.25  # of RADIUS, below the middle of the head
TESLA, PER_METRE = 20e-15, 20e-15 / 0.05  # what counts as 1 uV of an electrode: T, T/m
KINDS = {'1': 'mag', '2': 'grad', '3': 'grad'}  # by the last figure of a name


def info(names: Sequence[str], sfreq: float, sphere: mne.bem.ConductorModel) -> mne.Info:
    """The sensors MEG0111, MEG0112, ... of a helmet that has as many places as the names say, in head coordinates."""
    places = list(dict.fromkeys(name[:5] for name in names))
    out = mne.create_info(list(names), sfreq, [KINDS[name[-1]] for name in names], verbose='ERROR')
    for channel, name in zip(out['chs'], names, strict=True):
        outward = _direction(places.index(name[:5]), len(places))
        along = np.cross([0.0, 1.0, 0.0], outward)
        along /= np.linalg.norm(along)
        axes = [along, np.cross(outward, along)]
        if name[-1] == '3':
            axes = [axes[1], -axes[0]]
        channel['loc'] = np.concatenate([sphere['r0'] + RADIUS * outward, *axes, outward])
    with out._unlock():
        out['dev_head_t'] = mne.Transform('meg', 'head')
    return out


def units(info: mne.Info) -> np.ndarray:
    """What counts as 1 uV of an electrode, of each sensor: [C, 1]."""
    return np.array([[TESLA if kind == 'mag' else PER_METRE] for kind in info.get_channel_types()])


def _direction(k: int, n: int) -> np.ndarray:
    """The k-th of n directions that are evenly spread over a sphere above LOWEST (a spiral of golden angles)."""
    z = 1 - (1 - LOWEST) * (k + 0.5) / n
    turn = np.pi * (3 - 5**0.5) * k
    return np.array([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z])
