"""Datasets that PhysioNet serves as EDF: mental arithmetic (eegmat) and motor imagery (eegmmidb)."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from jbench.data.formats.edf import check_edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError

WHOLE = True
COPY = (
    'https://raw.githubusercontent.com/manel79/EEG-arithmetic-task-Manel-Mestre/'
    '4707c0b46c96d3a3cfc71363fb3ced6dc3cbc2da/'
)
ZYMA = Dataset(
    name='Zyma2019Electroencephalograms',
    title='Rest and serial subtraction, 19 electrodes and A2-A1',
    source=__name__,
    n_subjects=36,
    n_recordings=72,
    n_chans=20,
    sfreq=(500.0,),
    seconds=62.0,
    event_types=('Eeg',),
    constant=1.5,  # six of the originals stand still for 1.0 to 1.1 s, just before their end
    licence='ODC-By-1.0',
    citation='Zyma et al. (2019), Data 4(1), 14',
    host='physionet.org/files/eegmat/1.0.0/, by its copy in github.com/manel79/EEG-arithmetic-task-Manel-Mestre',
    layout='Subject<NN>_1.edf (rest), Subject<NN>_2.edf (arithmetic), subject-info.csv (age, gender; may be absent)',
    # this copy gives the published score (docs/parity.md); whether PhysioNet's files have its sums is not known
    download=Download(
        url=f'{COPY}data/', registered='zyma.sha256', also=(Download(url=COPY, registered='zyma_info.sha256'),)
    ),
    revision='1.0.0',
    aliases=('zyma2019', 'eegmat'),
)
SCHALK = Dataset(
    name='Schalk2004Bci2000',
    title='Motor execution and imagery of fists and feet, 64 electrodes',
    source=__name__,
    n_subjects=109,
    n_recordings=1526,
    n_chans=64,
    sfreq=(160.0, 128.0),  # 128 Hz: the subjects that version 1 leaves out
    event_types=(),  # the resting runs hold none of the imagery events
    licence='ODC-By-1.0',
    citation='Schalk et al. (2004), IEEE Trans. Biomed. Eng. 51(6), 1034-1043',
    host='physionet.org/content/eegmmidb/1.0.0/',
    layout='(S<NNN>/)S<NNN>R<NN>.edf',
    download=Download(url='https://physionet.org/files/eegmmidb/1.0.0/', files='S[0-9][0-9][0-9]/S*.edf'),
    revision='1.0.0',
    aliases=('schalk2004bci2000', 'PhysionetMI', 'eegmmidb'),
)
DATASETS = (ZYMA, SCHALK)
CONDITIONS = {'1': 'rest', '2': 'mental_arithmetic'}
REPLACE = (('.', ''), ('Af', 'AF'), ('Cp', 'CP'), ('Fc', 'FC'), ('Po', 'PO'), ('Tp', 'TP'), ('Ft', 'FT'))
# what T1 and T2 mean depends on the run
FISTS, BOTH = ('left_fist', 'right_fist'), ('bilateral_fist', 'bilateral_feet')
BLOCK = 12.0  # s
RUNS = {**dict.fromkeys(range(3, 14, 2), 'motor_'), **dict.fromkeys(range(4, 15, 2), 'imagery_')}


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References in the order of subject, then run."""
    if dataset.name == SCHALK.name:
        name = 'S[0-9][0-9][0-9]R[0-9][0-9].edf'
        files = sorted([*root.glob(name), *root.glob(f'S[0-9][0-9][0-9]/{name}')], key=lambda p: p.name)
        return [RecordingRef(dataset.name, p.stem[:4], '0', p.stem[4:], (str(p),)) for p in files]
    files = sorted(root.glob('Subject[0-9][0-9]_[12].edf'))
    table = root / 'subject-info.csv'
    info, others = _subject_info(table), (str(table),) if table.exists() else ()
    return [
        RecordingRef(
            dataset.name,
            p.stem[:-2],
            '0',
            p.stem[-1],
            (str(p), *others),
            (('task', CONDITIONS[p.stem[-1]]), *info.get(p.stem, ())),
        )
        for p in files
    ]


def _subject_info(path: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """What the table, where it is there, says of each recording: age and gender of its subject, and at work
    `count_quality`, how well the subject counted."""
    if not path.exists():
        return {}
    try:
        with open(path, newline='', encoding='utf-8-sig') as f:
            rows = list(csv.DictReader(f))
    except (ValueError, csv.Error) as error:
        raise RequestError(f'{path}: {error}; fetch the file again, or remove it') from None
    wanted = ('Subject', 'Age', 'Gender')
    if any(row.get(name) is None for row in rows for name in wanted):
        raise RequestError(f'{path}: each row needs {", ".join(wanted)}; fetch the file again, or remove it')
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for row in rows:
        both = (('age', row['Age']), ('gender', row['Gender']))
        found[f'{row["Subject"]}_1'] = (*both, ('count_quality', ''))
        found[f'{row["Subject"]}_2'] = (*both, ('count_quality', f'quality_{row.get("Count quality")}'))
    return found


def read(ref: RecordingRef) -> Recording | Finding:
    """One EDF file in volts, with the events of its kind."""
    bad = check_edf(ref.files[0])
    if bad:
        return bad
    return _read_schalk(ref) if ref.dataset == SCHALK.name else _read_zyma(ref)


def _read_zyma(ref: RecordingRef) -> Recording | Finding:
    """Channel types from the names, as the published reader: `ECG ECG` is ECG, `EEG A2-A1` counts as EEG."""
    import mne
    import numpy as np

    raw = mne.io.read_raw_edf(ref.files[0])
    unexpected = [c for c in raw.ch_names if not c.startswith(('EEG ', 'ECG '))]
    if unexpected:
        return Finding(
            ref.files[0],
            'channel names must begin with their type',
            ', '.join(unexpected),
            'EEG or ECG, then a name',
            'use the original file',
        )
    raw.set_channel_types({c: c.split(' ')[0].lower() for c in raw.ch_names})
    raw.rename_channels({c: c.split(' ')[1] for c in raw.ch_names})
    raw.set_montage('standard_1020', on_missing='ignore')
    raw.set_annotations(None)
    return Recording(raw, {'onset': np.zeros(0), 'duration': np.zeros(0), 'type': np.zeros(0, 'U8')})


def _read_schalk(ref: RecordingRef) -> Recording | Finding:
    """Fists and feet, executed or imagined: `label` such as imagery_left_fist, or rest.

    Of the runs at rest also five `EyeBlock` events of 12 s, `label` open or closed, `block` 0 to 4: a split by block
    holds out the same time of either run.
    """
    import mne
    import numpy as np

    raw = mne.io.read_raw_edf(ref.files[0])
    names = {}
    for name in raw.ch_names:
        new = name
        for old, right in REPLACE:
            new = new.replace(old, right)
        names[name] = new
    raw.rename_channels(names)
    run = int(re.sub(r'\D', '', ref.run))
    if run in RUNS:
        pair = FISTS if run in (3, 4, 7, 8, 11, 12) else BOTH
        meaning = {'T0': 'rest', 'T1': RUNS[run] + pair[0], 'T2': RUNS[run] + pair[1]}
        kind = 'Action'
    else:
        meaning, kind = {'T0': {1: 'open', 2: 'closed'}.get(run, '?')}, 'EyeState'
    marks = raw.annotations
    unknown = sorted({d for d in marks.description if d not in meaning})
    if unknown or not len(marks):
        return Finding(
            ref.files[0],
            'annotations must be there and known',
            ', '.join(unknown) or 'none',
            ', '.join(meaning),
            'use the original file',
        )
    n = 0 if run in RUNS else int((raw.n_times + 1) / raw.info['sfreq'] // BLOCK)  # the last may lack a sample
    return Recording(
        raw,
        {
            'onset': np.concatenate([marks.onset, BLOCK * np.arange(n)]),
            'duration': np.concatenate([marks.duration, np.full(n, BLOCK)]),
            'type': np.repeat([kind, 'EyeBlock'], [len(marks), n]),
            'label': np.array([meaning[d] for d in marks.description] + [meaning['T0']] * n, dtype='U32'),
            'block': np.array([''] * len(marks) + [str(k) for k in range(n)]),
        },
    )
