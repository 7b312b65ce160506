"""Batches: every window once, in an order that depends on (seed, epoch) alone, the same from memory and from disk."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.data import loader
from jbench.spec import RequestError, Signal


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('loader'))


def with_rows(data, n):
    """The set with exactly n training windows."""
    split = np.full_like(data.split, '')
    split[:n] = 'train'
    return dataclasses.replace(data, split=split)


def test_splits_are_of_whole_subjects_and_cover_all_windows(data):
    subjects = {n: set(data.subjects[data.split == n]) for n in ('train', 'valid', 'test')}
    assert [len(s) for s in subjects.values()] == [3, 1, 1]
    assert not (subjects['train'] & subjects['valid'] or subjects['train'] & subjects['test'])
    assert len(data.rows('train', 'valid', 'test')) == len(data.y) == len(np.unique(data.ids))


@pytest.mark.parametrize('n', [0, 1, 63, 64, 65, 200])
def test_every_window_comes_exactly_once(data, n):
    for epoch in (None, 0, 3):
        ids = [c.id[c.mask] for c in loader.Loader(with_rows(data, n), ('train',), 64).chunks(epoch)]
        ids = np.concatenate(ids) if ids else np.zeros(0, int)
        assert sorted(ids) == sorted(data.ids[:n])
        assert epoch is not None or list(ids) == list(data.ids[:n])


def test_streamed_batches_equal_resident_ones(data):
    resident = loader.Loader(data, ('train', 'valid'), 64)
    streamed = loader.Loader(data, ('train', 'valid'), 64, resident_bytes=0)
    for epoch in (None, 1):
        for a, b in zip(resident.chunks(epoch), streamed.chunks(epoch), strict=True):
            used = slice(0, a.n)
            np.testing.assert_array_equal(a.x[used], b.x[used])
            for name in ('y', 'mask', 'id', 'n'):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_windows_are_those_that_were_stored_and_clamped(data):
    rows = data.rows('test')[:10]
    free, held = loader.read(data, rows, None), loader.read(data, rows, 0.5)
    np.testing.assert_array_equal(np.clip(free, -0.5, 0.5), held)
    assert np.abs(free).max() > 0.5


def test_the_order_depends_on_seed_and_epoch_alone():
    assert list(loader.order(100, 4)) == list(loader.order(100, 4))
    assert list(loader.order(100, 4)) != list(loader.order(100, 5))
    assert list(loader.order(100, 4)) != list(loader.order(100, 4, seed=34))
    assert list(loader.order(7, 0)) == [3, 6, 1, 5, 2, 0, 4], 'the published order of batches must not change'


def test_an_epoch_goes_on_from_any_chunk(data, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 1)
    whole = [c.id.copy() for c in loader.Loader(data, ('train',), 64).chunks(2)]
    for start in range(len(whole)):
        rest = [c.id.copy() for c in loader.Loader(data, ('train',), 64).chunks(2, start)]
        np.testing.assert_array_equal(rest, whole[start:])


def test_channels_that_a_recording_lacks_are_zero_rows(data):
    manifest = {**data.manifest, 'ch_names': ['Extra', *data.manifest['ch_names']]}
    wider = dataclasses.replace(data, manifest=manifest, signal=dataclasses.replace(data.signal, n_chans=17))
    x, y = loader.read(wider, np.arange(3), None), loader.read(data, np.arange(3), None)
    assert not x[:, 0].any()
    np.testing.assert_array_equal(x[:, 1:], y)


@given(st.integers(1, 200), st.integers(1, 130), st.integers(1, 2000))
@settings(max_examples=50, deadline=None)
def test_chunks_stay_within_their_memory(batch, n_chans, n_times):
    k = loader.chunk_batches(Signal(n_chans=n_chans, n_times=n_times, sfreq=120.0), batch)
    assert 1 <= k <= loader.CHUNK_BATCHES
    assert k == 1 or k * batch * n_chans * n_times * 4 <= loader.CHUNK_BYTES


def test_a_damaged_index_is_refused(tmp_path):
    data = small.prepared(tmp_path)
    path = data.folder / 'index.npz'
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(RequestError, match=r'index\.npz'):
        loader.open_set(data.folder, small.cell().task)
