"""Reading windows by number: whatever the order, the shard or the damage."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys

import numpy as np
import pytest
import small
from array_record.python.array_record_module import ArrayRecordReader
from hypothesis import given, settings
from hypothesis import strategies as st
from places import HELPERS

from jbench.data.load import loader, prepared_set, shards
from jbench.data.prepare import build_set, codec
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('shards'))


@pytest.fixture(scope='module')
def plain(data):
    """Every window, decoded record by record."""
    readers = [ArrayRecordReader(str(data.folder / r['shard'])) for r in data.manifest['recordings']]
    return np.stack([codec.decode_window(record)[0] for r in readers for record in r.read_all()])


def read(data, numbers, clamp=None):
    out = np.full((len(numbers), *plain_shape(data)), np.nan, np.float32)
    shards.Shards(data.folder, data.manifest, clamp).read(np.array(numbers, int), out)
    return out


def plain_shape(data):
    return data.signal.n_chans, data.signal.n_times


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_windows_come_in_any_order_and_as_often_as_asked(data, plain, draw):
    numbers = draw.draw(st.lists(st.integers(0, len(plain) - 1), max_size=100))
    assert read(data, numbers).tobytes() == plain[numbers].tobytes()


def test_windows_are_clamped(data, plain):
    assert np.abs(plain).max() > 0.5
    everything = np.arange(len(plain))
    assert read(data, everything, 0.5).tobytes() == np.clip(plain, -0.5, 0.5).tobytes()


def test_windows_come_times_a_factor_before_they_are_clamped(data, plain):
    """For networks and for baselines, which are not clamped; nothing of what is stored changes."""
    rows, given = np.arange(len(plain)), dataclasses.replace(data, factor=1e4)
    assert prepared_set.read(given, rows, None).tobytes() == (plain * np.float32(1e4)).tobytes()
    assert prepared_set.View(given, rows)[:].tobytes() == (plain * np.float32(1e4)).tobytes()
    assert prepared_set.read(given, rows, 3.0).tobytes() == np.clip(plain * np.float32(1e4), -3, 3).tobytes()
    chunk = next(loader.Loader(dataclasses.replace(given, clamp=3.0), ('train',), 4).chunks())
    first = np.clip(plain[data.rows('train')[:4]] * np.float32(1e4), -3, 3)
    assert chunk.x[0].tobytes() == first.tobytes()
    n_chans = data.signal.n_chans
    scale = shards.Scale(np.full((5, n_chans, 1), 0.5, np.float32), np.full((5, n_chans, 1), 2, np.float32))
    scaled = prepared_set.read(dataclasses.replace(given, scale=scale), rows, 3.0)
    np.testing.assert_allclose(scaled, np.clip((plain - 0.5) / 2 * 1e4, -3, 3), rtol=1e-6)


def test_a_task_gives_its_factor_and_the_prepared_set_serves_all(data):
    task = small.cell().task
    other = override(task, 'signal.factor', 2.0)
    opened = prepared_set.open_set(data.folder, other)
    assert (opened.factor, data.factor) == (2.0, 1.0)
    dataset = small.cell().dataset
    assert build_set.stored_spec(other, dataset) == build_set.stored_spec(task, dataset)


LIMITED = """
import resource, sys, small, numpy as np
from pathlib import Path
from jbench.data.load import prepared_set
from jbench.spec.errors import RequestError
data = prepared_set.open_set(Path(sys.argv[1]), small.cell().task)
resource.setrlimit(resource.RLIMIT_NOFILE, (60, int(sys.argv[2])))
try:
    print(prepared_set.read(data, np.arange(len(data.y)), None).shape[0] == len(data.y))
except RequestError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ('hard', 'says'),
    [(1000, 'True'), (100, '5 recordings need 271 open files, the system allows 100; raise it (ulimit -Hn 271)')],
)
def test_the_limit_of_open_files_is_raised_or_named(data, hard, says):
    done = subprocess.run(
        [sys.executable, '-c', LIMITED, str(data.folder), str(hard)],
        cwd=HELPERS,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == f'{says}\n', done.stderr


@pytest.fixture
def damaged(data, tmp_path):
    """A copy of the set that may be damaged, and the path of its second shard."""
    folder = tmp_path / 'copy'
    shutil.copytree(data.folder, folder)
    return dataclasses.replace(data, folder=folder), folder / data.manifest['recordings'][1]['shard']


def check_refused(data, shard):
    with pytest.raises(RequestError, match=rf'{shard.name}: damaged \(.*run the same command again'):
        read(data, np.arange(len(data.y)))
    first = np.arange(data.manifest['recordings'][0]['n_windows'])
    assert np.isfinite(read(data, first)).all(), 'the other shards are still read'


def test_a_truncated_shard_is_named(damaged):
    data, shard = damaged
    content = shard.read_bytes()
    for n in [*range(0, len(content), 1 << 16), len(content) - 1]:
        shard.write_bytes(content[:n])
        check_refused(data, shard)


def test_a_missing_shard_is_named(damaged):
    data, shard = damaged
    shard.unlink()
    check_refused(data, shard)


def test_a_shard_of_another_recording_is_named(damaged):
    data, shard = damaged
    codec.write_shard(shard, [b'no window'] * data.manifest['recordings'][1]['n_windows'], 100)
    check_refused(data, shard)
    other = ArrayRecordReader(str(data.folder / data.manifest['recordings'][0]['shard'])).read_all()
    codec.write_shard(shard, other[:-1], 100)
    check_refused(data, shard)


@pytest.mark.slow
def test_a_flipped_bit_never_gives_other_data(damaged, plain):
    """300 seeded flips: either the shard is named, or the byte holds nothing and the windows are the same."""
    data, shard = damaged
    content, rng = shard.read_bytes(), np.random.default_rng(0)
    first, n = (data.manifest['recordings'][k]['n_windows'] for k in (0, 1))
    numbers, found = np.arange(first, first + n), 0
    for where in rng.integers(0, len(content), 300).tolist():
        flipped = bytearray(content)
        flipped[where] ^= 1 << int(rng.integers(8))
        shard.write_bytes(flipped)
        try:
            assert read(data, numbers).tobytes() == plain[numbers].tobytes()
        except RequestError as error:
            assert shard.name in str(error)
            found += 1
    assert found > 100
