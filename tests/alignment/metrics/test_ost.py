"""Object solution times."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES

from jbench.alignment.metrics import ost
from jbench.spec.errors import RequestError

STARTS = np.arange(70, 110, 10)


@pytest.fixture(scope='module')
def population():
    """100 images of two objects; 12 units that begin to tell the object of an image at its own time."""
    rng = np.random.RandomState(0)
    labels = np.arange(100) % 2
    onset = rng.uniform(65, 105, 100)
    drive = np.clip((STARTS + 10 - onset[:, None]) / 10, 0, 3)
    objects = rng.randn(2, 12)
    return objects[labels][:, :, None] * drive[:, None] + 0.3 * rng.randn(100, 12, 4), labels, onset


def test_values_of_another_implementation():
    golden = np.load(FIXTURES / 'alignment' / 'ost.npz')
    curves, threshold, starts = golden['ost_curves'].T, golden['ost_threshold'], golden['ost_time']
    found = ost.solution_times(curves, threshold, starts, between='highest')
    np.testing.assert_allclose(found, golden['ost_predicted'], atol=1e-9)
    assert ost.spearman(found, golden['ost_target']) == pytest.approx(float(golden['ost_spearman']))


@each(
    'between, expected',
    [
        # reached between 80 and 90, from 0 to 1: halfway; the highest value so far was at 70
        ('preceding', [85, 70, np.nan]),
        ('highest', [70 + 0.1 / 0.6 * 20, 70, np.nan]),
    ],
)
def test_where_the_line_comes_from(between, expected):
    curves = np.array([[0.4, 2, 0], [0, 0, 0], [1, 3, 0.9]])
    found = ost.solution_times(curves, np.array([0.5, 1, 1]), np.array([70, 80, 90]), between=between)
    np.testing.assert_allclose(found, expected)


def test_a_missing_value_is_not_a_bin():
    curves = np.array([[0.0], [np.nan], [1.0]])
    assert ost.solution_times(curves, np.array([0.5]), STARTS[:3]) == pytest.approx(80)


@pytest.mark.slow
def test_solution_times_follow_the_population(population):
    responses, labels, onset = population
    target = np.full(100, 1.5), onset
    found = ost.ost_correlation(responses, labels, target, starts=STARTS)
    assert found.value > 0.3 and found.values.shape == (10,) and found.error > 0
    # bins in another order are the same population
    again = ost.ost_correlation(responses[:, :, ::-1], labels, target, starts=STARTS[::-1])
    np.testing.assert_allclose(again.values, found.values)


@pytest.mark.slow
def test_a_model_without_time_has_no_solution_times(population):
    responses, labels, onset = population
    still = np.repeat(responses[:, :, -1:], 4, 2)
    found = ost.ost_correlation(still, labels, (np.full(100, 1.5), onset), starts=STARTS)
    assert np.isnan(found.value) and 'those of a model without time' in found.notes[0]


def test_images_that_were_never_solved_are_left_out(population):
    responses, labels, onset = population
    some = np.where(np.arange(100) < 50, np.nan, onset)
    found = ost.ost_correlation(responses, labels, (np.full(100, 1.5), some), starts=STARTS)
    assert np.isfinite(found.value)


@pytest.mark.slow
def test_the_read_out_is_adam_on_a_softmax():
    """Written out with numpy."""
    rng = np.random.RandomState(0)
    x, y, x_test = rng.randn(70, 5) * 3 + 1, rng.randint(0, 3, 70), rng.randn(4, 5)
    found = ost.softmax_read_out(x, y, x_test, n_objects=3)
    weights = np.asarray(first_weights(5, 3), float)
    state = [np.concatenate([weights, np.ones((1, 3))]), 0.0, 0.0]
    z = np.c_[(x - x.mean(0)) / x.std(0), np.ones(70)]
    shuffle, t = np.random.RandomState(0), 0
    for _ in range(ost.EPOCHS):
        order = np.arange(70)
        shuffle.shuffle(order)
        for batch in (order[:64], order[64:]):
            t += 1
            p = softmax(z[batch] @ state[0])
            p[np.arange(len(batch)), y[batch]] -= 1
            slope = z[batch].T @ p / len(batch) + ost.DECAY * state[0]
            state[1] = 0.9 * state[1] + 0.1 * slope
            state[2] = 0.999 * state[2] + 0.001 * slope**2
            step = state[1] / (1 - 0.9**t) / (np.sqrt(state[2] / (1 - 0.999**t)) + 1e-8)
            state[0] = state[0] - ost.RATE * step
    expected = softmax(np.c_[(x_test - x.mean(0)) / x.std(0), np.ones(4)] @ state[0])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def first_weights(n_units, n_objects):
    import jax

    return jax.nn.initializers.variance_scaling(1.0, 'fan_in', 'truncated_normal')(
        jax.random.key(0), (n_units, n_objects)
    )


def softmax(scores):
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def test_a_unit_that_is_always_the_same_is_harmless():
    x = np.ones((20, 2))
    x[:, 0] = np.arange(20)
    assert np.isfinite(ost.softmax_read_out(x, np.arange(20) % 2, x, n_objects=2)).all()


@each(
    'change, said',
    [
        ({'labels': np.zeros(100)}, 'of 1 objects'),
        ({'starts': STARTS[:3]}, '3 bins'),
        ({'between': 'first'}, 'preceding, highest'),
    ],
)
def test_what_cannot_be_scored(change, said, population):
    responses, labels, onset = population
    given = {'labels': labels, 'starts': STARTS, 'between': 'preceding', **change}
    with pytest.raises(RequestError, match=said):
        ost.ost_correlation(responses, given.pop('labels'), (np.full(100, 1.5), onset), **given)
