"""Visual experiments with a Muse headband (NeuroTechX): P300, N170 and SSVEP as CSV files in microvolts.

Traps of the files: the time stamps are rounded to milliseconds (samples are counted instead, at 256 Hz), the column of
the markers is `Marker` or `Marker0`, and `Right AUX` is an electrode at POz in SSVEP and noise elsewhere (here `AUX`,
of type misc, so that only a task that asks for it gets it). Subjects are numbered anew in each experiment. The headband
is worn dry: blinks and loose electrodes reach millivolts, so a stimulus whose response they hide is marked `Artifact`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne
    import numpy as np

WHOLE = True
DATASETS = (
    Dataset(
        name='MuseERP',
        title='P300 oddball, N170 (faces, houses) and SSVEP (20, 30 Hz) with a consumer headband, 4 electrodes',
        source=__name__,
        n_subjects=13,
        n_recordings=79,
        n_chans=4,
        sfreq=(256.0,),
        seconds=120.0,
        event_types=(),  # those of the experiment alone
        licence='BSD-3-Clause',
        citation='Barachant et al. (2018), EEG Notebooks, NeuroTechX',
        host='github.com/NeuroTechX/eeg-notebooks_v0.1, data/visual',
        layout='{P300,N170,SSVEP}/subject<N>/session<N>/<name>.csv, or subject<N>_session<N>_<name>.csv.gz',
        # not on the list: three of N170 subject10 with one marker, a copy of a recording of subject3 and one of theirs
        # with seven markers at 0.4 to 0.8 mV
        download=Download(
            url='https://raw.githubusercontent.com/NeuroTechX/eeg-notebooks_v0.1/'
            '5ee39e4f91080937ead13c208a65089cbb13b7f6/data/visual/',
            registered='muse.sha256',
        ),
        revision='5ee39e4',
        aliases=('muse', 'eeg-notebooks'),
    ),
)
LABELS = {  # of the codes 1 and 2
    'P300': ('NonTarget', 'Target'),
    'N170': ('house', 'face'),
    'SSVEP': ('30', '20'),  # Hz
}
CHANNELS = ('TP9', 'AF7', 'AF8', 'TP10', 'Right AUX')
SFREQ = 256.0
MOST, BAND, RESPONSE = 150e-6, (1.0, 30.0), (-0.1, 0.8)  # V peak to peak, in Hz, s from a stimulus: more is an artefact


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by experiment, subject, session and date.

    `p300_recording`, `p300_subject` and so on are columns that hold a value in the recordings of that experiment alone:
    a split by one of them leaves the others aside.
    """
    refs = []
    for experiment in LABELS:
        there = [(_parts(p), p) for p in root.glob(f'{experiment}/subject*/session*/*.csv')]
        there += [(_parts(p), p) for p in root.glob(f'{experiment}/subject*_session*_*.csv.gz')]
        for (subject, session, name), path in sorted(there):
            person, kind = f'{experiment}-{subject.removeprefix("subject")}', experiment.lower()
            fields = (
                ('experiment', experiment),
                (f'{kind}_recording', f'{subject}_{session}_{name}'),
                (f'{kind}_subject', person),
            )
            number = session.removeprefix('session')
            refs.append(RecordingRef(dataset.name, person, number, name, (str(path),), fields))
    return refs


def _parts(path: Path) -> tuple[str, str, str]:
    """Subject, session and name of a recording, as folders or parts of its file name have them."""
    if path.name.endswith('.gz'):
        subject, session, name = path.name.removesuffix('.csv.gz').split('_', 2)
        return subject, session, name
    return path.parent.parent.name, path.parent.name, path.name.removesuffix('.csv').removesuffix('.csv')


def read(ref: RecordingRef) -> Recording | Finding:
    """Four EEG channels and AUX in volts; events of the type of the experiment, or `Artifact`, with `label`."""
    import mne
    import numpy as np

    bad = check_file(ref.files[0], (b'\x1f\x8b',) if ref.files[0].endswith('.gz') else (b'timestamps,',))
    if bad:
        return bad
    table = np.genfromtxt(ref.files[0], delimiter=',', names=True, deletechars='', replace_space=' ')
    marker = next((n for n in ('Marker', 'Marker0') if n in (table.dtype.names or ())), '')
    absent = [c for c in (*CHANNELS, marker or 'Marker') if c not in (table.dtype.names or ())]
    if absent:
        found = ', '.join(table.dtype.names or ())
        return Finding(ref.files[0], 'columns must be there', found, ', '.join(absent), 'use the original file')
    experiment = dict(ref.fields)['experiment']
    names, codes = LABELS[experiment], table[marker].astype(int)
    rows = np.flatnonzero(codes)
    if not len(rows) or set(codes[rows]) - {1, 2}:
        found = ', '.join(map(str, sorted(set(codes[rows])))) or 'none'
        return Finding(ref.files[0], 'markers must be 1 or 2', found, '1 and 2', 'use the original file')
    info = mne.create_info([*CHANNELS[:4], 'AUX'], SFREQ, ['eeg'] * 4 + ['misc'])
    raw = mne.io.RawArray(np.stack([table[c] for c in CHANNELS]) * 1e-6, info)
    hidden = _hidden(raw, rows) if experiment != 'SSVEP' else np.zeros(len(rows), bool)
    return Recording(
        raw,
        {
            'onset': rows / SFREQ,
            'duration': np.zeros(len(rows)),
            'type': np.where(hidden, 'Artifact', experiment),
            'label': np.array([names[c - 1] for c in codes[rows]]),
        },
    )


def _hidden(raw: mne.io.BaseRaw, rows: np.ndarray) -> np.ndarray:
    """Whether an EEG channel spans more than MOST in the response to each stimulus, given by its sample: bool [n]."""
    import numpy as np

    x = raw.copy().pick('eeg').filter(*BAND, n_jobs=1).get_data()
    first, last = (round(t * SFREQ) for t in RESPONSE)
    return np.array([np.ptp(x[:, max(0, i + first) : i + last], axis=1).max() > MOST for i in rows.tolist()])
