"""Properties of V1 of a simulated model: units with known receptive fields and tuning."""

from __future__ import annotations

import numpy as np
import pytest
from each import each

from jbench.alignment import properties
from jbench.alignment.gratings import SWEEPS, table
from jbench.alignment.properties import BLANK, FIELD, ORIENTATION, STUDIES, TEXTURE, model_properties
from jbench.spec.errors import RequestError

N = 30
AT = 0.5 + np.where(np.arange(N) % 3, np.resize([-0.7, -0.4, 0.3, 0.6], N), 0.02)  # every third sees the stimuli
PREFERRED = np.arange(N) * 6.0
BASE = 0.2 + 0.01 * np.arange(N)
TEXTURES = {
    'position_y': [0.5] * 24,
    'position_x': [0.5] * 24,
    'type': np.repeat([1, 2], 12).tolist(),
    'family': np.tile(np.repeat([1, 2, 3], 4), 2).tolist(),
    'sample': np.tile([1, 2, 3, 4], 6).tolist(),
}


def respond(name: str) -> np.ndarray:
    """Responses [stimulus, unit] of units with a Gaussian receptive field and Gaussian tuning."""
    if name == TEXTURE:
        return BASE + np.random.RandomState(0).rand(24, N)
    columns = {k: np.array(v)[:, None] for k, v in table(name).items() if k not in ('stimulus_id', 'degrees')}
    if not columns:
        return BASE[None]
    away = (columns['position_y'] - AT) ** 2 + (columns['position_x'] - AT) ** 2
    turn = (columns['orientation'] - PREFERRED + 90) % 180 - 90
    drive = (
        np.exp(-away / 0.5)
        * np.exp(-((turn / 20) ** 2) / 2)
        * np.exp(-((np.log2(columns['spatial_frequency']) - 1) ** 2))
    )
    return BASE + drive * (1 + 0.5 * np.cos(np.deg2rad(columns['phase']))) * columns['radius'] / (
        columns['radius'] + 0.3
    )


@pytest.fixture(scope='module')
def responses():
    return {name: respond(name) for name in (*SWEEPS, TEXTURE)}


@pytest.fixture(scope='module')
def record(responses):
    return lambda name, units: [responses[name] if units is None else responses[name][:, units]]


def test_receptive_fields_are_found(responses):
    found = properties.receptive_fields([responses[FIELD]], BASE, table(FIELD))
    inside = np.abs(AT) < 1  # the map reaches to 2.5 degrees
    np.testing.assert_allclose(found[inside], np.stack([AT, AT], 1)[inside], atol=0.05)
    blocks = np.array_split(responses[FIELD], 7)
    np.testing.assert_array_equal(properties.receptive_fields(blocks, BASE, table(FIELD)), found)
    shuffled = np.random.RandomState(0).permutation(len(responses[FIELD]))
    again = {k: np.array(v)[shuffled].tolist() for k, v in table(FIELD).items()}
    np.testing.assert_array_equal(properties.receptive_fields([responses[FIELD][shuffled]], BASE, again), found)


def test_a_unit_that_responds_nowhere_has_no_receptive_field():
    nowhere = properties.receptive_fields([np.ones((3528, 2)) * [1, 0.5]], np.ones(2), table(FIELD))
    assert np.isnan(nowhere).all() and len(properties.near(nowhere, np.array([0.5, 0.5]))) == 0


def test_two_places_are_weighted_by_their_responses():
    stimuli = {'position_y': [0, 0, 1, 1], 'position_x': [0, 1, 0, 1]}
    found = properties.receptive_fields([np.array([[4.0], [1.1], [1.05], [1]])], np.ones(1), stimuli)
    # over the blank 3, 0.1, 0.05 and 0: a twentieth of the greatest is 0.15
    np.testing.assert_allclose(found, [[0, 0]])
    found = properties.receptive_fields([np.array([[4.0], [2], [1], [1]])], np.ones(1), stimuli)
    np.testing.assert_allclose(found, [[0, 0.25]])


def test_medians_are_those_of_v1(responses):
    units = np.arange(0, N, 3)
    rates = properties.rate_map(responses[ORIENTATION][:, units], BASE[units], table(ORIENTATION))
    assert rates is not None
    best = properties.grid(responses[ORIENTATION][:, units], table(ORIENTATION)).mean(-1).reshape(len(units), -1).max(1)
    assert np.median(properties.firing_rates(best, rates)) == pytest.approx(33.8)
    assert np.median(properties.firing_rates(BASE[units], rates)) == pytest.approx(0.82)
    assert properties.firing_rates(np.array([-100.0]), rates) == 0
    assert properties.rate_map(np.ones((1152, 2)), np.ones(2), table(ORIENTATION)) is None


@each('study', sorted(STUDIES))
def test_properties_of_the_units_that_see_the_stimuli(study, record):
    found = model_properties(study, record, tables={TEXTURE: TEXTURES})
    assert set(found.properties.units.tolist()) <= set(range(0, N, 3)) and len(found.properties.units)
    assert found.notes == (f'10 of 30 units see the stimuli, {len(found.properties.units)} of them respond',)
    wanted = {name for of, name in properties.BENCHMARKS.values() if of == study}
    assert wanted and wanted <= set(found.properties.values)


def test_tuning_is_recovered(record):
    found = model_properties('DeValois1982a', record).properties
    expected = np.where(PREFERRED >= 157.5, PREFERRED - 180, PREFERRED)[found.units]
    np.testing.assert_allclose(found.values['preferred_orientation'], expected, atol=5)
    peak = model_properties('DeValois1982b', record).properties.values['peak_spatial_frequency']
    np.testing.assert_allclose(peak, 2, rtol=0.05)
    suppression = model_properties('Cavanaugh2002a', record).properties.values['surround_suppression_index']
    np.testing.assert_allclose(suppression, 0, atol=1e-12)


def test_units_below_zero_count_as_silent(responses):
    shifted = {name: block - 0.4 for name, block in responses.items()}  # a blank gives most units less than zero
    cut = {name: np.maximum(block, 0) for name, block in shifted.items()}

    def record(of):
        return lambda name, units: [of[name] if units is None else of[name][:, units]]

    found, expected = (model_properties('Ringach2002', record(of)).properties for of in (shifted, cut))
    assert (shifted[BLANK] < 0).any() and found.units.tolist() == expected.units.tolist()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(found.values[name], values)


def test_a_model_that_does_not_see_the_stimuli(record):
    blind = model_properties('Ringach2002', lambda name, units: [np.ones_like(b) for b in record(name, units)])
    assert blind.properties.units.size == 0 and blind.properties.values == {}
    assert blind.notes == ('none of 30 units has its receptive field at the stimuli',)

    def only_fields(name, units):
        base = BASE if units is None else BASE[units]
        return [block if name == FIELD else np.broadcast_to(base, block.shape) for block in record(name, units)]

    assert model_properties('Ringach2002', only_fields).notes == (
        'none of 30 units responds to gratings more than to a blank',
    )


def test_sizes_are_ordered_by_radius_at_each_frequency():
    stimuli = {k: v for k, v in table(ORIENTATION).items() if k != 'stimulus_id'}
    found = properties.grid(np.arange(1152.0)[:, None], stimuli)
    np.testing.assert_array_equal(found.ravel(), np.arange(1152))
    assert found.shape == (1, 3, 4, 12, 8)


@each(
    'change, said',
    [
        (lambda b, n: [b[0][:-1]], 'responses .*, expected .* stimuli'),
        (lambda b, n: [np.where(np.arange(b[0].shape[1]) == 0, np.nan, b[0])], 'all finite'),
        (lambda b, n: [b[0][:, :-1]] if n == FIELD else b, '30 units'),
    ],
)
def test_responses_that_do_not_fit(change, said, record):
    with pytest.raises(RequestError, match=said):
        model_properties('Ringach2002', lambda name, units: change(record(name, units), name))


def test_what_there_is_not(record):
    with pytest.raises(RequestError, match='did you mean'):
        model_properties('Ringach2003', record)
    with pytest.raises(RequestError, match='2 places'):
        properties.place({'position_y': [0, 1], 'position_x': [0, 0]})
    with pytest.raises(RequestError, match='each combination once'):
        properties.grid(np.ones((1151, 1)), {k: v[:-1] for k, v in table(ORIENTATION).items()})
    with pytest.raises(RequestError, match='not all of them'):
        properties.receptive_fields([np.ones((2, 1))], np.ones(1), {'position_y': [0, 1], 'position_x': [0, 1]})
    with pytest.raises(RequestError, match=TEXTURE):
        model_properties('FreemanZiemba2013', record)
    assert BLANK in SWEEPS
