"""A short film with music and speech in turn, watched by 51 people with electrodes in or on the brain, in BIDS.

What the host has (OpenNeuroDatasets/ds003688@5b2cb4f, release 1.0.7): BrainVision at 512, 2000 or 2048 Hz, contacts as
ECOG and SEEG in channels.tsv, places in each person's own scan (ACPC, mm), thirteen blocks of half a minute in
events.tsv. Three people were recorded by a second, denser grid at the same time (`acq-HDgrid`): left out, as are rest
and the recordings in the scanner.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

DATASETS = (
    Dataset(
        name='Berezutskaya2022Open',
        title='A short film of music and speech in turn, with electrodes in or on the brain',
        source=__name__,
        device='ieeg',
        n_subjects=51,
        n_recordings=51,
        n_chans=173,
        sfreq=(512.0, 2000.0, 2048.0),
        event_types=('Block',),
        n_events=13,
        amplitude=(1e-6, 2e-3),
        licence='CC0-1.0',
        citation='Berezutskaya et al. (2022), Scientific Data 9, 91',
        host='openneuro.org/datasets/ds003688/versions/1.0.7',
        layout='participants.tsv, sub-<NN>/ses-iemu/ieeg/sub-<NN>_ses-iemu_task-film_acq-clinical_run-1_ieeg.vhdr with '
        'channels, electrodes, coordsystem and events beside it',
        download=Download(
            url='openneuro:ds003688',
            files='participants.tsv|dataset_description.json|sub-*/ses-iemu/ieeg/*_electrodes.tsv|'
            'sub-*/ses-iemu/ieeg/*_coordsystem.json|sub-*/ses-iemu/ieeg/*_task-film_*',
            without='*acq-HDgrid*',
        ),
        doi='10.18112/openneuro.ds003688.v1.0.7',
        revision='1.0.7',
        aliases=('ds003688',),
    ),
)
KINDS = ('music', 'speech')


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a person, of the clinical electrodes during the film."""
    found = bids.recordings(dataset, root)
    return [r for r in found if dict(r.fields)['task'] == 'film' and 'HDgrid' not in r.run]


def read(ref: RecordingRef) -> Recording | Finding:
    """Contacts in volts, with places in the person's own scan (m). Events `Block`, music or speech (`label`), numbered
    from 0 (`block`)."""
    import numpy as np

    raw = bids.read(ref)
    if isinstance(raw, Finding):
        return raw
    path = bids.sidecar(ref, 'events.tsv')
    if path is None:
        rule = 'a table of events must lie beside the recording'
        return Finding(ref.where, rule, 'none', 'events.tsv', 'fetch it')
    found = bids.events(path, raw, needed=('trial_type',))
    if isinstance(found, Finding):
        return found
    kept = np.isin(found['trial_type'], KINDS)
    n = int(kept.sum())
    return Recording(
        raw.set_annotations(None),
        {
            'onset': found['onset'][kept],
            'duration': found['duration'][kept],
            'type': np.full(n, 'Block'),
            'label': found['trial_type'][kept],
            'block': np.array([str(k) for k in range(n)], str),
        },
    )
