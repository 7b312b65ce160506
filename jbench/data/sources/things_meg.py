"""Pictures of THINGS in MEG (THINGS-MEG1, Hebart et al. 2023), in BIDS.

Traps of the files: `events.tsv` has its onsets some 150 ms late, so they are the triggers of the channel UPPT001 (64 a
picture, and 32 at the end of a run); which picture each one is stands in a table a person; a picture of the test part
lies in no folder of its concept, which its name tells; catch trials, which show no picture of THINGS, are left out.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset

WHOLE = True
DATASETS = (
    Dataset(
        name='Hebart2023ThingsMeg',
        title='Pictures of THINGS in MEG (THINGS-MEG1)',
        source=__name__,
        device='meg',
        n_subjects=4,
        n_recordings=480,
        n_chans=300,
        sfreq=(1200.0,),
        seconds=348.0,
        event_types=('Image',),
        amplitude=(1e-14, 1e-10),  # T
        licence='CC-BY C0',
        citation='Hebart et al. (2023), eLife 12, e82580',
        host='openneuro.org/datasets/ds004212/versions/2.0.0',
        layout='sub-BIGMEG<N>/ses-<NN>/meg/sub-BIGMEG<N>_ses-<NN>_task-main_run-<NN>_meg.ds/, '
        'sourcedata/sample_attributes_P<N>.csv, and images/<concept>/<picture>.jpg (images_THINGS.zip of osf.io/jum2f; '
        'only encoders read them)',
        access='agreement: accept the licence of the THINGS images, which gives the password of their archive',
        aliases=('THINGS-MEG1',),
    ),
)
PICTURE, END = 64, 32  # triggers
COLUMNS = ('trial_type', 'session_nr', 'run_nr', 'image_path', 'image_on', 'image_off')


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a run, by person and session, with the table of the person's pictures as the last file."""
    refs = [r for r in bids.recordings(dataset, root) if dict(r.fields)['task'] == 'main']
    tables = {r.subject: f'sample_attributes_P{r.subject.removeprefix("BIGMEG")}.csv' for r in refs}
    return [r._replace(files=(*r.files, str(root / 'sourcedata' / tables[r.subject]))) for r in refs]


def read(ref: RecordingRef) -> Recording | Finding:
    """The signal in tesla. Events `Image` with `filepath` (below the folder of the dataset), `concept` and `split`."""
    import mne
    import numpy as np

    pictures, raw = _pictures(ref), bids.read(ref)
    if isinstance(pictures, Finding) or isinstance(raw, Finding):
        return pictures if isinstance(pictures, Finding) else raw
    marks = mne.find_events(raw, stim_channel='UPPT001', verbose=False)
    expected = [PICTURE] * len(pictures) + [END]
    if marks[:, 2].tolist() != expected:
        rule, codes = 'there must be a trigger for each picture of the table', marks[:, 2]
        found = f'{(codes == PICTURE).sum()} of {PICTURE}, {(codes != PICTURE).sum()} others'
        wanted, remedy = f'{len(pictures)} of {PICTURE} and one of {END}', 'use the original files'
        return Finding(ref.where, rule, found, wanted, remedy)
    kept = [k for k, (path, _, _) in enumerate(pictures) if not path.startswith('images_catch_meg')]
    files = [pictures[k][0].rpartition('/')[2] for k in kept]
    concepts = [name.rpartition('_')[0] for name in files]
    return Recording(
        raw.set_annotations(None),
        {
            'onset': (marks[kept, 0] - raw.first_samp) / raw.info['sfreq'],
            'duration': np.array([pictures[k][2] for k in kept]),
            'type': np.full(len(kept), 'Image'),
            'filepath': np.array([f'images/{c}/{name}' for c, name in zip(concepts, files, strict=True)]),
            'concept': np.array(concepts),
            'split': np.array(['test' if pictures[k][1] == 'test' else 'train' for k in kept]),
        },
    )


def _pictures(ref: RecordingRef) -> list[tuple[str, str, float]] | Finding:
    """Path, kind of trial and seconds of each picture of a run, in order."""
    path, run = Path(ref.files[-1]), ref.run.rpartition('_')[2]
    try:
        found = bids.table(path)
        rows = zip(*(found[name] for name in COLUMNS), strict=True)
        return [
            (picture, kind, float(off) - float(on))
            for kind, session, number, picture, on, off in rows
            if int(float(session)) == int(ref.session) and int(float(number)) == int(run)
        ]
    except (OSError, KeyError, ValueError) as error:
        rule = 'the table of pictures must lie in sourcedata'
        return Finding(str(path), rule, f'{type(error).__name__}: {error}', ', '.join(COLUMNS), 'fetch it again')
