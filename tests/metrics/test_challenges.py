"""Scores of the challenges: the organisers' test vectors, tables made by hand, and plain loops over the rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.metrics import challenges, regression, retrieval

Y = np.array([10.0, 50.0, 100.0, 600.0])
OFF = np.array([1.0, 2.0, 3.0, 4.0])
EPSILON = 1e-12  # of norms


# ---- the organisers' rules in plain steps, which jbench/metrics computes otherwise ----


def top_k(predictions: np.ndarray, gallery: np.ndarray, answer: np.ndarray, k: int = 5) -> float:
    """Share of queries whose picture is among the k nearest of the gallery, by cosine; equal scores share a rank.

    Warm-up: each epoch is a query. A query that is not finite is a miss. So equal scores everywhere hit where the
    gallery has at most 2 k pictures, and miss elsewhere.

    Args:
        predictions: [N, D].
        gallery: [M, D], each picture once.
        answer: int [N], number in the gallery.
    """
    queries, pictures = (_unit(np.asarray(a, np.float64)) for a in (predictions, gallery))
    with np.errstate(invalid='ignore'):
        scores = queries @ pictures.T
    own = np.take_along_axis(scores, np.asarray(answer)[:, None], 1)
    rank = ((scores > own).sum(1) + (scores >= own).sum(1) - 1) / 2
    return float((np.isfinite(own[:, 0]) & (rank < k)).mean())


def top_k_of_people(
    predictions: np.ndarray, gallery: np.ndarray, answer: np.ndarray, people: np.ndarray, k: int = 5
) -> float:
    """The sealed rule: predictions are averaged over the repeats that one person saw of one picture, as they are (not
    normalised), and each average is a query of `top_k`. people: text [N]."""
    answer = np.asarray(answer)
    who = np.unique(people, return_inverse=True)[1]
    pairs, query = np.unique(who * (int(answer.max()) + 1) + answer, return_inverse=True)
    averaged = retrieval.means(np.asarray(predictions, np.float64), query)
    return top_k(averaged, gallery, pairs % (int(answer.max()) + 1), k)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), EPSILON)


def normalised_rmse(outputs: np.ndarray, y: np.ndarray) -> float | None:
    """Root of the mean squared error over the population sd of y; None where y is constant. outputs, y: [N]."""
    error, spread = np.asarray(outputs, np.float64) - y, float(np.std(y))
    return float(np.sqrt((error**2).mean())) / spread if spread else None


# ---- track 1 ----


@pytest.mark.parametrize(('pictures', 'expected'), [(12, 0.0), (11, 0.0), (10, 1.0), (6, 1.0)])
def test_equal_scores_share_the_middle_rank(pictures: int, expected: float) -> None:
    gallery = np.eye(pictures, 16) + 1
    assert top_k(np.zeros((3, 16)), gallery, np.arange(3)) == expected
    assert top_k(np.full((3, 16), 0.0), np.ones((pictures, 16)), np.arange(3)) == expected


def test_a_query_that_is_no_number_is_a_miss() -> None:
    gallery = np.eye(20)
    right = gallery[:4].copy()
    right[1, 3] = np.nan
    assert top_k(gallery[:4], gallery, np.arange(4)) == 1.0
    assert top_k(right, gallery, np.arange(4)) == 0.75


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 25))
def test_epochs_are_ranked_by_the_stated_rule(seed: int, m: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    gallery, queries, answer = rng.normal(size=(m, 3)), rng.normal(size=(n, 3)), rng.integers(0, m, n)
    hits = []
    for query, right in zip(queries, answer, strict=True):
        u = query / max(float(np.sqrt(query @ query)), 1e-12)
        s = [float(u @ (g / np.linalg.norm(g))) for g in gallery]
        rank = (sum(x > s[right] for x in s) + sum(x >= s[right] for x in s) - 1) / 2
        hits.append(rank < 5)
    assert top_k(queries, gallery, answer) == np.mean(hits)


def test_repeats_of_one_person_and_picture_are_averaged_as_they_are() -> None:
    """A loud repeat outweighs a quiet one, since nothing is normalised before; another person's repeats stay apart."""
    gallery = np.eye(12)
    loud, quiet = 10 * gallery[0], gallery[5]
    predictions = np.stack([loud, quiet, gallery[5]])
    people, answer = np.array(['a', 'a', 'b']), np.array([0, 0, 5])
    assert top_k_of_people(predictions, gallery, answer, people, k=1) == 1.0
    assert top_k_of_people(predictions * [[0.01], [1], [1]], gallery, answer, people, k=1) == 0.5
    assert top_k(predictions, gallery, answer, k=1) == pytest.approx(2 / 3)


def test_the_scores_of_results_follow_both_rules() -> None:
    rng = np.random.default_rng(3)
    gallery, answer = rng.normal(size=(40, 6)), rng.integers(0, 40, 200)
    outputs, people = gallery[answer] + 2 * rng.normal(size=(200, 6)), rng.choice(['a', 'b', 'c'], 200)
    groups = np.array([f'{k:02d}' for k in answer])
    found = retrieval.evaluate(outputs, gallery[answer], groups, people)
    shown, number = np.unique(answer, return_inverse=True)
    assert found['window_top5_acc'] == top_k(outputs, gallery[shown], number)
    assert found['top5_acc'] == top_k_of_people(outputs, gallery[shown], number, people)
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
    y = np.zeros((2, 3, 4))
    outputs = y + np.radians(10)
    assert challenges.angular_mae(outputs, y) == pytest.approx(10)
    outputs[0, 1, 2] += np.radians(24)  # of 24 angles
    assert challenges.angular_mae(outputs, y) == pytest.approx(11)
    y[0, 0, 2] = np.nan  # drops the step for all joints
    assert challenges.angular_mae(outputs, y) == pytest.approx(10)
    outputs[1, 1, 1] = np.nan
    assert np.isnan(challenges.angular_mae(outputs, y))
    assert challenges.angular_mae(outputs, np.full_like(y, np.nan)) is None
    assert challenges.angular_mae(np.full((1, 1, 1), 2 * np.pi), np.zeros((1, 1, 1))) == pytest.approx(360)


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
