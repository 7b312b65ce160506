"""The copies of the Healthy Brain Network that the EEG Challenge 2025 was run on: 0.5 to 50 Hz, at 100 Hz, in BIDS.

Not equal to the originals (hbn.py), filtered and resampled by EEGLAB; signals stay as they are, with the flat reference
Cz. Each release is a folder, whole (R5_L100_bdf) or its twenty people (R5_mini_L100_bdf); BDF or SET.

Trials of the contrast change task are those of the competition's own code: a trial lasts from `contrastTrial_start` to
the next one, the last one to `end_experiment` (else it is left out); the stimulus is the first target in it, the
response the first press from then on, right or wrong. Where a window of these trials would run off the file, that
code fails, and participants drop the recording: its trials are left out here (PAST_END), and every result says of how
many recordings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data import marks
from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.sources import hbn
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import numpy as np


def _copy(name: str, title: str, n_subjects: int, n_recordings: int, files: str) -> Dataset:
    return Dataset(
        name=name,
        title=title,
        source=__name__,
        n_subjects=n_subjects,
        n_recordings=n_recordings,
        n_chans=129,
        sfreq=(100.0,),
        event_types=('Eeg',),
        licence='CC-BY-SA-4.0',
        citation='Shirazi et al. (2024), bioRxiv; Aristimunha et al. (2025), arXiv:2506.19141',
        host='s3://nmdatasets/NeurIPS25',
        layout='<release>/participants.tsv, <release>/sub-<id>/eeg/sub-<id>_task-<task>[_run-<n>]_eeg.bdf (or .set), '
        f'where <release> is {files.partition("|")[0]} as its host calls them',
        download=Download(url='s3://nmdatasets/NeurIPS25/', files=files),
    )


WHOLE = True
FULL = _copy(
    'Shirazi2024HbnL100',
    'Rest, films and tasks of children and young people, at 100 Hz (EEG Challenge 2025)',
    3146,
    26615,
    'R[0-9]_L100_bdf/*|R1[01]_L100_bdf/*',
)
MINI = _copy(
    'Shirazi2024HbnL100Mini',
    'The same of twenty people of each release (EEG Challenge 2025)',
    220,
    1861,  # as many of each as in the whole set; nobody counted them
    'R[0-9]_mini_L100_bdf/*|R1[01]_mini_L100_bdf/*',
)
DATASETS = (FULL, MINI)
TESTED = 5  # the release that the local scorer scores: it leaves nobody out, and training the nine of hbn.LEFT_OUT
END = 'end_experiment'
PAST_END = 2.5  # s from a stimulus that must lie inside the file


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by release (R1 first), subject and task, with the fields of hbn.py."""
    refs = []
    folders = {p: _release(p.name, dataset) for p in root.iterdir() if p.is_dir()}
    for folder, number in sorted(folders.items(), key=lambda pair: (pair[1], pair[0].name)):
        for ref in bids.recordings(dataset, folder, hbn.PEOPLE) if number else ():
            (_, task), *people = ref.fields
            fields = (('release', f'R{number}'), ('task', f'task-{task}'), *people)
            if number == TESTED or ref.subject not in hbn.LEFT_OUT:
                refs.append(ref._replace(fields=fields))
    return refs


def _release(name: str, dataset: Dataset) -> int:
    """The number of a release of the dataset from the name of its folder, 0 for none: R1_L100_bdf, R1_mini_L100."""
    mini = '_mini' if dataset.name == MINI.name else ''
    found = re.fullmatch(rf'R(\d+){mini}_L100(_bdf)?', name)
    return int(found[1]) if found else 0


def read(ref: RecordingRef) -> Recording | Finding:
    """129 channels in volts. Of the contrast change task also events `Stimulus`, one a trial with a stimulus and a
    response, with its `reaction_time` (s)."""
    import numpy as np

    raw = bids.read(ref)
    if isinstance(raw, Finding):
        return raw
    raw.set_annotations(None)
    none = {'onset': np.zeros(0), 'duration': np.zeros(0), 'type': np.zeros(0, 'U8'), 'reaction_time': np.zeros(0)}
    if dict(ref.fields)['task'] != 'task-contrastChangeDetection':
        return Recording(raw, none)
    path = bids.sidecar(ref, 'events.tsv')
    if path is None:
        rule, expected = 'a table of events must lie beside the recording', 'events.tsv'
        return Finding(ref.where, rule, 'none', expected, 'fetch it')
    found = bids.events(path, None, needed=('value',))  # a file may be cut off: that is no other unit
    if isinstance(found, Finding):
        return found
    onset, reaction = trials(found['onset'], found['value'])
    if len(onset) and onset.max() + PAST_END > raw.n_times / raw.info['sfreq'] + 1e-9:
        past = {'onset': np.zeros(1), 'duration': np.zeros(1), 'type': np.array([marks.PAST])}
        return Recording(raw, {**past, 'reaction_time': np.full(1, np.nan)})
    kinds = np.full(len(onset), 'Stimulus')
    return Recording(raw, {'onset': onset, 'duration': np.zeros(len(onset)), 'type': kinds, 'reaction_time': reaction})


def trials(onset: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stimuli and reaction times of the trials that have both, s: float64 [n] each.

    Args:
        onset: of all events, s.
        value: what they are, text.
    """
    import numpy as np

    order = np.argsort(onset, kind='stable')
    onset, value = onset[order], value[order]
    starts = onset[value == hbn.START]
    target, press = onset[np.isin(value, hbn.TARGETS)], onset[np.isin(value, hbn.PRESSES)]
    last = onset[value == END]
    last = last[last > starts[-1]] if len(starts) else last
    stops = [*starts[1:], *last[:1]]
    found = []
    for start, stop in zip(starts, stops, strict=False):  # the last one without an end is left out
        stimuli = target[(target >= start) & (target < stop)]
        presses = press[(press >= stimuli[0]) & (press < stop)] if len(stimuli) else stimuli
        if len(presses):
            found.append((stimuli[0], presses[0] - stimuli[0]))
    table = np.array(found, np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
