"""Finger tapping, fNIRS (an example of Homer3): raw intensity at 690 and 830 nm becomes HbO and HbR.

The design is strictly periodic (12 blocks of tapping, 30 s apart), so time alone would predict the label: windows say
nothing of when they were. The file has onsets only; that a block lasts 10 s is an assumption. Homer marks samples; a
copy as SNIRF has times, which are those of Homer's clock, one sample (0.2 s) after the marked one.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import MissingExtraError

if TYPE_CHECKING:
    import mne
    import numpy as np

WHOLE = True
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
        host='github.com/BUNPC/Homer3, UnitTests/Example6_GrpTap',
        layout='subj<N>/<name>_<date>.nirs, or subj<N>_<name>_<date>.snirf',
        download=Download(
            url='https://raw.githubusercontent.com/BUNPC/Homer3/a2bdfcf65e932478110cd9abdd4f0d1b773c5217/'
            'UnitTests/Example6_GrpTap/',
            registered='finger_tapping.sha256',
        ),
        aliases=('finger_tapping', 'GrpTap'),
    ),
)
HDF5 = (b'\x89HDF\r\n',)
PATH_LENGTH = 6.0  # partial path length factor
BLOCK, BEFORE = 10.0, 14.0  # s: of tapping; from the mark of rest to the tapping that follows it


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a session, by subject; sessions in the order of the file names."""
    refs: list[RecordingRef] = []
    there = [(f'{p.parent.name}_{p.stem}', p) for p in root.glob('subj[0-9]/*.nirs')]
    there += [(p.stem, p) for p in root.glob('subj[0-9]_*.snirf')]
    for stem, path in sorted(there):
        subject = stem[len('subj')]
        session = str(sum(r.subject == subject for r in refs))
        name = '-'.join(re.findall('[0-9]+', stem)[1:])
        refs.append(RecordingRef(dataset.name, subject, session, name, (str(path),)))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """HbO and HbR in mol/l. Each onset of tapping makes two events: `tapping`, and `rest` 14 s before it, so that a
    window of 5 to 13 s after either ends before what follows."""
    import mne
    import numpy as np

    homer = ref.files[0].endswith('.nirs')
    bad = check_file(ref.files[0], (b'MATLAB 5.0',) if homer else HDF5)
    if bad:
        return bad
    if not homer and find_spec('h5py') is None:
        raise MissingExtraError('h5py', 'fnirs', 'reading SNIRF')
    found = _read_nirs(ref.files[0]) if homer else _read_snirf(ref.files[0])
    if isinstance(found, Finding):
        return found
    raw, onset = found
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


def _read_snirf(path: str) -> tuple[mne.io.BaseRaw, np.ndarray]:
    """Intensities, and the onsets of tapping in s."""
    import mne

    raw = mne.io.read_raw_snirf(path, preload=True)
    return raw, raw.annotations.onset[raw.annotations.description == 'tapping']


def _read_nirs(path: str) -> tuple[mne.io.BaseRaw, np.ndarray] | Finding:
    """As `_read_snirf`, of Homer's MAT file. Marks are samples there; one inside a block of tapping is a stray one."""
    import mne
    import numpy as np
    from scipy.io import loadmat

    content = loadmat(path, squeeze_me=True, struct_as_record=False)
    try:
        x, t, marks, probe = (content[k] for k in ('d', 't', 's', 'SD'))
        pairs, waves = np.atleast_2d(probe.MeasList).astype(int), np.atleast_1d(probe.Lambda)
        sources, detectors = (np.atleast_2d(p) * 1e-3 for p in (probe.SrcPos, probe.DetPos))  # mm
        where = [(sources[s - 1], detectors[d - 1], float(waves[w - 1])) for s, d, _, w in pairs]
        fits = x.shape == (len(t), len(pairs)) and marks.shape == t.shape and str(probe.SpatialUnit) == 'mm'
    except (LookupError, AttributeError, ValueError):
        fits = False
    if not fits:
        found, expected = ', '.join(sorted(k for k in content if k[0] != '_')), 'd, t, s and SD (in mm) that fit'
        return Finding(path, "the file must be one of Homer's", found, expected, 'use the original file')
    names = [f'S{s}_D{d} {waves[w - 1]:g}' for s, d, _, w in pairs]
    raw = mne.io.RawArray(x.T, mne.create_info(names, 1 / float(np.diff(t).mean()), 'fnirs_cw_amplitude'))
    for channel, (source, detector, wave) in zip(raw.info['chs'], where, strict=True):
        channel['loc'][:10] = [*(source + detector) / 2, *source, *detector, wave]
    onset: list[float] = []
    for at in (np.flatnonzero(marks) / raw.info['sfreq']).tolist():
        onset += [at] if not onset or at - onset[-1] >= BLOCK else []
    return raw, np.array(onset)
