"""Events of datasets that MOABB reads, at their true onsets: its pipeline moves them by the start of an interval.

Most are marked as MOABB's pipeline finds them. Code-modulated flicker makes an event of every cycle of its code, and
two sets have their events in files that MOABB reads in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jbench.data.recording import RecordingRef
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne
    import numpy as np

Marks = tuple[Any, Any, Any]  # onsets (s), codes, durations (s; one for all, or one each)
# code-modulated flicker: seconds of a cycle of the code, and how many cycles of a trial count (1: the trial)
CYCLES = {
    'CabreraCastillos2023BurstCvep100': (2.2, 1),
    'CabreraCastillos2023BurstCvep40': (2.2, 1),
    'CabreraCastillos2023BurstVep100': (2.2, 1),
    'CabreraCastillos2023BurstVep40': (2.2, 1),
    'MartinezCagigal2023Dataset': (63 / 120, 8),
    'Thielen2015Broad': (126 / 120, 4),
    'Thielen2021From': (126 / 60, 15),
}
LENGTHS = {'2': 63, '3': 80, '5': 124, '7': 48, '11': 120}  # MartinezCagigal2024Dataset: frames, by base (session)


def event_table(dataset: Dataset, source: Any, raw: mne.io.BaseRaw, ref: RecordingRef) -> dict[str, np.ndarray]:
    """The events of a run, `Stimulus` with `code` and `label`, at their true onsets.

    Args:
        dataset: its `event_id` names the codes.
        source: MOABB's object for it.
        raw: the run as MOABB reads it; its annotations are changed.
        ref: which run it is.
    """
    import numpy as np

    if dataset.name in CYCLES:
        onset, code, duration = _cycles(raw, *CYCLES[dataset.name])
    elif dataset.name == 'MartinezCagigal2024Dataset':
        onset, code, duration = _cycles(raw, LENGTHS[ref.session.rpartition('base')[2]] / 120, 10)
    elif dataset.name in OWN:
        from scipy.io import loadmat

        (path,) = source.data_path(int(ref.subject))
        content = loadmat(path, struct_as_record=False, squeeze_me=True)
        onset, code, duration = OWN[dataset.name](content, float(raw.info['sfreq']))
    else:
        onset, code, duration = _marks(dataset, source, raw)
    names = {number: label for label, number in dataset.event_id}
    return {
        'onset': onset,
        'duration': np.broadcast_to(duration, onset.shape).astype(float),
        'type': np.full(len(onset), 'Stimulus'),
        'code': code,
        'label': np.array([names.get(int(c), '?') for c in code]),
    }


def _marks(dataset: Dataset, source: Any, raw: mne.io.BaseRaw) -> Marks:
    """The events as MOABB's pipeline names them, by an interval that begins at 0: that moves them by nothing."""
    import mne
    import numpy as np
    from moabb.datasets.preprocessing import SetRawAnnotations

    start, stop = source.interval
    raw = SetRawAnnotations(source.event_id, (0.0, stop - start)).transform(raw)
    found = mne.events_from_annotations(raw, dict(dataset.event_id))[0] if len(raw.annotations) else np.zeros((0, 3))
    return (found[:, 0] - raw.first_samp) / raw.info['sfreq'], found[:, 2].astype(int), stop - start


def _cycles(raw: mne.io.BaseRaw, cycle: float, most: int) -> Marks:
    """One event a whole cycle of the code until the next trial, at most `most` of them; the channel `stim_trial` marks
    the start of a trial by 200 and the symbol."""
    import mne
    import numpy as np

    sfreq = raw.info['sfreq']
    marks = mne.find_events(raw, stim_channel='stim_trial', shortest_event=0)
    start = (marks[:, 0] - raw.first_samp) / sfreq
    room = np.diff(np.append(start, raw.n_times / sfreq))
    n = np.full(len(start), 1) if most == 1 else np.minimum(room // cycle, most).astype(int)
    onset = np.concatenate([t + cycle * np.arange(k) for t, k in zip(start, n, strict=True)] or [np.zeros(0)])
    return onset, np.repeat(marks[:, 2] - 200, n), cycle


def _crosses(content: dict[str, Any], sfreq: float) -> Marks:
    """Reichert2020Impact: every display of crosses; Target is the one whose attended colour is on the right.

    `stim` [2, T, trials] marks green on the left, and green on the right; who means yes attends green.
    """
    import numpy as np

    experiment = content['bciexp']
    stim = np.asarray(experiment.stim, int)
    yes = np.array(
        [str(t).strip().lower() in ('yes', 'y', 'right', 'r', 'target', 'true') for t in experiment.intention]
    )
    side, sample, trial = np.nonzero(np.diff(stim, axis=1) > 0)
    code = np.where(side == yes[trial], 2, 1)
    onset = (trial * stim.shape[1] + sample + 1) / sfreq
    order = np.argsort(onset, kind='stable')
    return onset[order], code[order], 0.0


def _flights(content: dict[str, Any], sfreq: float) -> Marks:
    """Jao2023Eeg: one event a flight, from trigger 1 to the end of trigger 255, and how hard its pilot found it."""
    import numpy as np

    trigger, hard = np.asarray(content['data'].trigger), np.asarray(content['data'].subjective_report)[:, 2].astype(int)
    start = np.flatnonzero(np.diff((trigger == 1).astype(int)) == 1) + 1
    stop = np.flatnonzero(np.diff((trigger == 255).astype(int)) == -1) + 1
    if len(start) != len(hard) or len(stop) > len(start):
        raise RequestError(f'{len(start)} flights begin and {len(stop)} end, but {len(hard)} are judged')
    last = np.append(stop, start[len(stop) :])  # a flight without an end lasts 0 s
    return start / sfreq, hard, (last - start) / sfreq


OWN = {'Jao2023Eeg': _flights, 'Reichert2020Impact': _crosses}  # events that MOABB leaves in the files
