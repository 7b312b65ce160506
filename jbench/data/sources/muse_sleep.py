"""People who fall asleep at home with a Muse headband: the public recordings of track 3 of the EEG/EMG Foundation
Challenge 2026, in BIDS.

Traps of the files: each ends exactly 300 s after the first N2, so that its length tells the answer (only windows before
it are cut here, and lengths stay out of them; the tables of sessions hold it too, and only their `split` is read);
filters, reference and the rules of scoring are unknown; amplitudes of loose electrodes reach millivolts; all have the
same places of electrodes, which nobody measured.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError

WHOLE = True
DATASETS = (
    Dataset(
        name='Interaxon2026Muse',
        title='Falling asleep at home, four electrodes of a headband, with the first N2',
        source=__name__,
        n_subjects=203,
        n_recordings=540,
        n_chans=4,
        sfreq=(128.0,),
        constant=None,  # worn in bed: electrodes come off
        event_types=('SleepOnset',),
        amplitude=(0.5e-6, 5e-3),
        licence='CC-BY-NC-SA-4.0',
        citation='Muse Team (2026), NEMAR nm000287',
        host='nemar.org, nm000287',
        layout='sub-<NNN>/sub-<NNN>_sessions.tsv, sub-<NNN>/ses-<NNN>/eeg/sub-<NNN>_ses-<NNN>_task-sleeponset_eeg.vhdr '
        'with .eeg, .vmrk and ..._events.tsv beside it',
        download=Download(url='nemar:nm000287/latest'),
        doi='10.82901/nemar.nm000287',
        aliases=('nm000287',),
    ),
)
PARTS = ('train', 'test')
MARK = 'n2_onset'


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by subject and session. Fields: `task` and `split` (train, test), which the tables of sessions tell.

    Raises: RequestError for a session that they do not place in a part.
    """
    parts: dict[Path, dict[str, str]] = {}
    refs = []
    for ref in bids.recordings(dataset, root):
        table = root / f'sub-{ref.subject}' / f'sub-{ref.subject}_sessions.tsv'
        if table not in parts:
            parts[table] = _parts(table)
        part = parts[table].get(ref.session, '')
        if part not in PARTS:
            raise RequestError(
                f'{table}: the split of session {ref.session} is {part or "missing"!r}, expected {" or ".join(PARTS)}; '
                'fetch the table again'
            )
        task = dict(ref.fields)['task']
        refs.append(ref._replace(files=(*ref.files, str(table)), fields=(('task', task), ('split', part))))
    return refs


def _parts(table: Path) -> dict[str, str]:
    """The part of each session. Raises: RequestError for a table without the columns."""
    try:
        found = bids.table(table) if table.exists() else {}
    except ValueError as error:
        raise RequestError(f'{table}: {error}; {bids.AGAIN}') from None
    if lacking := [name for name in ('session_id', 'split') if name not in found]:
        there = ', '.join(found) or 'no such file'
        raise RequestError(f'{table}: expected the columns {", ".join(lacking)}, found {there}; {bids.AGAIN}')
    return {s.removeprefix('ses-'): part for s, part in zip(found['session_id'], found['split'], strict=True)}


def read(ref: RecordingRef) -> Recording | Finding:
    """Four channels in volts. One event `SleepOnset`, from the start to the first N2, with `n2_onset` (s)."""
    import numpy as np

    raw, table = bids.read(ref), bids.sidecar(ref, 'events.tsv')
    if isinstance(raw, Finding):
        return raw
    if table is None:
        rule = 'a table of events must lie beside the recording'
        return Finding(ref.where, rule, 'none', 'events.tsv', 'fetch it')
    events = bids.events(table, raw, needed=('trial_type',))
    if isinstance(events, Finding):
        return events
    marks = events['onset'][events['trial_type'] == MARK]
    if not len(marks):
        return Finding(str(table), 'the first N2 must be marked', 'none', f'an event {MARK}', bids.AGAIN)
    first = float(marks.min())
    raw.set_annotations(None)
    return Recording(
        raw,
        {
            'onset': np.array([0.0]),
            'duration': np.array([first]),
            'type': np.array(['SleepOnset']),
            'n2_onset': np.array([first]),
        },
    )
