"""Sequences of keys: greedy decoding of frames, edit distance, and the error rate of characters.

An answer is a *path*: the most probable output of each frame, NONE for the blank, which is the last output
(connectionist temporal classification: Graves et al. 2006). NONE also pads references that are shorter than their
array.
"""

from __future__ import annotations

import numpy as np

NONE = -1  # no key


def path(logits: np.ndarray) -> np.ndarray:
    """The most probable output of each frame: f32 [N, frames] of [N, frames, K]; nan where a frame is not finite."""
    best = logits.argmax(-1)
    best[best == logits.shape[-1] - 1] = NONE
    return np.where(np.isfinite(logits).all(-1), best, np.nan).astype(np.float32)


def decode(path: np.ndarray) -> np.ndarray:
    """The keys that a path [frames] stands for: repeats joined, then blanks dropped."""
    return path[(np.diff(path, prepend=np.nan) != 0) & (path != NONE)]


def encode(keys: np.ndarray) -> np.ndarray:
    """A path [2 L] that stands for the keys [L]: a blank after each."""
    return np.stack([keys, np.full(len(keys), NONE)], 1).reshape(-1)


def distance(a: np.ndarray, b: np.ndarray) -> int:
    """Levenshtein's distance of two sequences of numbers: least insertions, deletions and substitutions."""
    place = np.arange(len(b) + 1)
    row = place
    for i, key in enumerate(a, 1):
        best = np.concatenate([[i], np.minimum(row[1:] + 1, row[:-1] + (b != key))])
        row = np.minimum.accumulate(best - place) + place  # insertions: one more for each step to the right
    return int(row[-1])


def error_rate(paths: np.ndarray, y: np.ndarray) -> float | None:
    """Edit distances over lengths of the references, both summed over windows; None where no key was pressed.

    paths: [N, frames]; y: int [N, length], padded with NONE. May exceed 1.
    """
    wrong, length = (of.sum() for of in errors(paths, y))
    return float(wrong / length) if length else None


def errors(paths: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edit distance and length of the reference of each window: int [N] both; arguments as for `error_rate`."""
    wrong = [distance(decode(p), keys[keys != NONE]) for p, keys in zip(paths, y, strict=True)]
    return np.array(wrong, int), (y != NONE).sum(1)
