"""Days of children with epilepsy (CHB-MIT in BIDS, Dan and Shoeb 2023): 18 pairs of electrodes, and their seizures.

Person 21 of the original is the second session of person 1. A row of a table of events is a seizure, whose kind begins
with `sz`, or the background, which is left out: what overlaps no seizure is background anyway.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

WHOLE = True
DATASETS = (
    Dataset(
        name='Dan2023Bids',
        title='Days of children with epilepsy, with seizures (CHB-MIT in BIDS)',
        source=__name__,
        n_subjects=23,
        n_recordings=686,
        n_chans=18,
        sfreq=(256.0,),
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        seconds=3600.0,
        event_types=('Eeg',),
        licence='ODC-By-1.0',
        citation='Dan and Shoeb (2023), EPFL',
        host='zenodo.org/records/10259996',
        layout='BIDS_CHB-MIT/sub-<NN>/ses-<NN>/eeg/sub-<NN>_ses-<NN>_task-szMonitoring_run-<NN>_{eeg.edf,events.tsv} '
        '(unpack BIDS_CHB-MIT.zip)',
        download=Download(url='zenodo:10259996', unpack='*'),
        aliases=('CHB-MIT',),
    ),
)
KINDS = {'sz': 'seiz', 'bckg': ''}  # what an event type begins with, and the `state` that it is


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file, by person, session and run."""
    return bids.recordings(dataset, root / 'BIDS_CHB-MIT')


def read(ref: RecordingRef) -> Recording | Finding:
    """Pairs in volts, named as in the 10-05 system (Fp1-F7). Events `Seizure` with `state` seiz, of whatever kind."""
    import numpy as np

    raw, table = bids.read(ref), bids.sidecar(ref, 'events.tsv')
    if isinstance(raw, Finding):
        return raw
    if table is None:
        rule, expected = 'a table of events must lie beside the recording', 'events.tsv'
        return Finding(ref.where, rule, 'none', expected, 'fetch it: without it nobody knows where seizures are')
    events = bids.events(table, raw, needed=('eventType',))
    if isinstance(events, Finding):
        return events
    state = [next((v for k, v in KINDS.items() if t.startswith(k)), None) for t in events['eventType'].tolist()]
    if None in state:
        found = str(events['eventType'][state.index(None)])
        return Finding(str(table), 'kinds of events must be known', found, 'sz..., bckg', 'use the original file')
    raw.rename_channels(lambda name: name.replace('FP', 'Fp').replace('Z', 'z'))
    kept = np.array([s == 'seiz' for s in state], bool)
    return Recording(
        raw.set_annotations(None),
        {
            'onset': events['onset'][kept],
            'duration': events['duration'][kept],
            'type': np.full(kept.sum(), 'Seizure'),
            'state': np.full(kept.sum(), 'seiz'),
        },
    )
