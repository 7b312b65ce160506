"""Signals and annotations in the format of PhysioNet's WFDB, as far as data sets here use it (format 16, one file).

Written after the manual: physionet.org/physiotools/wag (header(5), signal(5), annot(5)).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

SKIP, AUX, NUM, SUB, CHN = 59, 63, 60, 61, 62  # codes of what is no annotation: a long pause, and words on the last one
PER_UNIT = {'uV': 1e-6, 'mV': 1e-3, 'V': 1.0}  # V of a unit; what has another one stays in it


class Header(NamedTuple):
    """What a `.hea` file says."""

    sfreq: float  # Hz
    n_times: int
    file: str  # of the signals, beside the header
    offset: int  # bytes before its first sample
    names: tuple[str, ...]
    gain: tuple[float, ...]  # steps of the converter per unit
    zero: tuple[float, ...]  # what the converter says of 0
    units: tuple[str, ...]


def header(path: Path) -> Header:
    """Read a `.hea` file. Raises: ValueError for one that is damaged, or of another form."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith('#')]
    try:
        _, n, rate, n_times = lines[0][:4]
        signals = lines[1 : 1 + int(n)]
        (file,) = {s[0] for s in signals}
        (kind,) = {re.fullmatch(r'16(?:\+(\d+))?', s[1])[1] for s in signals}  # type: ignore[index]
        scales = [re.fullmatch(r'([\d.eE+-]+)(?:\((-?\d+)\))?(?:/(\S+))?', s[2]).groups() for s in signals]  # type: ignore[union-attr]
        zero = [float(scale[1] or s[4]) for s, scale in zip(signals, scales, strict=True)]
        found = Header(
            float(rate.partition('/')[0].partition('(')[0]),
            int(n_times),
            file,
            int(kind or 0),
            tuple(' '.join(s[8:]) for s in signals),
            tuple(float(scale[0]) or 200.0 for scale in scales),  # 0: not known, and then 200 by the manual
            tuple(zero),
            tuple(scale[2] or 'mV' for scale in scales),
        )
    except (ValueError, IndexError, TypeError, AttributeError):
        raise ValueError(f'{path}: not a header of WFDB with one file of format 16') from None
    if len(found.names) != int(n):
        raise ValueError(f'{path}: {len(found.names)} of {n} signals')
    return found


def signals(path: Path, head: Header) -> np.ndarray:
    """The samples [C, T], float64: volts, or the unit that the header names. Raises: ValueError for a short file."""
    import numpy as np

    expected = head.offset + 2 * len(head.names) * head.n_times
    if path.stat().st_size < expected:
        raise ValueError(f'{path}: {path.stat().st_size} bytes, expected {expected}: fetch it again')
    steps = np.memmap(path, '<i2', 'r', head.offset, (head.n_times, len(head.names)))
    out = np.empty(steps.shape[::-1])
    for row, gain, zero, unit, column in zip(out, head.gain, head.zero, head.units, steps.T, strict=True):
        np.subtract(column, zero, out=row)
        row *= PER_UNIT.get(unit, 1.0) / gain
    return out


def marks(path: Path) -> list[tuple[int, str]]:
    """Sample and text (AUX, '' for none) of each annotation of a file, in its order.

    A word of 16 bits holds a code (upper 6) and the samples since the annotation before (lower 10); after some codes
    more follows. Raises: ValueError for a file that breaks off.
    """
    data = path.read_bytes()
    found: list[tuple[int, str]] = []
    sample = at = 0
    while at + 2 <= len(data):
        word = int.from_bytes(data[at : at + 2], 'little')
        code, low, at = word >> 10, word & 0x3FF, at + 2
        if word == 0:
            return found
        if code == SKIP:  # a number of 32 bits, its upper half first
            upper, lower = (int.from_bytes(data[k : k + 2], 'little') for k in (at, at + 2))
            sample += (upper << 16 | lower) - (upper >> 15 << 32)
            at += 4
        elif code == AUX:
            if found:
                found[-1] = (found[-1][0], data[at : at + low].rstrip(b'\0').decode('latin-1'))
            at += low + low % 2
        elif code not in (NUM, SUB, CHN):
            sample += low
            found.append((sample, ''))
    raise ValueError(f'{path}: it breaks off after {len(found)} annotations: fetch it again')
