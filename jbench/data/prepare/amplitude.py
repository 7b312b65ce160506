"""Whether recordings have the unit that they should have: by the bounds of their dataset, and beside each other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from statistics import median

from jbench.data.recording import UNIT, Finding, RecordingRef
from jbench.spec.dataset import Dataset

FAR = 30.0  # times out of bounds, or of the others: a wrong prefix, which is 1000 times, and no loud recording
ODD = 5.0  # times the others, or a fifth of them: told
TINY = 1e-300
SHOWN = 3  # recordings in a note, of many


def within(amplitude: float, dataset: Dataset, times: float = 1.0) -> bool:
    """Whether an amplitude (robust sd, median over channels) lies in the bounds of its dataset, stretched `times`."""
    least, most = dataset.amplitude
    return least / times <= amplitude <= most * times


def wrong(amplitude: float, dataset: Dataset, where: str) -> Finding:
    """That a recording is in another unit than it says."""
    (unit, symbol), (least, most) = UNIT.get(dataset.device, ('volts', 'V')), dataset.amplitude
    found, expected = f'a median amplitude of {amplitude:.2e} {symbol}', f'{least:.1e} to {most:.1e} {symbol}'
    remedy = 'check the unit in the file, or the scale in the reader'
    return Finding(where, f'the unit must be {unit}', found, expected, remedy)


def compare(dataset: Dataset, amplitudes: Mapping[RecordingRef, float]) -> tuple[list[Finding], list[str]]:
    """Recordings that are refused for their unit, and a note on those that are far louder or fainter than the others.

    One recording out of bounds is not in another unit where the others are in bounds and not far from it.
    """
    refused, odd = [], {}
    values = sorted(amplitudes.values())
    usual = median(values) if values else 0.0
    for ref, amplitude in amplitudes.items():
        others = _median_without(values, bisect_left(values, amplitude))
        good = within(amplitude, dataset)
        if not good and (_times(amplitude, others) > FAR or not within(others, dataset)):
            refused.append(wrong(amplitude, dataset, ref.where))
        elif not good or (len(values) > 2 and _times(amplitude, usual) > ODD):
            odd[ref.name] = amplitude
    return refused, _told(odd, usual, len(values), UNIT.get(dataset.device, ('', 'V'))[1])


def _median_without(values: list[float], k: int) -> float:
    """The median of sorted values less the k-th; 0 of none."""
    left, middle = len(values) - 1, (len(values) - 1) // 2
    one, other = (values[i + (i >= k)] if left else 0.0 for i in (middle, middle - 1 + left % 2))
    return (one + other) / 2


def _times(one: float, other: float) -> float:
    """How many times the smaller of two the larger one is."""
    return max(one, other) / max(min(one, other), TINY)


def _told(odd: Mapping[str, float], usual: float, n: int, symbol: str) -> list[str]:
    """The note on odd recordings: one line, the oddest first."""
    if not odd:
        return []
    order = sorted(odd, key=lambda name: -_times(odd[name], usual))
    named = ', '.join(f'{name} ({odd[name]:.1e} {symbol})' for name in order[:SHOWN])
    more = f' and {len(odd) - SHOWN} more' if len(odd) > SHOWN else ''
    return [
        f'amplitude: {len(odd)} of {n} recordings are far from the median of all ({usual:.1e} {symbol}): {named}{more}'
    ]
