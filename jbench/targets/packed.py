"""Targets that are large stay packed where they lie, and are unpacked for as many windows as somebody looks at.

A packed target is one text: rows of numbers as 16-bit integers of RESOLUTION, deflated, in base 64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

RESOLUTION = 1e-4  # rad; 16 bits reach 3.27 rad
BLOCK = 64  # windows that are looked at together
MOST = 1 << 26  # bytes of one target: a text that holds more is damaged


def packed(angles: np.ndarray) -> str:
    """Angles in radians, [J, steps], as one text: J, then second differences (of joints that move smoothly next to
    nothing), deflated. Raises: RequestError for what is not finite or beyond 3.27 rad."""
    numbers = np.round(np.asarray(angles, np.float64) / RESOLUTION)
    if not (np.abs(numbers) < 2**15).all():
        raise RequestError(f'angles must be finite and below {2**15 * RESOLUTION:.2f} rad: are they in degrees?')
    changes = numbers.astype(np.int64)
    for _ in range(2):
        changes = np.diff(changes, axis=1, prepend=0)
    low = (changes % 2**16).astype('<u2')  # their sums, modulo 2^16, are the numbers
    return f'{len(low)}:{base64.b64encode(zlib.compress(low.tobytes())).decode()}'


def integers(text: str) -> np.ndarray:
    """The inverse, in units of RESOLUTION: int16 [J, steps]. Raises: ValueError for a text that is damaged."""
    n, _, packed_ = text.partition(':')
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(base64.b64decode(packed_), MOST)
        if not inflate.eof:
            raise ValueError(f'it is cut, or holds more than {MOST} bytes')
        low = np.frombuffer(content, '<u2').reshape(int(n), -1)
    except (zlib.error, ValueError) as error:
        raise ValueError(f'a packed target is damaged: {error}') from error
    for _ in range(2):
        low = np.cumsum(low, axis=1, dtype=np.uint16)
    return low.view(np.int16)


def in_radians(numbers: np.ndarray) -> np.ndarray:
    """Integers of RESOLUTION as float32, rad."""
    return numbers.astype(np.float32) * np.float32(RESOLUTION)


class Packed:
    """Targets float32 [N, K] that stay packed where they lie. `y[rows]` names some of them, and reads nothing;
    `np.asarray(y[rows])` unpacks those."""

    dtype, ndim = np.dtype(np.float32), 2

    def __init__(self, texts: Callable[[np.ndarray], Sequence[str]], rows: np.ndarray, width: int) -> None:
        """
        Args:
            texts: gives the packed targets of the numbers [n] that it is called with.
            rows: int [N], the numbers of these.
            width: K.
        """
        self.source, self.rows, self.shape = texts, rows, (len(rows), width)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> Packed:
        return Packed(self.source, self.rows[which], self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        out = np.empty(self.shape, np.float32)
        for k in range(0, len(self), BLOCK):
            self.unpack(self.texts(slice(k, k + BLOCK)), out[k : k + BLOCK])
        return out if dtype is None else out.astype(dtype)

    def texts(self, which: slice = slice(None)) -> Sequence[str]:
        """Some of them as they lie."""
        return self.source(self.rows[which])

    def unpack(self, texts: Sequence[str], out: np.ndarray) -> None:
        """Texts of some windows into out f32 [n, K]. Raises: RequestError for one of another length."""
        for row, text in zip(out, texts, strict=True):
            row[:] = in_radians(self._numbers(text))

    def blocks(self) -> Iterator[np.ndarray]:
        """All of them in units of RESOLUTION, a window at a time: int16 [K]."""
        for k in range(0, len(self), BLOCK):
            yield from map(self._numbers, self.texts(slice(k, k + BLOCK)))

    def _numbers(self, text: str) -> np.ndarray:
        numbers = integers(text)
        if numbers.size != self.shape[1]:
            raise RequestError(f'windows have {self.shape[1]} and {numbers.size} angles, expected as many of each')
        return numbers.ravel()


def as_it_lies(y: Any) -> Any:
    """Packed targets as they are, others as an array."""
    return y if isinstance(y, Packed) else np.asarray(y)
