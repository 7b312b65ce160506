"""SSVEP with an exoskeleton (Kalunga et al. 2016): FIF recordings with event files beside them.

Two traps of the published files: values are millivolts stored as volts, and event codes are not in the order of
the frequencies (3 is 21 Hz, 4 is 17 Hz). Events mark the audio cue; the publication states trials of 5 s, the response
to the flicker is there from about 1 s to 7 s after the cue.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError

WHOLE = True
DATASETS = (
    Dataset(
        name='Kalunga2016Online',
        title='SSVEP of an upper-limb exoskeleton, 13, 17 and 21 Hz and rest',
        source=__name__,
        n_subjects=12,
        n_recordings=30,
        n_chans=8,
        sfreq=(256.0,),
        seconds=222.8,
        event_id=(('rest', 1), ('13', 2), ('21', 3), ('17', 4)),
        n_events=32,
        licence='CC0-1.0',
        citation='Kalunga et al. (2016), Neurocomputing 191, 55-68',
        # zenodo.org/record/2392979 has these recordings under names that are not read
        host='github.com/sylvchev/dataset-ssvep-exoskeleton',
        layout='subject<NN>/record-[<date>]_raw.fif(.gz) with record-[<date>]-eve.fif beside it, without the five '
        'sessions that the README of the host excludes',
        download=Download(
            url='https://raw.githubusercontent.com/sylvchev/dataset-ssvep-exoskeleton/'
            'faf331c1707135a62fcf08db6575d1553c56e196/',
            registered='kalunga.sha256',
        ),
        aliases=('kalunga2016', 'Kalunga2016'),
    ),
)
SCALE = 1e-3  # millivolts stored as volts
FIF = (b'\x00\x00\x00\x64',), bytes.fromhex('0000006c 00000000 00000000 ffffffff')  # first and last tag of a whole file


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference for each raw file, by subject and date."""
    refs = []
    for folder in sorted(root.glob('subject[0-9]*')):
        if not folder.is_dir():  # a file, or a link that leads nowhere
            raise RequestError(f'{folder}: expected a folder with the recordings of a subject; mend or remove it')
        files = sorted(p for p in folder.iterdir() if p.name.endswith(('_raw.fif', '_raw.fif.gz')))
        for k, path in enumerate(files):
            stem = path.name.partition('_raw.fif')[0]
            events = path.with_name(f'{stem}-eve.fif')
            refs.append(
                RecordingRef(
                    dataset.name,
                    folder.name[len('subject') :],
                    str(k),
                    '0',
                    (str(path), str(events)),
                    (('record', stem),),
                )
            )
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """The recording in volts, its 32 cues with `code` (1..4) and `label` (Hz, or rest)."""
    import mne
    import numpy as np

    path, event_path = ref.files
    if not Path(event_path).exists():
        return Finding(
            path, 'an event file must lie beside the recording', 'none', Path(event_path).name, 'fetch the event file'
        )
    bad = check_file(path, (b'\x1f\x8b',)) if path.endswith('.gz') else check_file(path, *FIF)
    bad = bad or check_file(event_path, *FIF)
    if bad:
        return bad
    raw = mne.io.read_raw_fif(path, preload=True)
    raw.apply_function(lambda x: x * SCALE, picks='all', channel_wise=False)
    events = mne.read_events(event_path)
    names = {code: name for name, code in DATASETS[0].event_id}
    code = events[:, 2].astype(np.int64)
    return Recording(
        raw,
        {
            'onset': (events[:, 0] - raw.first_samp) / raw.info['sfreq'],
            'duration': np.full(len(events), 5.0),
            'type': np.full(len(events), 'Stimulus'),
            'code': code,
            'label': np.array([names.get(int(c), '?') for c in code]),
        },
    )
