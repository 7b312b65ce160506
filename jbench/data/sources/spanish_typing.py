"""Sentences that 44 people typed from memory, in EEG or MEG (SpanishBCBL, Levy et al. 2026).

What was shown and which keys were pressed stand in a log of MATLAB, by the clock of the task; the recording holds a
trigger for each word (10) and each key (its code). Both lists lack some, so the log is matched with the triggers by
the least number of changes, and an event is where its trigger is. A trial begins with the first word that comes 5 s
after the one before it; the first two are practice. As published, keys count that were let go again, but backspace,
return, and what follows these without being part of the sentence.

`text` is the sentence, and belongs to keys alone, since a split by it goes by those; words have `word`.

Traps of the files: names say subject, session and block in several ways, logs are swapped or called otherwise, some
files are broken or of other experiments (the lists below, as published); a recording without its log is left out;
before an EEG all triggers from 1 to 255 may have been tried; MEG was recorded with active shielding, and long files
go on in a second one that is no recording of its own.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne

EEG = Dataset(
    name='Levy2026NoninvasiveEeg',
    title='Sentences typed from memory, 61 electrodes',
    source=__name__,
    n_subjects=20,
    n_recordings=62,
    n_chans=61,
    sfreq=(1000.0,),
    seconds=996.0,
    event_types=('Keystroke', 'Sentence', 'Word'),
    licence='CC-BY-NC-4.0',
    citation='Lévy et al. (2026)',
    host='huggingface.co/datasets/bcbl190626/SpanishBCBL',
    layout='EEG/EEG/**/<NNN>_DECOMEG_S<session>_<id>_task<N>.vhdr, EEG/logs/**/S<N>_session<N>_block<N>*.mat',
    download=Download(url='hf:datasets/bcbl190626/SpanishBCBL', files='EEG/*'),
    aliases=('levy2026eeg',),
)
MEG = Dataset(
    name='Levy2026NoninvasiveMeg',
    title='Sentences typed from memory, MEG',
    source=__name__,
    device='meg',
    n_subjects=24,
    n_recordings=84,
    n_chans=306,
    sfreq=(2048.0,),
    seconds=739.0,
    event_types=('Keystroke', 'Sentence', 'Word'),
    amplitude=(1e-14, 1e-7),  # T; active shielding leaves much of the surroundings in
    licence='CC-BY-NC-4.0',
    citation='Lévy et al. (2026)',
    host='huggingface.co/datasets/bcbl190626/SpanishBCBL',
    layout='MEG/FIF/<N>_<id>/<day>/block<N>.fif, MEG/logs/**/S<N>-session<N>_block<N>*.mat',
    download=Download(url='hf:datasets/bcbl190626/SpanishBCBL', files='MEG/*'),
    aliases=('levy2026meg',),
)
DATASETS = (EEG, MEG)
BAD_EEG = (  # headers of another file, logs that are swapped, missing or do not fit, tasks that crashed
    '005_DECOMEG_S2_NOID_task1 008_DECOMEG_S1_9846_task1 008_DECOMEG_S1_9846_task2 008_DECOMEG_S2_9846_task1 '
    '008_DECOMEG_S2_9846_task2 009_DECOMEG_S1_9949 012_DECOMEG_S1_11481_task1 013_DECOMEG_S1_11478_task1 '
    '003_DECOMEG_S1_9337_task1 003_DECOMEG_S1_9337_task2 004_DECOMEG_S2_NOID_task1 004_DECOMEG_S2_noid_task2 '
    '022_DECOMEG_S2_9948_task1 022_DECOMEG_S2_9948_task2'
).split()
BAD_MEG = (  # files of something else, broken ones, those without a log, failed sessions
    '05_3660/230405/Emptyroom 05_3660/230419/block1 07_10038/230503/testdavid 18_9228/231116/block1 '
    '20_11966/231122/block2 03_11123/230327/03_11123_block1 05_3660/230405/block2 06_10216/230502/block2 '
    '06_10216/230502/block3 8_11374/231023/block2_1 8_11374/231023/block2 09_11482/230512/block1 '
    '23_9948/240514/block2fail 23_9948/240514/block22'
).split()
BAD_PEOPLE = ('04_3660', '14_9876')  # of MEG: another's number, and a copy that is not complete
SESSIONS = {'08_11374': 1, '8_11374': 2}  # one person in two folders
SHOWN, RETURN, BACKSPACE = 10, 13, 8  # codes: a word on the screen, two keys
PAUSE = 5.0  # s before the first word of a trial
BUTTONS = {' ': '<space>', '\xa0': '<space>', 'à': 'a', 'ñ': 'n', **dict.fromkeys('º»¼þ¡', '<special>')}


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References in the order of the files' names, each with its log."""
    found = _of_eeg(root / 'EEG') if dataset.name == EEG.name else _of_meg(root / 'MEG')
    refs = []
    for path, (subject, session, task), pattern in found:
        logs = sorted((root / dataset.device.upper() / 'logs').rglob(pattern))
        if len(logs) > 1:
            raise RequestError(
                f'{path}: {len(logs)} logs are called {pattern}, expected one: {", ".join(map(str, logs))}'
            )
        refs += [RecordingRef(dataset.name, subject, session, task, (str(path), str(log))) for log in logs]
    return refs


def _of_eeg(folder: Path) -> list[tuple[Path, tuple[str, str, str], str]]:
    """Each file with subject, session and task, and what its log is called."""
    found = []
    for path in sorted((folder / 'EEG').rglob('*_DECOMEG_*.vhdr')):
        name = re.fullmatch(r'(\d+)_DECOMEG_S(\d+)_[^_]+_(task1?|task2)', path.stem)
        if name and path.stem not in BAD_EEG and name[1] != '001':
            block = 'block2' if name[3] == 'task2' else 'block1'
            pattern = f'S{int(name[1])}_session{name[2]}_{block}*.mat'
            found.append((path, (name[1], name[2], name[3]), pattern))
    return found


def _of_meg(folder: Path) -> list[tuple[Path, tuple[str, str, str], str]]:
    """Each file with subject, session and task, and what its log is called."""
    found = []
    for path in sorted((folder / 'FIF').glob('*/*/*.fif')):
        person, day = path.parts[-3:-1]
        task = path.name.partition('.')[0].lower().replace('bolck', 'block')
        other = re.search('tapping|typing|-', task) or '/'.join((person, day, path.stem)) in BAD_MEG
        if other or not re.fullmatch(r'\d+_[^_]+', person) or person in BAD_PEOPLE:
            continue
        days = sorted(p.name for p in path.parent.parent.iterdir() if not p.name.startswith('.'))
        session = SESSIONS.get(person, days.index(day) + 1)
        subject, named = f'S{int(person.partition("_")[0])}', _block(person, session, task)
        if named:
            pattern = f'{subject}-session{session}{_log(subject, session, named)}*.mat'
            found.append((path, (subject, str(session), named), pattern))
    return found


def _block(person: str, session: int, task: str) -> str:
    """Which block a file of MEG is, by its name; '' for one that is none."""
    number = int(person.partition('_')[0])
    if number == 13:  # left-handed
        return ''
    if number == 1:
        return {'block2': '', 'block3': 'block2'}.get(task, task)
    if number == 21 and task in ('block2', 'block2_1'):
        return ''
    if number == 3 and session == 2:
        return task.rpartition('_')[2]
    return task.partition('_')[0] if number in (18, 20, 21) else task


def _log(subject: str, session: int, block: str) -> str:
    """How the log of a block ends: the first two people have names of their own, swapped in the second session."""
    if subject not in ('S1', 'S2'):
        return f'_{block}'
    second = ('block1' not in block) != (session == 2)
    return '-2' if second else '-1'


def read(ref: RecordingRef) -> Recording | Finding:
    """A recording in volts or teslas. Events: `Keystroke` with `button`, `text` and `trial_id`; `Word` with `word`,
    `sentence` and `trial_id`, and `Sentence` over those of a trial, while they are on the screen."""
    import mne

    from jbench.data.formats.words import columns, matched

    if ref.dataset == EEG.name:
        bad = bids.check_signal(ref.files[0])
        if bad:
            return bad
        raw = mne.io.read_raw_brainvision(ref.files[0])
        raw.set_channel_types({c: 'eog' for c in raw.ch_names if 'EOG' in c})
        raw.set_montage('standard_1005', on_missing='ignore')
        triggers = _marks(raw)
        raw.set_annotations(None)
    else:
        raw = mne.io.read_raw_fif(ref.files[0], allow_maxshield='yes')
        found = mne.find_events(raw, shortest_event=1, verbose=False)
        triggers = [((sample - raw.first_samp) / raw.info['sfreq'], int(code)) for sample, _, code in found]
    log = _trials(_read_log(ref.files[1]))
    here, there = matched([code for _, code in triggers], [row['code'] for row in log])
    if 2 * len(here) < len(log):
        found = f'{len(here)} of {len(log)} in the log, with {len(triggers)} triggers'
        return Finding(ref.where, 'most events of the log must have a trigger', found, 'half', 'check that both fit')
    rows = [{**log[j], 'onset': triggers[i][0]} for i, j in zip(here, there, strict=True)]
    keys = [_picked(row, ('button', 'text')) for row in rows if row['type'] == 'Keystroke' and row['counts']]
    words = [_picked(row, ('word', 'sentence')) for row in rows if row['type'] == 'Word']
    return Recording(raw, columns([*_sentences(words), *(r for r in (*keys, *words) if r['duration'] > 0)]))


def _marks(raw: mne.io.BaseRaw) -> list[tuple[float, int]]:
    """Onset (s) and code of each trigger in BrainVision, without a trial of all of them at the start."""
    found = [(float(a['onset']), re.fullmatch(r'Stimulus/S\s*(\d+)', str(a['description']))) for a in raw.annotations]
    marks = [(onset, int(name[1])) for onset, name in found if name]
    tried = [code for _, code in marks[:255]] == list(range(1, 256))
    return marks[255:] if tried else marks


def _read_log(path: str) -> list[dict[str, Any]]:
    """Words and pressed keys of a log in order of their times (s, of its own clock): a word lasts until what follows
    it, a key until it is let go; 0 where that is not known."""
    from scipy.io import loadmat

    log = loadmat(path, squeeze_me=True, struct_as_record=False, variable_names=['pr_trials'])['pr_trials']
    rows: list[dict[str, Any]] = []
    down: dict[int, dict[str, Any]] = {}
    for event in _structs(log.key):
        code, time = int(event.Keycode), float(event.Time)
        if event.Pressed:
            down[code] = {'type': 'Keystroke', 'code': code, 'time': time, 'duration': 0.0}
            rows.append(down[code])
        elif code in down and code != RETURN:  # of which some have no end
            key = down.pop(code)
            key['duration'] = time - key['time']
    for event in _structs(log.rsvp):
        word = str(event.stim).encode('ascii', 'ignore').decode().lower()
        rows.append({'type': 'Word', 'code': SHOWN, 'time': float(event.t), 'duration': 0.0, 'word': word})
    rows.sort(key=lambda row: row['time'])
    for row, following in itertools.pairwise(rows):
        if row['type'] == 'Word':
            row['duration'] = following['time'] - row['time']
    return rows


def _structs(cells: Any) -> list[Any]:
    """The structures in a cell array of MATLAB, which holds one, an array of them, or nothing, a trial."""
    import numpy as np

    trials = [np.atleast_1d(np.asarray(trial, object)).ravel() for trial in np.atleast_1d(np.asarray(cells, object))]
    return [event for trial in trials for event in trial if hasattr(event, '_fieldnames')]


def _trials(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log with the trial and the sentence of each row, and which keys count, with their buttons."""
    trials: list[list[dict[str, Any]]] = [[]]
    last = float('inf')
    for row in log:
        if row['type'] == 'Word':
            if row['time'] - last > PAUSE:
                trials.append([])
            last = row['time']
        trials[-1].append(row)
    return [row for number, trial in enumerate(trials) for row in _trial(trial, number)]


def _trial(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    from jbench.data.formats.words import matched

    sentence = ' '.join(row['word'] for row in rows if row['type'] == 'Word')
    typed = [k for k, row in enumerate(rows) if row['type'] == 'Keystroke' and row['code'] not in (BACKSPACE, RETURN)]
    keys = [chr(rows[k]['code']).lower() for k in typed]
    part = {typed[j] for j in matched([ord(c) for c in sentence], [ord(c) for c in keys])[1]}
    buttons = {k: '<number>' if c.isnumeric() else BUTTONS.get(c, c) for k, c in zip(typed, keys, strict=True)}
    out, follows = [], False
    for k, row in enumerate(rows):
        # a character that is not in the sentence goes with what was typed before it
        follows = row['type'] == 'Word' or k in part or (k in buttons and follows)
        own = {'counts': follows, 'button': buttons.get(k, ''), 'text': sentence} if row['type'] == 'Keystroke' else {}
        out.append({**row, **own, 'sentence': sentence, 'trial_id': number})
    return out


def _picked(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A row of the event table."""
    return {name: row[name] for name in ('type', 'onset', 'duration', 'trial_id', *names)}


def _sentences(words: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One event over the words of each trial."""
    trials: dict[int, list[dict[str, Any]]] = {}
    for word in words:
        trials.setdefault(word['trial_id'], []).append(word)
    return [
        {
            **_picked(group[0], ('sentence',)),
            'type': 'Sentence',
            'duration': group[-1]['onset'] + group[-1]['duration'] - group[0]['onset'],
        }
        for group in trials.values()
    ]
