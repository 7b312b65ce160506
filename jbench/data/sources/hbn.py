"""Children and young people at rest and at tasks: the Healthy Brain Network, in BIDS.

Eleven releases, each a BIDS folder of its own. Every recording is referenced to the channel that its JSON file names
(Cz), which is flat from then on. Events are read of the contrast change task and of four films.

Contrast change: `Keystroke`, a press of a button, and `Stimulus`, the start of a trial or the change of contrast on one
side (`value` left_target or right_target). Their `reaction_time` is in s from the change: of a press that to itself,
negative where it came too early; of a change that to the first press after it in its trial.

Films: `Film`, from `video_start` to the next `video_stop`, with the name of the film in `film`. Where none comes it
lasts until it is started anew, or else to the end of the recording; a recording without a start has none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import numpy as np

WHOLE = True
RELEASES = {f'ds00{5504 + k + (k > 8)}': k for k in range(1, 12)}  # ds005505 is R1, ds005514 (not 5513) is R9
DATASETS = (
    Dataset(
        name='Shirazi2024Hbn',
        title='Rest, films and tasks of children and young people, 128 electrodes and the reference',
        source=__name__,
        n_subjects=3146,
        n_recordings=26615,
        n_chans=129,
        sfreq=(500.0,),
        seconds=172.3,
        event_types=('Eeg',),
        licence='CC-BY-SA-4.0',
        citation='Shirazi et al. (2024), bioRxiv',
        host='openneuro.org/datasets/ds005516/versions/1.0.1/download',
        layout='<release>/participants.tsv, <release>/sub-<id>/eeg/sub-<id>_task-<task>[_run-<n>]_eeg.set (or .bdf), '
        'where <release> is cmi_bids_R1 to cmi_bids_R11, or the same at OpenNeuro: ds005505 to 12, ds005514 to 16',
        download=Download(url='s3://fcp-indi/data/Projects/HBN/BIDS_EEG/', files='cmi_bids_R*'),
        aliases=('HBN-EEG',),
    ),
)
PEOPLE = ('sex', 'age', 'ehq_total', 'p_factor', 'attention', 'internalizing', 'externalizing')
LEFT_OUT = (  # by the published protocol, as by the EEG Foundation Challenge 2025: bad recordings
    *('NDARWV769JM7', 'NDARME789TD2', 'NDARUA442ZVF', 'NDARJP304NK1', 'NDARTY128YLU', 'NDARDW550GU6'),
    *('NDARLD243KRE', 'NDARUJ292JXV', 'NDARBA381JGH'),
)
START, TARGETS = 'contrastTrial_start', ('left_target', 'right_target')
PRESSES = ('left_buttonPress', 'right_buttonPress')
FILMS = ('DespicableMe', 'DiaryOfAWimpyKid', 'FunwithFractals', 'ThePresent')
FILM_STARTS, FILM_STOPS = 'video_start', 'video_stop'


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by release (R1 first), subject and task; nine people that the protocol leaves out are not there.

    Fields: `release`, `task` (with its entity, as task-RestingState), and the columns PEOPLE of participants.tsv.
    """
    refs = []
    for number, folder in sorted((_release(p.name), p) for p in root.iterdir() if p.is_dir() and _release(p.name)):
        for ref in bids.recordings(dataset, folder, PEOPLE):
            (_, task), *people = ref.fields
            fields = (('release', f'R{number}'), ('task', f'task-{task}'), *people)
            refs += [ref._replace(fields=fields)] if ref.subject not in LEFT_OUT else []
    return refs


def _release(name: str) -> int:
    """The number of a release from the name of its folder, 0 for none: ds005505, R1 or R1_L100_bdf."""
    found = re.search(r'(?:^|_)R(\d+)(?:_|$)', name)
    return int(found[1]) if found else RELEASES.get(name, 0)


def read(ref: RecordingRef) -> Recording | Finding:
    """129 channels in volts, and the events of a recording of the contrast change task or of a film."""
    import numpy as np

    raw = bids.read(ref)
    if isinstance(raw, Finding):
        return raw
    reference = bids.described(ref).get('EEGReference')
    if reference in raw.ch_names:
        raw.load_data().set_eeg_reference([reference])
    raw.set_annotations(None)
    none = {'onset': np.zeros(0), 'duration': np.zeros(0), 'type': np.zeros(0, 'U9'), 'reaction_time': np.zeros(0)}
    task = dict(ref.fields)['task'].removeprefix('task-')
    if task not in ('contrastChangeDetection', *FILMS):
        return Recording(raw, none)
    path = bids.sidecar(ref, 'events.tsv')
    if path is None:
        rule, expected = 'a table of events must lie beside the recording', 'events.tsv'
        return Finding(ref.where, rule, 'none', expected, 'fetch it')
    found = bids.events(path, raw, needed=('value',))
    if isinstance(found, Finding):
        return found
    if task not in FILMS:
        return Recording(raw, _trials(found))
    return Recording(raw, _film(task, found['onset'], found['value'], raw.n_times / raw.info['sfreq']))


def _film(name: str, onset: np.ndarray, value: np.ndarray, seconds: float) -> dict[str, np.ndarray]:
    """What was seen of a film, by the marks in time order of a recording of so many seconds."""
    import numpy as np

    starts = onset[(value == FILM_STARTS) & (onset < seconds)]
    edges = np.sort(np.append(onset[np.isin(value, (FILM_STARTS, FILM_STOPS)) & (onset < seconds)], seconds))
    stops = edges[np.searchsorted(edges, starts, 'right')]
    n = len(starts)
    facts = {'type': np.full(n, 'Film'), 'film': np.full(n, name), 'reaction_time': np.full(n, np.nan)}
    return {'onset': starts, 'duration': stops - starts, **facts}


def _trials(events: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of trials, changes and presses with `type` and `reaction_time`; a trial lasts until the next one."""
    import numpy as np

    value, onset = events['value'], events['onset']
    trial, target, press = np.cumsum(value == START), np.isin(value, TARGETS), np.isin(value, PRESSES)
    reaction = np.full(len(onset), np.nan)
    for k in np.unique(trial[target]):
        change = np.flatnonzero(target & (trial == k))[0]
        pressed = np.flatnonzero(press & (trial == k))
        reaction[pressed] = onset[pressed] - onset[change]
        reaction[change] = min((t for t in reaction[pressed].tolist() if t >= 0), default=np.nan)
    kept = (value == START) | target | press
    table = {**events, 'type': np.where(press, 'Keystroke', 'Stimulus'), 'reaction_time': reaction}
    return {name: column[kept] for name, column in table.items()}
