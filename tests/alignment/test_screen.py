"""Images on a screen, pixel by pixel as the reference places them; small eye movements."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment import screen, stimuli
from jbench.spec.errors import RequestError

GOLDEN = np.load(FIXTURES / 'alignment' / 'screen_time.npz')
IMAGE = GOLDEN['image']


def one(image=IMAGE, **columns):
    return stimuli.of_arrays('one', {'stimulus_id': ['a'], **columns}, [image])


@each('source, target', [(8, 14), (8, 6), (4, 8), (10, 8), (3, 8), (8, 8)])
def test_pixels_are_those_of_the_reference(source, target):
    placed = screen.place_on_screen(one(), target, source)
    np.testing.assert_array_equal(placed.image('a'), GOLDEN[f'screen_{source}to{target}'])


def test_halves_are_rounded_to_the_even_number():
    image = np.ones((5, 3, 3), np.uint8)
    assert screen.placed(image, 1.5).shape == (8, 4, 3)  # 7.5, 4.5
    assert screen.placed(image, 0.5).shape == (2, 2, 3)  # 2.5, 1.5
    wide = screen.placed(np.ones((2, 2, 3), np.uint8), 2.5)  # 5: 1.5 before, so 2
    assert (np.flatnonzero((wide[:, :, 0] == 1).any(1)) == [2, 3]).all()


def test_the_same_size_is_the_same_set_and_others_are_named():
    given = one(degrees=[8.0])
    assert screen.place_on_screen(given, 8) is given
    placed = screen.place_on_screen(given, 10)
    assert placed.identifier == 'one--target10.00--sourceNone' and placed.table['degrees'].tolist() == [10.0]
    assert screen.place_on_screen(one(), 10, 8).identifier == 'one--target10.00--source8.00'
    assert len({given.digest, placed.digest, screen.place_on_screen(given, 12).digest}) == 3
    assert given.table['degrees'].tolist() == [8.0]


def test_every_image_has_a_size_of_its_own():
    given = stimuli.of_arrays('two', {'stimulus_id': ['a', 'b'], 'degrees': [4.0, 8.0]}, [IMAGE, IMAGE])
    placed = screen.place_on_screen(given, 8)
    np.testing.assert_array_equal(placed.image('a'), GOLDEN['screen_4to8'])
    np.testing.assert_array_equal(placed.image('b'), IMAGE)


@each('source, target, size', [(10, 8, 1484), (10, 12, 2226), (8, 10, 2319)])
def test_a_large_image(source, target, size):
    image = np.random.default_rng(0).integers(129, 256, (1855, 1855, 3), dtype=np.uint8)  # no gray inside
    placed = screen.placed(image, target / source)
    assert placed.shape == (size, size, 3)
    expected = max(0, 1 - (1855 / size) ** 2) / 3
    assert screen.gray_share(placed) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ('columns', 'target', 'source', 'said'),
    [
        ({}, 8, None, 'found neither'),
        ({'degrees': [8.0]}, 8, 8, 'found both'),
        ({'degrees': [-8.0]}, 8, None, 'a size of -8.0'),
        ({'degrees': [np.nan]}, 8, None, 'a size of nan'),
        ({}, 0, 8, 'a size of 0'),
    ],
)
def test_sizes_come_from_one_place(columns, target, source, said):
    with pytest.raises(RequestError, match=said):
        screen.place_on_screen(one(**columns), target, source)


def test_texts_have_no_screen():
    placed = screen.place_on_screen(stimuli.of_arrays('t', {'stimulus_id': ['a']}, ['a word']), 8, 4)
    with pytest.raises(RequestError, match='is a text'):
        placed.image('a')


# ---- eye movements ----


@each('n, size, degrees', [(1, 224, 8), (10, 224, 8), (5, 112, 4)])
def test_the_turn_of_the_reference(n, size, degrees):
    found = screen.microsaccades(n, size, degrees, path='spiral')
    np.testing.assert_allclose(found, GOLDEN[f'saccade_pixels_{n}_{size}_{degrees}'], atol=1e-12)
    np.testing.assert_allclose(found / (size / degrees), GOLDEN[f'saccade_degrees_{n}_{size}_{degrees}'], atol=1e-12)


def test_shifts_cover_the_disc_evenly():
    found = screen.microsaccades(2000, 224, 8)
    largest = 0.05 / 8 * 224
    assert (found[0] == 0).all() and np.linalg.norm(found, axis=1).max() < largest
    quarters = np.histogram(np.arctan2(*found.T), 8, (-np.pi, np.pi))[0]
    assert np.ptp(quarters) < 0.1 * 250  # the single turn: several times as many on one side
    rings = np.histogram(np.linalg.norm(found, axis=1) ** 2, 5, (0, largest**2))[0]
    assert np.ptp(rings) < 0.1 * 400
    with pytest.raises(RequestError, match='must be positive'):
        screen.microsaccades(0, 224, 8)


def test_shifts_move_right_and_down_and_edges_go_on():
    image = np.zeros((5, 6, 3), np.uint8)
    image[2, 3] = 200
    moved = screen.shifted(image, np.array([1.0, -1.0]))
    assert moved[1, 4, 0] == 200 and moved.sum() == 600
    half = screen.shifted(image, np.array([0.25, 0.0]))
    assert half[2, 3:5, 0].tolist() == [150, 50] and half.dtype == np.uint8
    np.testing.assert_array_equal(screen.shifted(image, np.zeros(2)), image)
    ramp = np.tile(np.arange(6.0)[None, :, None], (5, 1, 3))
    np.testing.assert_allclose(screen.shifted(ramp, np.array([1.5, 0]))[0, :, 0], [0, 0, 0.5, 1.5, 2.5, 3.5])
