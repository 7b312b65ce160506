"""Gratings, beside the published ones."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment import gratings
from jbench.alignment.gratings import Grating, draw, image, stimulus_set, table
from jbench.spec.errors import RequestError


@pytest.fixture(scope='module')
def published():
    return np.load(FIXTURES / 'alignment' / 'gratings.npz')


def test_pixels_are_those_of_published_images(published):
    for parameters, expected in zip(published['parameters'], published['images'], strict=True):
        np.testing.assert_array_equal(draw(Grating(*parameters.tolist())), expected)


@each('name', ['receptive_field', 'spatial_frequency'])
def test_parameters_are_the_published_ones(name, published):
    found = table(f'Marques2020_{name}')
    assert len(found['stimulus_id']) == published[f'{name}_n']
    rows = published[f'{name}_rows']
    values = np.array([found[field] for field in Grating._fields]).T[rows]
    np.testing.assert_allclose(values, published[f'{name}_values'], rtol=1e-12)


@each(
    'name, n',
    [('blank', 1), ('receptive_field', 3528), ('orientation', 1152), ('spatial_frequency', 2112), ('size', 2304)],
)
def test_sets_are_as_large_as_the_published_ones(name, n):
    found = table(f'Marques2020_{name}')
    assert found['stimulus_id'] == [str(k) for k in range(n)] and set(found['degrees']) == {12}


def test_orientations_are_shown_at_a_whole_number_of_cycles():
    found = {name: np.array(values) for name, values in table('Marques2020_orientation').items()}
    cycles = 2 * found['radius'] * found['spatial_frequency']
    np.testing.assert_allclose(cycles, np.repeat([2, 3, 4], 384))
    np.testing.assert_allclose(np.unique(found['spatial_frequency']), 2 ** (np.arange(4) - 0.375))


def test_the_blank_is_gray():
    found = image('Marques2020_blank', '0')
    assert found.shape == (448, 448, 3) and found.dtype == np.uint8 and (found == 128).all()


def test_a_patch_lies_right_and_below():
    found = image('Marques2020_size', '0')
    rows, columns = np.nonzero(found[:, :, 0] != 128)
    assert found.shape == (672, 672, 3) and (found == found[:, :, :1]).all()
    assert rows.mean() == pytest.approx(336 + 28, abs=1) and columns.mean() == pytest.approx(336 + 28, abs=1)
    assert np.ptp(rows) == pytest.approx(2 * 56 * gratings.RADII[0], abs=2)


def test_a_patch_may_leave_the_image():
    found = draw(Grating(-5.9, 5.9, 1.0, 0.5, 2.0, 45.0, 0.0))
    assert (found[:30, -30:] != 128).any() and (found[100:] == 128).all()


def test_a_set_of_stimuli():
    found = stimulus_set('Marques2020_receptive_field')
    assert found.identifier == 'Marques2020_receptive_field' and len(found) == 3528
    np.testing.assert_array_equal(found.image('7'), image('Marques2020_receptive_field', '7'))
    assert found.digest == stimulus_set('Marques2020_receptive_field').digest
    assert found.digest != stimulus_set('Marques2020_size').digest
    assert len(stimulus_set('Marques2020_blank')) == 1


@each(
    'call, said',
    [
        (lambda: table('Marques2020_sizes'), 'did you mean .Marques2020_size'),
        (lambda: image('Marques2020_size', '2304'), 'no stimulus .2304., expected 0 to 2303'),
        (lambda: image('Marques2020_blank', '1'), 'expected 0 to 0'),
    ],
)
def test_what_there_is_not(call, said):
    with pytest.raises(RequestError, match=said):
        call()
