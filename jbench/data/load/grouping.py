"""Groups of events by a column, and how scikit-learn divides them (numpy's legacy RandomState, fixed by its
compatibility promise), so that a split does not depend on the version of scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jbench.events import Table, as_text, column, present
from jbench.spec.errors import RequestError


def groups(events: Table, by: str, among: np.ndarray | None = None) -> np.ndarray:
    """Number of each row's group, in first-seen order among the rows `among` (default all); -1 for none."""
    by = 'recording' if by == 'timeline' else by
    among = np.ones(len(events['onset']), bool) if among is None else among
    if by == '_index':
        return np.where(among, np.cumsum(among) - 1, -1)
    values = column(events, by)
    names, keys = np.unique(values, return_inverse=True)
    keys = np.where(among & present(values), keys, -1)
    first = first_rows(keys)
    number = np.full(len(names) + 1, -1)
    number[keys[first]] = np.arange(len(first))
    return np.asarray(number[keys])


def first_rows(group_of: np.ndarray) -> np.ndarray:
    """The first row of each group, ascending."""
    ids, rows = np.unique(group_of, return_index=True)
    return np.sort(rows[ids >= 0])


def strata_ranks(group_of: np.ndarray, strata: np.ndarray, first: np.ndarray, what: str) -> np.ndarray:
    """Rank of each group's stratum, int [groups]: numbers by value, texts by code point even where they are digits, as
    scikit-learn sorts them. Raises: RequestError for a group with two."""
    labels = np.array([as_text(v) for v in strata])
    own = dict(zip(group_of[first].tolist(), labels[first].tolist(), strict=True))
    used = present(labels) & (group_of >= 0)
    for group, label in set(zip(group_of[used].tolist(), labels[used].tolist(), strict=True)):
        if own[group] != label:
            pair = listed(sorted((own[group], label)))
            raise RequestError(f'one {what!r} is in two strata ({pair}), but needs one; set split.stratify=none')
    return np.unique(strata[first], return_inverse=True)[1]


def train_test_positions(n: int, share: float, seed: int, strata: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Positions (train, test) of `train_test_split(range(n), test_size=share, random_state=seed, stratify=strata)`.

    Args:
        n: number of groups.
        share: of the test part, in (0, 1); its size is ceil(share * n).
        seed: of RandomState.
        strata: [n], sortable: the class of each group, or None.
    Returns:
        Two int arrays, in scikit-learn's order.
    """
    n_test = math.ceil(share * n)
    rng = np.random.RandomState(seed)
    if strata is None:
        order = rng.permutation(n)
        return order[n_test:], order[:n_test]
    _, kinds, counts = np.unique(strata, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(kinds, kind='stable'), np.cumsum(counts)[:-1])
    n_i = _approximate_mode(counts, n - n_test, rng)
    t_i = _approximate_mode(counts - n_i, n_test, rng)
    train: list[int] = []
    test: list[int] = []
    for members, n_here, t_here in zip(rows, n_i, t_i, strict=True):
        order = members[rng.permutation(len(members))]
        train.extend(order[:n_here])
        test.extend(order[n_here : n_here + t_here])
    return rng.permutation(train), rng.permutation(test)


def _approximate_mode(counts: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    """How many of n_draws fall on each class: near the mode of the multivariate hypergeometric (scikit-learn's rule,
    drawing from `rng` to break ties in the same order)."""
    exact = counts / counts.sum() * n_draws
    drawn: np.ndarray = np.floor(exact).astype(np.int64)
    left = int(n_draws - drawn.sum())
    if left > 0:
        remainder = exact - drawn
        for value in np.unique(remainder)[::-1]:
            ties = np.flatnonzero(remainder == value)
            now = min(len(ties), left)
            drawn[rng.choice(ties, size=now, replace=False)] += 1
            left -= now
            if left == 0:
                break
    return drawn


def listed(names: Sequence[str], limit: int = 8) -> str:
    """Names as they stand in a message, the first few of many."""
    return ', '.join(map(repr, names[:limit])) + (f', ... ({len(names)})' if len(names) > limit else '')


def in_order(events: Table, by: Sequence[str]) -> tuple[Table, np.ndarray]:
    """The rows of a table sorted by the text of some columns, and which rows these are, int [n]; for none as it is."""
    rows = np.arange(len(events['onset']))
    if by:
        rows = np.lexsort([np.array([as_text(v) for v in column(events, name)]) for name in by][::-1])
    return {k: np.asarray(v)[rows] for k, v in events.items()}, rows
