"""From a raw recording to the signal that windows are cut from: MNE calls in the order of the published protocol.

Order (NeuralBench's MneRaw reader): pick, notch, band-pass, resample, scale; all on the whole recording. Channels are
mixed before the notch where a task asks for that (reference.py). From there on each is treated by itself, so a long
recording passes through in blocks of channels, and the result is the same. What is too long for memory lies on disk by
channels, before (by_channel.py) and after (rows.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, overload

from jbench.data import marks
from jbench.data.prepare import reference
from jbench.data.prepare.bad_channels import treat
from jbench.data.recording import blocks
from jbench.spec.errors import RequestError
from jbench.spec.task import SignalSpec

if TYPE_CHECKING:
    import mne
    import numpy as np

    from jbench.data.prepare.rows import Rows

NOTCH_TOP = 301.0  # Hz; no harmonic of the line is removed from here on


@overload
def process(raw: mne.io.BaseRaw, spec: SignalSpec) -> tuple[np.ndarray, tuple[str, ...]]: ...


@overload
def process(raw: mne.io.BaseRaw, spec: SignalSpec, folder: Path) -> tuple[np.ndarray | Rows, tuple[str, ...]]: ...


def process(
    raw: mne.io.BaseRaw, spec: SignalSpec, folder: Path | None = None
) -> tuple[np.ndarray | Rows, tuple[str, ...]]:
    """Pick, filter, resample and scale one recording, its bad channels treated before as the task says (`raw` loses the
    channels that are not picked).

    Args:
        raw: a recording, V (MEG: T, T/m); one that is not preloaded is read block by block.
        spec: the steps; `baseline` and `clamp` belong to windows and are not applied here.
        folder: where a signal that is larger than rows.HELD waits; without one it is held in memory.

    Returns: float32 [C, T] at `spec.sfreq` (unit-free after a scaler, else as `raw`), and the channel names.
    """
    pick(raw, spec)
    if spec.reference != 'none' or spec.regions:
        raw = reference.mixed(raw, spec)
    out = None
    for block in blocks(raw, range(len(raw.ch_names))):
        ready = _filter(raw.copy().pick(block).load_data(), spec)
        rows = scale(ready.get_data(), spec.scaler, marks.skipped(ready))
        out = _room((len(raw.ch_names), rows.shape[1]), folder) if out is None else out
        out[block] = rows
    assert out is not None  # MNE raises where nothing is picked
    return out, tuple(raw.ch_names)


def _room(shape: tuple[int, int], folder: Path | None) -> np.ndarray | Rows:
    """Where a signal [C, T] goes: memory, or a file in the folder where it is large."""
    import numpy as np

    from jbench.data.prepare import rows

    if folder is not None and 4 * shape[0] * shape[1] > rows.HELD:
        return rows.Rows(folder, shape, np.float32)
    return np.empty(shape, np.float32)


def pick(raw: mne.io.BaseRaw, spec: SignalSpec) -> None:
    """Treat the bad channels of a recording as the task says, and leave it the channels that are picked.

    Raises: RequestError where it has none of them.
    """
    dropped = treat(raw, spec.bads)
    kinds, picks = set(raw.get_channel_types()), [p for p in spec.picks if p not in dropped]
    kinds |= {'meg'} if kinds & {'mag', 'grad'} else set()  # MNE's word for both, and for references that compensate
    absent = [p for p in picks if p not in raw.ch_names and p not in kinds]
    if absent and not kinds & set(picks):  # of several types, one is enough
        has = f'types {", ".join(sorted(kinds))}; names {", ".join(raw.ch_names)}'
        raise RequestError(f'signal.picks: no channel {" or ".join(absent)} in the recording, which has {has}')
    raw.pick([p for p in picks if p not in absent], exclude=())


def _filter(raw: mne.io.BaseRaw, spec: SignalSpec) -> mne.io.BaseRaw:
    """Notch, band-pass and resample all channels of a preloaded recording, in place."""
    sfreq = float(raw.info['sfreq'])
    lines = notch_frequencies(spec.notch, sfreq)
    if lines:
        raw.notch_filter(lines, picks='all', n_jobs=1)
    if spec.band is not None:
        low, high = spec.band  # whether it may end above what the recording holds: band.py
        raw.filter(low, high if high < sfreq / 2 else None, picks='all', n_jobs=1)
    if sfreq != spec.sfreq:
        raw.resample(spec.sfreq, n_jobs=1)
    return raw


def notch_frequencies(bases: tuple[float, ...], sfreq: float) -> list[float]:
    """Each base and its harmonics strictly below min(Nyquist, 301 Hz)."""
    top = min(sfreq / 2, NOTCH_TOP)
    return [base * k for base in bases for k in range(1, int(top / base) + 1) if base * k < top]


def scale(data: np.ndarray, scaler: str, skipped: np.ndarray | None = None) -> np.ndarray:
    """Centre and scale each channel [C, T] by `statistics` of the whole recording, less what was `skipped` (bool [T]).

    'micro': nothing is centred, and V become microvolts (mol/l micromoles), so that levels can be compared;
    'train': nothing yet, since windows are scaled when they are read (data/load/shards.py).
    """
    if scaler in ('none', 'train'):
        return data
    if scaler == 'micro':
        return data * 1e6
    if scaler not in ('robust', 'standard'):
        raise RequestError(f"signal.scaler: {scaler!r} is not one of 'robust', 'standard', 'micro', 'train', 'none'")
    centre, spread = statistics(data if skipped is None or skipped.all() else data[:, ~skipped], scaler)
    return (data - centre) / spread


def statistics(data: np.ndarray, scaler: str) -> tuple[np.ndarray, np.ndarray]:
    """Centre and spread [C, 1] of each channel [C, T]; the spread is 1 where there is none.

    'robust': median and 25-75 % range (scikit-learn's RobustScaler); 'standard': mean and standard deviation (ddof 0).
    """
    import numpy as np

    if scaler == 'robust':
        low, centre, high = np.percentile(data, [25, 50, 75], axis=1, keepdims=True)
        spread = high - low
    else:
        centre, spread = data.mean(1, keepdims=True), data.std(1, keepdims=True)
    return centre, np.where(spread < 10 * np.finfo(data.dtype).eps, 1.0, spread)
