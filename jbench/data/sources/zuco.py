"""Sentences read at one's own pace, with eye tracking (ZuCo, Hollenstein et al. 2018).

Traps of the files: names of folders have spaces, and some task 1 recordings are called SNR where all else says SR; the
signal is in microvolts; which sentence is shown stands only in the order of all sentences of a task, so that those of
earlier blocks are counted in their eye-tracking files; a recording may hold one sentence more than its eye tracking.
Events of the eye are placed by the begin and end of their sentence in both clocks. Seven pairs of person and task are
left out, as published: files are missing, or sentences come in another order than their list.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import numpy as np

WHOLE = True
DATASETS = (
    Dataset(
        name='Hollenstein2018Zuco',
        title='Reading of sentences, with eye tracking (ZuCo)',
        source=__name__,
        n_subjects=12,
        n_recordings=221,
        n_chans=128,
        sfreq=(500.0,),
        seconds=271.7,
        event_types=('Sentence', 'Word'),
        licence='CC-BY-4.0',
        citation='Hollenstein et al. (2018), Scientific Data 5',
        host='osf.io/q3zws/',
        layout='task<N>*/{Raw data/<person>/<person>_<block>_{EEG,ET}.mat, Matlab files/results<person>_<task>.mat}',
        download=Download(url='osf:nodes/q3zws/files/osfstorage', without='*/Preprocessed/*'),
        aliases=('ZuCo',),
    ),
)
TASKS = {'1': 'task1-SR', '2': 'task2-NR', '3': 'task3-TSR'}
LEFT_OUT = {'1': ('ZDN', 'ZKW'), '2': ('ZJS', 'ZPH'), '3': ('ZGW', 'ZKB', 'ZPH')}
ONSET, OFFSET = (10, 12), (11, 13)  # triggers of a sentence, and of one with a question


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by task, person and block; the files are the signal, the sentences, and the eyes in all blocks."""
    refs = []
    for folder in sorted(root.glob('task[123]*')):
        number = folder.name[4]
        for path in sorted(folder.glob('Raw*data/*/*_EEG.mat')):
            person, run = path.stem.split('_')[:2]
            block = run.replace('SNR', 'SR')
            lists = list(folder.glob(f'Matlab*files/results{person}_{block[:-1]}.mat'))
            if person in LEFT_OUT[number] or not lists:
                continue
            eyes = sorted(map(str, path.parent.glob(f'{person}_*_ET.mat')))
            refs.append(
                RecordingRef(
                    dataset.name, person, '0', run, (str(path), str(lists[0]), *eyes), (('task', TASKS[number]),)
                )
            )
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """128 channels in volts. Events `Sentence` (`text`) while it is shown, and `Word` (`text`: letters and digits of
    the word, `sentence`) while the eye rests on it."""
    import mne
    import numpy as np
    from scipy.io import loadmat

    from jbench.data.formats.words import Row, columns

    eeg = loadmat(ref.files[0], simplify_cells=True)['EEG']
    info = mne.create_info([str(c['labels']) for c in eeg['chanlocs']], float(eeg['srate']), 'eeg')
    raw = mne.io.RawArray(np.asarray(eeg['data'], float) * 1e-6, info)
    raw.set_montage('GSN-HydroCel-128', on_missing='ignore')
    triggers = [(int(e['type']), (float(e['latency']) - 1) / info['sfreq']) for e in eeg['event']]
    clocks = {_block(path): _spans(loadmat(path, variable_names=['event'])['event']) for path in ref.files[2:]}
    block = int(ref.run[-1])
    sentences = loadmat(ref.files[1], simplify_cells=True, variable_names=['sentenceData'])['sentenceData']
    shown, seen = _spans(np.array([(time, code) for code, time in triggers])), clocks.get(block, [])
    total = sum(map(len, clocks.values()))
    if total != len(sentences) or len(shown) - len(seen) not in (0, 1) or not seen:
        found = f'{len(sentences)} in the list, {total} in the eye tracking, {len(shown)} and {len(seen)} in this block'
        expected = 'one of each (here one more in the signal, at most)'
        return Finding(ref.where, 'sentences must fit', found, expected, 'fetch all files of the person again')
    first = sum(len(spans) for k, spans in clocks.items() if k < block)
    rows: list[Row] = []
    eyes = loadmat(
        next(p for p in ref.files[2:] if _block(p) == block), simplify_cells=True, variable_names=['eyeevent']
    )
    fixations = _fixations(eyes['eyeevent']['fixations'])
    for here, there, sentence in zip(shown, seen, sentences[first : first + len(seen)], strict=False):
        if not ((fixations['latency'] >= there[0]) & (fixations['endtime'] <= there[1])).any():
            continue  # nobody read it
        text = str(sentence['content'])
        rows.append({'type': 'Sentence', 'onset': here[0], 'duration': here[1] - here[0], 'text': text})
        rows += [{**word, 'sentence': text} for word in _words(sentence, fixations, here, there)]
    return Recording(raw, columns(rows))


def _block(path: str) -> int:
    return int(Path(path).stem.split('_')[1][-1])


def _spans(events: np.ndarray) -> list[tuple[float, float]]:
    """When each sentence begins and ends, of a table of time and trigger; one that does not end is left out."""
    spans, start = [], None
    for time, code in events[:, :2].tolist():
        if code in ONSET:
            start = time
        elif code in OFFSET and start is not None:
            spans.append((start, time))
            start = None
    return spans


def _fixations(table: dict[str, Any]) -> dict[str, np.ndarray]:
    """Columns of a table of the eye tracker, as begin, end and mean place."""
    import numpy as np

    values = np.atleast_2d(np.asarray(table['data'], float))
    return dict(zip([str(c) for c in table['colheader']], values.T, strict=False))


def _words(
    sentence: dict[str, Any], eye: dict[str, np.ndarray], here: tuple[float, float], there: tuple[float, float]
) -> list[dict[str, Any]]:
    """The words of a sentence that the eye rests on, one event a fixation of the eye tracker.

    As published: which words they are is told by the fixations in the list of sentences (those inside exactly one
    word's box), each of which is looked for in the eye tracking by its place and the size of the pupil. One that is not
    there overwrites the first fixation of the sentence; several of one place overwrite each other.

    Args:
        sentence: an entry of the list, with `content`, `wordbounds` (left, top, right, bottom) and `allFixations`.
        here, there: begin and end of the sentence by the clock of the signal (s) and of the eye tracker.
    Raises: ValueError where boxes and words do not fit.
    """
    import numpy as np

    words = [re.sub('[^a-zA-Z0-9]', '', word).lower() for word in str(sentence['content']).split(' ')]
    boxes = np.asarray(sentence['wordbounds'], float)
    if np.isnan(boxes).all():
        boxes = np.full((len(words), 4), np.nan)
    boxes = np.atleast_2d(boxes)
    if len(boxes) != len(words):
        raise ValueError(f'{len(boxes)} boxes for the {len(words)} words of {sentence["content"][:40]!r}')
    rests = np.flatnonzero((eye['latency'] >= there[0]) & (eye['latency'] <= there[1]))
    listed = sentence.get('allFixations')
    if not len(rests) or not isinstance(listed, dict):  # no fixation, or a damaged entry
        return []
    x, y, pupil = (np.atleast_1d(np.asarray(listed[name], float)) for name in ('x', 'y', 'pupilsize'))
    seen: dict[int, str] = {}
    for k in range(len(x)):
        inside = (boxes[:, 0] <= x[k]) & (x[k] <= boxes[:, 2]) & (boxes[:, 1] <= y[k]) & (y[k] <= boxes[:, 3])
        same = (eye['fix_avgpos_x'][rests] == x[k]) & (eye['fix_avgpupilsize'][rests] == pupil[k])
        seen[int(rests[same.argmax()])] = words[int(inside.argmax())] if inside.sum() == 1 else ''
    speed = (here[1] - here[0]) / (there[1] - there[0])
    rows = []
    for k in sorted(k for k, word in seen.items() if word):
        start, stop = (here[0] + (eye[c][k] - there[0]) * speed for c in ('latency', 'endtime'))
        rows.append({'type': 'Word', 'onset': start, 'duration': stop - start, 'text': seen[k]})
    return rows
