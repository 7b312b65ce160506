"""Properties of neurons of V1: values of another implementation, on curves and on whole responses."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment.metrics import tuning
from jbench.alignment.metrics import v1_properties as v1

ORIENTATION = np.arange(0, 180, 22.5)
TUNED = (1 + 10 * np.exp(-(((ORIENTATION - 67.5) / 20) ** 2) / 2))[None]
RADIUS = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 1.5, 2, 3])


@pytest.fixture(scope='module')
def golden():
    return np.load(FIXTURES / 'alignment' / 'v1_properties.npz')


@each(
    'name, study, axis',
    [
        ('ringach', v1.ringach2002, 'orientation_12'),
        ('devaloisa', v1.devalois1982a, 'orientation_12'),
        ('devaloisb', v1.devalois1982b, 'frequency_10'),
        ('schiller', v1.schiller1976c, 'frequency_10'),
        ('cavanaugh', v1.cavanaugh2002a, 'radius_12'),
        ('freeman', v1.freemanziemba2013, ''),
    ],
)
def test_properties_of_whole_responses(name, study, axis, golden):
    given = [golden[f'x_{name}'] / 64, golden['baseline']]
    found = study(*given, golden[axis]) if axis else study(*given)
    np.testing.assert_array_equal(found.units, golden[f'units_{name}'])
    expected = {k.removeprefix(f'{name}_'): golden[k] for k in golden.files if k.startswith(f'{name}_')}
    assert set(found.values) == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(found.values[key], value, atol=1e-9, err_msg=key)


def test_orientation_curve():
    assert tuning.circular_variance(TUNED, ORIENTATION) == pytest.approx(0.4233005, abs=1e-7)
    narrow = tuning.orientation_tuning(TUNED, ORIENTATION)
    assert (narrow.bandwidth[0] / 2, narrow.peak[0]) == (23.5, 68)
    wide = tuning.orientation_tuning(TUNED, ORIENTATION, kernel=tuning.SMOOTH, height=0.5)
    assert (wide.bandwidth[0], wide.peak[0]) == (61, 68)
    assert tuning.orthogonal_preferred_ratio(TUNED) == pytest.approx(0.0909455, abs=1e-7)


def test_frequency_curve():
    frequency = np.array([0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 11.2])
    found = tuning.frequency_tuning((2 + 20 * np.exp(-(((np.log2(frequency) - 1) / 0.8) ** 2) / 2))[None], frequency)
    expected = 34.98597, 2.0148597, 0.9958592
    assert (found.bandwidth[0], found.peak[0], found.explained[0]) == pytest.approx(expected, abs=1e-5)


def test_size_curves():
    curves = np.array([[2, 8, 16, 22, 24, 21, 17, 13, 12.2, 12], [1, 2, 3, 4, 5, 6, 6, 6, 6, 6]])
    found = tuning.size_tuning(curves, RADIUS)
    np.testing.assert_allclose(found['grating_summation_field'], [1.2, np.nan])
    np.testing.assert_allclose(found['surround_diameter'], [4, np.nan])
    np.testing.assert_allclose(found['surround_grating_summation_field_ratio'], [10 / 3, np.nan])
    np.testing.assert_allclose(found['surround_suppression_index'], [0.5, 0])


def test_textures():
    noise, texture = np.array([5.0, 7, 9, 2]), np.array([8.0, 7, 12, 6])
    assert tuning.texture_modulation(noise, texture) == pytest.approx(0.2184066, abs=1e-7)
    assert tuning.sparseness(np.array([1.0, 2, 3, 10])) == pytest.approx(0.5847953, abs=1e-7)
    found = tuning.variance_ratio((np.arange(12) ** 1.5).reshape(3, 4))
    assert found == pytest.approx((7.597855, 0.1009604, 0.8990396), abs=1e-6)


def test_a_curve_without_tuning_has_no_bandwidth():
    flat = np.ones((1, 8))
    assert np.isnan(tuning.orientation_tuning(flat, ORIENTATION).bandwidth).all()
    found = tuning.frequency_tuning(flat, 2.0 ** np.arange(8))
    assert np.isnan(found.bandwidth).all() and np.isnan(found.explained).all()


def test_silent_units_are_nan_and_do_not_warn(recwarn):
    nothing = np.zeros((2, 8))
    assert np.isnan(tuning.circular_variance(nothing, ORIENTATION)).all()
    assert np.isnan(tuning.orthogonal_preferred_ratio(nothing)).all()
    assert np.isnan(tuning.sparseness(nothing)).all() and np.isnan(tuning.texture_modulation(nothing, nothing)).all()
    assert np.isnan(tuning.size_tuning(nothing, RADIUS[:8])['surround_suppression_index']).all()
    assert not recwarn.list


def test_units_that_hardly_respond_are_left_out():
    responses = np.ones((3, 1, 1, 8, 4))
    responses[1] += 5.5
    found = v1.ringach2002(responses, np.ones(3), ORIENTATION)
    assert found.units.tolist() == [1] and found.values['max_dc'] == [6.5]
    assert len(v1.ringach2002(responses[:1], np.ones(1), ORIENTATION).units) == 0
