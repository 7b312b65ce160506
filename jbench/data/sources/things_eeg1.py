"""1854 concepts of THINGS in rapid succession (THINGS-EEG1, Grootswagers et al. 2022), in BIDS.

Traps of the files: onsets and durations are samples of 1000 Hz, where BIDS asks for seconds; the paths of pictures have
the separators of Windows for some people; the last two people wear 127 electrodes, all others 63.
"""

from __future__ import annotations

import re
from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

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
        layout='sub-<NN>/eeg/sub-<NN>_task-rsvp_{eeg.vhdr,eeg.eeg,eeg.vmrk,events.tsv}, test_images.csv, and '
        'images/<concept>/<picture>.jpg (images_THINGS.zip of osf.io/jum2f; only encoders read them)',
        download=Download(url='openneuro:ds003825', without='derivatives/*'),
        aliases=('THINGS-EEG1',),
    ),
)
UNIT = 1e-3  # s, of onsets and durations
PICTURE = re.compile(r'[^/]+/[^/]+\.\w+')  # concept and file


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a person, with the list of test pictures as the last file."""
    found = bids.recordings(dataset, root)
    return [ref._replace(files=(*ref.files, str(root / 'test_images.csv'))) for ref in found]


def read(ref: RecordingRef) -> Recording | Finding:
    """The signal in volts. Events `Image` with `filepath` (below the folder of the dataset), `concept`, and `split`:
    test for pictures of the list, train for all others."""
    import numpy as np

    listed, raw, table = Path(ref.files[-1]), bids.read(ref), bids.sidecar(ref, 'events.tsv')
    if isinstance(raw, Finding):
        return raw
    if table is None or not listed.exists():
        absent = listed.name if table else 'events.tsv'
        rule, remedy = 'events and the list of test pictures must lie with the recording', 'fetch it'
        return Finding(ref.where, rule, f'no {absent}', absent, remedy)
    events = bids.events(table, raw, unit=UNIT, needed=('stim',))
    if isinstance(events, Finding):
        return events
    shown = ['/'.join(stim.replace('\\', '/').split('/')[-2:]) for stim in events['stim']]
    if unexpected := [stim for stim in shown if not re.fullmatch('[^/]+/[^/]+', stim)]:
        rule, found = 'each event must name its picture', unexpected[0] or 'n/a'
        return Finding(str(table), rule, found, '<concept>/<picture>.jpg at the end of stim', bids.AGAIN)
    lines = listed.read_text(encoding='utf-8-sig', errors='replace').splitlines()
    test = {name for line in lines if PICTURE.fullmatch(name := line.partition(',')[0].strip())}
    if not test:
        rule, found = 'the list must name the test pictures', lines[0][:60] if lines else 'an empty file'
        return Finding(str(listed), rule, found, 'lines that begin with <concept>/<picture>.jpg', 'fetch it again')
    return Recording(
        raw.set_annotations(None),
        {
            **{name: events[name] for name in ('onset', 'duration')},
            'type': np.full(len(shown), 'Image'),
            'filepath': np.array([f'images/{name}' for name in shown]),
            'concept': np.array([name.partition('/')[0] for name in shown]),
            'split': np.array(['test' if name in test else 'train' for name in shown]),
        },
    )
