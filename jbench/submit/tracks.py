"""The tracks of the challenges as their platforms run them: sizes of windows, what is asked, and the generators that
their contracts are checked with (docs/challenges.md says where each was read)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jbench.data.load.streams import Places

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
        return {
            'n_chans': self.shape[0],
            'n_times': self.shape[1],
            'sfreq': self.sfreq,
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

# windows f32 [N, C, T], what `meta` says of them, and where they lie on a track that is streamed
Generated = tuple[np.ndarray, dict[str, Any], Places | None]
RUNS = 6  # recordings of a generator
OF_A_STREAM = {'2026-2': 2, '2026-3': 1}  # recordings in a stream
NAMES = 'Fp1 Fp2 F7 F3 Fz F4 F8 T7'.split()


def _pictures(rng: np.random.Generator, n: int, c: int, t: int, n_out: int) -> np.ndarray:
    template = 2 * rng.standard_normal((20, c, 1))
    return template[rng.integers(0, 20, n)] + rng.standard_normal((n, c, t))


def _commands(rng: np.random.Generator, n: int, c: int, t: int, n_out: int) -> np.ndarray:
    template = 2 * rng.standard_normal((n_out, c, 1))
    return template[rng.integers(0, n_out, n)] + rng.standard_normal((n, c, t))


def _evenings(rng: np.random.Generator, n: int, c: int, t: int, n_out: int) -> np.ndarray:
    slope, y = 4 * rng.standard_normal((c, 1)), np.minimum(rng.exponential(250, (n, 1, 1)), 600)
    return rng.standard_normal((n, c, t)) + slope * y / 600


def _poses(rng: np.random.Generator, n: int, c: int, t: int, n_out: int) -> np.ndarray:
    mixing, walk = 0.3 * rng.standard_normal((c, n_out)), rng.standard_normal((n, n_out, t)).cumsum(-1)
    smooth = np.apply_along_axis(np.convolve, -1, walk, np.ones(9) / 9, 'same')
    y = 0.5 * smooth / np.abs(smooth).max(-1, keepdims=True) + 0.35
    return np.asarray(mixing @ y + 2 * rng.standard_normal((n, c, t)))


Make = Callable[[np.random.Generator, int, int, int, int], np.ndarray]
# of a track: windows, channels, samples and outputs of each size; their Hz; names of channels
GENERATORS: dict[str, tuple[Make, tuple[tuple[int, int, int, int], ...], float, Sequence[str] | None]] = {
    '2026-1': (_pictures, ((120, 8, 120, 32), (120, 4, 60, 16)), 100.0, NAMES),
    '2026-2': (_commands, ((60, 8, 200, 3), (10, 4, 80, 3)), 100.0, NAMES),
    '2026-3': (_evenings, ((150, 4, 500, 1), (10, 2, 100, 1)), 100.0, ['Fpz-Cz', 'Pz-Oz', *NAMES]),
    '2026-4': (_poses, ((50, 16, 400, 20), (50, 4, 80, 5)), 200.0, None),
}


def places(n: int, of_a_stream: int) -> Places:
    """Where n test windows of a generator lie: in at most RUNS recordings, of which so many make a stream and are the
    contexts in it; the onset of a window is its number in its recording."""
    record = np.arange(n) * min(RUNS, n) // n
    stream, context = (number.astype(str) for number in np.divmod(record, of_a_stream))
    onset = np.arange(n) - np.searchsorted(record, record)
    cell = np.char.add(np.char.add(stream, '/'), context) if of_a_stream > 1 else stream
    return Places(stream, record, onset.astype(np.float64), cell)


def generated(track: str, seed: int = 42) -> Iterator[Generated]:
    """Test windows of the generators of a track, of each size; of 2025 there are none."""
    if track not in GENERATORS:
        return
    make, sizes, sfreq, names = GENERATORS[track]
    for n, c, t, n_out in sizes:
        x = make(np.random.default_rng(seed), n, c, t, n_out).astype(np.float32)
        about = {'n_chans': c, 'n_times': t, 'sfreq': sfreq, 'ch_names': names and list(names[:c]), 'chs_info': None}
        order = places(n, OF_A_STREAM[track]) if track in OF_A_STREAM else None
        yield x, {**about, TRACKS[track].asked: n_out}, order


def noise(shape: tuple[int, ...], unit: str, seed: int = 33) -> np.ndarray:
    """Windows f32 [N, C, T] of noise as large as recordings are."""
    size = 1.0 if unit == 'scaled' else 20.0
    return (size * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)
