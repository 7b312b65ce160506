"""Nights with sleep stages: Sleep-EDF, Haaglanden Medisch Centrum, and the PhysioNet challenge of 2018.

Of the first two a night is an EDF file of signals, and one of annotations beside it. Stages 3 and 4 are N3. A single
EEG channel keeps the name of its bipolar pair, or that of its first electrode where the other is at the ear. Of the
third it is a record of WFDB; only its training part has annotations, and only that is read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.edf import check_edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import numpy as np

WHOLE = True
DATASETS = (
    Dataset(
        name='Kemp2000Analysis',
        title='Nights at home with sleep stages, two bipolar channels (Sleep-EDF, cassette)',
        source=__name__,
        n_subjects=78,
        n_recordings=153,
        n_chans=2,
        sfreq=(100.0,),
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        seconds=84900.0,
        event_types=('SleepStage',),
        licence='ODC-By-1.0',
        citation='Kemp et al. (2000), IEEE Trans. Biomed. Eng. 47(9), 1185-1194',
        host='physionet.org/files/sleep-edfx/1.0.0/sleep-cassette/',
        layout='(sleep-cassette/)SC4<NN><night><letters>-PSG.edf with SC4<NN><night><letters>-Hypnogram.edf beside it',
        download=Download(url='https://physionet.org/files/sleep-edfx/1.0.0/', files='sleep-cassette/SC4*.edf'),
        revision='1.0.0',
        aliases=('SleepEDF',),
    ),
    Dataset(
        name='Alvarez2022Haaglanden',
        title='Nights in a hospital with sleep stages',
        source=__name__,
        n_subjects=151,
        n_recordings=151,
        n_chans=6,
        sfreq=(256.0,),
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        event_types=('SleepStage',),
        licence='CC-BY-4.0',
        citation='Alvarez-Estevez and Rijsman (2022), PhysioNet',
        host='physionet.org/content/hmc-sleep-staging/1.1/',
        layout='(recordings/)SN<NNN>.edf with SN<NNN>_sleepscoring.edf beside it',
        download=Download(url='https://physionet.org/files/hmc-sleep-staging/1.1/', files='recordings/SN*.edf'),
        revision='1.1',
        aliases=('HMC-Sleep-Staging',),
    ),
    Dataset(
        name='Ghassemi2018You',
        title='Nights in a laboratory with arousals and sleep stages',
        source=__name__,
        n_subjects=994,
        n_recordings=994,
        n_chans=6,
        sfreq=(200.0,),
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        event_types=('SleepStage',),
        licence='ODC-By-1.0',
        citation='Ghassemi et al. (2018), Comput. Cardiol. 45',
        host='physionet.org/files/challenge-2018/1.0.0/',
        layout='training/<record>/<record>.hea with .mat and .arousal beside it',
        download=Download(url='https://physionet.org/files/challenge-2018/1.0.0/', files='training/*'),
        revision='1.0.0',
        aliases=('CinC2018',),
    ),
)
# of a dataset: the folder at its host, files of signals (subject, and night where there are several), of annotations
FILES = {
    'Kemp2000Analysis': ('sleep-cassette', r'SC4(\d\d)(\d)..-PSG\.edf', 'SC4{}{}*-Hypnogram.edf'),
    'Alvarez2022Haaglanden': ('recordings', r'(SN\d{3})()\.edf', '{}{}_sleepscoring.edf'),
}
STAGES = {
    'W': 'W',
    '1': 'N1',
    '2': 'N2',
    '3': 'N3',
    '4': 'N3',
    'N1': 'N1',
    'N2': 'N2',
    'N3': 'N3',
    'N4': 'N3',
    'R': 'R',
}
SILENT = ('Sleep stage ?', 'Movement time')  # no stage; also what begins with Lights
TYPES = {'EEG': 'eeg', 'EOG': 'eog', 'EMG': 'emg', 'Resp': 'resp', 'Temp': 'temperature'}
# the published names; the muscles of the chin and the heart stay EEG there, so they do here
HMC = {'EEG F4-M1': 'F4', 'EEG C4-M1': 'C4', 'EEG O2-M1': 'O2', 'EEG C3-M2': 'C3', 'EMG chin': 'EMG'}
HMC_EYES = {'EOG E1-M2': 'EOG1', 'EOG E2-M2': 'EOG2'}
CINC = {'E1-M2': 'eog', 'Chin1-Chin2': 'emg', 'ABD': 'misc', 'CHEST': 'misc', 'AIRFLOW': 'misc', 'SaO2': 'misc'}
CINC |= {'ECG': 'ecg'}  # types of the challenge's channels; all others are EEG
EPOCH = 30.0  # s, that the last stage of a night of the challenge lasts


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a night whose annotations lie beside it, by subject and night. Those of the challenge have a
    `split` (train), those of Sleep-EDF the `scorer`, by which a published split is ordered."""
    if dataset.name == 'Ghassemi2018You':
        return [
            RecordingRef(dataset.name, head.stem, '0', '0', tuple(map(str, files)), (('split', 'train'),))
            for head in sorted(root.glob('training/*/*.hea'))
            if (files := [head.with_suffix(s) for s in ('.mat', '.arousal', '.hea')])[1].exists()
        ]
    folder, signals, annotations = FILES[dataset.name]
    refs = []
    for path in sorted([*root.glob('*.edf'), *(root / folder).glob('*.edf')], key=lambda p: p.name):
        found = re.fullmatch(signals, path.name)
        stages = sorted(path.parent.glob(annotations.format(*found.groups()))) if found else []
        if found and stages:
            scorer = re.search(r'SC4\d{3}(..)-', stages[0].name)  # two letters of the recorder and of who scored it
            fields = (('scorer', scorer[1]),) if scorer else ()
            refs.append(RecordingRef(dataset.name, found[1], found[2] or '0', '0', (str(path), str(stages[0])), fields))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """A night in volts. Events: `SleepStage` with `stage` (neighbours of one stage are one event, unless the lights go
    on or off between them), and `SleepOnset` with `n2_onset` (data/formats/sleep_stages.py).

    Those of the challenge also have `SleepArousal`, with its `state` and the `label` arousal, but for noise; and all of
    these once more under names that end in Early, as the published reader has them: moved to begin with the first
    annotation, so too early by all that was not scored before it.
    """
    import mne
    import numpy as np

    from jbench.data.formats.sleep_stages import merged, night

    if ref.dataset == 'Ghassemi2018You':
        return _challenge(ref)
    for path in ref.files:
        bad = check_edf(path)
        if bad:
            return bad
    marks = mne.read_annotations(ref.files[1])
    known = {f'Sleep stage {k}': v for k, v in STAGES.items()}
    unexpected = sorted(
        {d for d in marks.description if d not in known and d not in SILENT and not d.startswith('Lights')}
    )
    kept = np.array([d in known for d in marks.description], bool)
    if unexpected or not kept.any():
        found = ', '.join(unexpected) or 'none'
        return Finding(ref.files[1], 'sleep stages must be there and known', found, ', '.join(known), 'fetch it again')
    stages = np.array([known[d] for d in marks.description[kept]])
    raw = mne.io.read_raw_edf(ref.files[0])
    renamed, kinds = HMC | HMC_EYES, dict.fromkeys(HMC_EYES, 'eog')
    if ref.dataset == 'Kemp2000Analysis':
        kinds = {c: TYPES[c.partition(' ')[0]] for c in raw.ch_names if c.partition(' ')[0] in TYPES}
        renamed = {c: c.partition(' ')[2] for c in kinds}
    absent = [c for c in renamed if c not in raw.ch_names]
    if absent or not renamed:
        rule, found = 'the channels of the set must be there', ', '.join(raw.ch_names)
        return Finding(ref.files[0], rule, found, ', '.join(absent) or 'EEG and others', 'use the original file')
    raw.set_channel_types(kinds).drop_channels('Event marker', on_missing='ignore')
    raw.rename_channels(renamed).set_montage('standard_1005', on_missing='ignore')
    lights = np.cumsum([d.startswith('Lights') for d in marks.description])[kept]  # as published, they part stages
    epochs = merged(marks.onset[kept], marks.duration[kept], stages, lights)
    return Recording(raw.set_annotations(None), night(*epochs))


def _challenge(ref: RecordingRef) -> Recording | Finding:
    """A record of the challenge. A stage lasts until the next one."""
    import mne

    from jbench.data.formats import wfdb

    signals, table, head = map(Path, ref.files)
    about = wfdb.header(head)
    marks = [(sample / about.sfreq, text) for sample, text in wfdb.marks(table) if text and not text.startswith('##')]
    events = _scored(marks)
    if events is None:
        found = ', '.join(dict.fromkeys(text for _, text in marks[:10])) or 'none'
        return Finding(str(table), 'sleep stages must be there and known', found, ', '.join(STAGES), 'fetch it again')
    info = mne.create_info(list(about.names), about.sfreq, [CINC.get(c, 'eeg') for c in about.names])
    raw = mne.io.RawArray(wfdb.signals(signals, about), info).set_montage('standard_1005', on_missing='ignore')
    return Recording(raw, events)


def _scored(marks: list[tuple[float, str]]) -> dict[str, np.ndarray] | None:
    """The table of events of marks (s, text), as they are and as published; None without a stage."""
    import numpy as np

    from jbench.data.formats.sleep_stages import night

    stages = [(t, text) for t, text in marks if not text.startswith('(') and not text.endswith(')')]
    kept = np.array([text in STAGES for _, text in stages], bool)
    if not kept.any():
        return None
    onset = np.array([t for t, _ in stages])
    duration = np.diff(onset, append=onset[-1] + EPOCH)[kept]
    stage = np.array([STAGES.get(text, '') for _, text in stages])[kept]
    tables = []
    for lead, suffix in ((0.0, ''), (marks[0][0], 'Early')):
        moved = [(t - lead, text) for t, text in marks]
        tables.append(_with_arousals(night(onset[kept] - lead, duration, stage), moved))
        tables[-1]['type'] = np.char.add(tables[-1]['type'], suffix)
    return {k: np.concatenate([table[k] for table in tables]) for k in tables[0]}


def _with_arousals(events: dict[str, np.ndarray], marks: list[tuple[float, str]]) -> dict[str, np.ndarray]:
    """A table of events, and the arousals among marks (s, text): each lasts from `(name` to `name)`."""
    import numpy as np

    begun: dict[str, float] = {}
    found = []
    for t, text in marks:
        if text.startswith('('):
            begun[text[1:]] = t
        elif (name := text.removesuffix(')')) in begun:
            start = begun.pop(name)
            found.append((start, t - start, name.partition('_')[2].replace('apnea', '_apnea')))
    n, k = len(events['onset']), len(found)
    state = np.array([state for _, _, state in found], dtype='U18')
    return {
        'onset': np.r_[events['onset'], [start for start, _, _ in found]],
        'duration': np.r_[events['duration'], [duration for _, duration, _ in found]],
        'type': np.r_[events['type'], np.full(k, 'SleepArousal')],
        'stage': np.r_[events['stage'], np.full(k, '')],
        'n2_onset': np.r_[events['n2_onset'], np.full(k, np.nan)],
        'state': np.r_[np.full(n, ''), state],
        'label': np.r_[np.full(n, ''), np.where(state == 'noise', '', 'arousal')],
    }
