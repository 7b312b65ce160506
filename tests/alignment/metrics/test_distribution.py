"""Distributions of properties: values of another implementation, published ceilings, and what is not defined."""

from __future__ import annotations

import json

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment import data
from jbench.alignment.metrics import distribution
from jbench.alignment.metrics.distribution import ks_similarity, property_ceiling, property_similarity
from jbench.alignment.properties import BENCHMARKS
from jbench.spec.errors import RequestError

PUBLISHED = json.loads((FIXTURES / 'alignment' / 'marques2020.json').read_text())
EDGES = np.linspace(0, 1, 5)


def test_values_of_another_implementation():
    golden = np.load(FIXTURES / 'alignment' / 'distribution.npz')
    model, recorded = golden['model'].copy(), golden['data'].copy()
    found = property_similarity(model, recorded, golden['bins'])
    np.testing.assert_allclose(found.values, golden['bootstrap'], atol=1e-12)
    assert (found.value, found.error) == pytest.approx((float(golden['center']), float(golden['error'])), abs=1e-12)
    np.testing.assert_allclose(
        property_ceiling(recorded, golden['bins']).values, golden['ceiling_bootstrap'], atol=1e-12
    )
    np.testing.assert_array_equal(model, golden['model'])  # neither is changed
    np.testing.assert_array_equal(recorded, golden['data'])
    toys = [ks_similarity(p, q) for p, q in zip(golden['toy_p'], golden['toy_q'], strict=True)]
    np.testing.assert_allclose(toys, golden['toy_similarity'], atol=1e-12)


def test_bins_are_those_of_a_histogram():
    values = np.array([-3, 0, 0.1, 0.25, 0.5, 0.99, 1, 7, np.nan])
    found = distribution._bins(values, EDGES)
    assert found[-1] == -1
    expected = np.histogram(np.clip(values[:-1], 0, 1), EDGES)[0]
    np.testing.assert_array_equal(np.bincount(found[:-1]), expected)


@each('name', sorted(PUBLISHED))
def test_ceilings_that_were_published(name):
    edges, counts, n, ceiling = (PUBLISHED[name][key] for key in ('edges', 'counts', 'n', 'ceiling'))
    middles = np.repeat((np.array(edges[1:]) + edges[:-1]) / 2, counts)
    values = np.concatenate([middles, np.full(n - len(middles), np.nan)])
    assert property_ceiling(values, edges).value == pytest.approx(ceiling, abs=0.005)


def test_every_benchmark_of_v1_has_a_published_ceiling():
    assert len(BENCHMARKS) == 22 and set(BENCHMARKS) == set(PUBLISHED)


@each(
    'name, of, ceiling',
    [
        ('Cavanaugh2002', 'grating_summation_field', 0.9556),
        ('Cavanaugh2002', 'surround_diameter', 0.9545),
        ('Cavanaugh2002', 'surround_suppression_index', 0.9579),
        ('Cavanaugh2002', 'strongly_suppressed', 0.9695),
        ('Cavanaugh2002', 'surround_grating_summation_field_ratio', 0.9567),
        ('DeValois1982a', 'preferred_orientation', 0.9612),
        ('DeValois1982b', 'peak_spatial_frequency', 0.9663),
        ('Schiller1976', 'spatial_frequency_selective', 0.9626),
        ('Schiller1976', 'spatial_frequency_bandwidth', 0.9319),
    ],
)
def test_ceilings_of_recorded_sets(name, of, ceiling, alignment_dir):
    assembly = data.load(f'Marques2020.{name}', alignment_dir).assembly
    values = assembly.values[:, assembly['property'].values.tolist().index(of)]
    assert property_ceiling(values, np.asarray(assembly.attrs[f'{of}_bins'])).value == pytest.approx(ceiling, abs=0.003)


def test_the_seed_is_the_draw():
    values = np.random.RandomState(0).rand(40)
    assert property_ceiling(values, EDGES, seed=3).value == property_ceiling(values, EDGES, seed=3).value
    assert property_ceiling(values, EDGES, seed=3).value != property_ceiling(values, EDGES, seed=4).value


def test_units_without_a_property():
    recorded = np.array([0.1, 0.4, 0.6, 0.9] * 3)
    none = property_similarity(np.full(7, np.nan), recorded, EDGES)
    assert none.value == 0 and none.notes == ('none of 7 units of the model has this property: similarity 0',)
    assert property_similarity(np.zeros(0), recorded, EDGES).notes[0].startswith('none of 0 units')
    few = property_similarity(np.array([0.1] + [np.nan] * 99), recorded, EDGES)
    assert few.value == 0 and 'of 1000 samples have no unit' in few.notes[0]
    most = property_similarity(np.array([*recorded, np.nan]), recorded, EDGES, draws=50)
    assert most.value > 0.7 and most.notes == ()


@each(
    'recorded, edges, said',
    [
        (np.full(3, np.nan), EDGES, 'none of 3 recorded neurons'),
        (np.ones(3), np.array([0.0, 1.0]), 'at least three'),
        (np.ones(3), np.array([0.0, 1.0, 1.0]), 'ascending'),
    ],
)
def test_what_is_no_histogram(recorded, edges, said):
    with pytest.raises(RequestError, match=said):
        property_similarity(np.ones(3), recorded, edges)
