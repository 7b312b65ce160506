"""Errors on the same images: values of another implementation, published scores, and what is not defined."""

from __future__ import annotations

import json

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment import data
from jbench.alignment.data import geirhos
from jbench.alignment.metrics import consistency
from jbench.alignment.metrics.consistency import (
    accuracy_distance,
    answers,
    error_consistency,
    error_consistency_ceiling,
)
from jbench.spec.errors import RequestError

PUBLISHED = json.loads((FIXTURES / 'alignment' / 'geirhos2021.json').read_text())
TRUTH = np.resize(['dog', 'cat', 'chair'], 9)
CONDITION = np.repeat([1, 2, 3], 3)
CHOSEN = {
    'A': 'dog cat chair cat dog dog dog dog chair',
    'B': 'cat cat chair cat dog cat chair cat cat',
    'C': 'dog cat chair dog cat chair dog cat chair',
}
A, B, C = RIGHT = np.array([np.array(row.split()) == TRUTH for row in CHOSEN.values()], float)


def test_values_of_another_implementation():
    golden = np.load(FIXTURES / 'alignment' / 'error_consistency.npz')
    model, subjects = ((golden[key] == golden['truth']).astype(float) for key in ('model', 'human'))
    condition = golden['condition']
    for aggregate in consistency.AGGREGATES:
        found = error_consistency(model, subjects, condition, aggregate=aggregate)
        ceiling = error_consistency_ceiling(subjects, condition, aggregate=aggregate)
        np.testing.assert_allclose(found.values, golden['kappa'], atol=1e-12)
        np.testing.assert_allclose(ceiling.values, golden['ceiling_raw'], atol=1e-12)
        expected = [golden[key] for key in ('score', 'kappa_error', 'ceiling', 'ceiling_error')]
        np.testing.assert_allclose([found.value, found.error, ceiling.value, ceiling.error], expected, atol=1e-12)
    distance = accuracy_distance(model, subjects)
    assert distance.value == pytest.approx(float(golden['accuracy_distance']), abs=1e-12)
    by_condition = accuracy_distance(model, subjects, cells=condition)
    assert by_condition.value == pytest.approx(float(golden['accuracy_distance_by_condition']), abs=1e-12)


def test_nine_trials_of_three_people():
    found = error_consistency(A, RIGHT, CONDITION)
    assert found.value == pytest.approx(0.2) and np.isfinite(found.error)
    expected = [[np.nan, np.nan, 1], [0, np.nan, -0.8], [np.nan, 0, 0]]
    np.testing.assert_allclose(found.values, expected, atol=1e-12)
    assert found.notes == ('4 of 9 values of kappa are not defined (both always right or wrong): left out',)
    assert accuracy_distance(A, RIGHT).value == pytest.approx(0.74074074)
    assert accuracy_distance(C, RIGHT, cells=CONDITION).value == pytest.approx(0.55555556)
    animacy = np.resize([0, 0, 1], 9)
    assert accuracy_distance(C, RIGHT, cells=CONDITION * 2 + animacy).value == pytest.approx(0.55555556)
    assert accuracy_distance(A, A[None]).value == 1


def test_disagreement_is_below_zero():
    """Errors on exactly the other images: the absolute value of Brain-Score would say agreement."""
    model, subjects = np.array([1.0, 1, 0, 0]), np.array([[0.0, 0, 1, 1]])
    one = np.zeros(4)
    assert error_consistency(model, subjects, one).value == -1
    assert error_consistency(model, subjects, one, aggregate='absolute').value == 1


def test_perfect_subjects_have_no_consistency():
    found = error_consistency(np.ones(4), np.ones((2, 4)), np.array([1, 1, 2, 2]))
    assert np.isnan(found.value) and '4 of 4' in found.notes[0]


def test_images_that_a_subject_did_not_see_do_not_count():
    seen = RIGHT.copy()
    seen[:, 6:] = np.nan
    same = error_consistency(B[:6], RIGHT[:, :6], CONDITION[:6])
    with_missing = error_consistency(B, seen, CONDITION)
    np.testing.assert_allclose(with_missing.values[:, :2], same.values)
    assert with_missing.value == same.value
    assert accuracy_distance(B, seen).value == accuracy_distance(B[:6], RIGHT[:, :6]).value
    nothing = accuracy_distance(B, np.full((2, 9), np.nan))
    assert np.isnan(nothing.value) and '2 of 2' in nothing.notes[0]


def test_ceiling_of_accuracy_distance():
    found = consistency.accuracy_distance_ceiling(RIGHT)
    assert found.values.shape == (3,)
    assert found.values[0] == pytest.approx(accuracy_distance(A, B[None]).value)


def test_accuracy():
    found = consistency.accuracy(np.array([5, 3, 6, 7, 1, 8]), np.array([5, 2, 1, 7, 1, 9]))
    assert (found.value, found.error) == (0.5, 0.5) and found.values.sum() == 3
    with pytest.raises(RequestError, match='0 choices'):
        consistency.accuracy(np.zeros(0), np.zeros(0))


@each('first, second, value', [(1, 1, 1), (1, 1.5, 0.6065), (3, 1, 0.1353), (0, 10, 0)])
def test_value_delta(first, second, value):
    assert consistency.value_delta(first, second) == pytest.approx(value, abs=5e-4)
    assert consistency.value_delta(first, second) == consistency.value_delta(second, first)
    assert consistency.value_delta(first, second, scale=0) == 1


def test_shape_bias():
    shape, texture = np.array(['cat', 'cat', 'dog', 'dog']), np.array(['cat', 'dog', 'cat', 'cat'])
    assert consistency.shape_bias(np.array(['cat', 'cat', 'cat', 'oven']), shape, texture) == 0.5
    assert np.isnan(consistency.shape_bias(np.array(['cat', 'oven', 'oven', 'oven']), shape, texture))


def test_answers_of_trials():
    found = answers(np.array([1, 0, 1]), np.array(['b', 'a', 'b']), np.array(['y', 'x', 'x']))
    np.testing.assert_array_equal(found.right, [[0, np.nan], [1, 1]])
    assert found.subjects.tolist() == ['a', 'b'] and found.images.tolist() == ['x', 'y']
    with pytest.raises(RequestError, match='subject b saw image x 2 times'):
        answers(np.ones(3), np.array(['b', 'a', 'b']), np.array(['x', 'x', 'x']))
    with pytest.raises(RequestError, match='expected as many'):
        answers(np.ones(3), np.array(['b']), np.array(['x', 'x', 'x']))


@each(
    'call, said',
    [
        (lambda: error_consistency(A[:3], RIGHT, CONDITION), 'expected one an image'),
        (lambda: error_consistency(A, RIGHT, CONDITION[:3]), 'one condition an image'),
        (lambda: error_consistency_ceiling(RIGHT[:1], CONDITION), 'at least 2 subjects'),
        (lambda: error_consistency(A, RIGHT, CONDITION, aggregate='squared'), 'signed, absolute'),
        (lambda: accuracy_distance(A[:3], RIGHT), 'expected one an image'),
    ],
)
def test_answers_that_do_not_fit(call, said):
    with pytest.raises(RequestError, match=said):
        call()


# ---- Geirhos et al. 2021 ----


def table(name, alignment_dir):
    """Who was right about which image, images, conditions; the trials."""
    trials = geirhos.scored(data.load(name, alignment_dir).assembly)
    right = trials.values.reshape(-1) == trials['truth'].values
    found = answers(right, trials['subject'].values, trials['stimulus_id'].values)
    condition = dict(zip(trials['stimulus_id'].values.tolist(), trials['condition'].values.tolist(), strict=True))
    return found, np.array([condition[image] for image in found.images.tolist()])


@pytest.mark.slow
@each('experiment', sorted(PUBLISHED))
def test_published_scores_of_an_experiment(experiment, alignment_dir):
    expected = PUBLISHED[experiment]
    people, condition = table(f'Geirhos2021.{experiment}', alignment_dir)
    assert people.right.shape == (expected['subjects'], expected['images']) and not np.isnan(people.right).any()
    ceiling = error_consistency_ceiling(people.right, condition)
    assert ceiling.value == pytest.approx(expected['ceiling'], abs=1e-5)
    networks, _ = table(f'Geirhos2021models.{experiment}', alignment_dir)
    assert networks.images.tolist() == people.images.tolist()
    resnet = networks.right[networks.subjects.tolist().index('resnet50')]
    assert resnet.mean() == pytest.approx(expected['top1'], abs=1e-5)
    found = error_consistency(resnet, people.right, condition, aggregate='absolute')
    assert found.value == pytest.approx(expected['kappa'], abs=1e-5)


def test_shape_bias_of_people_and_networks(alignment_dir):
    expected = {'Geirhos2021.cue-conflict': {'': 0.9587}}
    expected['Geirhos2021models.cue-conflict'] = {'resnet50': 0.2142, 'bagnet33': 0.0511}
    for name, values in expected.items():
        trials = data.load(name, alignment_dir).assembly
        images = [image.rsplit('/', 1)[-1].removesuffix('.png') for image in trials['stimulus_id'].values.tolist()]
        texture = np.array([image.split('-')[1].rstrip('0123456789') for image in images])
        for subject, value in values.items():
            rows = (trials['subject'].values == subject) | (not subject)
            chosen, shape = trials.values.reshape(-1)[rows], trials['truth'].values[rows]
            assert consistency.shape_bias(chosen, shape, texture[rows]) == pytest.approx(value, abs=5e-5)
