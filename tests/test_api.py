"""The Python interface: the windows, targets and parts of the benchmark, as batches, arrays and a grain dataset."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small import N_SUBJECTS

import jbench
from jbench import api
from jbench.data.load.loader import Loader
from jbench.plan import select
from jbench.spec.errors import RequestError

CHANGES = {'recipe.batch_size': 100}


@pytest.fixture(scope='module')
def splits(tmp_path_factory) -> Iterator[api.Splits]:
    """Five simulated subjects of p3."""
    known = select.datasets()
    few = dataclasses.replace(known['SimulatedP3'], n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv('JBENCH_DATA', raising=False)
        patch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
        yield jbench.load(jbench.task('p3'), workdir=tmp_path_factory.mktemp('work'), simulated=True, changes=CHANGES)


def test_importing_jbench_imports_nothing_else():
    code = 'import sys, jbench; print({m.partition(".")[0] for m in sys.modules} & {"numpy", "jax", "mne", "argparse"})'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout == 'set()\n', done.stderr
    assert jbench.task is api.task and jbench.load is api.load
    with pytest.raises(AttributeError, match='nothing'):
        _ = jbench.nothing


@pytest.mark.slow
def test_what_is_loaded_is_told_in_five_lines(splits):
    lines = str(splits).splitlines()
    assert len(lines) == 5 and all(len(line) <= 100 for line in lines)
    assert lines[0] == 'p3@2 on SimulatedP3 (simulated)'
    assert lines[3].endswith(f'test {splits.test.n_windows} windows of {N_SUBJECTS} subjects')
    assert str(splits.test) == f'test: {splits.test.n_windows} windows in {len(splits.test)} batches'


def test_batches_are_those_of_the_benchmark(splits):
    theirs = Loader(splits.data, ('train',), 100)
    for epoch in (0, 1):  # each pass is the next epoch
        mine = list(splits.train)
        assert len(mine) == len(splits.train) == -(-splits.train.n_windows // 100)
        for k, chunk in zip(itertools.count(step=theirs.chunk), theirs.chunks(epoch), strict=False):
            for i, batch in enumerate(mine[k : k + chunk.n]):
                for name, value in batch.items():
                    np.testing.assert_array_equal(value, getattr(chunk, name)[i])
    assert sorted(np.concatenate([b['id'][b['mask']] for b in mine])) == sorted(splits.train.ids)
    assert mine[0]['x'].dtype == np.float32 and mine[-1]['x'].shape == (100, *mine[0]['x'].shape[1:])


def test_passes_do_not_disturb_each_other(splits):
    alone = [b['x'].sum(dtype=float) for b in splits.train.batches(3)]
    both = [
        (a['x'], b['x']) for a, b in zip(splits.train.batches(3), splits.train.batches(4), strict=True)
    ]  # held while the others are made
    assert [a.sum(dtype=float) for a, _ in both] == alone != [b.sum(dtype=float) for _, b in both]


def test_arrays_and_grain_hold_the_same_windows_in_canonical_order(splits):
    x, y, subjects = splits.test.arrays()
    batches = list(splits.test)
    for name, value in (('x', x), ('y', y), ('id', splits.test.ids)):
        np.testing.assert_array_equal(np.concatenate([b[name][b['mask']] for b in batches]), value)
    windows = splits.test.grain()
    assert len(windows) == splits.test.n_windows == len(subjects)
    own = windows.map(lambda w: w | {'x': w['x'] * 2}).batch(50)[1]
    np.testing.assert_array_equal(own['x'], 2 * x[50:100])
    np.testing.assert_array_equal(own['id'], splits.test.ids[50:100])
    assert len(pickle.dumps(windows._source)) > 0  # processes of grain's own read it
    parts = [set(p.subjects) for p in (splits.train, splits.valid, splits.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == N_SUBJECTS


def test_what_is_known_of_the_data(splits):
    assert splits.simulated and splits.task.recipe.batch_size == 100
    assert splits.classes == ('Target', 'NonTarget')
    assert splits.signal.ch_names[0] and splits.train.arrays().x.shape[1:] == (
        splits.signal.n_chans,
        splits.signal.n_times,
    )


def test_arrays_that_do_not_fit_are_refused(splits, monkeypatch):
    monkeypatch.setattr('jbench.data.prepare.workers.free_memory', lambda: 1000)
    with pytest.raises(RequestError, match=r'takes .* GB, and 0\.0 GB of memory are free; take batches'):
        splits.train.arrays()


def test_a_name_is_that_of_the_command():
    assert jbench.task('p3@1').spec.version == 1 < jbench.task('p3').spec.version
    assert jbench.task('ssvep/kalunga2016online').dataset.name == 'Kalunga2016Online'
    mine = dataclasses.replace(jbench.task('p3').spec, name='mine')
    assert jbench.task(mine) == (mine, None)
    with pytest.raises(RequestError, match='names 6 tasks'):
        jbench.task('bci')
    with pytest.raises(RequestError, match='did you mean'):
        jbench.task('sssvep')


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({'data_dir': 'absent'}, 'no such folder'),
        ({'data_dir': '.'}, 'holds no recording'),
        ({'simulated': True}, 'a named dataset is never replaced'),
    ],
)
def test_a_dataset_that_is_named_is_never_replaced(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match=words):
        jbench.load(jbench.task('ssvep/Kalunga2016Online'), **options)
    assert list(Path().iterdir()) == []


def test_a_field_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(RequestError, match=r"unknown option 'recipe\.batchsize'; did you mean"):
        jbench.load(jbench.task('p3'), workdir=tmp_path, simulated=True, changes={'recipe.batchsize': 3})
    with pytest.raises(RequestError, match='expected what'):
        jbench.load('p3')


def test_a_task_of_ones_own_whose_dataset_is_not_known_is_refused(tmp_path):
    mine = dataclasses.replace(jbench.task('p3').spec, name='mine', datasets=('Nope',))
    with pytest.raises(RequestError, match="unknown dataset 'Nope'"):
        jbench.load(jbench.task(mine), workdir=tmp_path)
