"""Targets that are large lie with their windows in the shards: all else is as with targets in memory, bit by bit."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest

from jbench import files, targets
from jbench.context import Context
from jbench.data.load import loader, prepared_set
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.prepare import assemble, build_set, codec
from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.progress import Progress, StopSignal
from jbench.results import record, result_file
from jbench.results.predictions import load_predictions
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.targets import angles, score
from jbench.targets.angles import answered
from jbench.targets.packed import Packed, integers, packed
from jbench.train import seeds
from jbench.train.programs import Compiler

SHORT = (('window.duration', 0.5), ('window.stride', 12.0), ('recipe.max_epochs', 2), ('recipe.batch_size', 4))


def a_cell() -> Cell:
    dataset = dataclasses.replace(select.datasets()['SimulatedChallengePose'], n_subjects=5, n_recordings=5)
    task = cells.apply(select.tasks()['challenge2026/pose'][-1], dataset, SHORT)
    return Cell(task=task, dataset=dataset, model=MODELS['eegnet'], overrides=SHORT)


@pytest.fixture(scope='module')
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreparedSet, PreparedSet]:
    """A set with its targets in its index, and the same with its targets in its shards."""
    cell, sets = a_cell(), []
    refs = build_set.find_recordings(cell.dataset, None)[:5]
    with pytest.MonkeyPatch.context() as patch:
        for most in (assemble.IN_INDEX, 0):
            patch.setattr(assemble, 'IN_INDEX', most)
            folder = tmp_path_factory.mktemp('set') / 'set'
            build_set.prepare(cell.task, cell.dataset, folder, refs, lambda *facts: None)
            sets.append(prepared_set.open_set(folder, cell.task))
    return sets[0], sets[1]


@pytest.mark.slow
def test_batches_are_the_same(both: tuple[PreparedSet, PreparedSet]) -> None:
    mine, large = both
    assert isinstance(mine.y, np.ndarray) and isinstance(large.y, Packed)
    assert 'window.target' not in files.read_npz(large.folder / 'index.npz')
    assert large.y.shape == mine.y.shape == (30, 20 * 1000) and large.length == mine.length
    assert (large.classes, large.n_out) == (mine.classes, mine.n_out)
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(large.y[[7, 3]]))), mine.y[[7, 3]])
    expected = loader.Loader(mine, ('train',), 4)
    for kept in ({}, {'resident_bytes': 0}):
        made = loader.Loader(large, ('train',), 4, **kept)
        assert isinstance(made.y, Packed) == bool(kept), 'held in memory where it fits, beside its windows'
        for epoch in (None, 0, 1):
            for ours, theirs in zip(made.chunks(epoch), expected.chunks(epoch), strict=True):
                for name in ('x', 'y', 'mask', 'id'):
                    a, b = (getattr(chunk, name)[: chunk.n] for chunk in (ours, theirs))
                    np.testing.assert_array_equal(a, b)
    elsewhere = loader.Loader(dataclasses.replace(large, folder=mine.folder), ('train',), 4, resident_bytes=0)
    ours, theirs = next(elsewhere.chunks()), next(expected.chunks())
    np.testing.assert_array_equal(ours.y[: ours.n], theirs.y[: theirs.n])


@pytest.mark.slow
def test_training_and_scores_are_the_same(
    both: tuple[PreparedSet, PreparedSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The windows of the one are in memory, those of the other are read from the disk."""
    cell, found = a_cell(), []
    for k, data in enumerate(both):
        monkeypatch.setattr(loader, 'free_memory', lambda n=[1 << 40, 0][k]: n)
        context = Context(tmp_path / str(k), None, Progress(), StopSignal(), 'resume')
        ((_, outcome),) = seeds.train_network(cell, data, [33], Compiler(), context)
        result = record.describe(cell, data, 33, prepared_set.digest(data.folder), outcome)
        found.append(result_file.write(tmp_path / str(k), result, outcome['predictions']))
    mine, large = found
    times = ('seconds',)
    assert [{n: v for n, v in h.items() if n not in times} for h in mine['history']] == [
        {n: v for n, v in h.items() if n not in times} for h in large['history']
    ]
    for name in (*result_file.SCORES, 'dummy', 'n_records', 'split_hash'):
        assert mine[name] == large[name], name
    paths = [tmp_path / str(k) / 'seed33.json' for k in range(2)]
    arrays = [load_predictions(path) for path in paths]
    assert list(arrays[0]) == list(arrays[1])
    for name in arrays[0]:
        np.testing.assert_array_equal(arrays[0][name], arrays[1][name])
    assert files.read_npz(paths[1].with_suffix('.npz'))['y'].dtype.kind == 'S', 'kept packed'
    assert result_file.rescore(paths[1]) == {name: large[name] for name in result_file.SCORES}
    spoilt = files.read_npz(paths[1].with_suffix('.npz'))
    spoilt['y'][0] = spoilt['y'][0][:200]
    paths[1].with_suffix('.npz').write_bytes(files.npz_bytes(spoilt))
    with pytest.raises(RequestError, match='y: a packed target is damaged'):
        load_predictions(paths[1])


def test_what_is_computed_of_some_windows_at_a_time_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(angles, 'SHARES', 3)  # of four answers
    monkeypatch.setattr('jbench.targets.packed.BLOCK', 3)
    rng = np.random.default_rng(0)
    texts = [packed(np.cumsum(rng.normal(0, 0.01, (2, 30)), 1)) for _ in range(8)]
    y = Packed(lambda rows: [texts[k] for k in rows], np.arange(8), 60)
    whole, kind = np.asarray(y), targets.of('angles')
    np.testing.assert_array_equal(np.asarray(y[np.array([5, 2])][1:]), whole[[2]])
    np.testing.assert_array_equal(answered(y, 7), answered(whole, 7))
    for rows in (slice(8), slice(1, 8)):  # an even and an odd number
        np.testing.assert_array_equal(
            score.dummy('angles', y[rows], 2, n_out=4), score.dummy('angles', whole[rows], 2, n_out=4)
        )
    sd = [kind.counts(known, (), np.arange(8))['sd of the angles (degrees)'](np.arange(6)) for known in (y, whole)]
    assert sd[0] == sd[1]
    assert targets.some(y, 3).shape == (3, 60) and targets.some(whole, 3).shape == (8, 60)
    texts[4] = packed(np.zeros((2, 29)))
    with pytest.raises(RequestError, match='windows have 60 and 58 angles'):
        np.asarray(y)


@pytest.mark.parametrize(('spoil', 'most'), [(lambda text: text[:200], None), (lambda _: '1:AAAA', None), (str, 100)])
def test_a_damaged_target_is_told(spoil, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut, no deflated text, or larger inside than any window: no memory is taken for it."""
    text = packed(np.random.default_rng(0).uniform(-1, 1, (2, 500)))
    if most:
        monkeypatch.setattr('jbench.targets.packed.MOST', most)
    with pytest.raises(ValueError, match='a packed target is damaged'):
        integers(spoil(text))


def test_a_target_is_found_in_its_record() -> None:
    record_ = codec.encode_window(np.ones((2, 5), np.float32), 3, {'subject': 'a', 'target': '"2:xyz"'})
    assert codec.target_of(record_) == '"2:xyz"'
