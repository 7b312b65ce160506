"""The windows and labels of Neuroprobe, from a table of the words of a film (Zahorodnii et al. 2025, arXiv:2509.21671).

As insight-neuro/neuroprobe@2d25f3d draws them (`neuroprobe/datasets.py`, its default, which it once called Lite, binary
tasks): of each session as many words of one class as of the other, at most 1,750, drawn with its seed. Where a number
is asked for, words above the third quartile stand against those below the first. Windows of both classes alternate;
their order tells the halves and quarters that the published splits are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Words = Mapping[str, np.ndarray]  # columns of the words of a film, [n] each
SEED, MOST = 42, 3500  # of the draw; windows of a session at most
SFREQ = 2048.0  # Hz, of the samples that windows are counted in
SECONDS = 1.0
NUMBERS = {  # task -> column of the words
    'frame_brightness': 'mean_pixel_brightness',
    'global_flow': 'max_global_magnitude',
    'local_flow': 'max_vector_magnitude',
    'volume': 'rms',
    'delta_volume': 'delta_rms',
    'pitch': 'enhanced_pitch',
    'gpt2_surprisal': 'gpt2_surprisal',
    'word_length': 'word_length',
}
SPOKEN = ('onset', 'speech')  # tasks whose other class is nobody speaking
KINDS = ('face_num', 'word_index', 'word_head_pos', 'word_part_speech', 'word_gap')
TASKS = (*SPOKEN, *NUMBERS, *KINDS)
NEEDED = ('sentence', 'is_onset', 'face_num', 'idx_in_sentence', 'bin_head', 'pos', *NUMBERS.values())  # columns
Pair = tuple[np.ndarray, np.ndarray]  # rows of class 1, rows of class 0


def event_type(task: str) -> str:
    """What the windows of a task are called in the table of events: WordGap of word_gap."""
    return ''.join(word.capitalize() for word in task.split('_'))


def classes(task: str, words: Words, n_silent: int) -> Pair:
    """Rows of the words of class 1 and of class 0; of SPOKEN, class 0 are rows of the stretches without speech."""
    if task in SPOKEN:
        spoken = words['is_onset'].astype(float) == 1 if task == 'onset' else np.ones(len(words['start']), bool)
        return np.flatnonzero(spoken), np.arange(n_silent)
    if task in NUMBERS:
        value = words[NUMBERS[task]].astype(float)
        share = _share_below(value, value)
        return np.flatnonzero(share > 0.75), np.flatnonzero(share < 0.25)
    if task == 'word_gap':
        return _gaps(words)
    named: dict[str, Callable[[], Pair]] = {
        'face_num': lambda: _values(_whole(words['face_num']).clip(max=1), 1, 0),
        'word_index': lambda: _values(_whole(words['idx_in_sentence']), 0, 1),
        'word_head_pos': lambda: _values(_whole(words['bin_head']), 0, 1),
        'word_part_speech': lambda: _values(words['pos'], 'VERB', 'NOUN'),
    }
    return named[task]()


def drawn(pair: Pair) -> Pair:
    """As many rows of either class, ascending."""
    n = min(len(pair[0]), len(pair[1]), MOST // 2)
    rng = np.random.RandomState(SEED)
    one, other = (np.sort(rng.choice(rows, size=n, replace=False)) for rows in pair)
    return one, other


def events(words: Words, start: np.ndarray, silent: np.ndarray) -> dict[str, list[Any]]:
    """The windows of all tasks: `onset` and `duration` in s, `type`, `label` ('1', '0'), `half` ('1', '2') and
    `quarter` ('1' to '4') of the windows of its task.

    Args:
        words: columns NEEDED, `start` and `end` (s in the film), [n] each.
        start: of the words, s in the recording, [n].
        silent: starts of stretches of a second without speech, s in the recording.
    """
    out: dict[str, list[Any]] = {k: [] for k in ('onset', 'duration', 'type', 'label', 'half', 'quarter')}
    for task in TASKS:
        one, other = drawn(classes(task, words, len(silent)))
        n, elsewhere = len(one), silent if task in SPOKEN else start
        onset = np.stack([start[one], elsewhere[other]], 1).ravel()  # in turn
        half = np.repeat([1, 2], n)
        quarter = 2 * half - (np.tile(np.arange(n), 2) < n // 2)
        out['onset'] += onset.tolist()
        out['duration'] += [SECONDS] * 2 * n
        out['type'] += [event_type(task)] * 2 * n
        out['label'] += ['1', '0'] * n
        out['half'] += [str(v) for v in half.tolist()]
        out['quarter'] += [str(v) for v in quarter.tolist()]
    return out


def _share_below(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The share of numbers that are below each value; 0 where it is not known."""
    known = np.sort(among[~np.isnan(among)])
    share = np.searchsorted(known, values, 'left') / max(1, len(among))
    return np.where(np.isnan(values), 0.0, share)


def _whole(column: np.ndarray) -> np.ndarray:
    """Numbers without what is behind their points, -1 where one is not known."""
    return np.nan_to_num(column.astype(float), nan=-1).astype(int)


def _values(found: np.ndarray, one: Any, other: Any) -> Pair:
    return np.flatnonzero(found == one), np.flatnonzero(found == other)


def _gaps(words: Words) -> Pair:
    """Words long after, and soon after, the one before in their sentence."""
    sentence = words['sentence']
    rows = 1 + np.flatnonzero((sentence[1:] == sentence[:-1]) & (sentence[1:] != 'nan'))  # none: that of no other word
    gap = words['start'].astype(float)[rows] - words['end'].astype(float)[rows - 1]
    share = _share_below(gap, gap)
    return rows[share >= 0.75], rows[share < 0.25]
