"""What a source hands over: a reference, a recording, or what is wrong with its file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Crop

if TYPE_CHECKING:
    import mne
    import numpy as np

# the event that covers a whole recording, by device
EVENT_TYPE = {'eeg': 'Eeg', 'ieeg': 'Ieeg', 'meg': 'Meg', 'emg': 'Emg', 'fmri': 'Fmri', 'fnirs': 'Fnirs'}
DATA_TYPES = ('eeg', 'mag', 'grad', 'seeg', 'ecog', 'hbo', 'hbr')
OWN_TYPES = {  # of a device whose channels are of other types (MNE has no voxels)
    'emg': ('emg',),
    'fmri': ('misc',),
    'ieeg': ('seeg', 'ecog', 'dbs'),
}
OF_A_PERSON = ('ieeg',)  # devices whose sensors lie elsewhere in each person
UNIT = {  # name and symbol, where it is not the volt
    'meg': ('tesla (of gradiometers tesla per metre)', 'T'),
    'fnirs': ('mol/l', 'mol/l'),
    'fmri': ('scanner units', 'units'),
}
BLOCK = 1 << 26  # bytes of samples (float64) that are read and processed at once


class RecordingRef(NamedTuple):
    """One recording of a dataset, known from the file tree alone."""

    dataset: str
    subject: str
    session: str
    run: str
    files: tuple[str, ...]  # paths of all that is read for it, the signal first; () where a recording is generated
    fields: tuple[tuple[str, str], ...] = ()  # further columns of its row in the event table

    @property
    def name(self) -> str:
        """A file-safe name that is unique in its dataset."""
        text = '_'.join((self.subject, self.session, self.run))
        return ''.join(c if c.isalnum() or c in '-_.' else '-' for c in text)

    @property
    def where(self) -> str:
        """What a message calls it."""
        return self.files[0] if self.files else f'{self.dataset}/{self.name}'


PERMIT = 'give the user who runs this the right to read it'


def forbidden(error: PermissionError) -> RequestError:
    """The error for a file or folder that may not be read."""
    return RequestError(f'{error.filename}: may not be read; {PERMIT}')


def is_hidden(path: str) -> bool:
    """Whether an operating system made a file for itself, as ._S01.edf, .DS_Store and Thumbs.db."""
    name = path.rpartition('/')[2]
    return name.startswith('.') or name in ('Thumbs.db', 'desktop.ini')


class Recording(NamedTuple):
    """One recording: the signal in volts (or the unit of its device), and a table of events at their true onsets.

    A signal that is not preloaded is read block by block, so that a long one needs little memory.
    `events` holds equally long columns: `onset` (s from the start), `duration` (s), `type`, and label columns.
    """

    raw: mne.io.BaseRaw
    events: dict[str, np.ndarray]


def with_regions(raw: mne.io.BaseRaw, regions: Mapping[str, str]) -> mne.io.BaseRaw:
    """The recording itself, which now knows the regions of the brain that its channels lie in."""
    raw.info['temp'] = {'regions': dict(regions)}  # what MNE keeps for others, and writes into no file
    return raw


def regions_of(raw: mne.io.BaseRaw) -> dict[str, str]:
    """The regions of the brain, by channel; {} where nobody said them."""
    return dict((raw.info.get('temp') or {}).get('regions', {}))


class Finding(NamedTuple):
    """One broken rule of the contract. A fatal one stops the preparation, once every recording is checked."""

    where: str
    rule: str
    found: str
    expected: str
    remedy: str
    level: str = 'fatal'  # 'fatal' | 'note'

    def __str__(self) -> str:
        return f'{self.where}: {self.rule}: found {self.found}, expected {self.expected}; {self.remedy}'


def data_channels(raw: mne.io.BaseRaw, dataset: Dataset) -> list[str]:
    """Names of the channels that carry the measurement, bad ones included, in the order of the file.

    Of MEG, as MNE and the published channel counts have it: the reference sensors of a compensated file count.
    """
    if dataset.device == 'meg':
        import mne

        return [raw.ch_names[k] for k in mne.pick_types(raw.info, meg=True, exclude=())]
    kinds = OWN_TYPES.get(dataset.device, DATA_TYPES)
    return [c for c, kind in zip(raw.ch_names, raw.get_channel_types(), strict=True) if kind in kinds]


def set_names(ch_names: Sequence[str], subject: str, dataset: Dataset) -> tuple[str, ...]:
    """What a prepared set calls the channels of a recording: contacts in the brain by person and name, as `02/F01`,
    since those of two people are never the same channel."""
    return tuple(f'{subject}/{name}' for name in ch_names) if dataset.device in OF_A_PERSON else tuple(ch_names)


def blocks(raw: mne.io.BaseRaw, picks: Sequence[int]) -> Iterator[list[int]]:
    """The picked channels in groups whose samples fit into BLOCK bytes (one channel at least)."""
    n = max(1, BLOCK // (8 * max(1, raw.n_times)))
    for k in range(0, len(picks), n):
        yield list(picks[k : k + n])


def samples(raw: mne.io.BaseRaw, picks: Sequence[int]) -> Iterator[np.ndarray]:
    """The samples of each picked channel in turn: float64 [T], V."""
    for block in blocks(raw, picks):
        yield from raw.get_data(block)


def digest(recording: Recording) -> str:
    """SHA-256 of the samples alone (as float32): equal for one recording under two names."""
    import numpy as np

    found = hashlib.sha256()
    for x in samples(recording.raw, range(len(recording.raw.ch_names))):
        found.update((x.astype('<f4') + np.float32(0)).tobytes())  # + 0: no negative zeros
    return found.hexdigest()


def event_table(recording: Recording, ref: RecordingRef, dataset: Dataset) -> dict[str, np.ndarray]:
    """All events of one recording in canonical order, the one that covers it whole included.

    Rows by onset, then longest first; label columns are text, '' where a row has none.
    """
    import numpy as np

    from jbench.events import as_text

    events, raw = recording.events, recording.raw
    onset = np.concatenate([[0.0], events['onset']])
    duration = np.concatenate([[raw.n_times / raw.info['sfreq']], events['duration']])
    kind = np.concatenate([[EVENT_TYPE[dataset.device]], events['type']]).astype(str)
    table = {'onset': onset, 'duration': duration, 'type': kind}
    for name in events:
        if name not in table:
            table[name] = np.array(['', *map(as_text, events[name])])
    for name, value in (('subject', ref.subject), ('session', ref.session), ('run', ref.run), *ref.fields):
        own = table.get(name, np.full(len(onset), ''))
        table[name] = np.where(own == '', value, own).astype(str)
    order = np.lexsort((-duration, onset))
    return {k: v[order] for k, v in table.items()}


def crop(raw: mne.io.BaseRaw, events: dict[str, np.ndarray], spec: Crop) -> dict[str, np.ndarray]:
    """Cut a recording to the part that is kept (in place), and return its events as `cropped` does.

    Raises: RequestError where nothing is left.
    """
    sfreq = float(raw.info['sfreq'])
    seconds = raw.n_times / sfreq
    first, n = round(spec.start * sfreq), round(_kept(seconds, spec) * sfreq)
    if n < 1:
        raise RequestError(f'nothing is left of its {seconds:.1f} s after signal.crop ({spec})')
    raw.crop(first / sfreq, (min(first + n, raw.n_times) - 1) / sfreq)
    return cropped(events, seconds, spec)


def _kept(seconds: float, spec: Crop) -> float:
    """How much of a recording of so many s is kept."""
    return min(seconds - spec.skip, seconds - spec.start, spec.longest)


def cropped(events: dict[str, np.ndarray], seconds: float, spec: Crop) -> dict[str, np.ndarray]:
    """The events of a recording of so many s as they lie in the part that is kept.

    Onsets count from the start of the part, and what lasts only outside of it is dropped; an event that begins before
    it and lasts into it keeps its true, negative onset. The event that covers the recording covers the part.
    """
    import numpy as np

    kept = _kept(seconds, spec)
    onset, duration = events['onset'] - spec.start, events['duration']
    whole = np.isin(events['type'], list(EVENT_TYPE.values()))
    inside = (onset < kept) & ((onset + duration > 0) | (onset >= 0)) | whole
    table = events | {'onset': np.where(whole, 0.0, onset), 'duration': np.where(whole, kept, duration)}
    return {k: v[inside] for k, v in table.items()}
