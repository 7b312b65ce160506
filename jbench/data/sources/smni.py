"""Visual evoked responses of alcoholic and control subjects (Begleiter; SNMI set of UCI), 61 electrodes, 1-s trials.

The files hold the trials of a subject one after another. Here each trial is a recording of its own, so that no filter
runs across their borders. The reference was Cz; here it is the average of all electrodes. `group` is a trait of the
subject: a split by trial leaks.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset

DATASETS = (
    Dataset(
        name='UCI_SMNI_alcoholism',
        title='One picture, or a second one that matches or not: 8 alcoholic and 8 control subjects',
        source=__name__,
        n_subjects=16,
        n_recordings=192,
        n_chans=61,
        sfreq=(256.0,),
        seconds=1.0,
        n_events=1,
        licence='CC-BY-4.0 (UCI; the copy states none)',
        citation='Zhang et al. (1995), Brain Res. Bull. 38(6), 531-538; H. Begleiter',
        host='github.com/zudoan/EGG (SMNI_CMI_TRAIN; the subjects of SMNI_CMI_TEST are the same)',
        layout='co2{a,c}<7 digits>_raw.fif.gz: the first 4 trials of each of three conditions, annotated',
        aliases=('smni',),
    ),
)
GROUPS = {'a': 'alcoholic', 'c': 'control'}
CONDITIONS = ('S1 obj', 'S2 match', 'S2 nomatch')
N_TRIALS, SECONDS = 12, 1.0


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a trial, by subject and number, with the `group` of the subject."""
    return [
        RecordingRef(dataset.name, p.name[:11], '0', f'{k:02d}', (str(p),), (('group', GROUPS[p.name[3]]),))
        for p in sorted(root.glob('co2[ac][0-9]*_raw.fif.gz'))
        for k in range(N_TRIALS)
    ]


def read(ref: RecordingRef) -> Recording | Finding:
    """One trial in volts against the average; its event has `label`, the condition."""
    import mne
    import numpy as np

    bad = check_file(ref.files[0], (b'\x1f\x8b',))
    if bad:
        return bad
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
    raw.load_data().set_eeg_reference('average')
    return Recording(
        raw,
        {
            'onset': np.zeros(1),
            'duration': np.full(1, SECONDS),
            'type': np.array(['Stimulus']),
            'label': np.array([labels[k]]),
        },
    )
