"""What a list of jobs takes on so many devices, against arithmetic by hand and bounds that always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jbench.grid.simulate import finish


def test_by_hand():
    assert finish([4, 3, 3, 2], 2) == (6, 0, 0)  # 4 + 2 beside 3 + 3
    assert finish([2, 3, 3, 4], 2) == pytest.approx((7, 2, 2 / 14))  # 2 + 3 beside 3 + 4
    assert finish([5], 3) == pytest.approx((5, 5, 10 / 15))
    assert finish([], 3) == (0, 0, 0)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=60), st.integers(1, 20))
def test_no_order_beats_the_bounds_and_the_longest_first_is_near_them(seconds, n):
    least = max(sum(seconds) / n, max(seconds))
    for order in (seconds, sorted(seconds), sorted(seconds, reverse=True)):
        wall, tail, idle = finish(order, n)
        assert least * (1 - 1e-9) <= wall <= sum(seconds) / n + max(seconds) + 1e-6  # Graham (1966)
        assert 0 <= tail <= max(seconds) + 1e-6 and -1e-9 <= idle < 1
    # Graham (1969): at most 4/3 - 1/(3n) of the best one, which is itself at least `least`; so against `least` this
    # holds where the longest job is not long beside the rest
    best = finish(sorted(seconds, reverse=True), n).wall
    assert best <= sum(seconds) / n + max(seconds) * (1 - 1 / n) + 1e-6


def test_equal_jobs_take_whole_rounds():
    wall, tail, idle = finish([60.0] * 4947, 256)
    assert wall == 20 * 60 and tail == 60 and idle == pytest.approx(1 - 4947 / (20 * 256))
