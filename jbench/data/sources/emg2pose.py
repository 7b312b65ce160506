"""A hand that moves, with electrodes around the forearm: emg2pose, in the BIDS form that NEMAR serves; the public
recordings of track 4 of the EEG/EMG Foundation Challenge 2026.

Traps of the files: joint angles are channels of the same file, in radians, and zero where they could not be found
(all of them, or annotation BAD_IK: here nan, so that no window is made of them); the last second of a file is filled
up; tables of scans lack `split` and `generalization` up to release 1.0.3 of the host, where they stand in
`emg2pose_metadata.csv` of the authors; of the test part only known people at known stages in new pairs
(`user_stage`) are scored, as in the warm-up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats import bids, edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne

WHOLE = True
DATASETS = (
    Dataset(
        name='Salter2024Emg2pose',
        title='Staged movements of a hand with a wristband of 16 electrodes, and the angles of 20 joints',
        source=__name__,
        device='emg',
        n_subjects=193,
        n_recordings=25253,
        n_chans=16,
        sfreq=(2000.0,),
        event_types=('Emg',),
        licence='CC-BY-NC-SA-4.0',
        citation='Salter et al. (2024), NeurIPS 37, arXiv:2412.02725',
        host='nemar.org, nm000281; emg2pose_metadata.csv from fb-ctrl-oss.s3.amazonaws.com/emg2pose/',
        layout='sub-<N>/ses-<N>/sub-<N>_ses-<N>_scans.tsv, sub-<N>/ses-<N>/emg/*_emg.bdf, and emg2pose_metadata.csv',
        download=Download(url='nemar:nm000281/latest', without='sourcedata/*'),
        aliases=('emg2pose', 'nm000281'),
    ),
)
FIELDS = ('split', 'generalization', 'stage', 'side')
METADATA = 'emg2pose_metadata.csv'
AUTHORS = 'fb-ctrl-oss.s3.amazonaws.com/emg2pose/'  # where it is to be had
SCORED = 'user_stage'  # of the test part
PARTS = {'train': 'train', 'val': 'valid', 'test': 'test'}
UNKNOWN = 'BAD_IK'
LEAST = 1e-3  # rad over a recording: less is no hand that moves, but another unit
ZERO = 1e-6  # rad: what a BDF file keeps of 0
MICRO = 1e-6  # V; what the numbers are where the header names no unit


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by subject and session. Fields: `task` and FIELDS; `split` is 'unscored' in the rest of the test part.

    Raises: RequestError for a recording that no table describes.
    """
    authors: dict[str, dict[str, str]] = {}
    scans: dict[Path, dict[str, dict[str, str]]] = {}
    refs = []
    for ref in bids.recordings(dataset, root):
        file = Path(ref.files[0])
        folder = file.parent.parent
        table = folder / '_'.join([p for p in file.name.split('_') if p.startswith(('sub-', 'ses-'))] + ['scans.tsv'])
        if table not in scans:
            scans[table] = _rows(table, 'filename')
        row = scans[table].get(f'{file.parent.name}/{file.name}')
        if row is None:
            raise RequestError(f'{table}: no row of {file.parent.name}/{file.name}; fetch the table again')
        more = [str(table)]
        if any(not row.get(name) for name in FIELDS):
            metadata = _metadata(root)
            authors = authors or _rows(metadata, 'filename')
            row = authors.get(row.get('source_file', '').removesuffix('.hdf5'), {}) | {
                k: v for k, v in row.items() if v
            }
            more.append(str(metadata))
        fields = {name: row.get(name, '') for name in FIELDS}
        if fields['split'] not in PARTS:
            expected = ', '.join(PARTS)
            raise RequestError(f'{table}: the split of {file.name} is {fields["split"]!r}, expected one of {expected}')
        scored = fields['split'] != 'test' or fields['generalization'] == SCORED
        fields['split'] = PARTS[fields['split']] if scored else 'unscored'
        task = dict(ref.fields)['task']
        refs.append(ref._replace(files=(*ref.files, *more), fields=(('task', task), *fields.items())))
    return refs


def _metadata(root: Path) -> Path:
    """The table of the authors. Raises: RequestError where it is not there."""
    for path in (root / METADATA, root / 'sourcedata' / METADATA):
        if path.exists():
            return path
    raise RequestError(
        f'{root / METADATA}: no such file, nor in sourcedata, and the tables of scans lack {", ".join(FIELDS)}; fetch '
        f'https://{AUTHORS}{METADATA} into {root}'
    )


def _rows(path: Path, key: str) -> dict[str, dict[str, str]]:
    """The rows of a table by a column. Raises: RequestError for a table without it, or none."""
    try:
        found = bids.table(path) if path.exists() else {}
    except ValueError as error:
        raise RequestError(f'{path}: {error}; {bids.AGAIN}') from None
    if key not in found:
        there = ', '.join(found) or 'no such file'
        raise RequestError(f'{path}: expected the column {key}, found {there}; {bids.AGAIN}')
    names = list(found)
    return {row[names.index(key)]: dict(zip(names, row, strict=True)) for row in zip(*found.values(), strict=True)}


def read(ref: RecordingRef) -> Recording | Finding:
    """16 channels in volts, and joint0 to joint19 in radians, nan where they are not known. No events."""
    import mne
    import numpy as np

    path = ref.files[0]
    bad = edf.check_edf(path)
    if bad:
        return bad
    raw = mne.io.read_raw_bdf(path)
    emg = [c for c in raw.ch_names if c.lower().startswith('emg')]
    joints = [c for c in raw.ch_names if c.startswith('joint')]
    raw.pick([*emg, *joints]).load_data()
    raw.set_channel_types(dict.fromkeys(emg, 'emg') | dict.fromkeys(joints, 'misc'), on_unit_change='ignore')
    if not any(unit.endswith('V') for unit in edf.units(path)):
        raw.apply_function(lambda x: x * MICRO, picks=emg)
    spread = float(np.ptp(raw.get_data(joints))) if joints else 0.0
    if 0 < spread < LEAST:
        rule, found = 'joint angles must be in radians', f'that all lie within {spread:.2g}'
        remedy = 'look at the unit of the joints in the header: in uV they are read a million times too small'
        return Finding(path, rule, found, f'at least {LEAST:g} rad over a recording', remedy)
    _blank(raw, joints)
    raw.set_annotations(None)
    none = {'onset': np.zeros(0), 'duration': np.zeros(0), 'type': np.zeros(0, 'U3')}
    return Recording(raw, none)


def _blank(raw: mne.io.BaseRaw, joints: list[str]) -> None:
    """Cut what fills the last second, which no other annotation covers, and make angles nan that are not known."""
    import numpy as np

    marks = list(zip(raw.annotations.onset, raw.annotations.duration, raw.annotations.description, strict=True))
    sfreq = float(raw.info['sfreq'])
    ends = [onset + duration for onset, duration, what in marks if what != UNKNOWN]
    n = min(raw.n_times, max(1, round(max(ends) * sfreq))) if ends else raw.n_times
    unknown = (np.abs(raw.get_data(joints)) < ZERO).all(0) if joints else np.zeros(raw.n_times, bool)
    for onset, duration, what in marks:
        if what == UNKNOWN:
            unknown[max(0, round(onset * sfreq)) : max(0, round((onset + duration) * sfreq))] = True
    if unknown.any() and joints:
        raw.apply_function(lambda x: np.where(unknown, np.nan, x), picks=joints)
    if n < raw.n_times:
        raw.crop(tmax=(n - 1) / sfreq)
