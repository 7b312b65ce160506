"""Alignment over time: on made responses whose time course is known."""

from __future__ import annotations

import numpy as np
import pytest

from jbench.alignment import over_time
from jbench.alignment.metrics import similarity
from jbench.spec.errors import RequestError

N, UNITS, BINS = 24, 30, 5
ON = 3  # the bin in which responses follow the features


@pytest.fixture(scope='module')
def made():
    draws = np.random.default_rng(0)
    x = draws.normal(size=(N, 4))
    responses = draws.normal(size=(N, UNITS, BINS))
    responses[..., ON] += 5 * x @ draws.normal(size=(4, UNITS))
    return x, responses


def test_means_over_bins():
    responses = np.arange(12.0).reshape(2, 6)
    found = over_time.binned(responses, np.arange(0, 60, 10), [(0, 20), (20, 60)])
    assert found.tolist() == [[0.5, 3.5], [6.5, 9.5]]
    with pytest.raises(RequestError, match='no sample lies in the bin from 60 to 70 ms'):
        over_time.binned(responses, np.arange(0, 60, 10), [(60, 70)])


def test_dissimilarities_agree_when_responses_follow(made):
    x, responses = made
    found = over_time.rsa(similarity.rdm(x), responses)
    assert found.values.argmax() == ON and found.value == found.values[ON] > 0.6
    assert np.abs(np.delete(found.values, ON)).max() < 0.25


def test_features_predict_when_responses_follow(made):
    x, responses = made
    found = over_time.encode('ridge', x, responses)
    curve = np.nanmedian(found.values, 2).mean(1)
    assert found.values.shape == (BINS, 10, UNITS)
    assert (
        curve.argmax() == ON
        and found.value == pytest.approx(curve[ON])
        and np.delete(curve, ON).max() < 0.5 * curve[ON]
    )


def test_classes_are_decoded_when_they_differ_and_at_chance_before():
    draws = np.random.default_rng(1)
    labels, folds = np.repeat(np.arange(4), 10), np.tile(np.arange(10), 4)
    responses = draws.normal(size=(40, 50, 2))
    responses[..., 1] += draws.normal(size=(4, 50))[labels]
    found = over_time.decode(responses, labels, folds)
    before, after = found.values.mean(1)
    assert after > 0.95 and before < 0.45 and found.value == after


def test_a_class_in_one_fold_alone_is_named():
    with pytest.raises(RequestError, match='fold 1: no training trial of b'):
        over_time.decode(np.zeros((3, 2, 1)), np.array(['a', 'a', 'b']), np.array([0, 1, 1]))


def test_pseudo_trials_keep_the_class_of_each_neuron():
    labels = [np.array([0, 1, 0, 1, 1]), np.array([1, 1, 0, 0])]
    responses = [10.0 * k + label[:, None] for k, label in enumerate(labels)]
    made, classes, number = over_time.pseudo_trials(responses, labels, 2, np.random.default_rng(0))
    assert made[..., 0].tolist() == [[0, 10], [0, 10], [1, 11], [1, 11]]
    assert classes.tolist() == [0, 0, 1, 1] and number.tolist() == [0, 1, 0, 1]
    with pytest.raises(RequestError, match='neuron 0 has 2 trials of 0'):
        over_time.pseudo_trials(responses, labels, 3, np.random.default_rng(0))
