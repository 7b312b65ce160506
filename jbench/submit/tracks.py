"""The tracks of the challenges as their platforms run them: sizes of windows, what is asked, and the generators that
their contracts are checked with (docs/challenges.md says where each was read)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

HOUR = 3600.0  # s that a full pass may take
LARGEST = 15e9  # bytes of an archive


@dataclass(frozen=True, kw_only=True)
class Track:
    """What a platform gives, and asks for."""

    name: str
    tasks: tuple[str, ...]  # of jbench: one result each
    answer: str  # 'vector' | 'class' | 'number' | 'joints'
    shape: tuple[int, int]  # channels and samples of a window
    sfreq: float  # Hz
    n_out: int  # outputs of a network; of angles the joints
    asked: str = ''  # what `meta` calls their number
    alone: bool = False  # a window at a time
    unit: str = 'microvolts'  # of its windows: 'microvolts' | 'unsure' (V or uV) | 'scaled'
    clip: tuple[float, float] | None = None
    ch_names: tuple[str, ...] = ()

    def meta(self, ch_names: tuple[str, ...]) -> dict[str, Any]:
        """What a platform says of its windows; names are the track's own, or those of a result that has as many."""
        names = list(self.ch_names or (ch_names if len(ch_names) == self.shape[0] else ()))
        about = {'n_chans': self.shape[0], 'n_times': self.shape[1], 'sfreq': self.sfreq, 'chs_info': None}
        return {
            **about,
            'ch_names': names or None,
            'chs_info': None,
            **({self.asked: self.n_out} if self.asked else {}),
        }


TRACKS = {
    track.name: track
    for track in (
        Track(
            name='2026-1',
            tasks=('challenge2026/image',),
            answer='vector',
            shape=(63, 120),
            sfreq=120.0,
            n_out=1536,
            asked='n_outputs',
            unit='scaled',
        ),
        Track(
            name='2026-2',
            tasks=('challenge2026/bci',),
            answer='class',
            shape=(41, 480),
            sfreq=120.0,
            n_out=3,
            asked='n_classes',
            alone=True,
        ),
        Track(
            name='2026-3',
            tasks=('challenge2026/sleep',),
            answer='number',
            shape=(4, 640),
            sfreq=128.0,
            n_out=1,
            asked='n_outputs',
            alone=True,
            clip=(0.0, 600.0),
            ch_names=('TP9', 'AF7', 'AF8', 'TP10'),
        ),
        Track(
            name='2026-4',
            tasks=('challenge2026/pose',),
            answer='joints',
            shape=(16, 10_000),
            sfreq=2000.0,
            n_out=20,
            asked='n_joints',
            unit='unsure',
        ),
        Track(
            name='2025',
            tasks=('challenge2025/response_time', 'challenge2025/externalizing'),
            answer='number',
            shape=(129, 200),
            sfreq=100.0,
            n_out=1,
            alone=True,
            unit='unsure',
            ch_names=(*(f'E{k}' for k in range(1, 129)), 'Cz'),
        ),
    )
}


# ---- the organisers' generators: contracts are checked with them, scores on them mean nothing ----

Generated = tuple[np.ndarray, dict[str, Any]]  # windows f32 [N, C, T], and what `meta` says of them


def _meta(x: np.ndarray, sfreq: float, ch_names: list[str] | None, **more: int) -> Generated:
    about = {'n_chans': x.shape[1], 'n_times': x.shape[2], 'sfreq': sfreq, 'ch_names': ch_names, 'chs_info': None}
    return x.astype(np.float32), {**about, **more}


def _names(n: int) -> list[str]:
    return 'Fpz-Cz Pz-Oz Fz Cz C3 C4 P3 P4'.split()[:n]


def _pictures(rng: np.random.Generator, n: int, n_chans: int, n_times: int) -> Generated:
    template = rng.standard_normal((20, n_chans))
    x = 2 * template[rng.integers(0, 20, n)][..., None] + rng.standard_normal((n, n_chans, n_times))
    return _meta(x, 100.0, None, n_outputs=32)


def _commands(rng: np.random.Generator, n: int, n_chans: int, n_times: int) -> Generated:
    template, y = 2 * rng.standard_normal((3, n_chans)), rng.integers(0, 3, n)
    return _meta(template[y][..., None] + rng.standard_normal((n, n_chans, n_times)), 100.0, None, n_classes=3)


def _evenings(rng: np.random.Generator, n: int, n_chans: int, n_times: int) -> Generated:
    slope, y = 4 * rng.standard_normal(n_chans), np.minimum(rng.exponential(250, n), 600)
    x = rng.standard_normal((n, n_chans, n_times)) + slope[:, None] * y[:, None, None] / 600
    return _meta(x, 100.0, _names(n_chans), n_outputs=1)


def _poses(rng: np.random.Generator, n: int, n_chans: int, n_times: int) -> Generated:
    y = np.cumsum(rng.standard_normal((n, 20, n_times)), -1)
    y = 0.5 * y / np.abs(y).max() + 0.35
    x = 0.3 * rng.standard_normal((n_chans, 20)) @ y + 2 * rng.standard_normal((n, n_chans, n_times))
    return _meta(x, 200.0, None, n_joints=20)


GENERATORS: dict[str, tuple[Callable[..., Generated], tuple[tuple[int, int, int], ...]]] = {  # (windows, C, T)
    '2026-1': (_pictures, ((120, 8, 120),)),
    '2026-2': (_commands, ((60, 8, 200), (10, 4, 80))),
    '2026-3': (_evenings, ((150, 4, 500), (10, 2, 100))),
    '2026-4': (_poses, ((50, 16, 400),)),
}


def generated(track: str, seed: int = 42) -> Iterator[Generated]:
    """Test windows of the generators of a track, of each size; of 2025 there are none."""
    make, sizes = GENERATORS.get(track, (_pictures, ()))
    for size in sizes:
        yield make(np.random.default_rng(seed), *size)


def noise(shape: tuple[int, ...], unit: str, seed: int = 33) -> np.ndarray:
    """Windows f32 [N, C, T] of noise as large as recordings are."""
    size = 1.0 if unit == 'scaled' else 20.0
    return (size * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)
