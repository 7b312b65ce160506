"""Bands that end above what a recording holds: half its rate (Nyquist).

A band that a user or a task of their own names is refused there. The default one, of published protocols, and that of a
pretrained model lose their upper end, as in the reference, which drops the low-pass (protocol.md section 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jbench import files
from jbench.data.prepare import header
from jbench.data.recording import RecordingRef
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import SignalSpec, Task


def refuse(task: Task, rates: Iterable[float]) -> None:
    """Raises: RequestError where a band, unless it is the default, ends above half of one of the rates (Hz)."""
    band, least = task.signal.band, min(rates, default=float('inf'))
    if band not in (None, SignalSpec.band) and band[1] > least / 2:
        raise RequestError(
            f'signal.band: {band[1]:g} Hz is above {least / 2:g} Hz, the highest of a recording at {least:g} Hz '
            '(Nyquist); end the band there or below'
        )


def refuse_by_head(
    task: Task, dataset: Dataset, refs: Sequence[RecordingRef], look: header.ReadHead = header.head
) -> None:
    """The same by the head of the first recording, before any is read; one that cannot be read is left to the
    preparation, and so is a dataset that declares no rate which is too low."""
    band = task.signal.band
    if band in (None, SignalSpec.band) or not refs or min(dataset.sfreq, default=0) >= 2 * band[1]:
        return
    seen = look(task.signal, dataset, refs[0])
    refuse(task, [] if seen is None else [seen.sfreq])


def refuse_by_set(task: Task, folder: Path) -> None:
    """The same by all recordings of a prepared set."""
    if task.signal.band not in (None, SignalSpec.band):
        refuse(task, (r['sfreq'] for r in files.read_json(folder / 'manifest.json')['recordings']))


def told(spec: SignalSpec, rates: Sequence[float]) -> list[str]:
    """What a set says of a band, other than the default, that lost its upper end in recordings at these rates (Hz)."""
    low = [rate for rate in rates if spec.band not in (None, SignalSpec.band) and spec.band[1] > rate / 2]
    if not low or spec.band is None:
        return []
    at = ' and '.join(f'{rate:g}' for rate in sorted({*low}))
    return [
        f'no low-pass: the band {spec.band[0]:g} to {spec.band[1]:g} Hz ends above half the rate of {len(low)} of '
        f'{len(rates)} recordings ({at} Hz), which keep all above {spec.band[0]:g} Hz'
    ]
