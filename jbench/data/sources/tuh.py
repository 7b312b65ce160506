"""Clinical EEG of the Temple University Hospital: artefacts (TUAR), events (TUEV), normal and abnormal (TUAB)."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from jbench.data.edf import check_edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec import Dataset

ACCESS = 'agreement: ask Temple University (NEDC) for access to the TUH corpus, then put the tree there by hand'
RATES = (250.0, 256.0, 400.0, 512.0)  # Hz, those of the corpus (Obeid and Picone 2016, Front. Neurosci. 10, 196)
DATASETS = (
    Dataset(
        name='Hamid2020Tuar',
        title='Artefacts marked in clinical EEG (TUAR)',
        source=__name__,
        n_subjects=213,
        n_recordings=310,
        n_chans=23,
        sfreq=RATES,
        event_types=('Artifact',),
        licence='Custom',
        citation='Hamid et al. (2020), IEEE SPMB, 1-4',
        host='isip.piconepress.com/projects/nedc/data/tuh_eeg/tuh_eeg_artifact/',
        layout='edf/<montage>/<subject>_<session>_<token>.edf with <the same>.csv beside it',
        access=ACCESS,
        aliases=('TUAR',),
    ),
    Dataset(
        name='Harati2015Tuev',
        title='Epileptiform discharges and artefacts marked in clinical EEG (TUEV)',
        source=None,
        n_subjects=370,
        n_recordings=518,
        n_chans=23,
        sfreq=(250.0,),
        seconds=1226.0,
        event_types=('Artifact', 'EpileptiformActivity'),
        licence='Custom',
        citation='Harati et al. (2015), IEEE SPMB, 1-4',
        host='isip.piconepress.com/projects/nedc/data/tuh_eeg/tuh_eeg_events/',
        layout='as its host serves it',
        access=ACCESS,
        aliases=('TUEV',),
    ),
    Dataset(
        name='Lopez2017Tuab',
        title='Normal and abnormal clinical EEG (TUAB)',
        source=__name__,
        n_subjects=2329,
        n_recordings=2993,
        n_chans=23,
        sfreq=RATES,
        event_types=('Eeg',),
        licence='Custom',
        citation='López et al. (2015), IEEE SPMB, 1-5',
        host='isip.piconepress.com/projects/nedc/data/tuh_eeg/tuh_eeg_abnormal/',
        layout='edf/{train,eval}/{abnormal,normal}/01_tcp_ar/<subject>_<session>_<token>.edf',
        access=ACCESS,
        aliases=('TUAB',),
    ),
)
# names of the 10-20 system of old, and near ones, in the 10-05 system; A1 and A2, at the ears, count as T9 and T10
NAMES = {'T1': 'FT9', 'T2': 'FT10', 'T3': 'T7', 'T4': 'T8', 'T5': 'P7', 'T6': 'P8', 'C3P': 'CP3', 'C4P': 'CP4'}
NAMES |= {'A1': 'T9', 'A2': 'T10'}


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file, by folder and name. Those of TUAB have a `split` (eval, train) and a `label` (abnormal,
    normal)."""
    refs = []
    for path in sorted(root.glob('edf/**/*.edf')):
        subject, _, rest = path.stem.partition('_')
        session, _, token = rest.partition('_')
        if dataset.name == 'Lopez2017Tuab':
            split, label, *_ = path.relative_to(root / 'edf').parts
            more = (str(path),), (('split', split), ('label', label))
            refs.append(RecordingRef(dataset.name, subject, session, token, *more))
        else:
            table = str(path.with_suffix('.csv'))
            refs.append(RecordingRef(dataset.name, subject, session, token, (str(path), table)))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """One file in volts: electrodes that the 10-05 system knows are EEG.

    Events: those of TUAR are `Artifact` with `state`, one a kind and time, on however many channels it is. TUAB has
    none: its label is of the whole.
    """
    import mne
    import numpy as np

    bad = check_edf(ref.files[0])
    if bad:
        return bad
    raw = mne.io.read_raw_edf(ref.files[0])
    marks = _artefacts(ref.files[1], raw.n_times / raw.info['sfreq']) if len(ref.files) > 1 else []
    if isinstance(marks, Finding):
        return marks
    kinds = {c: _kind(c) for c in raw.ch_names}
    names = {c: _electrode(c) if kinds[c] == 'eeg' else c for c in raw.ch_names}
    known = {*mne.channels.make_standard_montage('standard_1005').ch_names}
    raw.set_channel_types(kinds)
    raw.drop_channels([c for c in raw.ch_names if kinds[c] == 'eeg' and names[c].partition('-')[0] not in known])
    raw.rename_channels({c: names[c] for c in raw.ch_names}).set_montage('standard_1005', on_missing='ignore')
    events = {
        'onset': np.array([start for start, _, _ in marks], float),
        'duration': np.array([stop - start for start, stop, _ in marks], float),
        'type': np.full(len(marks), 'Artifact'),
        'state': np.array([state for _, _, state in marks], dtype='U8'),
    }
    return Recording(raw.set_annotations(None), events)


def _artefacts(path: str, seconds: float) -> list[tuple[float, float, str]] | Finding:
    """Start, stop (s, at most the length of the recording) and kind of each artefact in a table of TUAR, by time.

    The table has a line a channel; `eyem_musc` is both at once, `elec` is called elpp.
    """
    wanted, file = ('start_time', 'stop_time', 'label'), Path(path)
    lines = file.read_text().splitlines() if file.exists() else []
    rows = list(csv.DictReader(line for line in lines if line.strip() and not line.startswith('#')))
    try:
        times = [(float(row['start_time']), min(float(row['stop_time']), seconds), row['label']) for row in rows]
    except (KeyError, TypeError, ValueError):
        times = []
    if not times:
        rule, found = 'a table of artefacts must lie beside the recording', 'none that can be read'
        return Finding(path, rule, found, f'lines with {", ".join(wanted)}', 'fetch the table again')
    return sorted({(a, b, {'elec': 'elpp'}.get(s, s)) for a, b, label in times for s in label.split('_')})


def _kind(name: str) -> str:
    """The type of a channel: `EEG EKG1-REF` is the heart."""
    kinds = {'EKG': 'ecg', 'EMG': 'emg'}
    return next((kind for text, kind in kinds.items() if text in name), 'eeg' if name.startswith('EEG ') else 'misc')


def _electrode(name: str) -> str:
    """`EEG FP1-REF` and `EEG FP1-LE` are Fp1; `EEG FP1-F7` is a pair, Fp1-F7."""
    found = re.fullmatch('EEG (.+)-(.+)', name)
    if found is None:
        return name
    first, second = (NAMES.get(n, n).replace('FP', 'Fp').replace('Z', 'z') for n in found.groups())
    return first if second in ('REF', 'LE') else f'{first}-{second}'
