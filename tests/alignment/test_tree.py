"""The tree: means of children, bottom-up."""

from __future__ import annotations

import math

import pytest

from jbench.alignment.tree import path, scores

LEAVES = {'a': 'V1', 'b': 'V1', 'c': 'IT', 'd': 'Geirhos2021', 'e': '', 'f': 'engineering_vision'}


def test_a_parent_is_the_mean_of_its_children_and_what_is_missing_counts_nothing_or_not_at_all():
    values = {'a': 0.4, 'b': 0.2, 'd': 0.5, 'f': 0.9}
    found = scores(LEAVES, values)
    assert found['V1'].score == pytest.approx(0.3)
    assert math.isnan(found['IT'].score)
    assert found['neural_vision'].score == pytest.approx(0.15)  # V1 and IT, which is missing: 0
    assert found['behavior_vision'].score == pytest.approx(0.5)
    assert found['average_vision'].score == pytest.approx(0.325)
    assert found['engineering_vision'].score == 0.9 and found['average_vision'].n_children == 2
    there = scores(LEAVES, values, missing=None)
    assert there['neural_vision'].score == pytest.approx(0.3) and there['neural_vision'].n_scored == 1


def test_a_child_that_is_zero_is_a_score():
    assert scores({'a': 'V1'}, {'a': 0.0})['average_vision'].score == 0.0


def test_a_model_without_scores_has_none():
    assert all(math.isnan(node.score) for node in scores(LEAVES, {}).values())


def test_the_way_to_the_root():
    assert path('V1-orientation') == ('V1-orientation', 'V1', 'neural_vision', 'average_vision') and path('') == ()
