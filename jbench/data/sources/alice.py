"""The first chapter of Alice in Wonderland, listened to by 33 people (Brennan and Hale 2019), in its second version.

Traps of the files: the table of epochs (`proc.trl`, FieldTrip) says when an epoch begins, counted from sample 1, and
how far before its word: a word begins at the first less the second (the published reader lets it begin with its epoch,
0.3 s too early); epochs that were rejected are not in it, so words are found by their `Order`; the channel beside the
scalp's is called Aux5 or AUD. Sixteen of the 49 people are left out, as published: of seven there is no table, nine
have too much noise.
"""

from __future__ import annotations

import csv
import wave
from pathlib import Path
from typing import Any

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset

DATASETS = (
    Dataset(
        name='Brennan2019Hierarchical',
        title='A chapter of an audiobook, 12 minutes',
        source=__name__,
        n_subjects=33,
        n_recordings=33,
        n_chans=60,
        sfreq=(500.0,),
        seconds=733.0,
        event_types=('Audio', 'Sentence', 'Word'),
        licence='CC-BY-4.0',
        citation='Brennan and Hale (2019), PLOS ONE 14(1), e0207741',
        host='deepblue.lib.umich.edu/data/concern/data_sets/bn999738r',
        layout='S<NN>.{vhdr,vmrk,eeg}, AliceChapterOne-EEG.csv, timelock-preprocessing/S<NN>.mat (of proc.zip), '
        'audio/DownTheRabbitHoleFinal_SoundFile<N>.wav (of audio.zip)',
        access='agreement: its host blocks scripts: fetch version 2 by Globus, and unpack audio.zip and proc.zip',
        revision='2',
    ),
)
NOISY = ('S02', 'S24', 'S26', 'S27', 'S30', 'S32', 'S34', 'S35', 'S36')
SOUND = 'audio/DownTheRabbitHoleFinal_SoundFile{}.wav'
WORDS = ('Word', 'Segment', 'onset', 'offset', 'Order', 'Sentence')  # columns of the story that are read


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a person who has a table of epochs."""
    story, sounds = root / 'AliceChapterOne-EEG.csv', sorted(map(str, root.glob(SOUND.format('*'))))
    return [
        RecordingRef(dataset.name, p.stem, '0', '0', (str(p), str(table), str(story), *sounds))
        for p in sorted(root.glob('S[0-9][0-9].vhdr'))
        if p.stem not in NOISY and (table := root / 'timelock-preprocessing' / f'{p.stem}.mat').exists()
    ]


def read(ref: RecordingRef) -> Recording | Finding:
    """60 channels in volts. Events `Word` (`text`, `sentence`, `sequence_id`: the sentence's number in the story),
    `Sentence` over them, and `Audio` with `filepath`, below the folder of the dataset."""
    import mne
    from scipy.io import loadmat

    from jbench.data.formats.words import columns, with_sentences

    bad = bids.check_signal(ref.files[0])
    if bad:
        return bad
    montage = mne.channels.make_standard_montage('easycap-M10')
    raw = mne.io.read_raw_brainvision(ref.files[0])
    kinds = {c: 'eog' if 'EOG' in c.upper() else 'misc' for c in raw.ch_names if c not in montage.ch_names}
    raw.set_channel_types(kinds, on_unit_change='ignore').set_montage(montage)
    with open(ref.files[2], newline='', encoding='utf-8-sig') as file:
        story = list(csv.DictReader(file))
    absent = [c for c in WORDS if c not in (story[0] if story else {})]
    if absent:
        rule = 'the story must have its columns'
        return Finding(
            ref.files[2], rule, ', '.join(story[0]) if story else 'none', ', '.join(absent), 'fetch it again'
        )
    table = loadmat(ref.files[1], simplify_cells=True, variable_names=['proc'])['proc']
    names = [str(name) for name in table['varnames']]
    if table['trl'].shape[1] not in (len(names), 3 + len(names)) or 'Order' not in names:
        found = f'{table["trl"].shape[1]} columns, {", ".join(names)} among them'
        return Finding(ref.files[1], 'epochs must be known', found, 'three, and Order', 'use the original file')
    spoken = {int(float(row['Order'])): row for row in story}
    sfreq, order = float(raw.info['sfreq']), names.index('Order') - len(names)
    words = [_word(spoken[int(row[order])], (row[0] - 1 - row[2]) / sfreq) for row in table['trl']]
    rows = with_sentences(sorted(words, key=lambda word: word['onset']))
    sounds = _sounds(ref, words)
    events = columns([*({k: v for k, v in row.items() if k not in ('segment', 'at')} for row in rows), *sounds])
    return Recording(raw.set_annotations(None), events)


def _word(row: dict[str, str], onset: float) -> dict[str, Any]:
    """The event of a word that begins at `onset` s; `at` is where it begins in the sound of its segment."""
    start, stop = float(row['onset']), float(row['offset'])
    return {
        'type': 'Word',
        'onset': onset,
        'duration': stop - start,
        'text': row['Word'],
        'sequence_id': float(row['Sentence']),
        'segment': int(float(row['Segment'])),
        'at': start,
    }


def _sounds(ref: RecordingRef, words: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One event a segment of the story, placed by its first word. Raises: FileNotFoundError, wave.Error."""
    first: dict[int, dict[str, Any]] = {}
    for word in words:
        first.setdefault(word['segment'], word)
    files, rows = {Path(path).name: path for path in ref.files[3:]}, []
    for segment, word in first.items():
        name = SOUND.format(segment)
        if Path(name).name not in files:
            raise FileNotFoundError(f'{name} is not there: unpack audio.zip')
        with wave.open(files[Path(name).name]) as sound:
            seconds = sound.getnframes() / sound.getframerate()
        rows.append({'type': 'Audio', 'onset': word['onset'] - word['at'], 'duration': seconds, 'filepath': name})
    return rows
