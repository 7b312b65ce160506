"""Windows as bytes: the compact exact-bounded form, and tf.Example records without TensorFlow.

A window is stored as int16 with one scale per channel. The error is at most half a step, max|x| / 65534 of the
channel in that window, plus the rounding of float32. `tfds` reads the records; so does the decoder here, much faster.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from jbench import files

INT16 = 32767
ERROR = 1 / (2 * INT16) + 2.0**-22  # bound of |unpack(pack(x)) - x| / max|x|: half a step, three float32 roundings


def pack(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 [C, T] -> (int16 [C, T], float32 scale [C]); x is about q * scale."""
    scale = (np.abs(x).max(1) / INT16).astype(np.float32)
    safe = np.where(scale > 0, scale, 1).astype(np.float32)
    q = np.clip(np.rint(x / safe[:, None]), -INT16, INT16)
    return q.astype('<i2'), scale


def unpack(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The inverse of `pack`: float32 [C, T]."""
    return q.astype(np.float32) * scale[:, None]


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(tag: int, payload: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return bytes([tag << 3 | 2]) + _varint(len(payload)) + payload


def encode(example: Mapping[str, bytes | str | np.ndarray]) -> bytes:
    """A tf.train.Example: bytes and text as bytes_list, float arrays as float_list, integer arrays as int64_list."""
    return _field(1, b''.join(_feature(name, example[name]) for name in sorted(example)))


def _feature(name: str, value: bytes | str | np.ndarray) -> bytes:
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        feature = _field(1, _field(1, value))
    elif value.dtype.kind == 'f':
        feature = _field(2, _field(1, value.astype('<f4', copy=False).tobytes()))
    else:
        feature = _field(3, _field(1, b''.join(_varint(int(v) & (1 << 64) - 1) for v in value.ravel())))
    return _field(1, _field(1, name.encode()) + _field(2, feature))


def _read_varint(buffer: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def decode(buffer: bytes) -> dict[str, bytes | np.ndarray]:
    """The inverse of `encode`: text comes back as bytes, floats as float32, integers as int64."""
    out: dict[str, bytes | np.ndarray] = {}
    length, at = _read_varint(buffer, 1)
    end = at + length
    while at < end:
        length, at = _read_varint(buffer, at + 1)
        stop = at + length
        length, at = _read_varint(buffer, at + 1)
        name = buffer[at : at + length].decode()
        _, at = _read_varint(buffer, at + length + 1)
        kind = buffer[at] >> 3
        length, at = _read_varint(buffer, at + 1)
        if length:
            length, at = _read_varint(buffer, at + 1)
            out[name] = _value(kind, buffer, at, length)
        elif kind > 1:
            out[name] = np.zeros(0, np.float32 if kind == 2 else np.int64)
        at = stop
    return out


def _value(kind: int, buffer: bytes, at: int, length: int) -> bytes | np.ndarray:
    """The content of one bytes_list, float_list or int64_list."""
    if kind == 1:
        return buffer[at : at + length]
    if kind == 2:
        return np.frombuffer(buffer, '<f4', length // 4, at)
    values, stop = [], at + length
    while at < stop:
        v, at = _read_varint(buffer, at)
        values.append(v - (1 << 64) if v >> 63 else v)
    return np.array(values, np.int64)


def encode_window(x: np.ndarray, number: int, text: Mapping[str, str]) -> bytes:
    """One record: the window [C, T] in compact form, its id, and text columns (subject, session, run, target)."""
    q, scale = pack(x)
    return encode(
        {
            'x': q.tobytes(),
            'scale': scale,
            'shape': np.array(x.shape, np.int64),
            'id': np.array([number], np.int64),
            **text,
        }
    )


def decode_window(buffer: bytes) -> tuple[np.ndarray, int]:
    """(float32 [C, T], id) of one record."""
    d = decode(buffer)
    q = np.frombuffer(d['x'], '<i2').reshape(d['shape'])
    return unpack(q, d['scale']), int(d['id'][0])  # type: ignore[arg-type]


def target_of(buffer: bytes) -> str:
    """The text `target` of one record."""
    return bytes(decode(buffer)['target']).decode()


@functools.cache
def _heads(n_chans: int, n_times: int) -> tuple[bytes, bytes]:
    """What comes before the scales and before the values in every record of this shape: names and lengths."""
    scale, x = (np.zeros(n_chans, np.float32), bytes(2 * n_chans * n_times))
    return _feature('scale', scale)[: -scale.nbytes], _feature('x', x)[: -len(x)]


def compact(buffer: bytes, n_chans: int, n_times: int) -> tuple[np.ndarray, np.ndarray]:
    """(int16 [C, T], scale [C]) of one record, both as views of its bytes: the rest is skipped, not decoded.

    Raises: ValueError or IndexError if the record holds no window of this shape.
    """
    scale_head, x_head = _heads(n_chans, n_times)
    _, at = _read_varint(buffer, 1)
    at = _find(buffer, at, scale_head)
    scale = np.frombuffer(buffer, '<f4', n_chans, at)
    at = _find(buffer, at + scale.nbytes, x_head)
    return np.frombuffer(buffer, '<i2', n_chans * n_times, at).reshape(n_chans, n_times), scale


def _find(buffer: bytes, at: int, head: bytes) -> int:
    """Where the payload of the feature that begins with `head` lies, from the feature at `at` on."""
    while not buffer.startswith(head, at):
        length, at = _read_varint(buffer, at + 1)
        at += length
    return at + len(head)


def decode_into(buffer: bytes, channels: np.ndarray | None, clamp: float | None, out: np.ndarray) -> None:
    """The window of one record, the same numbers as `decode_window` gives, clamped to ±clamp, into out f32 [C, T].

    `channels` are the rows of out that the record holds, in its order; the others become zero. None: all of them.
    """
    q, scale = compact(buffer, len(out) if channels is None else len(channels), out.shape[1])
    if channels is None:
        out[...] = q
        out *= scale[:, None]
    else:
        out[...] = 0
        out[channels] = unpack(q, scale)
    if clamp is not None and scale.max() * INT16 > clamp:  # else nothing can reach it
        np.clip(out, -clamp, clamp, out=out)


def write_shard(path: Path, windows: Iterable[bytes], n_bytes: int) -> None:
    """Write records as one array-record file, read them back, and only then give the file its name.

    Args:
        path: of the shard.
        windows: encoded records.
        n_bytes: about how much that is, for the message of a failed write.
    Raises: RequestError where the disk is full or the folder cannot be written.
    """
    from array_record.python.array_record_module import ArrayRecordWriter

    temp = path.with_name(f'{path.name}.tmp{os.getpid()}')
    with files.explained(path, n_bytes):
        try:
            open(temp, 'wb').close()  # a folder that cannot be written is told apart here
            written, n = hashlib.sha256(), 0
            writer = ArrayRecordWriter(str(temp), 'group_size:1,uncompressed')
            for record in windows:
                writer.write(record)
                written.update(record)
                n += 1
            writer.close()
            if _read_back(temp) != (n, written.digest()):
                raise OSError(errno.EIO, 'what was written does not read back')
            files.publish(temp, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temp.unlink()


def targets_of(path: Path, most: int | None = None) -> list[str]:
    """The text `target` of every record of a shard, or of the first ones."""
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path), 'readahead_buffer_size:0')
    n = reader.num_records() if most is None else min(most, reader.num_records())
    found = [target_of(reader.read([k])[0]) for k in range(n)]
    reader.close()
    return found


def _read_back(path: Path) -> tuple[int, bytes]:
    """Number and SHA-256 of the records of a shard (a truncated shard opens without error, and holds none)."""
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path), 'readahead_buffer_size:0')
    n, content = reader.num_records(), hashlib.sha256()
    try:
        for k in range(n):
            content.update(reader.read([k])[0])
        reader.close()
    except RuntimeError as error:  # what array_record says of damage
        raise OSError(errno.EIO, f'what was written does not read back ({error})') from error
    return n, content.digest()
