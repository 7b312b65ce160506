"""Cross-validation: groups dealt into folds, of which each tests once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jbench.data.load.grouping import first_rows, groups, in_order, listed, strata_ranks, train_test_positions
from jbench.events import Table, as_text, column, present, unique_sorted
from jbench.spec.errors import RequestError, SplitError
from jbench.spec.task import ByGroup


def fold_names(events: Table, split: ByGroup) -> list[str]:
    """Every fold of `split.folds`, as `split.fold` names it: 'k/n', or 'u:k/n' of unit u.

    Args:
        events: the event table, in canonical order.
        split: with `folds`.
    Raises: RequestError for folds that are no number, an unknown column; SplitError for more folds than groups.
    """
    found, events = [], in_order(events, split.order)[0]
    for unit, rows in enumerate(_units(events, split), 1):
        group_of = _dealt(events, rows, split)
        n_groups = int(group_of.max(initial=-1)) + 1
        n = n_groups if split.folds == 'all' else int(split.folds)
        _enough(events, split, group_of, n)
        found += [f'{unit}:{k}/{n}' if split.within else f'{k}/{n}' for k in range(1, n + 1)]
    return found


def fold_parts(events: Table, split: ByGroup) -> np.ndarray:
    """The part of every event in one fold: fold k tests, the next one (after the last the first) validates, the others
    train. Of two folds, a share `valid` of the groups of the other one validates; of a single group, of its rows. With
    `validate_by`, all others train, and a part of fold k validates: rows with the first half of its values.

    Groups are dealt in first-seen order, as cards are; with `stratify`, those of one stratum after those of another.
    With as many folds as groups, one group is left out.

    Args:
        events: the event table, in canonical order.
        split: with `fold`.
    Returns: str [n], '' for rows of other units, without group or stratum.
    Raises: RequestError for a fold that is not k/n, or of no unit; SplitError for more folds than groups.
    """
    unit, k, n = split.fold_numbers()
    units = _units(events, split)
    if unit > len(units):
        raise RequestError(f'--set split.fold: {split.fold!r}, but there are {len(units)} units ({split.within})')
    group_of = _dealt(events, units[unit - 1], split)
    _enough(events, split, group_of, n)
    dealt = group_of % n + 1
    if split.validate_by:
        names = np.array([as_text(v) for v in column(events, split.validate_by)])
        test = (group_of >= 0) & (dealt == k)
        valid = test & np.isin(names, _first_half(names[test], split.validate_by))
        return np.select([group_of < 0, valid, test], ['', 'valid', 'test'], 'train').astype('<U5')
    if n > 2:
        parts = [group_of < 0, dealt == k, dealt == k % n + 1]
        return np.select(parts, ['', 'test', 'valid'], 'train').astype('<U5')
    out = np.select([group_of < 0, dealt == k], ['', 'test'], 'train').astype('<U5')
    rest = np.flatnonzero(out == 'train')
    number = np.unique(group_of[rest], return_inverse=True)[1]
    if number.max(initial=0) == 0:  # one group
        number = np.arange(len(rest))
    n_there = int(number.max(initial=-1)) + 1
    if n_there < 2:
        raise SplitError(f'--set split.fold: {split.fold!r} leaves {len(rest)} rows to train and validate')
    out[rest[np.isin(number, train_test_positions(n_there, split.valid, split.seed)[1])]] = 'valid'
    return out


def _first_half(names: np.ndarray, by: str) -> list[str]:
    """The first half of the values of the column `by` in a fold, in order. Raises: SplitError where there is one."""
    values = [name for name in unique_sorted(names.tolist()) if name]
    if len(values) < 2:
        raise SplitError(f'split.validate_by: {by!r} needs two values in a fold, there is {listed(values) or "none"}')
    return values[: len(values) // 2]


def first_fold(events: Table, split: ByGroup) -> ByGroup:
    """The split of the first fold, for a look at what one is like."""
    return replace(split, folds='', fold=fold_names(events, split)[0])


def _units(events: Table, split: ByGroup) -> list[np.ndarray]:
    """Rows of each unit, bool [n]: everybody, or each subject or session of a subject, in first-seen order."""
    n = len(events['onset'])
    if not split.within:
        return [np.ones(n, bool)]
    number = groups(events, 'subject')
    if split.within == 'session':
        session = groups(events, 'session')
        number = np.where((number < 0) | (session < 0), -1, number * (session.max(initial=0) + 1) + session)
    return [number == number[row] for row in first_rows(number)]


def _dealt(events: Table, rows: np.ndarray, split: ByGroup) -> np.ndarray:
    """The card number of the group of each row of a unit, int [n], -1 for none: 0 is dealt first."""
    among = rows
    if split.stratify:
        strata = column(events, split.stratify)
        among = rows & present(strata)
    group_of = groups(events, split.by, among)
    if not split.stratify:
        return group_of
    first = first_rows(group_of)
    ranks = strata_ranks(group_of, strata, first, split.by)
    number = np.append(np.empty(len(first), int), -1)
    number[np.argsort(ranks, kind='stable')] = np.arange(len(first))
    return np.asarray(number[group_of])


def _enough(events: Table, split: ByGroup, group_of: np.ndarray, n: int) -> None:
    """Raises: SplitError for more folds than groups."""
    n_groups = int(group_of.max(initial=-1)) + 1
    if n > n_groups or n < 2:
        first = first_rows(group_of)
        names = listed([as_text(v) for v in column(events, split.by)[first]]) if split.by in events else 'rows'
        where, field = f' in one {split.within}' if split.within else '', 'folds' if split.folds else 'fold'
        if n < 2:
            raise SplitError(f'folds by {split.by!r} need two groups or more, there is {n_groups}{where}: {names}')
        raise SplitError(f'--set split.{field}: {n} folds, but {split.by!r} has {n_groups} groups{where}: {names}')
