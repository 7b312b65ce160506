"""Retrieval: ranks against their definition, and each way of averaging against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.metrics import retrieval
from jbench.spec.metrics import of_kind


def plain_rank(query: np.ndarray, candidates: np.ndarray, right: int) -> float:
    scores = [float(query @ c) / float(np.sqrt(c @ c)) for c in candidates]
    greater = sum(s > scores[right] for s in scores)
    return (greater + sum(s >= scores[right] for s in scores) - 1) / 2


@pytest.mark.parametrize('width', [16, 300])
def test_the_same_candidate_shares_a_rank_wherever_it_lies(width: int) -> None:
    rng = np.random.default_rng(0)
    for n in range(2, 40):
        candidates, queries = np.tile(rng.normal(size=width), (n, 1)), rng.normal(size=(n, width))
        assert retrieval.ranks(queries, candidates, np.arange(n)).tolist() == [(n - 1) / 2] * n


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 30), st.booleans())
def test_ranks_are_the_stated_rule(seed: int, m: int, n: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    queries, candidates = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    if ties:
        candidates = candidates[rng.integers(0, m, m)]
    right = rng.integers(0, m, n)
    expected = [plain_rank(q, candidates, k) for q, k in zip(queries, right, strict=True)]
    np.testing.assert_allclose(retrieval.ranks(queries, candidates, right), expected)


def test_equal_candidates_share_a_rank() -> None:
    candidates = np.array([[1.0, 0], [1, 0], [0, 1]])
    assert retrieval.ranks(np.array([[1.0, 0.1]] * 3), candidates, np.arange(3)).tolist() == [0.5, 0.5, 2]
    assert retrieval.ranks(np.zeros((1, 2)), candidates, np.array([0])).tolist() == [1]  # all equal: the middle


def test_the_length_of_a_target_counts_for_nothing_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries, candidates, right = rng.normal(size=(50, 4)), rng.normal(size=(9, 4)), rng.integers(0, 9, 50)
    found = retrieval.ranks(queries, candidates, right)
    assert (retrieval.ranks(queries, candidates * rng.uniform(0.1, 9, (9, 1)), right) == found).all()
    monkeypatch.setattr(retrieval, 'ROWS', 7)
    assert (retrieval.ranks(queries, candidates, right) == found).all()


def some_windows(seed: int = 0, n: int = 400, noise: float = 6.0):
    """Outputs, targets, groups and subjects; targets differ within a group, as in speech."""
    rng = np.random.default_rng(seed)
    number, who = rng.integers(0, 40, n), rng.integers(0, 3, n)
    targets = rng.normal(size=(40, 8))[number] + 0.1 * rng.normal(size=(n, 8))
    outputs = targets + noise * rng.normal(size=(n, 8))
    return outputs, targets, np.array([f'g{k}' for k in number]), np.array([f's{k}' for k in who])


def plain_share(outputs, targets, groups, subjects, by) -> dict[str, float]:
    """Hits in the first five of queries averaged over equal values of `by`, for each subject and for all."""
    names = sorted(set(groups))
    candidates = np.array([targets[groups == g].mean(0) for g in names])
    hits: dict[str, list[bool]] = {}
    for value in sorted(set(by)):
        rows = np.array([b == value for b in by])
        rank = plain_rank(outputs[rows].mean(0), candidates, names.index(groups[rows][0]))
        hits.setdefault(subjects[rows][0], []).append(rank < 5)
    return {**{s: float(np.mean(h)) for s, h in hits.items()}, 'all': float(np.mean(np.concatenate([*hits.values()])))}


def test_each_way_of_averaging_equals_a_plain_loop() -> None:
    data = some_windows()
    found, groups, subjects = retrieval.evaluate(*data), data[2], data[3]
    pairs = plain_share(*data, list(zip(subjects, groups, strict=True)))
    windows = plain_share(*data, list(range(len(groups))))
    assert set(found) == set(of_kind('embedding'))
    assert found['top5_acc'] == pytest.approx(pairs['all'])
    assert found['window_top5_acc'] == pytest.approx(windows['all'])
    assert found['instance_top5_acc'] == pytest.approx(plain_share(*data, list(groups))['all'])
    assert found['subject_top5_acc'] == pytest.approx(np.mean([windows[s] for s in ('s0', 's1', 's2')]))
    each = retrieval.per_subject(*data, 'top5_acc')
    assert each == pytest.approx({s: pairs[s] for s in ('s0', 's1', 's2')})
    assert 5 / 40 < found['window_top5_acc'] < found['top5_acc'] < found['instance_top5_acc']


def test_the_most_frequent_groups_are_a_set_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, 'MOST_FREQUENT', 10)
    data = some_windows()
    names, counts = np.unique(data[2], return_counts=True)
    some = np.isin(data[2], names[np.argsort(-counts, kind='stable')[:10]])
    alone = retrieval.evaluate(*(a[some] for a in data))
    found = retrieval.evaluate(*data)
    assert found['top5_acc_250'] == alone['top5_acc'] > found['top5_acc']
    assert retrieval.per_subject(*data, 'top5_acc_250') == retrieval.per_subject(*(a[some] for a in data), 'top5_acc')


def test_a_batch_of_64_is_its_own_set_of_candidates() -> None:
    outputs, targets, *_ = some_windows(n=150)
    hits = []
    for first in range(0, 150, 64):
        part = slice(first, first + 64)
        hits += [plain_rank(q, targets[part], k) < 5 for k, q in enumerate(outputs[part])]
    assert retrieval.batch_top5_acc(outputs, targets) == pytest.approx(np.mean(hits))


def test_outputs_without_the_signal_score_chance() -> None:
    outputs, targets, groups, subjects = some_windows(n=20_000)
    rng = np.random.default_rng(1)
    found = retrieval.evaluate(rng.normal(size=outputs.shape), targets, groups, subjects)
    assert found['window_top5_acc'] == pytest.approx(5 / 40, abs=0.02)
    assert retrieval.evaluate(targets, targets, groups, subjects)['top5_acc'] == 1
