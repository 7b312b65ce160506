"""Patients and healthy people: schizophrenia, Parkinson, dementia, depression. The label of a recording is in the field
`diagnosis`.

Traps: the samples of Albrecht2019Increased are microvolts, and its electrodes stand in a file for all; people of
Singh2021Timing who were recorded twice have two numbers (the published reader reads nine such files twice, which is not
done here); names of Mumtaz2018Machine have one space or two, and two of its files have the same name, so the numbers
of their host stand before it: as published, the second of them is read; Miltiadous2023Dice holds what it was made into
under `derivatives`, which is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne

WHOLE = True
DATASETS = (
    Dataset(
        name='Albrecht2019Increased',
        title='Learning of people with schizophrenia and of healthy ones',
        source=__name__,
        n_subjects=77,
        n_recordings=77,
        n_chans=62,
        sfreq=(1000.0,),
        seconds=1665.5,
        licence='PDDL-1.0',
        citation='Albrecht et al. (2019), Neuropsychologia 123, 131-140',
        host='huggingface.co/datasets/jalauer/Albrecht2019/tree/main',
        layout='data/CC_EEG_s<NNN>_{P,N}.mat, MMN_ElectrodeCoords_MA2.ced',
        download=Download(url='hf:datasets/jalauer/Albrecht2019'),
    ),
    Dataset(
        name='Singh2021Timing',
        title="Timing of people with Parkinson's disease and of healthy ones",
        source=__name__,
        n_subjects=129,
        n_recordings=129,
        n_chans=63,
        sfreq=(500.0,),
        seconds=1467.5,
        licence='PDDL-1.0',
        citation="Singh et al. (2021), npj Parkinson's Dis. 7, 14",
        host='huggingface.co/datasets/jalauer/Singh2021Timing/tree/main/data',
        layout='data/{Control,PD}<NNNN>.{vhdr,eeg,vmrk}',
        download=Download(url='hf:datasets/jalauer/Singh2021Timing'),
    ),
    Dataset(
        name='Miltiadous2023Dice',
        title='Rest of people with dementia and of healthy ones',
        source=__name__,
        n_subjects=88,
        n_recordings=88,
        n_chans=19,
        sfreq=(500.0,),
        seconds=599.8,
        event_types=('Eeg',),
        licence='CC0-1.0',
        citation='Miltiadous et al. (2023), IEEE Access 11, 71840-71858',
        host='openneuro.org/datasets/ds004504/',
        layout='participants.tsv, sub-<NNN>/eeg/sub-<NNN>_task-eyesclosed_eeg.set',
        download=Download(url='openneuro:ds004504', without='derivatives/*'),
    ),
    Dataset(
        name='Mumtaz2018Machine',
        title='Rest and oddball of people with depression and of healthy ones',
        source=__name__,
        n_subjects=64,
        n_recordings=180,
        n_chans=19,
        sfreq=(256.0,),
        seconds=605.0,
        event_types=('Eeg',),
        licence='CC-BY-4.0',
        citation='Mumtaz et al. (2018), Med. Biol. Eng. Comput. 56(2), 233-246',
        host='figshare.com/articles/dataset/EEG_Data_New/4244171',
        layout='{H,MDD} S<N> {EC,EO,TASK}.edf (of the two that are called H S15 EO.edf: 6921959_H S15 EO.edf)',
        download=Download(url='figshare:4244171', files='*.edf'),
    ),
)

ELECTRODES = 'MMN_ElectrodeCoords_MA2.ced'
DIAGNOSIS = {
    'Albrecht2019Increased': {'P': 'Schizophrenic', 'N': 'Control'},
    'Singh2021Timing': {'Control': 'Control', 'PD': 'PD'},
    'Miltiadous2023Dice': {'A': 'alzheimers', 'C': 'healthy', 'F': 'dementia'},
    'Mumtaz2018Machine': {'H': 'healthy', 'MDD': 'major_depressive_disorder'},
}
NAMES = {  # of a file below the folder: group and number of a person, and what was recorded
    'Albrecht2019Increased': re.compile(r'data/CC_EEG_s(?P<number>\d+)_(?P<group>[PN])\.mat'),
    'Singh2021Timing': re.compile(r'data/(?P<group>Control|PD)(?P<number>\d+)\.vhdr'),
    'Mumtaz2018Machine': re.compile(
        r'(?!6921143_)(?:\d+_)?(?P<group>H|MDD) S(?P<number>\d+) +(?P<task>TASK|EC|EO)\.edf'
    ),
}
TASKS = {'TASK': 'P300', 'EC': 'eyeclosed', 'EO': 'eyesopen'}  # of Mumtaz2018Machine, in the published order
SAME = {'Age': 'age', 'Gender': 'gender', 'Group': 'diagnosis', 'MMSE': 'mmse_score'}  # of Miltiadous2023Dice


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file, in the order of the published reader, which decides the split."""
    if dataset.name == 'Miltiadous2023Dice':
        return [_person(r) for r in bids.recordings(dataset, root, tuple(SAME))]
    groups, refs = DIAGNOSIS[dataset.name], []
    for path in sorted(p for folder in (root, root / 'data') for p in folder.glob('*.*')):
        found = NAMES[dataset.name].fullmatch(path.relative_to(root).as_posix())
        if found is None:
            continue
        group, number, task = found['group'], int(found['number']), found.groupdict().get('task', '')
        others = [ELECTRODES] if path.suffix == '.mat' else [p.name for p in path.parent.glob(f'{path.stem}.*')]
        files = (
            path,
            *((root if path.suffix == '.mat' else path.parent) / n for n in sorted(others) if n != path.name),
        )
        fields = (('diagnosis', groups[group]), *((('task', TASKS[task]),) if task else ()))
        ref = RecordingRef(dataset.name, f'{group}{number}', '0', TASKS.get(task, '0'), tuple(map(str, files)), fields)
        place = (number - 128) % 128 if path.suffix == '.mat' else number  # from 128 on first, as a set is iterated
        refs.append(((list(groups).index(group), place, [*TASKS, ''].index(task)), ref))
    return [ref for _, ref in sorted(refs)]


def _person(ref: RecordingRef) -> RecordingRef:
    """Its fields by the published names: diagnosis alzheimers, dementia or healthy; gender male or female."""
    words = {'diagnosis': DIAGNOSIS['Miltiadous2023Dice'], 'gender': {'F': 'female', 'M': 'male'}}
    named = [(SAME.get(k, k), v) for k, v in ref.fields]
    return ref._replace(fields=tuple((k, words.get(k, {}).get(v, v)) for k, v in named))


def read(ref: RecordingRef) -> Recording | Finding:
    """One recording in volts, its events `Stimulus` with `label`: those that its file marks."""
    return READ[ref.dataset](ref)


def _in_bids(ref: RecordingRef) -> Recording | Finding:
    """Rest, whose marks tell nothing."""
    raw = bids.read(ref)
    if not dict(ref.fields)['diagnosis']:
        rule, expected = 'participants.tsv must have a row for each person', f'sub-{ref.subject}'
        return Finding(ref.where, rule, 'none', expected, 'fetch participants.tsv again')
    return raw if isinstance(raw, Finding) else _recorded(raw.set_annotations(None))


def _recorded(raw: mne.io.BaseRaw) -> Recording:
    """With its annotations as events."""
    events = bids.annotated(raw)
    return Recording(raw.set_annotations(None), events)


def _brainvision(ref: RecordingRef) -> Recording | Finding:
    import mne

    return bids.check_signal(ref.files[0]) or _recorded(mne.io.read_raw_brainvision(ref.files[0]))


def _edf(ref: RecordingRef) -> Recording | Finding:
    """Electrodes by their names, without `EEG` and the reference `LE`; pairs and inputs of the amplifier are misc."""
    import mne

    bad = bids.check_signal(ref.files[0])
    if bad:
        return bad
    raw = mne.io.read_raw_edf(ref.files[0])
    raw.rename_channels(lambda name: name.replace('EEG ', '').replace('-LE', ''))
    raw.set_channel_types({c: 'misc' for c in ('A2-A1', '23A-23R', '24A-24R') if c in raw.ch_names})
    return _recorded(raw.set_montage('standard_1005', on_missing='ignore').set_annotations(None))


def _mat(ref: RecordingRef) -> Recording | Finding:
    """An EEGLAB structure: `data` in microvolts, `srate`, and `event` with 1-based samples; names in ELECTRODES."""
    import mne
    import numpy as np
    from scipy.io import loadmat

    content = loadmat(ref.files[0], simplify_cells=True, variable_names=['EEG'])['EEG']
    names, sfreq = bids.table(Path(ref.files[1]))['labels'], float(content['srate'])
    if len(names) != len(content['data']):
        rule, found = 'each channel must have a name', f'{len(content["data"])} channels'
        return Finding(ref.where, rule, found, f'{len(names)} as in {ELECTRODES}', 'use the original files')
    kinds = ['eog' if name.startswith('VEOG') else 'eeg' for name in names]
    raw = mne.io.RawArray(np.asarray(content['data'], float) * 1e-6, mne.create_info(names, sfreq, kinds))
    marks = [e for e in np.atleast_1d(content['event']) if e['code'] == 'Stimulus']
    events = {
        'onset': np.array([(float(e['latency']) - 1) / sfreq for e in marks]),
        'duration': np.array([float(e['duration'] or 0) / sfreq for e in marks]),
        'type': np.full(len(marks), 'Stimulus'),
        'label': np.array([str(e['type']).strip() for e in marks]),
    }
    return Recording(raw.set_montage('standard_1005', on_missing='ignore'), events)


READ: dict[str, Callable[[RecordingRef], Recording | Finding]] = {
    'Albrecht2019Increased': _mat,
    'Singh2021Timing': _brainvision,
    'Miltiadous2023Dice': _in_bids,
    'Mumtaz2018Machine': _edf,
}
