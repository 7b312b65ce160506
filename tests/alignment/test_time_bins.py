"""Responses in other time bins: weights as the reference has them, and refusals where it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment import time_bins
from jbench.spec.errors import RequestError

GOLDEN = np.load(FIXTURES / 'alignment' / 'screen_time.npz')
TENS = [(0, 10), (10, 20), (20, 30)]


def test_weights_and_means_are_those_of_the_reference():
    source, target = GOLDEN['time_source'], GOLDEN['time_target']
    np.testing.assert_allclose(time_bins.weights(source, target), GOLDEN['time_weights'], atol=1e-12)
    np.testing.assert_allclose(time_bins.rebin(GOLDEN['time_data'], source, target), GOLDEN['time_result'], atol=1e-12)


@each(
    'target, expected',
    [((0, 30), [1, 1, 1]), ((5, 25), [0.5, 1, 0.5]), ((9, 21), [0.1, 1, 0.1]), ((9, 13), [0.1, 0.3, 0])],
)
def test_parts_of_bins(target, expected):
    np.testing.assert_allclose(time_bins.weights(TENS, [target])[0], expected)
    values = np.array([[1.0, 10, 100]], np.float32)
    found = time_bins.rebin(values, TENS, [target])
    assert found.dtype == np.float32 and found.shape == (1, 1)
    np.testing.assert_allclose(found[0, 0], np.average(values[0], weights=expected), rtol=1e-6)


@each('target', [(20, 35), (0, 31), (0, 30.00001), (-1, 5), (30, 20), (10, 10), (40, 50)])
def test_what_is_not_there_is_refused(target):
    for how in ('portion', 'center'):
        with pytest.raises(RequestError, match=r'time bin .* ms (is not within|that is wanted ends before)'):
            time_bins.weights(TENS, [(0, 10), target], how)


def test_middles_choose_bins():
    hundreds = [(0, 100), (100, 200), (200, 300)]
    found = time_bins.weights(hundreds, [(0, 50), (250, 300)], 'center')
    assert found.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert time_bins.weights(hundreds, [(0, 50), (250, 300)]).tolist() == [[0.5, 0, 0], [0, 0, 0.5]]
    assert time_bins.weights(hundreds, [(50, 150)], 'center').tolist() == [[0, 1, 0]]


def test_frames_of_a_film_that_do_not_add_up_exactly():
    frames = [(k * 1000 / 30, (k + 1) * 1000 / 30) for k in range(3)]
    tens = [(t, t + 10) for t in range(0, 100, 10)]
    for how in ('portion', 'center'):
        assert time_bins.weights(frames, tens, how).argmax(1).tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]


def test_bins_that_were_added_up_end_where_they_should():
    ends = np.cumsum(np.full(10, 0.1))
    assert ends[-1] < 1  # in floating point
    found = time_bins.weights(list(zip(ends - 0.1, ends, strict=True)), [(0.9, 1.0)])
    np.testing.assert_allclose(found[0], [0] * 9 + [1], atol=1e-9)


def test_gaps_and_wrong_numbers_are_refused():
    with pytest.raises(RequestError, match='10 to 20 ms lies in a gap'):
        time_bins.weights([(0, 10), (20, 30)], [(10, 20)])
    with pytest.raises(RequestError, match='2 responses in time for 3 time bins'):
        time_bins.rebin(np.zeros((4, 2)), TENS, TENS)
    with pytest.raises(RequestError, match='no time bins'):
        time_bins.weights([], TENS)


def test_a_static_response_is_the_same_in_every_bin():
    found = time_bins.repeated(np.arange(6.0).reshape(2, 3), [(t, t + 10) for t in range(70, 250, 10)])
    assert found.shape == (2, 3, 18) and (found == found[..., :1]).all()
