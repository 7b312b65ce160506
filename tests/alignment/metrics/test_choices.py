"""Patterns of choices: values of another implementation, and what is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment.metrics import choices
from jbench.alignment.metrics.choices import Trials, choice_ceiling, choice_score
from jbench.spec.errors import RequestError


@pytest.fixture(scope='module')
def golden():
    return np.load(FIXTURES / 'alignment' / 'behaviour.npz')


@pytest.fixture(scope='module')
def recorded(golden):
    """Trials, object of each image."""
    fields = {field: golden[f'trial_{field}'] for field in Trials._fields}
    names = golden['choices'].tolist()
    fields['image'] = golden['stimulus_id'][fields['image']]
    trials = choices.trials_of_names(fields, images=golden['stimulus_id'].tolist(), objects=names)
    return trials, np.array([names.index(v) for v in golden['truth']])


@each('name', ['i1', 'i1n', 'i2', 'i2n'])
def test_scores_and_ceilings(name, golden, recorded):
    trials, truth = recorded
    score = choice_score(name, golden['probabilities'], trials, truth=truth)
    ceiling = choice_ceiling(name, trials, truth=truth, n_objects=5)
    ceiled = choices.ceiled_choices(score, ceiling)
    assert not score.notes + ceiling.notes + ceiled.notes
    found = {
        'scores': score.values,
        'center': score.value,
        'error': score.error,
        'ceilings': ceiling.values,
        'ceiling': ceiling.value,
        'ceiled': ceiled.value,
        'ceiled_error': ceiled.error,
        'source': choices.pattern(name, choices.rates_of_probabilities(golden['probabilities'], truth), truth),
    }
    for key, value in found.items():
        np.testing.assert_allclose(value, golden[f'{name}_{key}'], atol=1e-12)


@each('name, value', [('o1', 0.9535681), ('o2', 0.8707428)])
def test_scores_by_object(name, value, golden, recorded):
    trials, truth = recorded
    assert choice_score(name, golden['probabilities'], trials, truth=truth).value == pytest.approx(value, abs=1e-7)


def test_rates_of_a_half(golden, recorded):
    trials, truth = recorded
    rows = np.arange(len(trials.image))
    np.random.RandomState(0).shuffle(rows)
    found = choices.rates_of_trials(trials, rows[: len(rows) // 2], (len(truth), 5))
    np.testing.assert_allclose(found, golden['half0_first_rates'])


def test_a_model_that_chooses_as_people_reaches_the_ceiling(recorded):
    """Of a model that is the other half of the trials, the score is the ceiling."""
    trials, truth = recorded
    rows = np.arange(len(trials.image))
    np.random.RandomState(0).shuffle(rows)
    rates = choices.rates_of_trials(trials, rows[len(rows) // 2 :], (len(truth), 5))
    odds = np.where(np.isnan(rates), 1, rates / np.maximum(1 - rates, 1e-300))  # of a distractor; 1 of the object
    score = choice_score('i2n', odds, trials, truth=truth, halvings=1)
    assert score.value == pytest.approx(choice_ceiling('i2n', trials, truth=truth, n_objects=5, halvings=1).value)


def test_d_prime_is_bounded():
    """Nobody ever errs: rates are 0."""
    truth = np.array([0, 0, 1, 1])
    found = choices.pattern('i2', np.where(truth[:, None] == np.arange(2), np.nan, 0.0), truth)
    assert np.nanmax(found) == choices.CAP == np.nanmin(found)


def test_what_has_no_correlation_is_said():
    """Perfect people are all alike."""
    truth = np.array([0, 0, 1, 1])
    image = np.tile(np.arange(4), 10)
    trials = Trials(image, truth[image], truth[image], 1 - truth[image])
    score = choice_score('i1', np.eye(2)[truth] + 0.1, trials, truth=truth)
    assert np.isnan(score.value) and '2 of 2 halvings' in score.notes[0]


def test_a_value_of_the_model_that_is_not_defined_is_left_out(golden, recorded):
    trials, truth = recorded
    p = golden['probabilities'].copy()
    p[0] = 0
    score = choice_score('i2n', p, trials, truth=truth)
    assert np.isfinite(score.value) and score.notes == ('4 of the values of the model are not defined: left out',)
    assert not choice_score('i1', golden['probabilities'], trials, truth=truth).notes


def test_an_image_that_nobody_saw_does_not_count(golden, recorded):
    trials, truth = recorded
    seen = Trials(*(part[trials.image > 0] for part in trials))
    assert np.isfinite(choice_score('i2n', golden['probabilities'], seen, truth=truth).value)


def test_a_ceiling_of_zero_is_said():
    ceiled = choices.ceiled_choices(
        choices.Measured(0.5, 0.0, np.array([0.5, 0.5])), choices.Measured(0.0, 0.1, np.array([-0.1, 0.1]))
    )
    assert np.isnan(ceiled.value) and 'ceiling of 1 of 2' in ceiled.notes[0]


@each(
    'change, said',
    [
        ({'image': 40}, 'image 0 to 40, expected 0 to 39'),
        ({'distractor': 5}, 'distractor'),
        ({'choice': 'other'}, 'a choice is the object of the image or the distractor'),
        ({'target': 'other'}, 'a choice is the object of the image or the distractor'),
    ],
)
def test_trials_that_do_not_fit(change, said, golden, recorded):
    trials, truth = recorded
    ((field, value),) = change.items()
    part = getattr(trials, field).copy()
    others = {trials.target[0], trials.distractor[0]}
    part[0] = min(set(range(5)) - others) if value == 'other' else value
    with pytest.raises(RequestError, match=said):
        choice_score('i1', golden['probabilities'], trials._replace(**{field: part}), truth=truth)


def test_no_such_pattern(golden, recorded):
    trials, truth = recorded
    with pytest.raises(RequestError, match='did you mean'):
        choice_score('i2m', golden['probabilities'], trials, truth=truth)
    with pytest.raises(RequestError, match='40 images, 3 objects'):
        choice_score('i1', golden['probabilities'], trials, truth=truth[:3])
    with pytest.raises(RequestError, match="choice 'b' is not among the 1"):
        names = {'image': ['x'], 'choice': ['b'], 'target': ['a'], 'distractor': ['a']}
        choices.trials_of_names(names, images=['x'], objects=['a'])
