"""One set of weights for all time bins."""

from __future__ import annotations

import numpy as np
import pytest
from alignment_values import recorded
from each import each

from jbench.alignment.metrics.regression import regress_cv
from jbench.alignment.metrics.spantime import spantime_cv
from jbench.alignment.metrics.splits import Splits
from jbench.spec.errors import RequestError


@each('dtype, near', [('float64', 1e-6), ('float32', 2e-6)])
def test_recorded_values(dtype, near):
    g = recorded('regression')
    order = {s: k for k, s in enumerate(g['source_stimulus_id'])}
    x = g['spantime_source'][[order[s] for s in g['target_stimulus_id']]]
    found = spantime_cv('pls', x, g['spantime_target'], labels=g['target_object_name'], dtype=dtype)
    for b, m in enumerate(found):
        assert m.values == pytest.approx(g['spantime_raw'][:, b], abs=near)
        assert m.value == pytest.approx(g['spantime_center'][b], abs=near)
        assert m.error == pytest.approx(g['spantime_error'][b], abs=near)


@each('name', ['pls', 'ridge'])
def test_one_time_bin_is_the_regression(name):
    draw = np.random.default_rng(1)
    x, y = draw.standard_normal((40, 30)), draw.standard_normal((40, 4))
    (m,) = spantime_cv(name, x[..., None], y[..., None], how=Splits(n=2), dtype='float64')
    assert m.values == pytest.approx(regress_cv(name, x, y, how=Splits(n=2), dtype='float64').values, abs=1e-9)


def test_neuroids_without_a_value_are_left_out_and_said():
    draw = np.random.default_rng(1)
    x, y = draw.standard_normal((40, 30, 2)), draw.standard_normal((40, 4, 2))
    y[3, 0, 1], y[:, 2], y[:, 3, 1] = np.nan, 5, 1
    first, second = spantime_cv('ridge', x, y, how=Splits(n=2))
    assert np.isnan(first.values[:, [0, 2]]).all() and np.isfinite(first.values[:, [1, 3]]).all()
    assert np.isnan(second.values[:, 3]).all()
    assert 'time bin 1: neuroid 3 constant in test: no r (2 of 2 splits)' in second.notes
    assert 'neuroid 2 constant in training: left out (2 of 2 splits)' in second.notes


def test_other_bins_are_refused():
    with pytest.raises(RequestError, match='same stimuli and bins'):
        spantime_cv('pls', np.zeros((9, 3, 2)), np.zeros((9, 3, 3)))
