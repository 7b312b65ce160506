"""Finger tapping, fNIRS (an example of Homer3): raw intensity at 690 and 830 nm becomes HbO and HbR.

The design is strictly periodic (12 blocks of tapping, 30 s apart), so time alone would predict the label: windows say
nothing of when they were. The file has onsets only; that a block lasts 10 s is an assumption.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset
from jbench.spec.errors import MissingExtraError

DATASETS = (
    Dataset(
        name='Homer3_GrpTap_fNIRS',
        title='Finger tapping and rest, 51 pairs of source and detector',
        source=__name__,
        device='fnirs',
        n_subjects=3,
        n_recordings=6,
        n_chans=102,
        sfreq=(5.00026,),
        seconds=391.0,
        n_events=24,
        amplitude=(1e-9, 1e-4),  # mol/l
        licence='BSD-like (Boas, Dubb, Huppert 2015)',
        citation='Huppert et al. (2009), Appl. Opt. 48(10), D280-D298',
        host='github.com/BUNPC/Homer3, UnitTests/Example6_GrpTap, as SNIRF',
        layout='subj<N>_<name>_<date>.snirf',
        aliases=('finger_tapping', 'GrpTap'),
    ),
)
HDF5 = (b'\x89HDF\r\n',)
PATH_LENGTH = 6.0  # partial path length factor
BLOCK, BEFORE = 10.0, 14.0  # s: of tapping; from the mark of rest to the tapping that follows it


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a session, by subject; sessions in the order of the file names."""
    refs: list[RecordingRef] = []
    for path in sorted(root.glob('subj[0-9]_*.snirf')):
        subject = path.name[len('subj')]
        session = str(sum(r.subject == subject for r in refs))
        name = '-'.join(re.findall('[0-9]+', path.stem)[1:])
        refs.append(RecordingRef(dataset.name, subject, session, name, (str(path),)))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """HbO and HbR in mol/l. Each onset of tapping makes two events: `tapping`, and `rest` 14 s before it, so that a
    window of 5 to 13 s after either ends before what follows."""
    import mne
    import numpy as np

    bad = check_file(ref.files[0], HDF5)
    if bad:
        return bad
    if find_spec('h5py') is None:
        raise MissingExtraError('h5py', 'fnirs', 'reading SNIRF')
    raw = mne.io.read_raw_snirf(ref.files[0], preload=True)
    onset = raw.annotations.onset[raw.annotations.description == 'tapping']
    raw = mne.preprocessing.nirs.beer_lambert_law(mne.preprocessing.nirs.optical_density(raw), ppf=PATH_LENGTH)
    labels = np.repeat(['tapping', 'rest'], len(onset))
    return Recording(
        raw.set_annotations(None),
        {
            'onset': np.concatenate([onset, onset - BEFORE]),
            'duration': np.full(len(labels), BLOCK),
            'type': np.full(len(labels), 'Stimulus'),
            'label': labels,
        },
    )
