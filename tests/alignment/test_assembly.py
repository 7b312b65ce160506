"""Assemblies are checked; averages, repetitions, regions and orders come out as they must."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from jbench.alignment import assembly, rows, stimuli
from jbench.spec.errors import RequestError

IDS = ['b', 'a', 'c']


def recorded(**changes):
    """Three images, two or three times each, four units of two regions; image c has no third repetition."""
    shown = [(i, r) for r in range(3) for i in IDS if (i, r) != ('c', 2)]
    presentation = {
        'stimulus_id': [i for i, _ in shown],
        'label': [i.upper() for i, _ in shown],
        'repetition': [r for _, r in shown],
    }
    neuroid = {'neuroid_id': list('wxyz'), 'region': ['V4', 'IT', 'V4', 'IT'], 'reliability': [0.3, 0.31, np.nan, 0.9]}
    values = np.array([[10 * (ord(i) - 96) + u + r for u in range(4)] for i, r in shown], np.float32)
    given = {'values': values, 'presentation': presentation, 'neuroid': neuroid, 'stimulus_set': 'three'} | changes
    return assembly.neuroids(given.pop('values'), **given)


def pictures():
    return stimuli.of_arrays('three', {'stimulus_id': IDS, 'label': list('xyz'), 'degrees': [8.0] * 3}, ['B', 'A', 'C'])


def test_coordinates_lie_on_one_dimension_and_are_no_index():
    made = recorded()
    assert made.dims == ('presentation', 'neuroid') and made.dtype == np.float32
    assert not made.indexes and made.attrs == {'stimulus_set': 'three'}
    assert made['region'].dims == ('neuroid',) and made['stimulus_id'].dtype.kind == 'U'


def test_averages_are_sorted_and_the_mean_of_what_is_there():
    made = rows.average_repetitions(recorded())
    assert made['stimulus_id'].values.tolist() == list('abc') and made['label'].values.tolist() == list('ABC')
    assert 'repetition' not in made.coords and made.dtype == np.float32 and made.attrs == {'stimulus_set': 'three'}
    np.testing.assert_array_equal(made.values[:, 0], [11, 21, 30.5])
    assembly.check(made)


def test_averages_skip_nan_and_say_nan_where_all_are():
    raw = recorded()
    values = raw.values.copy()
    values[0, 0] = np.nan  # b, repetition 0
    values[[2, 5], 1] = np.nan  # c, both
    made = rows.average_repetitions(raw.copy(data=values))
    np.testing.assert_array_equal(made.values[:, :2], [[11, 12], [21.5, 22], [30.5, np.nan]])
    assert np.isnan(values[0, 0]) and np.isnan(raw.copy(data=values).values[0, 0])


def test_averages_leave_apart_what_differs_in_another_coordinate():
    raw = recorded().assign_coords(session=('presentation', [0, 0, 0, 1, 1, 1, 1, 1]))
    made = rows.average_repetitions(raw)
    assert list(zip(made['stimulus_id'].values, made['session'].values, strict=True)) == [
        (i, s) for i in 'abc' for s in (0, 1)
    ]


def test_trials_are_padded_with_nan_in_the_order_of_the_averages():
    raw = recorded()
    padded = rows.trials(raw)
    assert padded.shape == (3, 3, 4) and np.isnan(padded[2, 2]).all() and np.isnan(padded).sum() == 4
    np.testing.assert_array_equal(np.nanmean(padded, 0), rows.average_repetitions(raw).values)
    np.testing.assert_array_equal(padded[:, 0, 0], [10, 11, 12])
    with pytest.raises(RequestError, match='averaged already'):
        rows.trials(rows.average_repetitions(raw))


def test_integers_become_double_and_time_bins_stay():
    raw = recorded(
        values=np.arange(8 * 4 * 2, dtype=np.int16).reshape(8, 4, 2), time_bins=[(0, 50), (50, 100)], stimulus_set=''
    )
    assert rows.trials(raw).shape == (3, 3, 4, 2)
    made = rows.average_repetitions(raw)
    assert made.shape == (3, 4, 2) and made.dtype == np.float64
    assert made['time_bin_end'].values.tolist() == [50, 100]


def test_regions_and_reliable_units():
    raw = recorded()
    assert rows.region(raw, 'V4')['neuroid_id'].values.tolist() == ['w', 'y']
    assert rows.reliable(raw, above=0.3)['neuroid_id'].values.tolist() == ['x', 'z']
    with pytest.raises(RequestError, match="no region 'V1'; there: IT, V4"):
        rows.region(raw, 'V1')
    with pytest.raises(RequestError, match=r'above 0.9 \(the best has 0.9\)'):
        rows.reliable(raw, above=0.9)
    with pytest.raises(RequestError, match="no coordinate 'reliability'"):
        rows.reliable(raw.drop_vars('reliability'))


def test_orders_and_subsets():
    mean = rows.average_repetitions(recorded())
    assert rows.in_order(mean, ['c', 'a'])['stimulus_id'].values.tolist() == ['c', 'a']
    assert rows.subset(recorded(), rows.in_order(mean, ['c', 'a']))['stimulus_id'].values.tolist() == list('acaca')
    with pytest.raises(RequestError, match="no row for 'd'"):
        rows.in_order(mean, ['a', 'd'])
    with pytest.raises(RequestError, match='average its repetitions'):
        rows.in_order(recorded(), ['a'])


def test_time_becomes_units():
    values = np.arange(3 * 2 * 2.0).reshape(3, 2, 2)
    made = assembly.neuroids(
        values,
        presentation={'stimulus_id': IDS},
        neuroid={'neuroid_id': [7, 8], 'region': ['V4', 'IT']},
        time_bins=[(70, 80), (80, 100)],
    )
    flat = rows.flatten_time(made)
    assert flat.shape == (3, 4, 1)
    np.testing.assert_array_equal(flat.values[0, :, 0], [0, 1, 2, 3])  # unit by unit
    assert flat['recording_time'].values.tolist() == [70, 80, 70, 80]
    assert flat['region'].values.tolist() == ['V4', 'V4', 'IT', 'IT']
    assert (flat['time_bin_start'].item(), flat['time_bin_end'].item()) == (70, 100)
    assert flat['neuroid_id'].values.tolist() == ['7@70', '7@80', '8@70', '8@80']


def test_columns_of_stimuli_join_and_those_that_are_there_stay():
    made = rows.with_stimuli(recorded(), pictures())
    assert made['degrees'].values.tolist() == [8.0] * 8 and made['label'].values[0] == 'B'
    few = stimuli.choose(pictures(), ['a', 'b'], 'two')
    with pytest.raises(RequestError, match="stimulus set two has no 'c'"):
        rows.with_stimuli(recorded(), few)


def test_rdms_and_properties_and_behaviour():
    square = np.zeros((2, 3, 3))
    made = assembly.rdms(square, presentation={'stimulus_id': IDS}, subject={'subject': ['s1', 's2']})
    assert assembly.kind(made) == 'rdms' and rows.in_order(made, ['c', 'a']).shape == (2, 2, 2)
    made = assembly.properties(
        [[1.0], [np.nan]], neuroid={'neuroid_id': [0, 1]}, bins={'width': [0, 1, 2]}, number_of_trials=20
    )
    assert assembly.kind(made) == 'properties' and made.attrs['width_bins'].tolist() == [0, 1, 2]
    made = assembly.behaviour(['cat', 'dog'], presentation={'stimulus_id': ['a', 'a'], 'truth': ['cat', 'cat']})
    assert assembly.kind(made) == 'behaviour'  # one stimulus, two people
    made = assembly.behaviour(np.eye(2), presentation={'stimulus_id': ['a', 'b']}, choice=['cat', 'dog'])
    assert made.sel(choice='dog').values.tolist() == [0, 1]


TWICE = {'stimulus_id': ['a', 'a'], 'repetition': [1, 1]}
UNIT = {'neuroid_id': [0, 1]}


@pytest.mark.parametrize(
    ('make', 'said'),
    [
        (lambda: recorded(presentation={'id': range(8)}), "no coordinate 'stimulus_id'"),
        (lambda: recorded(neuroid={'neuroid_id': range(3)}), "'neuroid_id' has 3 values for 4"),
        (lambda: recorded(neuroid={'neuroid_id': [1, 2, 2, 3]}), 'neuroid_id 2 comes several times'),
        (lambda: recorded(presentation={'stimulus_id': list('abcdefgg')}), "stimulus_id 'g' comes.*'repetition'"),
        (lambda: assembly.neuroids(np.eye(2), presentation=TWICE, neuroid=UNIT), "'a', repetition 1 comes"),
        (lambda: recorded(values=np.full((8, 4), np.nan)), '32 values are NaN.*may_miss'),
        (lambda: recorded(values=np.full((8, 4), np.inf), may_miss=True), 'infinite'),
        (lambda: recorded(values=np.zeros(8)), 'have 1 dimensions, expected 2'),
        (lambda: recorded(values=np.zeros((8, 4, 1)), time_bins=[(50, 50)]), 'ends before'),
        (lambda: assembly.check(recorded().transpose()), 'neuroid, presentation, expected'),
        (lambda: assembly.check(xr.DataArray(3.0)), 'dimensions none'),
        (lambda: assembly.check(recorded().assign_coords(m=(recorded().dims, np.zeros((8, 4))))), "'m' lies on"),
        (
            lambda: assembly.properties([[1.0]], neuroid={'neuroid_id': [0]}, bins={'p': [1, 1]}, number_of_trials=1),
            'asc',
        ),
        (lambda: assembly.rdms(np.zeros((1, 2, 3)), presentation=TWICE, subject={'subject': ['s']}), '2 by 3|several'),
    ],
)
def test_what_is_no_assembly_is_refused(make, said):
    with pytest.raises(RequestError, match=said):
        make()
