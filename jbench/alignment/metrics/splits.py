"""Rows of training and of test, as scikit-learn draws them (Brain-Score's splits are scikit-learn's)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.spec.errors import RequestError

Rows = tuple[np.ndarray, np.ndarray]  # indices of training and of test


class Splits(NamedTuple):
    """How stimuli are split: `n` random splits, or with `kfold` as many folds that share no test stimulus."""

    n: int = 10
    train: float = 0.9  # share of the stimuli; of no effect where `test` is given, or with kfold
    test: float | None = None  # share of the stimuli; those of training are the rest
    seed: int = 1
    kfold: bool = False


SIMILARITY = Splits(test=0.9)  # of cka_cv and rdm_cv: what is measured is the 90 % called test


def splits(n_rows: int, how: Splits | None = None, labels: Sequence[Any] | np.ndarray | None = None) -> list[Rows]:
    """Indices of (training, test), one pair a split.

    Args:
        n_rows: number of stimuli.
        how: number, shares, seed; None: ten splits of 90 % and 10 %, seed 1.
        labels: class of each stimulus; with them, each split holds every class in proportion.

    Raises:
        RequestError: if there are too few stimuli, or too few of a class.
    """
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    how = Splits() if how is None else how
    classes = None if labels is None else np.asarray(labels).astype(str)
    _check(n_rows, how, classes)
    empty = np.zeros(n_rows)
    if how.kfold:
        fold = KFold if classes is None else StratifiedKFold
        drawn = fold(how.n, shuffle=True, random_state=how.seed).split(empty, classes)
    else:
        draw = ShuffleSplit if classes is None else StratifiedShuffleSplit
        sizes: dict[str, Any] = {'train_size': how.train} if how.test is None else {'test_size': how.test}
        drawn = draw(how.n, random_state=how.seed, **sizes).split(empty, classes)
    return list(drawn)


def _check(n_rows: int, how: Splits, classes: np.ndarray | None) -> None:
    """Raises RequestError for what scikit-learn would refuse, in the words of stimuli and classes."""
    if how.n < (2 if how.kfold else 1):
        raise RequestError(f'splits: {how.n} asked for; at least {2 if how.kfold else 1} {"folds" * how.kfold}'.strip())
    share = how.train if how.test is None else how.test
    if not how.kfold and not 0 < share < 1:
        raise RequestError(f'splits: a share of {share} of the stimuli; it lies between 0 and 1')
    n_test = _n_test(n_rows, how)
    if n_rows < 2 or not 0 < n_test < n_rows:
        raise RequestError(
            f'splits: {n_rows} stimuli give {max(n_rows - n_test, 0)} of training and {n_test} of test; '
            'each needs one: more stimuli, or other shares'
        )
    if classes is None:
        return
    if len(classes) != n_rows:
        raise RequestError(f'splits: {len(classes)} labels for {n_rows} stimuli; one label a stimulus')
    names, counts = np.unique(classes, return_counts=True)
    least = how.n if how.kfold else 2
    if counts.min() < least:
        raise RequestError(
            f'splits: class {str(names[counts.argmin()])!r} has {counts.min()} stimuli, and splits of equal classes '
            f'need {least} of each; leave labels= (of a benchmark: stratify=) out: splits then know no classes'
        )
    smaller = min(n_test, n_rows - n_test)
    if not how.kfold and smaller < len(names):
        raise RequestError(
            f'splits: {smaller} stimuli on one side for {len(names)} classes, and splits of equal classes need one of '
            'each on both sides; leave labels= (of a benchmark: stratify=) out, or give more stimuli'
        )


def _n_test(n_rows: int, how: Splits) -> int:
    """Stimuli of test in one split, rounded as scikit-learn does."""
    if how.kfold:
        return n_rows // how.n
    return n_rows - int(how.train * n_rows) if how.test is None else int(np.ceil(how.test * n_rows))
