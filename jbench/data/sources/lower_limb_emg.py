"""Surface EMG of the leg while walking, sitting and standing (UCI): 11 healthy people, 11 with a knee pathology.

A sheet a recording, 5 to 70 s, or a table of all with the central 4 s of each. It also has the angle of the knee, which
all but gives the exercise away: it is not read. In the source, sitting and standing of N02 are copies of N01 (tasks
leave N02 out; the preparation finds them by their samples too).
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import numpy as np

WHOLE = True
DATASETS = (
    Dataset(
        name='UCI_EMG_LowerLimb',
        title='Walking, sitting, standing: four muscles of the leg, with and without knee pathology',
        source=__name__,
        device='emg',
        n_subjects=22,
        n_recordings=66,
        n_chans=4,
        sfreq=(1000.0,),
        seconds=5.6,
        event_types=('Emg',),
        licence='CC-BY-4.0 (UCI; the copy states none)',
        citation='Sanchez et al. (2014), EMG dataset in lower limb, UCI',
        host='github.com/LE0920E/EMG-dataset-in-Lower-limb',
        layout='normal/<N>N<exercise> - <sheet>.csv, Abnormal/<N>A<exercise> - <sheet>.csv: four muscles in mV, angle; '
        'or the central 4 s of each in normal.csv.gz (N01-N11), abnormal.csv.gz (A01-A11): subject, exercise, muscles',
        download=Download(
            url='https://raw.githubusercontent.com/LE0920E/EMG-dataset-in-Lower-limb/'
            '834e750e41fa6d79773c62d7ae878f93ef52ee52/gaits_data/',
            registered='lower_limb_emg.sha256',
        ),
        revision='834e750',
        aliases=('lower_limb_emg',),
    ),
)
MUSCLES = ('RF', 'BF', 'VM', 'ST')  # rectus femoris, biceps femoris, vastus medialis, semitendinosus
EXERCISES = ('gait', 'sitting', 'standing')
GROUPS, FOLDERS = {'normal': 'N', 'abnormal': 'A'}, ('normal', 'Abnormal')
HEAD = ('Recto Femoral', 'Biceps Femoral', 'Vasto Medial', 'EMG Semitendinoso')  # the muscles, as a sheet has them
SFREQ = 1000.0


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference an exercise of a subject, with the fields `exercise` and `group`."""
    found = {p.name.partition(' - ')[0]: p for folder in FOLDERS for p in root.glob(f'{folder}/*[NA]*.csv')}
    return [
        RecordingRef(dataset.name, f'{letter}{k:02d}', '0', e, (str(path),), (('exercise', e), ('group', group)))
        for group, letter in GROUPS.items()
        for k in range(1, 12)
        for e in EXERCISES
        if (path := found.get(f'{k}{letter}{e}', root / f'{group}.csv.gz')).exists()
    ]


def read(ref: RecordingRef) -> Recording | Finding:
    """The four muscles in volts, and no event but the one that covers the recording."""
    import mne
    import numpy as np

    path = ref.files[0]
    packed = path.endswith('.gz')
    bad = check_file(path, (b'\x1f\x8b',) if packed else (','.join(HEAD).encode(),))
    if bad:
        return bad
    x = _table(path, os.stat(path).st_mtime_ns).get((ref.subject, ref.run)) if packed else _sheet(path)
    if x is None:
        found, remedy = f'no row of {ref.subject}, {ref.run}', 'use the original file'
        return Finding(path, 'each subject must do each exercise', found, 'some', remedy)
    none = np.zeros(0)
    info = mne.create_info(list(MUSCLES), SFREQ, 'emg')
    return Recording(mne.io.RawArray(x * 1e-3, info), {'onset': none, 'duration': none, 'type': none.astype('U3')})


def _sheet(path: str) -> np.ndarray:
    """mV [4, T] of the one recording of a sheet."""
    import numpy as np

    return np.loadtxt(path, delimiter=',', skiprows=1, usecols=range(len(HEAD)), ndmin=2).T


@functools.lru_cache(maxsize=2)
def _table(path: str, mtime: int) -> dict[tuple[str, str], np.ndarray]:
    """mV [4, T] of each subject and exercise of a file; kept, since each recording of it asks anew."""
    import csv
    import gzip

    import numpy as np

    rows: dict[tuple[str, str], list[list[str]]] = {}
    with gzip.open(path, 'rt', newline='') as f:
        for row in csv.DictReader(f):
            rows.setdefault((row['subject'], row['exercise']), []).append([row[f'{m}_mV'] for m in MUSCLES])
    return {key: np.array(values, float).T for key, values in rows.items()}
