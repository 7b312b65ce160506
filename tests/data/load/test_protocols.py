"""Few training windows, and channels that fail in the test."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import small

from jbench.data.load import prepared_set, protocols
from jbench.data.load.loader import Loader
from jbench.plan.cells import apply
from jbench.plan.select import datasets, tasks
from jbench.spec.errors import RequestError


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('protocols'))


def opened(data, **recipe):
    return prepared_set.open_set(data.folder, small.cell(**recipe).task)


def test_few_windows_of_each_class_and_subject_train(data):
    few = opened(data, few_shot=3)
    train = few.rows('train')
    assert set(few.subjects[train]) == set(data.subjects[data.rows('train')])
    for subject in set(few.subjects[train]):
        np.testing.assert_array_equal(np.bincount(few.y[train][few.subjects[train] == subject]), [3, 3])
    assert set(train) < set(data.rows('train'))
    for name in ('valid', 'test'):
        np.testing.assert_array_equal(few.rows(name), data.rows(name))
    np.testing.assert_array_equal(few.split == '', data.split == '')  # what is in no part is told from what is left out


def test_more_windows_hold_the_fewer_and_too_many_are_all(data):
    three, five, all_ = (opened(data, few_shot=k).rows('train') for k in (3, 5, 10**6))
    assert set(three) < set(five)
    np.testing.assert_array_equal(all_, data.rows('train'))
    np.testing.assert_array_equal(three, opened(data, few_shot=3).rows('train'))


def test_each_seed_draws_windows_of_its_own_unless_the_draw_is_numbered(data):
    def drawn(seed, **more):
        task = protocols.of_seed(small.cell(few_shot=3, **more).task, seed)
        return prepared_set.open_set(data.folder, task).rows('train')

    one, two, zero = (drawn(seed) for seed in (33, 34, 0))
    assert len(one) == len(two) == len(zero) and len({tuple(r) for r in (one, two, zero)}) == 3
    np.testing.assert_array_equal(one, opened(data, few_shot=3).rows('train'))  # what no seed is known of
    np.testing.assert_array_equal(drawn(33, few_shot_draw=34), two)
    assert protocols.of_seed(small.cell().task, 7) == small.cell().task
    keys = [small.cell(**some).key for some in ({}, {'few_shot': 3}, {'few_shot': 3, 'few_shot_draw': 33})]
    assert len({*keys}) == 3


def test_channels_fail_in_the_test_alone(data):
    """In every way of reading windows; a third of four channels is one."""
    n = data.signal.n_chans
    hit = opened(data, mask_channels=0.5)
    for part in ('train', 'valid', 'test'):
        rows = data.rows(part)
        whole, now = (prepared_set.read(d, rows, None) for d in (data, hit))
        gone = protocols.failing(data.ids[rows], n, 0.5) & (part == 'test')
        np.testing.assert_array_equal(now, np.where(gone[..., None], 0, whole))
        assert (gone.sum(1) == (n // 2 if part == 'test' else 0)).all()
        np.testing.assert_array_equal(prepared_set.View(hit, rows)[:3], now[:3])
    for kept in ({}, {'resident_bytes': 0}):
        x = next(Loader(hit, ('test',), 4, **kept).chunks()).x[0]
        np.testing.assert_array_equal(x, prepared_set.read(hit, hit.rows('test')[:4], hit.clamp))


def test_draws_differ_between_windows_and_grow_with_the_share():
    ids = np.arange(50)
    some, more = (protocols.failing(ids, 10, share) for share in (0.2, 0.6))
    assert (some.sum(1) == 2).all() and (more.sum(1) == 6).all() and not (some & ~more).any()
    assert len({row.tobytes() for row in some}) > 20
    assert (protocols.failing(ids, 10, 0.01).sum(1) == 1).all() and (protocols.failing(ids, 3, 0.99).sum(1) == 2).all()
    np.testing.assert_array_equal(protocols.failing(ids[::-1], 10, 0.2)[::-1], some)


def test_one_channel_cannot_fail(data):
    with pytest.raises(RequestError, match='one channel'):
        protocols.failing(np.arange(3), 1, 0.5)


def test_few_shot_is_for_classes():
    age, dataset = tasks()['age'][-1], dataclasses.replace(datasets()['SimulatedP3'], recipe=())
    with pytest.raises(RequestError, match=r"--set recipe\.few_shot: targets of kind 'value' have no classes"):
        apply(age, dataset, (('recipe.few_shot', '3'),))
