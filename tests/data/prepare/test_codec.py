"""Stored windows: how far they are from what was computed, and that others can read them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from array_record.python.array_record_module import ArrayRecordReader
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jbench.data.prepare import codec
from jbench.data.prepare.tfds_metadata import SPLIT, write_metadata
from jbench.spec.errors import RequestError

floats = st.floats(-1e6, 1e6, width=32).map(lambda v: v if abs(v) > 1e-30 else 0.0)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 40))


@given(arrays(np.float32, shapes, elements=floats))
def test_the_error_is_at_most_half_a_step(x: np.ndarray) -> None:
    q, scale = codec.pack(x)
    assert q.dtype == np.int16 and scale.dtype == np.float32
    largest = np.abs(x.astype(np.float64)).max(1, keepdims=True)
    error = np.abs(codec.unpack(q, scale).astype(np.float64) - x)
    assert np.all(error <= largest / 65534 + largest * 2.0**-22)
    assert codec.ERROR == 1 / 65534 + 2.0**-22


def test_the_error_of_noise_is_nearly_half_a_step_and_no_more() -> None:
    x = np.random.default_rng(0).normal(0, 1e-6, (8, 100_000)).astype(np.float32)
    error = np.abs(codec.unpack(*codec.pack(x)) - x).max(1) / np.abs(x).max(1)
    assert np.all(error <= codec.ERROR) and np.all(error > 0.99 / 65534)


def test_channels_keep_their_own_scale_and_zero_stays_zero() -> None:
    x = np.array([[0, 0, 0], [1e-6, -1e-6, 0], [3, 1, -2]], np.float32)
    q, scale = codec.pack(x)
    assert list(scale) == pytest.approx([0, 1e-6 / 32767, 3 / 32767])
    np.testing.assert_array_equal(q[:2], [[0, 0, 0], [32767, -32767, 0]])


values = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=50).map(str.encode),
    arrays(np.float32, st.integers(0, 50), elements=st.floats(width=32, allow_nan=False)),
    arrays(np.int64, st.integers(0, 50), elements=st.integers(-(2**63), 2**63 - 1)),
)


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=20), values, max_size=6))
def test_examples_come_back_equal(example: dict) -> None:
    back = codec.decode(codec.encode(example))
    assert list(back) == sorted(example)
    for name, value in example.items():
        assert type(back[name]) is type(value)
        np.testing.assert_array_equal(back[name], value)
        assert isinstance(value, bytes) or back[name].dtype == value.dtype


def test_the_stored_form_has_not_changed() -> None:
    """The golden digest: whoever changes the stored form raises cache.PREPARATION and this value."""
    x = (np.arange(-300, 340, dtype=np.float32) / 7).reshape(4, 160)
    record = codec.encode_window(x, 3, {'subject': '01', 'session': '0', 'run': '0', 'target': '"rest"'})
    assert hashlib.sha256(record).hexdigest()[:16] == 'e4042b10b6b84c7a'
    window, number = codec.decode_window(record)
    assert number == 3
    np.testing.assert_allclose(window, x, atol=50 / 65000)


@given(
    arrays(np.float32, shapes, elements=floats),
    st.integers(0, 3),
    st.one_of(st.none(), st.floats(1e-3, 1e7)),
    st.text(max_size=200),
    st.integers(0, 1 << 20),
)
def test_decoding_in_bulk_gives_the_same_bits(
    x: np.ndarray, n_more: int, clamp: float | None, text: str, number: int
) -> None:
    """Also where values are clamped, channels are zero, or the set has channels that the recording lacks."""
    record = codec.encode_window(x, number, dict.fromkeys(('subject', 'session', 'run', 'target'), text))
    plain, _ = codec.decode_window(record)
    if clamp is not None:
        plain = np.clip(plain, -clamp, clamp)
    n, t = x.shape
    out = np.full((n + n_more, t), np.nan, np.float32)
    channels = np.random.default_rng(n).permutation(n + n_more)[:n]
    codec.decode_into(record, channels, clamp, out)
    assert out[channels].tobytes() == plain.tobytes()
    assert not np.delete(out, channels, 0).any()
    codec.decode_into(record, None, clamp, out[:n])
    assert out[:n].tobytes() == plain.tobytes()


def test_a_text_that_looks_like_a_field_is_skipped() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    heads = b''.join(codec._heads(3, 4)).decode('latin1')
    record = codec.encode_window(x, 1, dict.fromkeys(('run', 'session', 'subject', 'target'), heads))
    q, scale = codec.compact(record, 3, 4)
    np.testing.assert_array_equal(codec.unpack(q, scale), codec.decode_window(record)[0])


@pytest.mark.parametrize('damage', [lambda r: b'', lambda r: r[:-1], lambda r: r[:100], lambda r: r[10:]])
def test_a_record_of_another_shape_is_refused(damage) -> None:
    record = codec.encode_window(np.ones((3, 40), np.float32), 0, {'subject': '', 'target': ''})
    codec.compact(record, 3, 40)
    for n_chans, n_times in ((3, 40) if damage(record) != record else (0, 0), (40, 3), (3, 39), (4, 40)):
        with pytest.raises((ValueError, IndexError)):
            codec.compact(damage(record), n_chans, n_times)


def write(folder: Path, lengths: list[int]) -> list[tuple[np.ndarray, str]]:
    """A set of some shards; returns its windows and targets."""
    rng, out = np.random.default_rng(0), []
    for i, n in enumerate(lengths):
        windows = [(rng.normal(size=(3, 50)).astype(np.float32), f'"{i}-{k}"') for k in range(n)]
        out += windows
        encoded = [
            codec.encode_window(x, k, {'subject': f'S{i}', 'session': 'ä', 'run': '', 'target': t})
            for k, (x, t) in enumerate(windows)
        ]
        codec.write_shard(folder / f'tiny-{SPLIT}.array_record-{i:05d}-of-{len(lengths):05d}', encoded, 1000)
    write_metadata(folder, 'tiny', lengths, sum(f.stat().st_size for f in folder.iterdir()))
    return out


@pytest.mark.parametrize('lengths', [[3], [2, 5, 1]])
def test_tfds_reads_what_was_written(tmp_path: Path, lengths: list[int]) -> None:
    import tensorflow_datasets as tfds

    want = write(tmp_path, lengths)
    builder = tfds.builder_from_directory(tmp_path)
    assert builder.info.splits[SPLIT].num_examples == len(want)
    assert builder.info.splits[SPLIT].shard_lengths == lengths
    source = builder.as_data_source('all')
    assert len(source) == len(want)
    for got, (x, target) in zip(source, want, strict=True):
        q = np.frombuffer(got['x'], '<i2').reshape(got['shape'])
        np.testing.assert_array_equal(q * got['scale'][:, None], codec.unpack(*codec.pack(x)))
        assert got['target'].decode() == target and got['session'].decode() == 'ä' and got['run'] == b''
    assert [int(e['id']) for e in source] == [k for n in lengths for k in range(n)]


def test_a_shard_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / 'a.array_record'

    def failing():
        yield b'one'
        raise OSError(28, 'No space left on device')

    with pytest.raises(RequestError, match=r'cannot write .*a\.array_record \(77 bytes needed\): .*; free space there'):
        codec.write_shard(path, failing(), 77)
    assert not list(tmp_path.iterdir())
    codec.write_shard(path, [b'one', b'two'], 6)
    assert [f.name for f in tmp_path.iterdir()] == ['a.array_record']
    assert ArrayRecordReader(str(path)).read_all() == [b'one', b'two']


@pytest.mark.parametrize('cut', [1, 1000, 65536, 100_000])
def test_a_shard_that_does_not_read_back_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """A truncated shard opens without error and holds no record: only reading it back tells."""
    from jbench import files

    back = codec._read_back

    def cut_first(path: Path) -> tuple[int, bytes]:
        with open(path, 'r+b') as f:
            f.truncate(path.stat().st_size - cut)
        return back(path)

    monkeypatch.setattr(codec, '_read_back', cut_first)
    monkeypatch.setattr(files, 'publish', lambda *paths: pytest.fail('published'))
    with pytest.raises(RequestError, match=r'what was written does not read back|Input/output error'):
        codec.write_shard(tmp_path / 'a.array_record', [b'x' * 5000] * 20, 100_000)
    assert not list(tmp_path.iterdir())
