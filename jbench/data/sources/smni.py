"""Visual evoked responses of alcoholic and control subjects (Begleiter; SMNI set of UCI), 61 electrodes, 1-s trials.

Each trial is a recording of its own, so that no filter runs across their borders: a CSV file of the source, in
microvolts, or one of the trials that a FIF file holds one after another. The reference was Cz; here it is the average
of all electrodes. `group` is a trait of the subject: a split by trial leaks.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne

WHOLE = True
DATASETS = (
    Dataset(
        name='UCI_SMNI_alcoholism',
        title='One picture, or a second one that matches or not: 8 alcoholic and 8 control subjects',
        source=__name__,
        n_subjects=16,
        n_recordings=468,
        n_chans=61,
        sfreq=(256.0,),
        seconds=1.0,
        n_events=1,
        licence='CC-BY-4.0 (UCI; the copy states none)',
        citation='Zhang et al. (1995), Brain Res. Bull. 38(6), 531-538; H. Begleiter',
        host='github.com/zudoan/EGG (SMNI_CMI_TRAIN; the subjects of SMNI_CMI_TEST are the same)',
        layout='Data<N>.csv, each a trial, which says whose; or co2{a,c}<7 digits>_raw.fif.gz: the first 4 trials of '
        'each of three conditions, annotated',
        download=Download(
            url='https://raw.githubusercontent.com/zudoan/EGG/0a2f8367330081dfbfad71fa0c2e87df0fd6115b/'
            'SMNI_CMI_TRAIN/Train/',
            registered='smni.sha256',
        ),
        revision='0a2f836',
        aliases=('smni',),
    ),
)
GROUPS = {'a': 'alcoholic', 'c': 'control'}
CONDITIONS = ('S1 obj', 'S2 match', 'S2 nomatch')
N_TRIALS, SECONDS, SFREQ = 12, 1.0, 256.0
COLUMNS = ('trial number', 'sensor position', 'sample num', 'sensor value', 'matching condition', 'name')
OTHERS = {'X': ('EOGx', 'eog'), 'Y': ('EOGy', 'eog'), 'nd': ('nd', 'misc')}  # no electrodes of the head: eyes, nose


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a trial, by subject and number, with the `group` of the subject."""
    refs = [
        RecordingRef(dataset.name, p.name[:11], '0', f'{k:02d}', (str(p),), (('group', GROUPS[p.name[3]]),))
        for p in sorted(root.glob('co2[ac][0-9]*_raw.fif.gz'))
        for k in range(N_TRIALS)
    ]
    return refs + sorted(_of_csv(dataset.name, p) for p in root.glob('Data[0-9]*.csv'))


def _of_csv(dataset: str, path: Path) -> RecordingRef:
    """The trial of a file, as its first row says; of one without a row the file alone is known, and `read` tells."""
    with open(path, newline='', encoding='utf-8', errors='replace') as file:
        row = next(csv.DictReader(file), {})
    name, trial = row.get('name') or '', row.get('trial number') or ''
    if name[3:4] not in GROUPS or not trial.isdecimal():
        return RecordingRef(dataset, 'unknown', '0', path.stem, (str(path),))
    return RecordingRef(dataset, name, '0', f'{int(trial):03d}', (str(path),), (('group', GROUPS[name[3]]),))


def read(ref: RecordingRef) -> Recording | Finding:
    """One trial in volts against the average; its event has `label`, the condition."""
    import numpy as np

    table = ref.files[0].endswith('.csv')
    bad = check_file(ref.files[0], () if table else (b'\x1f\x8b',))
    if bad:
        return bad
    found = _table(ref) if table else _trial(ref)
    if isinstance(found, Finding):
        return found
    raw, label = found
    raw.set_eeg_reference('average')
    return Recording(
        raw,
        {
            'onset': np.zeros(1),
            'duration': np.full(1, SECONDS),
            'type': np.array(['Stimulus']),
            'label': np.array([label]),
        },
    )


def _table(ref: RecordingRef) -> tuple[mne.io.BaseRaw, str] | Finding:
    """The signals and the condition of a CSV file: one row a sensor and sample."""
    import mne
    import numpy as np

    x: dict[str, list[float]] = {}
    said = set[tuple[str, str]]()
    with open(ref.files[0], newline='', encoding='utf-8', errors='replace') as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if absent := [c for c in COLUMNS if c not in head]:
            found, expected = ', '.join(head), ', '.join(absent)
            return Finding(ref.files[0], 'columns must be there', found, expected, 'use the original file')
        trial, sensor, sample, value, condition, name = map(head.index, COLUMNS)
        for number, row in enumerate(rows, 2):
            try:
                signal = x.setdefault(row[sensor], [])
                whole = int(row[sample]) == len(signal)
                signal.append(float(row[value]))
                said.add((row[condition].rstrip(', '), f'{row[name]}, trial {row[trial]}'))
            except (LookupError, ValueError):
                whole = False
            if not whole:
                rule, found = 'samples must follow each other', f'in line {number} {",".join(row)!r}'
                return Finding(ref.files[0], rule, found, 'the next sample of a sensor', 'use the original file')
    n, labels = round(SECONDS * SFREQ), {label for label, _ in said}
    if (
        len(said) != 1
        or labels - set(CONDITIONS)
        or {len(s) for s in x.values()} != {n}
        or not OTHERS.keys() < x.keys()
    ):
        lengths = sorted({len(s) for s in x.values()})
        found = f'{len(x)} sensors of {", ".join(map(str, lengths))} samples; {"; ".join(map(", ".join, sorted(said)))}'
        expected = f'61 electrodes, {", ".join(OTHERS)} of {n} samples; one of {", ".join(CONDITIONS)}'
        return Finding(ref.files[0], 'a file must hold one trial', found, expected, 'use the original file')
    order = [*sorted(x.keys() - OTHERS.keys()), *OTHERS]
    names, kinds = zip(*(OTHERS.get(c, (_cased(c), 'eeg')) for c in order), strict=True)
    info = mne.create_info(list(names), SFREQ, list(kinds))
    return mne.io.RawArray(np.array([x[c] for c in order]) * 1e-6, info), labels.pop()


def _cased(name: str) -> str:
    """FP1 as Fp1, CPZ as CPz."""
    return name.replace('FP', 'Fp').removesuffix('Z') + 'z' * name.endswith('Z')


def _trial(ref: RecordingRef) -> tuple[mne.io.BaseRaw, str] | Finding:
    """The signals and the condition of one trial of a FIF file."""
    import mne
    import numpy as np

    raw = mne.io.read_raw_fif(ref.files[0])
    marks = raw.annotations
    labels = [str(d).partition('/')[0] for d in marks.description]
    n = round(SECONDS * raw.info['sfreq'])
    whole = np.array_equal(marks.onset, SECONDS * np.arange(N_TRIALS)) and raw.n_times == N_TRIALS * n
    if not whole or set(labels) - set(CONDITIONS):
        found = f'{raw.n_times} samples, {len(labels)} trials of {", ".join(sorted(set(labels)))}'
        expected = f'{N_TRIALS * n} samples, {N_TRIALS} trials of {", ".join(CONDITIONS)}'
        return Finding(ref.files[0], 'trials must follow each other', found, expected, 'use the original file')
    k = int(ref.run)
    raw.set_annotations(None).crop(k * SECONDS, (k + 1) * SECONDS, include_tmax=False)
    return raw.load_data(), labels[k]
