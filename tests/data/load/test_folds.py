"""Folds: every group is tested once, alone or with its stratum, over all or within a subject or session."""

from __future__ import annotations

import dataclasses
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.data.load import folds, splits
from jbench.plan import cells, select
from jbench.plan.evaluations import evaluation
from jbench.spec.errors import RequestError, SplitError
from jbench.spec.task import ByGroup


def table(subjects: list[str], **columns: list) -> dict[str, np.ndarray]:
    """One event a subject name given, each in its own recording."""
    n = len(subjects)
    base = {'recording': np.arange(n), 'onset': np.zeros(n), 'duration': np.ones(n), 'subject': np.array(subjects)}
    return base | {'type': np.array(['Eeg'] * n)} | {k: np.array(v) for k, v in columns.items()}


def positions(assigned: np.ndarray, name: str) -> list[int]:
    return np.flatnonzero(assigned == name).tolist()


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from([f's{i}' for i in range(9)] + ['']), min_size=1, max_size=40), st.integers(3, 9))
def test_every_group_is_tested_once_over_the_folds(subjects: list[str], n: int) -> None:
    events, groups = table(subjects), list(dict.fromkeys(s for s in subjects if s))
    if n > len(groups):
        with pytest.raises(RequestError, match=f"{n} folds, but 'subject' has {len(groups)} groups"):
            splits.assign(events, ByGroup(fold=f'1/{n}'))
        return
    tested: list[str] = []
    validated: list[str] = []
    for k in range(1, n + 1):
        found = splits.assign(events, ByGroup(fold=f'{k}/{n}'))
        parts = {name: {s for s, p in zip(subjects, found, strict=True) if p == name} for name in splits.SPLITS}
        assert all((p == '') == (s == '') for p, s in zip(found, subjects, strict=True))  # nothing is lost
        assert all(parts.values()) and sum(map(len, parts.values())) == len(groups)  # disjoint, none empty
        assert set().union(*parts.values()) == set(groups)
        tested += sorted(parts['test'])
        validated += sorted(parts['valid'])
    assert sorted(tested) == sorted(validated) == sorted(groups)


def test_groups_are_dealt_as_cards_are() -> None:
    events = table([f's{i}' for i in range(7)])
    assert positions(splits.assign(events, ByGroup(fold='1/3')), 'test') == [0, 3, 6]
    assert positions(splits.assign(events, ByGroup(fold='1/3')), 'valid') == [1, 4]
    assert positions(splits.assign(events, ByGroup(fold='3/3')), 'valid') == [0, 3, 6]
    found = splits.assign(events, ByGroup(fold='7/7'))
    assert (positions(found, 'test'), positions(found, 'valid')) == ([6], [0])
    assert (
        splits.assign(events, ByGroup(fold='2/3', seed=1, test=0.4)) == splits.assign(events, ByGroup(fold='2/3'))
    ).all()


@pytest.mark.parametrize(
    'fold', ['1', '0/3', '4/3', '1/1', '2:1/3', '1/', '/3', '-1/3', '1.0/3', 'a/b', '1/3/3', ' 1/3']
)
def test_a_fold_that_is_none_is_refused(fold: str) -> None:
    with pytest.raises(RequestError, match=r'split\.fold: .* must be k/n, as 1/5: fold k'):
        splits.assign(table([f's{i}' for i in range(9)]), ByGroup(fold=fold))
    task = select.tasks()['p3'][-1]
    with pytest.raises(RequestError, match=r'split\.fold'):
        cells.apply(task, select.datasets()['SimulatedP3'], (('split.fold', fold),))


def rows_by_fold(events: dict[str, np.ndarray], split: ByGroup) -> list[list[int]]:
    """The rows that each fold tests; every fold trains and validates, too, on other rows."""
    found = []
    for name in folds.fold_names(events, split):
        part = folds.fold_parts(events, ByGroup(**{**vars(split), 'folds': '', 'fold': name}))
        assert {'train', 'valid', 'test'} <= set(part.tolist()), name
        found.append(positions(part, 'test'))
    return found


def test_all_leaves_out_one_group_in_turn() -> None:
    events = table(list('aabbcd'))
    assert folds.fold_names(events, ByGroup(folds='all')) == ['1/4', '2/4', '3/4', '4/4']
    assert rows_by_fold(events, ByGroup(folds='all')) == [[0, 1], [2, 3], [4], [5]]
    assert (splits.assign(events, ByGroup(folds='all')) == splits.assign(events, ByGroup(fold='1/4'))).all()
    with pytest.raises(SplitError, match=r"split\.folds: 5 folds, but 'subject' has 4 groups: 'a', 'b', 'c', 'd'"):
        folds.fold_names(events, ByGroup(folds='5'))


def test_strata_are_dealt_one_after_the_other() -> None:
    """Each class comes every third time: dealt as they come, each of three folds would hold one class."""
    events = table(['s'] * 18, code=list('abc') * 6)
    found = rows_by_fold(events, ByGroup(by='_index', folds='3', stratify='code'))
    assert [sorted(events['code'][rows].tolist()) for rows in found] == [list('aabbcc')] * 3
    plain = rows_by_fold(events, ByGroup(by='_index', folds='3'))
    assert [set(events['code'][rows].tolist()) for rows in plain] == [{'a'}, {'b'}, {'c'}]
    events['code'][:3] = ''
    assert sorted(chain(*rows_by_fold(events, ByGroup(by='_index', folds='3', stratify='code')))) == list(range(3, 18))


def test_two_folds_validate_on_some_rows_of_the_other() -> None:
    events = table(['a'] * 10 + ['b'] * 10)
    part = splits.assign(events, ByGroup(fold='2/2'))
    assert positions(part, 'test') == list(range(10, 20))
    assert len(positions(part, 'valid')) == 2 and len(positions(part, 'train')) == 8
    other = splits.assign(events, ByGroup(fold='2/2', seed=1, valid=0.5))
    assert len(positions(other, 'valid')) == 5
    with pytest.raises(SplitError, match='leaves 1 rows to train and validate'):
        splits.assign(table(['a', 'b']), ByGroup(fold='1/2'))


SESSIONS = table(
    ['a'] * 12 + ['b'] * 18, session=(['1'] * 6 + ['2'] * 6) + (['1'] * 6 + ['2'] * 6 + ['3'] * 6), code=list('xy') * 15
)


def test_words_of_moabb() -> None:
    task = select.tasks()['motor_imagery'][-1]
    asked = {word: evaluation(word, task) for word in ('within_session', 'cross_session', 'cross_subject')}
    within = ByGroup(by='_index', within='session', folds='3', stratify='code')
    assert asked['within_session'].stratify == task.target.field
    found = rows_by_fold(SESSIONS, within)
    assert len(found) == 3 * 5 and sorted(chain(*found)) == list(range(30))
    for rows in found:
        owners = {(SESSIONS['subject'][row], SESSIONS['session'][row]) for row in rows}
        assert len(rows) == 2 and len(owners) == 1 and set(SESSIONS['code'][rows].tolist()) == {'x', 'y'}
    found = rows_by_fold(SESSIONS, asked['cross_session'])
    assert found == [[*range(k, k + 6)] for k in (0, 6, 12, 18, 24)]
    part = folds.fold_parts(SESSIONS, ByGroup(by='session', within='subject', fold='2:1/3'))
    assert set(SESSIONS['subject'][part != ''].tolist()) == {'b'}, 'learnt by itself'
    assert rows_by_fold(table(list('abc')), asked['cross_subject']) == [[0], [1], [2]]
    with pytest.raises(RequestError, match="unknown split 'cross'; did you mean 'cross_session' or 'cross_subject'"):
        evaluation('cross', task)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'folds': '1'}, "split.folds: '1' must be 2 or more, or 'all'"),
        ({'folds': 'five'}, "'five' must be 2 or more"),
        ({'folds': '5', 'fold': '1/5'}, 'one of the folds, or all of them'),
        ({'within': 'session'}, 'it needs folds'),
        ({'within': 'run', 'folds': '5'}, "got 'run', expected one of"),
        ({'within': 'subject', 'fold': '1/5'}, 'must be u:k/n, as 3:1/5: of unit u'),
    ],
)
def test_folds_that_are_none_are_refused_before_anything_is_prepared(changes: dict[str, str], words: str) -> None:
    task, dataset = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']
    with pytest.raises(RequestError, match=words):
        cells.apply(task, dataset, tuple((f'split.{k}', v) for k, v in sorted(changes.items())))


def test_a_fold_of_no_unit_is_refused() -> None:
    with pytest.raises(RequestError, match='there are 2 units'):
        folds.fold_parts(SESSIONS, ByGroup(by='session', within='subject', fold='3:1/2'))


def test_ranks_of_several_folds_are_not_one_result() -> None:
    task = select.tasks()['image'][-1]
    with pytest.raises(RequestError, match='cannot be one result'):
        cells.apply(task, select.find_dataset(task.simulated or ''), (('split', 'cross_subject'),))


def test_units_are_counted_in_the_order_of_the_split() -> None:
    events = table(list('bbaaa'), run=list('12123'))
    split = ByGroup(by='run', within='subject', folds='all', order=('subject',))
    assert folds.fold_names(events, split) == ['1:1/3', '1:2/3', '1:3/3', '2:1/2', '2:2/2']
    part = splits.assign(events, ByGroup(by='run', within='subject', fold='1:1/3', order=('subject',)))
    assert set(events['subject'][part != ''].tolist()) == {'a'}


@pytest.mark.parametrize(
    ('fields', 'key'),
    [
        ((('split.folds', '5'), ('split.seed', '7')), 'split.seed: unused'),
        ((('split.folds', 'all'), ('split.test', '0.3')), 'split.test: unused'),
        ((('split.fold', '1/5'), ('split.valid', '0.3')), 'split.valid: unused'),
        ((('split.folds', '05'),), "'05' must be 2 or more"),
        ((('split.fold', '02/5'),), 'must be k/n'),
    ],
)
def test_one_way_to_ask_for_folds(fields: tuple[tuple[str, str], ...], key: str) -> None:
    task, dataset = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']
    with pytest.raises(RequestError, match=key):
        cells.apply(task, dataset, fields)


def test_shares_of_the_task_itself_do_not_count_with_folds() -> None:
    task, dataset = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']
    own = dataclasses.replace(task, split=ByGroup(valid=0.1, test=0.3, seed=5))
    for field in (('split.folds', '5'), ('split.fold', '1/5')):
        assert cells.apply(own, dataset, (field,)) == cells.apply(task, dataset, (field,))
    assert cells.apply(own, dataset, (('split.folds', '2'),)).split.valid == 0.1
