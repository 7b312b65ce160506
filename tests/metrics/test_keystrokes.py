"""Sequences of keys: decoding, edit distance and error rate against their definitions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.metrics import keystrokes
from jbench.metrics.keystrokes import NONE

KEYS = st.lists(st.integers(0, 3), max_size=12)


def plain_distance(a: list[int], b: list[int]) -> int:
    @lru_cache(None)
    def d(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return d(len(a), len(b))


@settings(deadline=None)
@given(KEYS, KEYS)
def test_distance_is_levenshteins(a: list[int], b: list[int]) -> None:
    assert keystrokes.distance(np.array(a), np.array(b)) == plain_distance(a, b)


@settings(deadline=None)
@given(KEYS)
def test_what_is_encoded_is_decoded(keys: list[int]) -> None:
    assert keystrokes.decode(keystrokes.encode(np.array(keys, int))).tolist() == keys


def test_repeats_are_joined_before_blanks_are_dropped() -> None:
    logits = np.eye(4)[[3, 0, 0, 3, 0, 1, 1, 3, 3, 2, 1]]  # 3 is the blank
    path = keystrokes.path(logits[None])
    assert path.tolist() == [[NONE, 0, 0, NONE, 0, 1, 1, NONE, NONE, 2, 1]]
    assert keystrokes.decode(path[0]).tolist() == [0, 0, 1, 2, 1]


def test_a_frame_that_is_no_number_shows_in_the_path() -> None:
    logits = np.zeros((1, 3, 2))
    logits[0, 1, 0] = np.nan
    assert np.isnan(keystrokes.path(logits)).tolist() == [[False, True, False]]


def test_error_rate_sums_before_it_divides() -> None:
    y = np.array([[0, 1, 2, 3], [1, NONE, NONE, NONE], [NONE] * 4])
    paths = [keystrokes.encode(np.array(k)) for k in ([0, 1, 2], [1, 1, 1], [2, 0, 0])]
    paths = np.array([np.pad(p, (0, 6 - len(p)), constant_values=NONE) for p in paths])
    assert keystrokes.error_rate(paths, y) == (1 + 2 + 3) / 5  # what is said where nothing was typed is wrong, too
    assert keystrokes.error_rate(paths[2:], y[2:]) is None
