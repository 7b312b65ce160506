"""Scores of the challenges: the organisers' test vectors, tables made by hand, and plain loops over the rules, against
the functions that score results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench import targets
from jbench.metrics import challenges, regression, retrieval
from jbench.targets import score

Y = np.array([10.0, 50.0, 100.0, 600.0])
OFF = np.array([1.0, 2.0, 3.0, 4.0])


def retrieved(predictions: np.ndarray, gallery: np.ndarray, answer: np.ndarray, people: Any = None) -> dict[str, float]:
    """The scores of a result of track 1, of a gallery whose pictures were all shown. people: text [N]; None: one."""
    groups = np.array([f'{k:03d}' for k in answer])
    who = np.full(len(answer), 'a') if people is None else np.array(people)
    return retrieval.evaluate(np.asarray(predictions), gallery[answer], groups, who)


def hits(predictions: np.ndarray, gallery: np.ndarray, answer: np.ndarray, k: int) -> list[bool]:
    """The organisers' rule in plain steps, a query after the other."""
    found = []
    for query, right in zip(predictions, answer, strict=True):
        u = query / max(float(np.sqrt(query @ query)), 1e-12)
        s = [float(u @ (g / np.linalg.norm(g))) for g in gallery]
        rank = (sum(x > s[right] for x in s) + sum(x >= s[right] for x in s) - 1) / 2
        found.append(bool(np.isfinite(s[right])) and rank < k)
    return found


def normalised_rmse(outputs: np.ndarray, y: np.ndarray) -> float | None:
    """Root of the mean squared error over the population sd of y; None where y is constant. outputs, y: [N]."""
    error, spread = np.asarray(outputs, np.float64) - y, float(np.std(y))
    return float(np.sqrt((error**2).mean())) / spread if spread else None


# ---- track 1 ----


@pytest.mark.parametrize(('pictures', 'expected'), [(12, 0.0), (11, 0.0), (10, 1.0), (6, 1.0)])
def test_equal_scores_share_the_middle_rank(pictures: int, expected: float) -> None:
    """Zeros for all of them, and pictures that are all the same: a hit in a gallery of ten, a miss in one of eleven."""
    every = np.arange(pictures)
    for gallery, said in ((np.eye(pictures, 16) + 1, 0.0), (np.ones((pictures, 16)), 1.0)):
        found = retrieved(np.full((pictures, 16), said), gallery, every)
        assert found['window_top5_acc'] == found['top5_acc'] == found['instance_top5_acc'] == expected


@pytest.mark.parametrize('pictures', [20, 4])
@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_a_query_that_is_no_number_is_a_miss(pictures: int, bad: float) -> None:
    """However few pictures there are."""
    gallery, every = np.eye(pictures), np.arange(pictures)
    said = gallery.copy()
    said[1, 3] = bad
    right, wrong = (retrieved(rows, gallery, every) for rows in (gallery, said))
    for name in ('window_top5_acc', 'top5_acc', 'instance_top5_acc', 'top5_acc_250', 'batch_top5_acc'):
        assert (right[name], wrong[name]) == (1.0, pytest.approx(1 - 1 / pictures)), name


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 25))
def test_epochs_are_ranked_by_the_stated_rule(seed: int, m: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    gallery, queries, answer = rng.normal(size=(m, 3)), rng.normal(size=(n, 3)), rng.integers(0, m, n)
    queries[rng.uniform(size=n) < 0.2, 1] = np.nan
    assert (retrieval.ranks(queries, gallery, answer) < 5).tolist() == hits(queries, gallery, answer, 5)


def test_repeats_of_one_person_and_picture_are_averaged_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sealed rule, of the first of two.

    A loud repeat outweighs a quiet one, since nothing is normalised before; another person's repeats stay apart."""
    monkeypatch.setattr(retrieval, 'K', 1)
    gallery = np.eye(2)
    predictions = np.stack([10 * gallery[0], gallery[1], gallery[1]])
    people, answer = ['a', 'a', 'b'], np.array([0, 0, 1])
    found = retrieved(predictions, gallery, answer, people)
    assert found['top5_acc'] == 1.0 and found['window_top5_acc'] == pytest.approx(2 / 3)
    assert retrieved(predictions * [[0.01], [1], [1]], gallery, answer, people)['top5_acc'] == 0.5


def test_the_scores_of_results_follow_both_rules() -> None:
    """Each epoch, and the mean of the repeats of a person and a picture, in plain loops."""
    rng = np.random.default_rng(3)
    gallery, answer = rng.normal(size=(40, 6)), np.concatenate([np.arange(40), rng.integers(0, 40, 160)])
    outputs, people = gallery[answer] + 2 * rng.normal(size=(200, 6)), rng.choice(['a', 'b', 'c'], 200)
    outputs[7] = np.nan
    found = retrieved(outputs, gallery, answer, people)
    assert found['window_top5_acc'] == np.mean(hits(outputs, gallery, answer, 5))
    pairs = sorted({*zip(people, answer, strict=True)})
    averaged = np.array([outputs[(people == who) & (answer == k)].mean(0) for who, k in pairs])
    assert found['top5_acc'] == np.mean(hits(averaged, gallery, np.array([k for _, k in pairs]), 5))
    assert 0.1 < found['top5_acc'] < 1


# ---- track 2 ----


@pytest.mark.parametrize(
    ('said', 'y', 'expected'),
    [
        ([0, 2, 1, 1], [0, 0, 1, 1], 0.5),  # 2 is said and never true: (1/2 + 1 + 0) / 3
        ([0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 2, 2], 1 / 3),
        ([0, 0, 0], [0, 0, 0], 1.0),
        ([1, 1], [0, 0], 0.0),
        ([0, np.nan], [0, 1], 1 / 3),  # nan is a class of its own
    ],
)
def test_classes_that_are_said_and_never_true_count_zero(said: list, y: list, expected: float) -> None:
    assert challenges.balanced_accuracy(np.array(said), np.array(y)) == pytest.approx(expected)


# ---- track 3 ----


def test_the_vectors_of_the_organisers() -> None:
    assert challenges.weighted_binned_mae(Y + OFF, Y) == pytest.approx(33 / 19)
    assert challenges.weighted_binned_mae(Y + OFF, Y, weights=(1, 1, 1, 1)) == pytest.approx(2.5)
    assert regression.binned_mae(Y + OFF, Y) == pytest.approx(2.5)
    assert challenges.weighted_binned_mae(np.array([1.0]), np.array([700.0])) is None


def test_empty_bins_take_their_weight_away_and_edges_belong_to_the_upper_bin() -> None:
    y = np.array([40.0, 90.0, 300.0, 700.0])
    assert challenges.weighted_binned_mae(y + [1, 2, 3, 100], y) == pytest.approx((5 * 1 + 3 * 2 + 1 * 3) / 9)
    assert challenges.weighted_binned_mae(np.array([5.0]), np.array([0.0])) == 5


@pytest.mark.parametrize('weights', [(1, 1, 1), (1, 1, 1, 0), (10, 5, 3, -1), (1, 1, 1, 1, 1)])
def test_weights_that_are_none_are_refused(weights: tuple) -> None:
    with pytest.raises(ValueError, match='4 numbers above 0'):
        challenges.weighted_binned_mae(Y, Y, weights=weights)


# ---- track 4 ----


def test_angles_are_compared_in_degrees_at_steps_that_are_known() -> None:
    """By the function that scores results, in all its numbers: targets [N, J, steps], a window counts by its steps."""

    def scored(outputs: np.ndarray, y: np.ndarray) -> float | None:
        arrays = {'id': np.arange(len(y)), 'outputs': outputs.reshape(len(y), -1), 'y': y}
        found = score.score(
            'angles', 'angular_mae', {**arrays, 'subject': np.array(['a', 'b', 'c', 'c'])[: len(y)]}, None
        )
        assert found['metrics'] == {'angular_mae': found['headline']['value']}
        return found['headline']['value']

    y = np.zeros((4, 3, 4))
    outputs = y + np.radians(10)
    assert scored(outputs, y) == pytest.approx(10)
    outputs[0, 1, 2] += np.radians(48)  # of 48 angles
    assert scored(outputs, y) == pytest.approx(11)
    y[0, 0, 2] = np.nan  # drops the step for all joints
    assert scored(outputs, y) == pytest.approx(10)
    outputs[1] += np.radians(45)  # 12 of 45 angles
    assert scored(outputs, y) == pytest.approx(22)
    y[3] = np.nan
    each = score.per_subject('angles', 'angular_mae', outputs.reshape(4, -1), y, np.array(['a', 'b', 'c', 'd']))
    assert each == pytest.approx({'a': 10, 'b': 55, 'c': 10}), 'nothing is known of the last one'
    assert scored(np.full((1, 1, 1), 2 * np.pi), np.zeros((1, 1, 1))) == pytest.approx(360)
    flat = outputs.reshape(4, -1).copy()
    flat[1, 1] = np.nan
    angles = targets.of('angles')
    assert np.isnan(angles.evaluate(flat, angles.checked(y, 12), {})['angular_mae'])
    for bad in (np.full_like(y, np.nan), np.full_like(y, np.inf)):
        with pytest.raises(ValueError, match='angles must be finite, or nan'):
            scored(outputs, bad)


def test_intervals_of_angles_count_a_window_by_its_steps() -> None:
    """A draw of subjects has the score of its windows, repeated as often."""
    rng = np.random.default_rng(0)
    outputs, y, owner = rng.normal(size=(6, 12)), rng.normal(size=(6, 3, 4)), np.array([0, 0, 1, 1, 2, 2])
    y[rng.uniform(size=y.shape) < 0.1] = np.nan
    angles = targets.of('angles')
    flat = angles.checked(y, 12)
    weighted = angles.by_weights(outputs, flat, owner, {}, 'angular_mae')
    rows = np.array([0, 1, 0, 1, 4, 5])  # the first twice, the second never
    wanted = angles.evaluate(outputs[rows], flat[rows], {})['angular_mae']
    assert weighted(np.array([[2.0, 0.0, 1.0]]))[0] == pytest.approx(wanted)


# ---- 2025 ----


@pytest.mark.parametrize(
    ('parts', 'overall'),
    [
        ((0.94021, 0.99717), 0.98008),
        ((0.91394, 0.98519), 0.96381),  # rows of the public board
        ((0.92991, 0.97843), 0.96387),
        ((0.88668, 0.99816), 0.96472),
    ],
)
def test_the_overall_score_is_that_of_the_public_board(parts: tuple[float, float], overall: float) -> None:
    """Within the last digit: it combines parts that have more digits than it shows."""
    assert challenges.overall_2025(*parts) == pytest.approx(overall, abs=1.01e-5)


def test_errors_are_over_the_population_sd() -> None:
    y = np.array([0.0, 0.0, 1.0, 3.0])
    assert normalised_rmse(np.full(4, y.mean()), y) == pytest.approx(1.0)
    assert normalised_rmse(y + 1, y) == pytest.approx(1 / np.sqrt(np.mean((y - 1) ** 2)))
    assert normalised_rmse(y, np.ones(4)) is None
    assert regression.value(y + 1, y)['normalized_rmse'] == normalised_rmse(y + 1, y)


def test_only_the_end_is_rounded() -> None:
    assert challenges.overall_2025(0.0, 0.0000049 + 0.0000149) == 1e-5  # 0.7 of 0.00002 would be 1.4e-5, also 1e-5
    assert challenges.overall_2025(0.000014, 0.000016) == 2e-5  # parts rounded first: 0.3e-5 + 1.4e-5 = 2e-5
    assert challenges.overall_2025(0.000014, 0.0000144) == 1e-5
    assert challenges.overall_2025(0.0000049, 0.0000049) == 0.0
    assert challenges.overall_2025(0.0000149, 0.0000149) == 1e-5


# ---- cells ----


def test_cells_have_their_own_scores_and_a_window_of_theirs() -> None:
    cell = np.array(['b', 'a', 'b', 'c'])
    values, first = challenges.of_cells(
        lambda o, y: None if y[0] < 0 else float(np.abs(o - y).mean()),
        np.array([1.0, 2.0, 3.0, 4.0]),
        np.array([0.0, 0.0, 0.0, -1.0]),
        cell,
    )
    assert values.tolist() == [2.0, 2.0] and cell[first].tolist() == ['a', 'b']
