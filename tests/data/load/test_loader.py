"""Batches: every window once, in an order that depends on (seed, epoch) alone, the same from memory and from disk."""

from __future__ import annotations

import dataclasses
import gc
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from places import HELPERS

from jbench.data.load import loader, prepared_set
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('loader'))


def with_rows(data, n):
    """The set with exactly n training windows."""
    split = np.full_like(data.split, '')
    split[:n] = 'train'
    return dataclasses.replace(data, split=split)


@pytest.mark.slow
def test_splits_are_of_whole_subjects_and_cover_all_windows(data):
    subjects = {n: set(data.subjects[data.split == n]) for n in ('train', 'valid', 'test')}
    assert [len(s) for s in subjects.values()] == [3, 1, 1]
    assert not (subjects['train'] & subjects['valid'] or subjects['train'] & subjects['test'])
    assert len(data.rows('train', 'valid', 'test')) == len(data.y) == len(np.unique(data.ids))


WAYS = pytest.mark.parametrize('kept', [{}, {'resident_bytes': 0}], ids=['resident', 'streamed'])


@WAYS
@pytest.mark.parametrize('n', [0, 1, 63, 64, 65, 200])
def test_every_window_comes_exactly_once(data, n, kept):
    for epoch in (None, 0, 3):
        ids = [c.id[c.mask] for c in loader.Loader(with_rows(data, n), ('train',), 64, **kept).chunks(epoch)]
        ids = np.concatenate(ids) if ids else np.zeros(0, int)
        assert sorted(ids) == sorted(data.ids[:n])
        assert epoch is not None or list(ids) == list(data.ids[:n])


def plain_chunks(data, names, batch_size, epoch):
    """What the chunks of an epoch hold, gathered one after the other: (x, y, mask, id) of each batch."""
    rows = data.rows(*names)
    take = loader.order(len(rows), epoch)
    mask = np.arange(-(-len(take) // batch_size) * batch_size) < len(take)
    rows = rows[np.concatenate([take, np.zeros(len(mask) - len(take), int)])]
    x = prepared_set.read(data, rows, data.clamp)
    batches = [a.reshape(-1, batch_size, *a.shape[1:]) for a in (x, data.y[rows], mask, data.ids[rows])]
    return list(zip(*batches, strict=True))


@WAYS
@pytest.mark.parametrize('batch_size', [7, 64, 1000])
def test_chunks_are_those_gathered_one_after_the_other(data, kept, batch_size, monkeypatch):
    """Also where epochs change places, an iterator is left, and each part of the set comes from memory or from disk."""
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 3)
    made = loader.Loader(data, ('train', 'valid'), batch_size, **kept)
    for epoch, stop in ((0, None), (1, None), (4, 2), (1, None), (2, 1), (None, None), (None, 1), (None, None)):
        want = plain_chunks(data, ('train', 'valid'), batch_size, epoch)
        for chunk in list_until(made.chunks(epoch), stop):
            for k in range(chunk.n):
                for have, wanted in zip(chunk[:4], want.pop(0), strict=True):
                    np.testing.assert_array_equal(have[k], wanted)
        assert stop is not None or not want


def list_until(chunks, stop):
    """The first chunks, each while it is valid."""
    for k, chunk in enumerate(chunks):
        if k == stop:
            return
        yield chunk


@WAYS
@pytest.mark.parametrize('n', [1, 64, 130, 250])
def test_chunks_carry_what_is_computed_of_their_windows(data, kept, n, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 2)
    calls = []

    def compute(x):
        calls.append(len(x))
        return {'sum': x.sum(2), 'first': x[:, 0, 0]}

    made = loader.Loader(with_rows(data, n), ('train',), 64, **kept)
    assert next(made.chunks(0)).extra == {}
    for _ in range(2):
        made.carry(compute)
    for epoch in (0, None, 5):
        for chunk in made.chunks(epoch):
            for k in range(chunk.n):
                np.testing.assert_array_equal(chunk.extra['sum'][k], chunk.x[k].sum(2))
                np.testing.assert_array_equal(chunk.extra['first'][k], chunk.x[k, :, 0, 0])
            assert {v.shape[:2] for v in chunk.extra.values()} == {chunk.mask.shape}
    assert len(calls) == -(-n // 64), 'of each window once'
    monkeypatch.setattr(loader, 'free_memory', lambda: 0)  # no room to keep them: anew with each chunk
    made = loader.Loader(with_rows(data, n), ('train',), 64, 1 << 40)
    made.carry(compute)
    for _ in range(2):
        for chunk in made.chunks(0):
            np.testing.assert_array_equal(chunk.extra['sum'][0], chunk.x[0].sum(2))
    assert len(calls) >= 3 * -(-n // 64)


@WAYS
def test_a_chunk_stays_as_it_is_while_the_next_one_is_made(data, kept, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 1)
    made = loader.Loader(data, ('train',), 64, **kept)
    for epoch in (0, 1, None):
        for chunk in made.chunks(epoch):
            before = chunk.x.copy()
            (ahead,) = made._ahead.values()
            following = ahead.result().x
            assert np.shares_memory(following, chunk.x) <= (epoch is None and made.n_chunks() == 1)
            np.testing.assert_array_equal(chunk.x, before)


@WAYS
def test_jax_can_compute_on_chunks_in_place(data, kept):
    """On a CPU it first copies arrays that do not begin at a multiple of 64 bytes."""
    for epoch in (None, 0, 1):
        for chunk in loader.Loader(data, ('train',), 64, **kept).chunks(epoch):
            assert chunk.x.ctypes.data % 64 == 0 and chunk.x.flags.c_contiguous


def test_what_fits_a_quarter_of_the_free_memory_is_held(data, monkeypatch):
    n_bytes = len(data.rows('train')) * data.signal.n_chans * data.signal.n_times * 4
    for free, held in ((4 * n_bytes, True), (4 * n_bytes - 4, False)):
        monkeypatch.setattr(loader, 'free_memory', lambda free=free: free)
        assert (loader.Loader(data, ('train',), 64)._x is not None) == held


# ---- the thread ----


def test_an_error_in_the_thread_reaches_the_caller_as_it_is(data, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 1)
    made = loader.Loader(data, ('train',), 64)
    y = made.y
    made.y = y[:100]
    with pytest.raises(IndexError, match='out of bounds'):
        list(made.chunks())
    made.y = y
    assert sum(c.n for c in made.chunks()) == loader.n_batches(len(made), 64), 'and it works again'


@pytest.mark.parametrize('error', [MemoryError, SystemExit, KeyboardInterrupt])
def test_a_thread_that_dies_does_not_hang_the_caller(data, monkeypatch, error):
    made = loader.Loader(data, ('train',), 64, resident_bytes=0)

    def die(*args):
        raise error('died')

    monkeypatch.setattr(made._shards, 'read', die)
    with pytest.raises(error, match='died'):
        next(made.chunks(0))


def test_a_damaged_shard_is_named_while_it_is_streamed(tmp_path):
    data = small.prepared(tmp_path)
    made = loader.Loader(data, ('train',), 64, resident_bytes=0)
    row = data.rows('train')[0]
    number = np.repeat(np.arange(5), [r['n_windows'] for r in data.manifest['recordings']])[row]
    shard = data.folder / data.manifest['recordings'][number]['shard']
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(RequestError, match=rf'{shard.name}: damaged'):
        list(made.chunks(0))


@WAYS
def test_no_thread_outlives_its_loader(data, kept, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 1)
    gc.collect()
    before = set(threading.enumerate())
    made = loader.Loader(data, ('train',), 64, **kept)
    chunks = made.chunks(0)
    next(chunks)
    started = set(threading.enumerate()) - before
    assert started
    chunks.close()
    del chunks, made
    for thread in started:
        thread.join(30)
    assert not [t for t in started if t.is_alive()]


LEFT = """
import sys, small
from pathlib import Path
from jbench.data.load import loader, prepared_set
data = prepared_set.open_set(Path(sys.argv[1]), small.cell().task)
chunks = loader.Loader(data, ('train',), 8, resident_bytes=0).chunks(0)
next(chunks)
print('leaves')
{}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ('last', 'status'), [('', 0), ('sys.exit(75)', 75), ('raise KeyboardInterrupt', -signal.SIGINT)]
)
def test_a_process_that_leaves_an_iterator_ends(data, last, status):
    code = LEFT.format(last)
    done = subprocess.run([sys.executable, '-c', code, str(data.folder)], cwd=HELPERS, capture_output=True, timeout=60)
    assert done.returncode == status, done.stderr.decode()
    assert done.stdout == b'leaves\n'


# ---- windows, order, chunks ----


def test_windows_are_those_that_were_stored_and_clamped(data):
    rows = data.rows('test')[:10]
    free, held = prepared_set.read(data, rows, None), prepared_set.read(data, rows, 0.5)
    np.testing.assert_array_equal(np.clip(free, -0.5, 0.5), held)
    assert np.abs(free).max() > 0.5


def test_the_order_depends_on_seed_and_epoch_alone():
    assert list(loader.order(100, 4)) == list(loader.order(100, 4))
    assert list(loader.order(100, 4)) != list(loader.order(100, 5))
    assert list(loader.order(100, 4)) != list(loader.order(100, 4, seed=34))
    assert list(loader.order(7, 0)) == [3, 6, 1, 5, 2, 0, 4], 'the published order of batches must not change'


@WAYS
@pytest.mark.parametrize('epoch', [2, None])
def test_an_epoch_goes_on_from_any_chunk(data, kept, epoch, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 1)
    made = loader.Loader(data, ('train',), 64, **kept)
    whole = [(c.id.copy(), c.x.copy()) for c in made.chunks(epoch)]
    assert len(whole) > 3
    for start in range(len(whole) + 1):
        for again in (made, loader.Loader(data, ('train',), 64, **kept)):
            rest = list(again.chunks(epoch, start)) if start == len(whole) else again.chunks(epoch, start)
            for chunk, (ids, x) in zip(rest, whole[start:], strict=True):
                np.testing.assert_array_equal(chunk.id, ids)
                np.testing.assert_array_equal(chunk.x, x)


def test_channels_that_a_recording_lacks_are_zero_rows(data):
    names = data.manifest['ch_names']
    recordings = [r | {'ch_names': names} for r in data.manifest['recordings']]
    manifest = {**data.manifest, 'ch_names': ['Extra', *names], 'recordings': recordings}
    wider = dataclasses.replace(data, manifest=manifest, signal=dataclasses.replace(data.signal, n_chans=17))
    x, y = prepared_set.read(wider, np.arange(3), None), prepared_set.read(data, np.arange(3), None)
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
        prepared_set.open_set(data.folder, small.cell().task)


# ---- samplers ----


def test_a_weighted_order_draws_in_proportion_and_depends_on_seed_and_epoch_alone():
    weights = np.array([1.0, 0.0, 3.0, 6.0])
    n = np.zeros(4)
    big = np.tile(weights, 5000)
    drawn = loader.order(len(big), 3, weights=big)
    n = np.bincount(drawn % 4, minlength=4) / len(big)
    assert len(drawn) == len(big) and np.abs(n - weights / 10).max() < 0.01 and n[1] == 0
    assert (drawn == loader.order(len(big), 3, weights=big)).all()
    assert (drawn != loader.order(len(big), 4, weights=big)).any()
    assert list(loader.order(4, None, weights=weights)) == [0, 1, 2, 3]


@WAYS
def test_balanced_windows_come_as_often_from_every_class(data, kept):
    from jbench.data.load import sampling

    made = loader.Loader(data, ('train',), 64, **kept, sampler=sampling.SAMPLERS['balanced'])
    share = [np.concatenate([c.y[c.mask] for c in made.chunks(epoch)]) for epoch in range(20)]
    assert {len(y) for y in share} == {len(made)}
    assert data.y[data.rows('train')].mean() > 0.8 and abs(np.concatenate(share).mean() - 0.5) < 0.02
    ids = [np.concatenate([c.id[c.mask] for c in made.chunks(5)]) for _ in range(2)]
    again = loader.Loader(data, ('train',), 32, **kept, sampler=sampling.SAMPLERS['balanced'])
    ids.append(np.concatenate([c.id[c.mask] for c in again.chunks(5)]))
    assert all((i == ids[0]).all() for i in ids), 'whatever came before, and however they are batched'


def test_bins_of_values_come_alike():
    from jbench.data.load import sampling

    y = np.array([[0.0], [39.9], [40.0], [89], [89], [300], [600]])
    assert sampling.WEIGHTS['bins'](y).tolist() == [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2]


def test_values_are_learnt_scaled_by_the_training_part_and_answered_in_their_unit(data):
    y = np.random.default_rng(0).normal(40, 9, (len(data.y), 1)).astype(np.float32)
    valued = dataclasses.replace(data, kind='value', y=y, classes=(), scaled=True)
    made = loader.Loader(valued, ('train',), 64)
    learnt = np.concatenate([c.y[c.mask] for c in made.chunks()])
    assert learnt.dtype == np.float32 and abs(learnt.mean()) < 1e-5 and abs(learnt.std() - 1) < 1e-5
    np.testing.assert_allclose(valued.unscaled(learnt), made.y, rtol=1e-6)
    tested = np.concatenate([c.y[c.mask] for c in loader.Loader(valued, ('test',), 64).chunks()])
    np.testing.assert_allclose(tested, (y[data.rows('test')] - made.y.mean()) / made.y.std(), rtol=1e-4, atol=1e-6)
