"""Objects seen in the scanner (Haxby et al. 2001): half a slice of subject 1, as PyMVPA distributes it.

Each run is a recording: 530 voxels as channels, without their linear trend (slow drifts of the scanner), one sample a
volume. Labels are times of stimuli, not shifted by the haemodynamic delay, and volumes of a block depend on each other:
split by run.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import MissingExtraError

WHOLE = True
DATASETS = (
    Dataset(
        name='Haxby2001_slice',
        title='Eight categories of objects in 530 voxels of ventral cortex, one subject',
        source=__name__,
        device='fmri',
        n_subjects=1,
        n_recordings=12,
        n_chans=530,
        sfreq=(0.4,),
        seconds=302.5,
        n_events=72,
        amplitude=(1.0, 200.0),  # scanner units
        licence='CC-BY-SA-3.0 (the copy: MIT)',
        citation='Haxby et al. (2001), Science 293, 2425-2430',
        host='github.com/PyMVPA/PyMVPA, mvpa2/data',
        layout='bold.nii.gz, mask.nii.gz, attributes_literal.txt (label and run of each volume)',
        download=Download(
            url='https://raw.githubusercontent.com/PyMVPA/PyMVPA/20f0335f98bbb59a0e11bc0b7a469edf8681a9a1/mvpa2/data/',
            registered='haxby.sha256',
        ),
        aliases=('haxby',),
    ),
)
TR, N_RUNS, N_VOLUMES = 2.5, 12, 121


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a run."""
    files = tuple(str(root / name) for name in ('bold.nii.gz', 'mask.nii.gz', 'attributes_literal.txt'))
    if not Path(files[0]).exists():
        return []
    return [RecordingRef(dataset.name, '1', '0', f'{k:02d}', files) for k in range(N_RUNS)]


def read(ref: RecordingRef) -> Recording | Finding:
    """Voxels [530, 121] of one run, detrended.

    Events: one a volume, `Stimulus` with `label` (and with `face_house`, is_face or is_house, for these two
    categories), or `Rest`.
    """
    import mne
    import numpy as np
    from scipy.signal import detrend

    for path in ref.files[:2]:
        bad = check_file(path, (b'\x1f\x8b',))
        if bad:
            return bad
    if find_spec('nibabel') is None:
        raise MissingExtraError('nibabel', 'fmri', 'reading NIfTI')
    import nibabel.nifti1

    bold, mask = (np.asarray(nibabel.nifti1.load(path).dataobj, float) for path in ref.files[:2])
    rows = [line.split() for line in Path(ref.files[2]).read_text().splitlines()]
    unexpected = [k for k, row in enumerate(rows, 1) if len(row) != 2 or not row[1].isdecimal()]
    if unexpected:
        found = f'in line {unexpected[0]} {" ".join(rows[unexpected[0] - 1])!r}'
        return Finding(ref.files[2], 'each line must name one volume', found, 'label and run', 'use the original file')
    runs = np.array([int(run) for _, run in rows])
    if bold.shape[:3] != mask.shape or len(rows) != bold.shape[3] or (np.bincount(runs) != N_VOLUMES).any():
        found = f'volumes {bold.shape}, mask {mask.shape}, {len(rows)} labels'
        expected = f'one shape, and {N_RUNS} runs of {N_VOLUMES} labelled volumes'
        return Finding(ref.files[0], 'volumes, mask and labels must fit', found, expected, 'use the original files')
    here = runs == int(ref.run)
    labels = np.array([label for label, _ in rows])[here]
    x = detrend(bold[mask > 0][:, here])
    info = mne.create_info([f'v{k:03d}' for k in range(len(x))], 1 / TR, 'misc')
    pair = np.isin(labels, ['face', 'house'])
    return Recording(
        mne.io.RawArray(x, info),
        {
            'onset': TR * np.arange(N_VOLUMES),
            'duration': np.full(N_VOLUMES, TR),
            'type': np.where(labels == 'rest', 'Rest', 'Stimulus'),
            'label': labels,
            'face_house': np.where(pair, np.char.add('is_', labels), ''),
        },
    )
