"""Mental commands with two interfaces (PROTEUS, Inria Bordeaux): the public recordings of track 2 of the EEG/EMG
Foundation Challenge 2026, in BIDS.

Traps of the files: runs are numbered in the order in which they were recorded, and their names sort otherwise; the
recordings are coupled to DC, so that offsets and drifts of millivolts are in them; `BAD_ACQ_SKIP` marks what fills the
last second of a file; baseline runs have no cues, and no table of events where nothing happened; no electrode has a
measured place.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

WHOLE = True
DATASETS = (
    Dataset(
        name='Dreyer2026Proteus',
        title='Motor imagery, mental subtraction and word generation with two interfaces (PROTEUS)',
        source=__name__,
        n_subjects=10,
        n_recordings=112,
        n_chans=41,
        sfreq=(500.0,),
        event_id=(('mi', 0), ('sub', 1), ('word', 2)),
        event_types=('Eeg',),  # baselines hold no other
        amplitude=(0.5e-6, 0.05),  # coupled to DC
        licence='CC-BY-4.0',
        citation='Dreyer et al. (2026), NEMAR nm000290',
        host='nemar.org, nm000290',
        layout='sub-P<NN>/ses-<N>/eeg/sub-P<NN>_ses-<N>_task-<task>_run-<N>_eeg.edf with ..._events.tsv beside it',
        download=Download(url='nemar:nm000290/latest'),
        doi='10.82901/nemar.nm000290',
        aliases=('proteus', 'nm000290'),
    ),
)
CODES = {'mi': 0, 'sub': 1, 'word': 2}
INTERFACES = {  # of the runs
    'AcquisitionBH': 'BrainHero',
    'OnlineRawBH': 'BrainHero',
    'AcquisitionGraz': 'Graz',
    'OnlineRawGraz': 'Graz',
}
SKIPPED = 'BAD_ACQ_SKIP'


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by subject, session and the number of the run. Fields: `task`, and `interface` ('' of baselines)."""
    refs = []
    for ref in bids.recordings(dataset, root):
        task = dict(ref.fields)['task']
        refs.append(ref._replace(fields=(('task', task), ('interface', INTERFACES.get(task, '')))))
    return sorted(refs, key=lambda ref: (ref.subject, ref.session, _number(ref.run), ref.run))


def _number(run: str) -> int:
    """Of OnlineRawBH_5."""
    number = run.rpartition('_')[2]
    return int(number) if number.isdecimal() else 0


def read(ref: RecordingRef) -> Recording | Finding:
    """41 channels in volts. Events `Stimulus`, from the cue to the end of the trial, with `code` and `label`."""
    import numpy as np

    raw = bids.read(ref)
    if isinstance(raw, Finding):
        return raw
    others = [k for k, what in enumerate(raw.annotations.description) if what != SKIPPED]
    raw.annotations.delete(others)
    raw.set_montage('standard_1020', on_missing='ignore')
    none = {'onset': np.zeros(0), 'duration': np.zeros(0), 'type': np.zeros(0, 'U8'), 'code': np.zeros(0, int)}
    table = bids.sidecar(ref, 'events.tsv')
    if table is None:
        if not dict(ref.fields)['interface']:
            return Recording(raw, none | {'label': np.zeros(0, 'U4')})
        rule = 'a table of events must lie beside the recording'
        return Finding(ref.where, rule, 'none', 'events.tsv', 'fetch it')
    events = bids.events(table, raw, needed=('trial_type',))
    if isinstance(events, Finding):
        return events
    cues = np.isin(events['trial_type'], list(CODES))
    if cues.any() and not dict(ref.fields)['interface']:
        rule, expected = 'a run with cues must be of a known interface', ', '.join(INTERFACES)
        return Finding(ref.where, rule, dict(ref.fields)['task'], expected, 'correct its name, or add it to INTERFACES')
    label = events['trial_type'][cues]
    return Recording(
        raw,
        {
            'onset': events['onset'][cues],
            'duration': events['duration'][cues],
            'type': np.full(len(label), 'Stimulus'),
            'code': np.array([CODES[str(name)] for name in label], int),
            'label': label,
        },
    )
