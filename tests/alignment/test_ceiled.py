"""A score beside its ceiling: the forms, their errors, what is noted and never clipped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jbench.alignment.ceiled import NAMES, beside
from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import RequestError


def measured(value, error=0.02, values=None, notes=()):
    return Measured(value, error, np.array([[value]]) if values is None else values, notes)


@pytest.mark.parametrize(
    ('how', 'expected'),
    [
        ('explained_variance', 0.36 / 0.8),
        ('explained_variance_unsigned', 0.36 / 0.8),
        ('ratio', 0.75),
        ('ratio_squared', 0.5625),
        ('ratio_root', 0.6 / math.sqrt(0.8)),
    ],
)
def test_each_form(how, expected):
    assert beside(measured(0.6), measured(0.8, 0.0), how).value == pytest.approx(expected)


def test_an_opposite_prediction_is_no_good_one():
    assert beside(measured(-0.6), measured(0.8), 'explained_variance').value == pytest.approx(-0.45)
    assert beside(measured(-0.6), measured(0.8), 'explained_variance_unsigned').value == pytest.approx(0.45)


def test_errors_are_carried_through_the_division():
    """As many draws of a score and its ceiling spread."""
    draws = np.random.default_rng(0)
    r, c = draws.normal(0.6, 0.01, 200_000), draws.normal(0.8, 0.02, 200_000)
    each = {
        'explained_variance': np.sign(r) * r**2 / c,
        'ratio': r / c,
        'ratio_squared': (r / c) ** 2,
        'ratio_root': r / np.sqrt(c),
        'above_chance': (r - 0.5) / (c - 0.5),
    }
    for how, values in each.items():
        found = beside(measured(0.6, 0.01), measured(0.8, 0.02), how, chance=0.5)
        assert found.error == pytest.approx(values.std(), rel=0.02), how


def test_without_a_ceiling_the_score_is_raw_and_says_so():
    found = beside(measured(0.6), None, 'explained_variance')
    assert (found.value, found.ceiling) == (0.6, None) and 'no ceiling' in found.notes[0]
    assert beside(measured(0.6), None, 'none').notes == ()


def test_above_a_ceiling_is_noted_and_not_clipped():
    found = beside(measured(0.9), measured(0.5), 'ratio')
    assert found.value == pytest.approx(1.8) and any('above its ceiling' in note for note in found.notes)


@pytest.mark.parametrize('ceiling', [0.0, -0.2, math.nan])
def test_a_ceiling_that_gives_no_score_is_said(ceiling):
    found = beside(measured(0.6), measured(ceiling), 'explained_variance')
    assert math.isnan(found.value) and found.raw == 0.6 and 'gives no score' in found.notes[-1]


def test_neuroids_each_beside_their_own_ceiling():
    r = np.array([[0.5, 0.7, 0.2], [0.7, 0.7, 0.2]])
    c = np.array([[0.8, 0.5, -0.1], [1.0, 0.5, -0.3]])
    found = beside(measured(0.6, values=r), measured(0.8, values=c), 'explained_variance_per_neuroid')
    assert found.value == pytest.approx((0.36 / 0.9 + 0.49 / 0.5) / 2)
    assert '1 of 3 neuroids left out' in found.notes[0]
    assert found.per_neuroid == pytest.approx([0.6, 0.7, 0.2]) and found.per_split == pytest.approx([0.5, 0.7])


def test_an_unknown_form_names_the_others():
    with pytest.raises(RequestError, match=NAMES[1]):
        beside(measured(0.6), None, 'explained_varianse')
