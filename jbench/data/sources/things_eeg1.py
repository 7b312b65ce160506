"""1854 concepts of THINGS in rapid succession (THINGS-EEG1, Grootswagers et al. 2022), in BIDS.

Traps of the files: onsets and durations are samples of 1000 Hz, where BIDS asks for seconds; the paths of pictures have
the separators of Windows; the last two people wear 127 electrodes, all others 63. The 200 test pictures were shown in
sequences of their own, at the end: `isteststim` is 1 there. Two people did not come so far: of sub-06 it is 0
throughout, and sub-01 lacks the column. The list of test pictures that the published reader asks for
(`test_images.csv`) is in no version of the dataset; without it that reader has no test part.
"""

from __future__ import annotations

import re
from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

WHOLE = True
DATASETS = (
    Dataset(
        name='Grootswagers2022Human',
        title='1854 concepts of THINGS in rapid succession (THINGS-EEG1)',
        source=__name__,
        n_subjects=50,
        n_recordings=50,
        n_chans=63,
        sfreq=(1000.0,),
        seconds=3035.7,
        event_types=('Image',),
        licence='CC0-1.0',
        citation='Grootswagers et al. (2022), Scientific Data 9, 3',
        host='openneuro.org/datasets/ds003825/versions/1.2.0',
        layout='sub-<NN>/eeg/sub-<NN>_task-rsvp_{eeg.vhdr,eeg.eeg,eeg.vmrk,events.tsv}, and '
        'images/<concept>/<picture>.jpg (images_THINGS.zip of osf.io/jum2f; only encoders read them)',
        download=Download(url='openneuro:ds003825', without='derivatives/*'),
        aliases=('THINGS-EEG1',),
    ),
)
UNIT = 1e-3  # s, of onsets and durations
PARTS = {'0': 'train', '1': 'test'}  # by `isteststim`


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a person."""
    return bids.recordings(dataset, root)


def read(ref: RecordingRef) -> Recording | Finding:
    """The signal in volts. Events `Image` with `filepath` (below the folder of the dataset), `concept`, and `split`:
    test for pictures of the sequences at the end, train for all others."""
    import numpy as np

    raw, table = bids.read(ref), bids.sidecar(ref, 'events.tsv')
    if isinstance(raw, Finding):
        return raw
    if table is None:
        rule = 'a table of events must lie beside the recording'
        return Finding(ref.where, rule, 'none', 'events.tsv', 'fetch it')
    events = bids.events(table, raw, unit=UNIT, needed=('stim',))
    if isinstance(events, Finding):
        return events
    shown = ['/'.join(stim.replace('\\', '/').split('/')[-2:]) for stim in events['stim']]
    if unexpected := [stim for stim in shown if not re.fullmatch('[^/]+/[^/]+', stim)]:
        rule, found = 'each event must name its picture', unexpected[0] or 'n/a'
        return Finding(str(table), rule, found, '<concept>/<picture>.jpg at the end of stim', bids.AGAIN)
    part = events.get('isteststim', np.full(len(shown), '0')).tolist()
    if odd := sorted({value for value in part if value not in PARTS}):
        rule = 'isteststim must tell the test pictures'
        return Finding(str(table), rule, ', '.join(value or 'n/a' for value in odd), '0 or 1', bids.AGAIN)
    return Recording(
        raw.set_annotations(None),
        {
            **{name: events[name] for name in ('onset', 'duration')},
            'type': np.full(len(shown), 'Image'),
            'filepath': np.array([f'images/{name}' for name in shown]),
            'concept': np.array([name.partition('/')[0] for name in shown]),
            'split': np.array([PARTS[value] for value in part]),
        },
    )
