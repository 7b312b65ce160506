"""Pictures of THINGS in rapid succession (THINGS-EEG2, Gifford et al. 2022).

Traps of the files: each recording is a pickled dictionary in a `.npy` file, of which nothing but arrays is read here;
the channel of triggers is the last one, of type stim; a trigger of 99999 is the picture that subjects look for, and is
left out. The number of a trigger is the place of its picture, from 1, in `image_metadata.npy`. A recording is read
whole (2.8 GB): the format allows nothing else.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset

WHOLE = True
DATASETS = (
    Dataset(
        name='Gifford2022Large',
        title='Pictures of THINGS in rapid succession, 63 electrodes (THINGS-EEG2)',
        source=__name__,
        n_subjects=10,
        n_recordings=80,
        n_chans=63,
        sfreq=(1000.0,),
        seconds=5450.6,
        event_types=('Image',),
        licence='CC-BY-4.0',
        citation='Gifford et al. (2022), NeuroImage 264, 119754',
        host='osf.io/3jk45/',
        layout='sub-<NN>/ses-<NN>/raw_eeg_{training,test}.npy (of figshare.com, 18470912), image_metadata.npy, '
        '{training,test}_images/<concept>/<picture>.jpg (of osf.io/y63gw; only encoders read them)',
        access='agreement: accept the licence of the THINGS images, which gives the password of their archive',
        aliases=('THINGS-EEG2',),
    ),
)
PARTS = (('training', 'train'), ('test', 'test'))  # in names of files, in their keys and the column `split`
TARGET = 99999
SECONDS = 0.1  # a picture is shown
ARRAYS = {'_reconstruct', 'scalar', '_frombuffer', 'ndarray', 'dtype'}  # what pickled arrays are made of


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by subject, session and part: first the training part of a session, then its test part."""
    refs = []
    for folder in sorted(root.glob('sub-[0-9][0-9]/ses-[0-9][0-9]')):
        subject, session = (str(int(p.rpartition('-')[2])) for p in folder.parts[-2:])
        for part, split in PARTS:
            files = (str(folder / f'raw_eeg_{part}.npy'), str(root / 'image_metadata.npy'))
            if Path(files[0]).exists():
                refs.append(RecordingRef(dataset.name, subject, session, part, files, (('split', split),)))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """63 channels in volts. Events `Image` with `filepath`, below the folder of the dataset, and `concept`."""
    import mne
    import numpy as np

    file, metadata = _dictionary(ref.files[0]), _dictionary(ref.files[1])
    part, split = next(p for p in PARTS if p[0] == ref.run)
    pictures = [
        f'{c}/{f}' for c, f in zip(metadata[f'{split}_img_concepts'], metadata[f'{split}_img_files'], strict=True)
    ]
    info = mne.create_info([str(c) for c in file['ch_names']], float(file['sfreq']), [str(t) for t in file['ch_types']])
    raw = mne.io.RawArray(file['raw_eeg_data'], info)
    (stim,) = mne.pick_types(info, meg=False, stim=True)
    found = mne.find_events(raw, stim_channel=info['ch_names'][stim], verbose=False)
    samples, codes = found[found[:, 2] != TARGET][:, [0, 2]].T
    unexpected = sorted({int(c) for c in codes if not 1 <= c <= len(pictures)})
    if unexpected or not len(codes):
        rule, expected = 'triggers must be there and name pictures', f'1 to {len(pictures)}, or {TARGET}'
        return Finding(ref.where, rule, ', '.join(map(str, unexpected)) or 'none', expected, 'use the original files')
    shown = [pictures[c - 1] for c in codes]
    return Recording(
        raw.set_montage('standard_1020', on_missing='ignore'),
        {
            'onset': samples / raw.info['sfreq'],
            'duration': np.full(len(samples), SECONDS),
            'type': np.full(len(samples), 'Image'),
            'filepath': np.array([f'{part}_images/{name}' for name in shown]),
            'concept': np.array([name.partition('/')[0] for name in shown]),
        },
    )


class _Arrays(pickle.Unpickler):
    """Makes arrays, and calls nothing else that a file may name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.partition('.')[0] == 'numpy' and name in ARRAYS) or (module, name) == ('_codecs', 'encode'):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f'it names {module}.{name}, which is no array')


def _dictionary(path: str) -> dict[str, Any]:
    """The dictionary in a `.npy` file. Raises: ValueError, UnpicklingError."""
    import numpy as np

    with open(path, 'rb') as file:
        np.lib.format.read_magic(file)
        _, _, dtype = np.lib.format.read_array_header_1_0(file)
        content = _Arrays(file).load().item() if dtype.hasobject else None
    if not isinstance(content, dict):
        raise ValueError('the file holds no dictionary')
    return content
