"""Splits of stimuli: scikit-learn's indices, and one message where there can be none."""

from __future__ import annotations

import numpy as np
import pytest
from alignment_values import aligned, recorded
from each import each

from jbench.alignment.metrics.splits import SIMILARITY, Splits, splits
from jbench.spec.errors import RequestError


@each(
    'name, how, labelled',
    [
        ('split', None, True),
        ('shuffle', None, False),
        ('kfold', Splits(kfold=True), False),
        ('stratkfold', Splits(kfold=True), True),
    ],
)
def test_the_recorded_indices(name, how, labelled):
    g = recorded('regression')
    drawn = splits(120, how, aligned().labels if labelled else None)
    for (train, test), wanted, left in zip(drawn, g[f'{name}_test'], g[f'{name}_train'], strict=True):
        assert np.array_equal(test, wanted)
        assert np.array_equal(train, left.astype(int))


def test_of_similarities_the_larger_part_is_measured():
    g = recorded('similarity')
    drawn = splits(50, SIMILARITY, g['object_name'])
    assert all(np.array_equal(test, wanted) for (_, test), wanted in zip(drawn, g['cv_test'], strict=True))


@each(
    'n, how, labels, message',
    [
        (1, None, None, '1 stimuli give'),
        (8, Splits(train=1.5), None, 'share of 1.5'),
        (8, Splits(n=0), None, '0 asked for'),
        (8, Splits(n=1, kfold=True), None, 'folds'),
        (4, Splits(n=5, kfold=True), None, '0 of test'),
        (4, None, ['a', 'a', 'a', 'b'], "class 'b' has 1"),
        (30, Splits(kfold=True), ['a'] * 25 + ['b'] * 5, "class 'b' has 5"),
        (30, None, [f'c{k % 10}' for k in range(30)], '3 stimuli on one side for 10 classes'),
        (30, None, ['a', 'b'], '2 labels for 30'),
    ],
)
def test_what_cannot_be_split_is_one_message(n, how, labels, message):
    with pytest.raises(RequestError, match=message):
        splits(n, how, labels)


@each('n', range(2, 40))
def test_what_is_not_refused_is_split(n):
    """The check in front of scikit-learn lets nothing through that it would refuse."""
    labels = [f'c{k % 3}' for k in range(n)]
    for how in (None, Splits(test=0.9), Splits(train=0.5), Splits(n=3, kfold=True)):
        for given in (None, labels):
            try:
                drawn = splits(n, how, given)
            except RequestError:
                continue
            assert all(len(train) and len(test) for train, test in drawn)
