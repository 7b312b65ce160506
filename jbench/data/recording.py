"""What a source hands over, and the contract that it must meet before anything is computed from it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from jbench.spec import Dataset

if TYPE_CHECKING:
    import mne
    import numpy as np


class RecordingRef(NamedTuple):
    """One recording of a dataset, known from the file tree alone."""

    dataset: str
    subject: str
    session: str
    run: str
    files: tuple[str, ...]  # absolute paths, the signal first; () where a recording is generated
    fields: tuple[tuple[str, str], ...] = ()  # further columns of its row in the event table

    @property
    def name(self) -> str:
        """A file-safe name that is unique in its dataset."""
        text = '_'.join((self.subject, self.session, self.run))
        return ''.join(c if c.isalnum() or c in '-_.' else '-' for c in text)


class Recording(NamedTuple):
    """One recording: the signal in volts, and a table of events at their true onsets.

    `events` holds equally long columns: `onset` (s from the start), `duration` (s), `type`, and label columns.
    """

    raw: mne.io.BaseRaw
    events: dict[str, np.ndarray]


class Finding(NamedTuple):
    """One broken rule of the contract. `fatal` ones stop the preparation; `deviation` ones do when not all agree."""

    where: str
    rule: str
    found: str
    expected: str
    remedy: str
    level: str = 'fatal'  # 'fatal' | 'deviation' | 'note'

    def __str__(self) -> str:
        return f'{self.where}: {self.rule}: found {self.found}, expected {self.expected}; {self.remedy}'


def check_file(path: str, magic: tuple[bytes, ...]) -> Finding | None:
    """Refuse a file that cannot be what its name says: empty, a web page, other bytes at its start."""
    with open(path, 'rb') as f:
        head = f.read(512)
    if not head:
        return Finding(path, 'the file must not be empty', '0 bytes', 'a recording', 'fetch the file again')
    text = head.lstrip().lower()
    if text.startswith((b'<!doctype', b'<html', b'<?xml')):
        shown = head.decode(errors='replace').strip().splitlines()[0][:60]
        return Finding(path, 'the file must be a recording', f'a web page ({shown!r})', 'EEG data',
                       'the download got an error page: fetch the file again')
    if magic and not head.startswith(magic):
        return Finding(path, 'the file must begin as its format does', repr(head[:8]), ' or '.join(map(repr, magic)),
                       'fetch the file again')
    return None


def check(recording: Recording, dataset: Dataset, where: str) -> list[Finding]:
    """All findings about one recording at once: samples, unit, rate, channels, events."""
    import numpy as np

    raw, events = recording
    data = raw.get_data(picks='data' if dataset.device != 'emg' else 'emg')
    found: list[Finding] = []
    if not np.isfinite(data).all():
        rows, cols = np.nonzero(~np.isfinite(data))
        name, first = raw.ch_names[rows[0]], cols[0] / raw.info['sfreq']
        found.append(Finding(where, 'samples must be finite', f'{len(rows)} NaN or infinite samples, the first in '
                             f'channel {name} at {first:.2f} s', 'none', 'repair or remove the file'))
        data = np.nan_to_num(data, posinf=0.0, neginf=0.0)
    if data.shape[1] < raw.info['sfreq']:
        found.append(Finding(where, 'a recording must last a second', f'{data.shape[1]} samples', 'at least one second',
                             'the file may be truncated: fetch it again'))
        return found
    low, high = np.percentile(data, [16, 84], axis=1)
    spread = (high - low) / 2  # a robust standard deviation
    flat = [raw.ch_names[k] for k in np.flatnonzero(spread == 0)]
    if flat:
        found.append(Finding(where, 'channels should vary', f'flat: {", ".join(flat)}', 'none flat',
                             'kept as it is (the protocol keeps bad channels)', 'note'))
    sd, (least, most) = float(np.median(spread)), dataset.amplitude
    if not least <= sd <= most:
        found.append(Finding(where, 'the unit must be volts', f'median amplitude {sd:.2e} V', f'{least:.1e} to {most:.1e} V',
                             'check the unit in the file header, or the scale in the reader'))
    if raw.info['sfreq'] not in dataset.sfreq:
        found.append(Finding(where, 'the sampling rate must be the declared one', f'{raw.info["sfreq"]:g} Hz',
                             ' or '.join(f'{f:g} Hz' for f in dataset.sfreq), 'use the original file', 'deviation'))
    if len(data) != dataset.n_chans:
        found.append(Finding(where, 'the channels must be the declared ones', f'{len(data)} channels',
                             f'{dataset.n_chans}', 'use the original file', 'deviation'))
    if dataset.seconds is not None and raw.times[-1] < 0.8 * dataset.seconds and dataset.n_events is None:
        found.append(Finding(where, 'the recording should be as long as declared', f'{raw.times[-1]:.0f} s',
                             f'about {dataset.seconds:.0f} s', 'use the original file', 'note'))
    return found + _check_events(events, dataset, raw.times[-1], where)


def _check_events(events: dict[str, np.ndarray], dataset: Dataset, seconds: float, where: str) -> list[Finding]:
    """Findings about the events of one recording."""
    found = []
    kinds = [str(t) for t in events['type']]
    for kind in dataset.event_types:
        if kind != 'Eeg' and kind not in kinds:
            found.append(Finding(where, f'events of type {kind} must be there', 'none', 'at least one',
                                 'look for the event file or the annotations beside the recording'))
    n = sum(k in dataset.event_types for k in kinds)
    if dataset.n_events is not None and 0 < n < dataset.n_events:
        found.append(Finding(where, 'no event may be missing', f'{n} events', f'at least {dataset.n_events}',
                             'the file may be truncated: fetch it again'))
    late = [float(t) for t in events['onset'] if not 0 <= t <= seconds]
    if late:
        found.append(Finding(where, 'events must lie inside the recording', f'{len(late)} outside, one at {late[0]:.1f} s',
                             f'0 to {seconds:.1f} s', 'the file may be truncated: fetch it again'))
    if dataset.event_id and 'code' in events:
        odd = sorted({int(c) for c in events['code']} - {c for _, c in dataset.event_id})
        if odd:
            found.append(Finding(where, 'event codes must be known', f'codes {odd}', str(dict(dataset.event_id)),
                                 'correct event_id of the dataset, or the reader'))
    return found


def digest(recording: Recording) -> str:
    """SHA-256 of the samples alone (as float32 microvolts): equal for one recording under two names."""
    import numpy as np

    data = np.round(recording.raw.get_data() * 1e6, 3).astype('<f4') + 0.0  # + 0.0: no negative zeros
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()
