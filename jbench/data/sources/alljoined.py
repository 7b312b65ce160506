"""Pictures seen by eight people with a laboratory's headset (Alljoined1), and by twenty with a consumer one
(Alljoined-1.6M).

Traps of Alljoined1: which picture is shown when stands in a table beside the preprocessed epochs (a pandas frame in
HDF5, of whose blocks the numbers alone are read here: its `eeg` is pickled); its times count from the first sample of
the whole recording; sessions without it (subject 3, session 1) are left out; `73k_id` counts the pictures of the
Natural Scenes Dataset from 1, and the names of their files count from 0 (published: the file of the next one).

Traps of Alljoined-1.6M: all files but one of subject 8 in sessions 1, 3 and 4 say `Subject 19`; the headset writes AFz
as `Afz` in some; channels of its state are in the files too, all as EEG; an annotation is four values with commas.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.edf import check_edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy as np

WHOLE = True
LABORATORY = Dataset(
    name='Xu2024Alljoined',
    title='Photographs of NSD, 64 electrodes (Alljoined1)',
    source=__name__,
    n_subjects=8,
    n_recordings=12,
    n_chans=64,
    sfreq=(512.0,),
    seconds=3474.0,
    event_types=('Image',),
    licence='UNKNOWN',
    citation='Xu et al. (2024), arXiv:2404.05553',
    host='osf.io/kqgs8',
    layout='raw/subj<NN>_session<N>_eeg.fif, 05_125/subj<NN>_session<N>.h5, nsd_stimuli/<number>.png (from 0, made of '
    'nsd_stimuli.hdf5 of the Natural Scenes Dataset; only encoders read them)',
    download=Download(url='osf:nodes/kqgs8/files/osfstorage'),
    aliases=('Alljoined1',),
)
CONSUMER = Dataset(
    name='Xu2025Alljoined',
    title='Pictures of THINGS with a consumer headset (Alljoined-1.6M)',
    source=__name__,
    n_subjects=20,
    n_recordings=1520,
    n_chans=32,
    sfreq=(256.0,),
    seconds=297.0,
    event_types=('Image',),
    licence='CC-BY-NC-SA-4.0',
    citation='Xu et al. (2025), arXiv:2508.18571',
    host='huggingface.co/datasets/Alljoined/Alljoined-1.6M/tree/main/raw_eeg',
    layout='raw_eeg/sub-<NN>/session_<NN>/block_<NN>/Subject <N>, Session <N>, Block <N>*.edf, '
    'images/<NNNNN>.jpg (of stimuli.zip; only encoders read them)',
    download=Download(url='hf:datasets/Alljoined/Alljoined-1.6M', files='[rs]*', unpack='images/*'),
    aliases=('Alljoined-1.6M',),
)
DATASETS = (LABORATORY, CONSUMER)
SECONDS = {LABORATORY.name: 0.3, CONSUMER.name: 0.1}  # a picture is shown


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by subject, session and block."""
    if dataset.name == LABORATORY.name:
        return [
            RecordingRef(dataset.name, str(int(p.name[4:6])), p.name[14:15], '0', (str(p), str(table)))
            for p in sorted(root.glob('raw/subj[0-9][0-9]_session[0-9]_eeg.fif'))
            if (table := root / '05_125' / f'{p.name[:15]}.h5').exists()
        ]
    refs = []
    for path in sorted(root.glob('raw_eeg/sub-[0-9][0-9]/session_[0-9][0-9]/block_[0-9][0-9]/*.edf')):
        subject, session, block = (str(int(p[-2:])) for p in path.parts[-4:-1])
        person = '(8|19)' if subject == '8' else subject
        if re.match(rf'Subject {person}, Session {session}, Block {block}(?!\d)', path.name):
            refs.append(RecordingRef(dataset.name, subject, session, block, (str(path),)))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """A recording in volts. Events `Image` with `filepath`, below the folder of the dataset; those of the consumer
    headset also with `label`: stim_train, stim_test, or what else the file says."""
    return _read_laboratory(ref) if ref.dataset == LABORATORY.name else _read_consumer(ref)


def _read_laboratory(ref: RecordingRef) -> Recording | Finding:
    import mne
    import numpy as np

    raw = mne.io.read_raw_fif(ref.files[0]).set_montage('standard_1020', on_missing='ignore')
    table = _numbers(ref.files[1])
    absent = [name for name in ('73k_id', 'curr_time') if name not in table]
    if absent:
        found = ', '.join(table) or 'no column of numbers'
        return Finding(ref.files[1], 'columns must be there', found, ', '.join(absent), 'use the original file')
    return Recording(
        raw,
        {
            'onset': table['curr_time'] - raw.first_samp / raw.info['sfreq'],
            'duration': np.full(len(table['curr_time']), SECONDS[ref.dataset]),
            'type': np.full(len(table['curr_time']), 'Image'),
            'filepath': np.array([f'nsd_stimuli/{int(k) - 1}.png' for k in table['73k_id']]),
        },
    )


def _numbers(path: str) -> dict[str, np.ndarray]:
    """The columns of numbers of the only frame in an HDF5 file of pandas, in its fixed format."""
    if find_spec('h5py') is None:
        raise MissingExtraError('h5py', 'fnirs', 'reading the table of Alljoined1')
    import h5py

    columns: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        for group in file.values():
            for k in range(sum(name.endswith('_items') for name in group)):
                names, values = group[f'block{k}_items'][()], group[f'block{k}_values']
                if values.dtype.kind in 'iuf' and values.ndim == 2:
                    columns |= dict(zip([n.decode() for n in names], values[()].T, strict=True))
    return columns


def _read_consumer(ref: RecordingRef) -> Recording | Finding:
    import mne
    import numpy as np

    bad = check_edf(ref.files[0])
    if bad:
        return bad
    raw = mne.io.read_raw_edf(ref.files[0])
    raw.rename_channels({c: 'AFz' for c in raw.ch_names if c == 'Afz'})
    montage = mne.channels.make_standard_montage('standard_1005')
    raw.set_channel_types({c: 'misc' for c in raw.ch_names if c not in montage.ch_names}, on_unit_change='ignore')
    raw.set_montage(montage, on_missing='ignore')
    marks = [str(d).split(',') for d in raw.annotations.description]
    unexpected = [','.join(mark) for mark in marks if len(mark) != 4 or not re.fullmatch(r'-?\d+', mark[1])]
    if unexpected or not marks:
        found, expected = unexpected[0] if unexpected else 'none', 'label,number,deleted,index'
        return Finding(ref.where, 'annotations must name a picture', found, expected, 'use the original file')
    events = {
        'onset': np.array(raw.annotations.onset, float),
        'duration': np.full(len(marks), SECONDS[ref.dataset]),
        'type': np.full(len(marks), 'Image'),
        'label': np.array([mark[0] for mark in marks]),
        'filepath': np.array([f'images/{int(k):05d}.jpg' for _, k, _, _ in marks]),
    }
    return Recording(raw.set_annotations(None), events)
