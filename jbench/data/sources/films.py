"""Films that are watched: short clips of forty concepts (SEED-DV), and longer ones that stir emotions (FACED).

Traps of SEED-DV: a file holds all seven blocks of a session; `All_video_label.npy` says which concept, from 1, each of
the forty parts of a block shows; a part is 3 s of a hint, then five clips of 2 s (the published reader lays them one
frame, 1/24 s, later). The clips are cut out of the films of ten minutes by the user, since no host serves them.

Traps of FACED: some files are in volts and others in microvolts, and either says volts (told by their size); rates of
250 and 1000 Hz (`Recording_info.csv` says which, and the unit); the number of a clip is a trigger of its own, and the
clip lies between the triggers 101 and 102 that follow it; old names of electrodes (T3 is T7 now).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne

WHOLE = True
CLIPS = Dataset(
    name='Liu2024Eeg2video',
    title='1400 clips of 40 concepts (SEED-DV)',
    source=__name__,
    n_subjects=20,
    n_recordings=147,
    n_chans=62,
    sfreq=(200.0,),
    seconds=520.0,
    event_types=('Video',),
    licence='Custom',
    citation='Liu et al. (2024), NeurIPS 37, 72245-72273',
    host='bcmi.sjtu.edu.cn/home/eeg2video/',
    layout='SEED-DV/{EEG/sub<N>(_session2).npy, channel_62_pos.locs, Video/meta-info/All_video_label.npy}, '
    'prepare/video_clips/block-<N>_subblock-<NN>_clip-<N>.mp4 (2 s each, cut out of SEED-DV/Video/*_10min.mp4 from '
    '3 + 13 (subblock - 1) + 2 (clip - 1) s on; only encoders read them)',
    access='agreement: send the application form of SEED-DV to the BCMI laboratory',
    aliases=('SEED-DV',),
)
EMOTIONS = Dataset(
    name='Chen2023Large',
    title='28 clips of nine emotions (FACED)',
    source=__name__,
    n_subjects=123,
    n_recordings=123,
    n_chans=32,
    sfreq=(1000.0, 250.0),
    seconds=4881.0,
    n_events=28,
    licence='Custom',
    citation='Chen et al. (2023), Scientific Data 10',
    host='www.synapse.org/Synapse:syn50614194/files/',
    layout='Data/sub<NNN>/{data,evt}.bdf',
    download=Download(url='synapse:syn50614194'),
    access='agreement: accept the terms of use at Synapse, with an account there',
    aliases=('FACED',),
)
DATASETS = (CLIPS, EMOTIONS)
N_BLOCKS, N_PARTS, N_CLIPS = 7, 40, 5  # parts of a block, clips of a part
HINT, CLIP = 3.0, 2.0  # s
MICROVOLTS = 0.01  # a spread above this is no number of volts
CONCEPTS = (  # from 1
    'cat,dog,elephant,horse,panda,rabbit,bird,fish,jellyfish,shark-like,turtle,flower,mushroom,tree,boxing,dancing,'
    'running,skiing,face,couple,crowd,beach,building,mountain,road,water,fireworks,banana,cake,drink,pizza,watermelon,'
    'drum,guitar,piano,motorcycle,car,hot air balloon,airplane,ship'
).split(',')
EMOTION = (  # of the clips, from 1
    *['anger'] * 3,
    *['disgust'] * 3,
    *['fear'] * 3,
    *['sadness'] * 3,
    *['neutral'] * 4,
    *['amusement'] * 3,
    *['inspiration'] * 3,
    *['joy'] * 3,
    *['tenderness'] * 3,
)
NEW_NAMES = {'T3': 'T7', 'T4': 'T8', 'T5': 'P7', 'T6': 'P8', 'A1': 'T9', 'A2': 'T10'}


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by subject, session and block."""
    if dataset.name == EMOTIONS.name:
        return [
            RecordingRef(dataset.name, p.parent.name, '0', '0', (str(p), str(p.with_name('evt.bdf'))))
            for p in sorted(root.glob('Data/sub[0-9][0-9][0-9]/data.bdf'))
        ]
    home, found = root / 'SEED-DV', []
    others = tuple(str(home / name) for name in ('channel_62_pos.locs', 'Video/meta-info/All_video_label.npy'))
    for path in home.glob('EEG/sub*.npy'):
        name = re.fullmatch(r'sub(\d+)(?:_session(\d))?', path.stem)
        if name:
            found.append((int(name[1]), name[2] or '1', str(path)))
    return [
        RecordingRef(dataset.name, f'sub{subject}', session, str(block), (path, *others))
        for subject, session, path in sorted(found)
        for block in range(N_BLOCKS)
    ]


def read(ref: RecordingRef) -> Recording | Finding:
    """A recording in volts. Events: `Video` with `filepath` (below the folder of the dataset) and `concept`; or
    `Stimulus` with `label`, the emotion, and `code`, the number of the clip."""
    return _read_emotions(ref) if ref.dataset == EMOTIONS.name else _read_clips(ref)


def _in_volts(raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
    """A recording whose unit is volts or microvolts, told by the spread of the first five minutes, in volts."""
    import numpy as np

    x = raw.get_data('eeg', stop=min(raw.n_times, int(300 * raw.info['sfreq'])))
    if np.median(x.std(axis=1)) > MICROVOLTS:
        raw.load_data().apply_function(lambda x: x * 1e-6, picks='eeg', channel_wise=False)
    return raw


def _read_clips(ref: RecordingRef) -> Recording | Finding:
    import mne
    import numpy as np

    file, block = np.load(ref.files[0], mmap_mode='r'), int(ref.run)
    montage, labels = mne.channels.read_custom_montage(ref.files[1]), np.load(ref.files[2])
    names = montage.ch_names
    if file.ndim != 3 or file.shape[:2] != (N_BLOCKS, len(names)) or labels.shape != (N_BLOCKS, N_PARTS):
        found = f'{list(file.shape)}, {len(names)} electrodes, labels {list(labels.shape)}'
        expected = f'[{N_BLOCKS}, electrodes, samples], and labels {[N_BLOCKS, N_PARTS]}'
        return Finding(ref.where, 'blocks, electrodes and labels must fit', found, expected, 'use the original files')
    unexpected = labels[~np.isin(labels, np.arange(1, len(CONCEPTS) + 1))]
    if unexpected.size:
        rule, expected = 'each part must show a known concept', f'1 to {len(CONCEPTS)}'
        return Finding(ref.files[2], rule, f'{unexpected[0]:g}', expected, 'use the original file')
    concepts = [CONCEPTS[int(k) - 1] for k in labels[block] for _ in range(N_CLIPS)]
    part, clip = np.divmod(np.arange(N_PARTS * N_CLIPS), N_CLIPS)
    info = mne.create_info(names, CLIPS.sfreq[0], 'eeg')
    raw = mne.io.RawArray(file[block], info, copy='both').set_montage(montage)  # what is mapped cannot be scaled
    return Recording(
        _in_volts(raw),
        {
            'onset': HINT + (HINT + N_CLIPS * CLIP) * part + CLIP * clip,
            'duration': np.full(len(part), CLIP),
            'type': np.full(len(part), 'Video'),
            'concept': np.array(concepts),
            'filepath': np.array(
                [
                    f'prepare/video_clips/block-{block + 1}_subblock-{p + 1:02d}_clip-{c + 1}.mp4'
                    for p, c in zip(part, clip, strict=True)
                ]
            ),
        },
    )


def _read_emotions(ref: RecordingRef) -> Recording | Finding:
    import mne
    import numpy as np

    for path in ref.files:
        bad = check_file(path, (b'\xff',))
        if bad:
            return bad
    raw = mne.io.read_raw_bdf(ref.files[0])
    raw.rename_channels({c: NEW_NAMES.get(c, c).replace('FP', 'Fp').replace('Z', 'z') for c in raw.ch_names})
    raw.set_channel_types({c: 'eog' for c in raw.ch_names if c in ('HEOL', 'HEOR')})
    raw.set_montage('standard_1020', on_missing='ignore')
    marks = mne.read_annotations(ref.files[1])
    names = [str(d) for d in marks.description]
    clips = [k for k, name in enumerate(names) if name.isdecimal() and 1 <= int(name) <= len(EMOTION)]
    numbers = [int(names[k]) for k in clips]
    unexpected = [names[k] for k in clips if names[k + 1 : k + 3] != ['101', '102']]
    if unexpected or sorted(numbers) != list(range(1, len(EMOTION) + 1)):
        found = (
            f'clip {unexpected[0]} without them'
            if unexpected
            else f'clips {", ".join(map(str, sorted(numbers))) or "none"}'
        )
        expected = f'clips 1 to {len(EMOTION)} once, each followed by 101 and 102'
        return Finding(ref.files[1], 'each clip must begin and end', found, expected, 'use the original file')
    start, stop = (np.array([marks.onset[k + n] for k in clips], float) for n in (1, 2))
    return Recording(
        _in_volts(raw.set_annotations(None)),
        {
            'onset': start,
            'duration': stop - start,
            'type': np.full(len(clips), 'Stimulus'),
            'label': np.array([EMOTION[n - 1] for n in numbers]),
            'code': np.array(numbers),
        },
    )
