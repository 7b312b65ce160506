"""Workload (COG-BCI), errors of a robot (IntEr-HRI), pictures and tones (the sample of MNE-Python).

Traps of COG-BCI: some archives hold the folder of their subject once more; codes are explained in `triggerlist.txt`,
and some are not; of the last subjects nobody measured where the electrodes were. `task` is a field of the recording.

Traps of IntEr-HRI: beside the runs lie others without errors (`baseline`), and some of a run whose number was used
again (`additional sets`); the first run of AW59D is left out, as published: artefacts. An error that is not followed
by the squeeze of a ball was not seen, and a squeeze without an error was none.

Traps of the sample: its samples count from before the file begins; one electrode is marked as bad, and is kept.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne

COG_BCI = Dataset(
    name='Hinss2023Open',
    title='Multitasking at three levels of difficulty, and other tasks (COG-BCI)',
    source=__name__,
    n_subjects=29,
    n_recordings=696,
    n_chans=62,
    sfreq=(500.0,),
    seconds=612.1,
    licence='CC-BY-4.0',
    citation='Hinss et al. (2023), Scientific Data 10, 85',
    host='zenodo.org/records/7413650',
    layout='(sub-<NN>/)sub-<NN>/ses-S<N>/eeg/<task>.{set,fdt} (of sub-<NN>.zip), triggerlist.txt',
    download=Download(url='zenodo:7413650', unpack='*'),
    aliases=('COG-BCI',),
)
ROBOT = Dataset(
    name='Kueper2024Eeg',
    title='Errors of an orthosis that moves the arm (IntEr-HRI)',
    source=__name__,
    n_subjects=8,
    n_recordings=82,
    n_chans=64,
    sfreq=(500.0,),
    seconds=322.5,
    event_types=('Action', 'Stimulus'),
    licence='CC-BY-4.0',
    citation='Kueper et al. (2024), Front. Hum. Neurosci. 18',
    host='zenodo.org/records/8345429',
    layout='EEG/<subject>/data/(additional sets/)<day>_<subject>_orthosisErrorIjcai_multi_set<N>.{vhdr,vmrk,eeg}',
    download=Download(url='zenodo:8345429', files='EEG*', unpack='*'),
    aliases=('IntEr-HRI', 'kueper2024'),
)
SAMPLE = Dataset(
    name='Mne2013SampleEeg',
    title='Tones and checkerboards, left and right (sample of MNE-Python)',
    source=__name__,
    n_subjects=1,
    n_recordings=1,
    n_chans=60,
    sfreq=(150.15,),
    seconds=277.7,
    licence='not stated',
    citation='Gramfort et al. (2013), Front. Neurosci. 7, 267',
    host='mne.tools/stable/documentation/datasets.html#sample',
    layout='MNE-sample-data/MEG/sample/sample_audvis_filt-0-40_raw.fif',
    download=Download(url='osf:files/86qa2', unpack='MNE-sample-data/MEG/sample/*'),
)
DATASETS = (COG_BCI, ROBOT, SAMPLE)
TASKS = ('PVT', 'Flanker', 'twoBACK', 'oneBACK', 'zeroBACK', 'MATBeasy', 'MATBmed', 'MATBdiff')
ROBOT_EVENTS = {  # trigger: type, label
    1: ('Event', 'emg_sync'),
    32: ('Action', 'extension'),
    48: ('Stimulus', 'mid_movement'),
    64: ('Action', 'flexion'),
    80: ('Action', 'button_press'),
    96: ('Stimulus', 'error'),
}
UNKNOWN = 16  # a trigger that nobody explains
NOISY = ('AW59D', '1')
SAMPLE_LABELS = ('left_audio', 'right_audio', 'left_visual', 'right_visual')  # of the triggers from 1


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References in the published order."""
    if dataset.name == SAMPLE.name:
        path = root / SAMPLE.layout
        return [RecordingRef(dataset.name, 'sample', '0', '0', (str(path),))] if path.exists() else []
    return _of_robot(dataset, root) if dataset.name == ROBOT.name else _of_cog_bci(dataset, root)


def _of_cog_bci(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """By subject, task and session."""
    refs = []
    files = [p for p in root.glob('**/sub-[0-9][0-9]/ses-S[1-3]/eeg/*.set') if p.stem in TASKS]
    for path in sorted(files, key=lambda p: (p.parts[-4], TASKS.index(p.stem), p.parts[-3])):
        others = (str(root / 'triggerlist.txt'), *map(str, path.parent.glob('chanlocs/get_chanlocs.txt')))
        subject, session = path.parts[-4:-2]
        refs.append(
            RecordingRef(dataset.name, subject, session, path.stem, (str(path), *others), (('task', path.stem),))
        )
    return refs


def _of_robot(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """By subject and number of the run, additional ones last."""
    found = []
    for path in root.rglob('*_orthosisErrorIjcai_multi_set*.vhdr'):
        number = re.fullmatch(r'\d+_(\w+)_orthosisErrorIjcai_multi_set(\d+)', path.stem)
        if number and number.groups() != NOISY:
            found.append((number[1], path.parent.name == 'additional sets', int(number[2]), str(path)))
    return [RecordingRef(dataset.name, subject, '0', str(run), (path,)) for subject, _, run, path in sorted(found)]


def read(ref: RecordingRef) -> Recording | Finding:
    """A recording in volts, with events as its set has them; `label` says what happened."""
    reader = {COG_BCI.name: _read_cog_bci, ROBOT.name: _read_robot, SAMPLE.name: _read_sample}[ref.dataset]
    return reader(ref)


def _read_cog_bci(ref: RecordingRef) -> Recording | Finding:
    """Events `Stimulus` with `code`, and `label` as the list of triggers explains it (else the code)."""
    import mne
    import numpy as np

    with open(ref.files[1], newline='', encoding='utf-8-sig') as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    if any(row.get('code') is None or row.get('content') is None for row in rows) or not rows:
        rule, found = 'the list must explain codes', ', '.join(rows[0]) if rows else 'nothing'
        return Finding(ref.files[1], rule, found, 'code, content', 'fetch it again')
    explained = {row['code'].strip(): row['content'].strip() for row in rows}
    raw = mne.io.read_raw_eeglab(ref.files[0])
    raw.set_channel_types({c: 'ecg' for c in raw.ch_names if c == 'ECG1'})
    if len(ref.files) > 2:
        raw.set_montage(_places(ref.files[2]), on_missing='ignore')
    marks = raw.annotations
    codes = [str(d).strip() for d in marks.description]
    events = {
        'onset': np.array(marks.onset, float),
        'duration': np.array(marks.duration, float),
        'type': np.full(len(marks), 'Stimulus'),
        'code': np.array(codes, dtype=str),
        'label': np.array([explained.get(code, code) for code in codes], dtype=str),
    }
    return Recording(raw.set_annotations(None), events)


def _places(path: str) -> mne.channels.DigMontage:
    """Where the electrodes were: lines of name, x, y, z, with nasion (nas) and ears (lhj, rhj)."""
    import mne
    import numpy as np

    lines = [line.split() for line in Path(path).read_text().splitlines() if line.strip()]
    place = {name: np.array([float(v) for v in xyz]) for name, *xyz in lines if name != 'ECG1'}
    nasion, left, right = (place.pop(name) for name in ('nas', 'lhj', 'rhj'))
    return mne.channels.make_dig_montage(place, nasion=nasion, lpa=left, rpa=right)


def _read_robot(ref: RecordingRef) -> Recording | Finding:
    """Events with `code`: of stimuli 0 (the arm moves on), 1 (an error that was seen), 2 (one that was not); of a
    squeeze without an error 3."""
    import mne
    import numpy as np

    bad = bids.check_signal(ref.files[0])
    if bad:
        return bad
    raw = mne.io.read_raw_brainvision(ref.files[0])
    raw.set_montage('brainproducts-RNP-BA-128', match_case=False, on_missing='ignore')
    found = [(float(a['onset']), re.fullmatch(r'Stimulus/S\s*(\d+)', str(a['description']))) for a in raw.annotations]
    marks = [(onset, int(name[1])) for onset, name in found if name and int(name[1]) != UNKNOWN]
    unexpected = sorted({code for _, code in marks} - set(ROBOT_EVENTS))
    if unexpected:
        rule, expected = 'triggers must be known', ', '.join(map(str, sorted(ROBOT_EVENTS)))
        return Finding(ref.where, rule, ', '.join(map(str, unexpected)), expected, 'use the original file')
    kinds, labels = ([ROBOT_EVENTS[code][k] for _, code in marks] for k in (0, 1))
    codes = [{'mid_movement': '0', 'error': '1'}.get(label, '') for label in labels]
    for k, label in enumerate(labels):
        if label == 'error' and labels[k + 1 : k + 2] != ['button_press']:
            codes[k] = '2'
        if label == 'button_press' and labels[max(0, k - 1) : k] != ['error']:
            codes[k] = '3'
    events = {
        'onset': np.array([onset for onset, _ in marks]),
        'duration': np.zeros(len(marks)),
        'type': np.array(kinds, dtype=str),
        'label': np.array(labels, dtype=str),
        'code': np.array(codes, dtype=str),
    }
    return Recording(raw.set_annotations(None), events)


def _read_sample(ref: RecordingRef) -> Recording | Finding:
    """Events `Stimulus` with `label` and `code` (from 0); other triggers (a face, a button) are left out."""
    import mne
    import numpy as np

    raw = mne.io.read_raw_fif(ref.files[0])
    found = mne.find_events(raw, stim_channel='STI 014', verbose=False)
    samples, codes = found[found[:, 2] <= len(SAMPLE_LABELS)][:, [0, 2]].T
    sfreq = float(raw.info['sfreq'])
    events = {
        'onset': (samples - raw.first_samp) / sfreq,
        'duration': np.full(len(samples), 1 / sfreq),
        'type': np.full(len(samples), 'Stimulus'),
        'label': np.array([SAMPLE_LABELS[c - 1] for c in codes], dtype=str),
        'code': codes - 1,
    }
    return Recording(raw.pick(['eeg', 'eog', 'stim']), events)
