"""What recorders and people mark in a recording: where it is bad, cut, or not recorded at all (MNE's words and rule).

In an event table these are rows of the types `BAD`, `TWICE` and `PAST`, which make no windows; a window that a row of
type `BAD` overlaps is left out, as by MNE's `reject_by_annotation`. A row of type `PAST` stands for the stimuli of a
recording whose windows would run off its end: its source leaves all of them out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jbench.data.recording import EVENT_TYPE
from jbench.spec.task import Task

if TYPE_CHECKING:
    import mne
    import numpy as np

    from jbench.events import Table

BAD, TWICE, PAST = KINDS = ('Bad', 'Duplicate', 'PastEnd')  # types of events that are marks
WHY = 'marked'  # the column that holds the words of a mark
SKIP = 'BAD_ACQ_SKIP'  # what was never recorded, as Neuromag files have it: zeros
_CUT = re.compile(r'(edge )?boundary|New Segment/.*', re.IGNORECASE)  # at one moment, whatever duration it says
_BAD = re.compile(r'(?i:bad[ _].*)|BAD')  # not 'bad' alone, which may be an answer


def is_cut(text: str) -> bool:
    """Whether an annotation says that the signal goes on elsewhere (EEGLAB and BIDS give it the length of what was cut
    out, which is not in the file)."""
    return _CUT.fullmatch(text) is not None


def is_bad(text: str) -> bool:
    """Whether an annotation says that what it covers is bad: BAD, BAD_blink, bad segment."""
    return _BAD.fullmatch(text) is not None


def skipped(raw: mne.io.BaseRaw) -> np.ndarray | None:
    """Which samples were never recorded: bool [T]; None where all were."""
    import numpy as np

    found = None
    for mark in raw.annotations:
        if mark['description'].upper() == SKIP:
            found = np.zeros(raw.n_times, bool) if found is None else found
            start = (mark['onset'] - raw.first_time) * raw.info['sfreq']
            found[max(0, round(start)) : max(0, round(start + mark['duration'] * raw.info['sfreq']))] = True
    return found


def overlapped(events: Table, task: Task, starts: list[float]) -> list[str]:
    """What is bad in each window that begins at one of `starts` (s), '' for nothing: a mark that begins before the
    window ends and ends after it begins. The baseline is of the window."""
    import numpy as np

    from jbench.events import column

    rows = np.flatnonzero(events['type'] == BAD)
    if not len(rows):
        return [''] * len(starts)
    low, high = task.signal.baseline or (0.0, 0.0)
    first, last = min(low, 0.0), max(high, task.window.duration)
    onset, why = events['onset'][rows], column(events, WHY)[rows]
    stop = onset + events['duration'][rows]
    hits = [np.flatnonzero((onset < t + last) & (stop > t + first)) for t in starts]
    return [str(why[hit[0]]) if len(hit) else '' for hit in hits]


def counted(events: Table, taken: list[str], trigger: str) -> dict[str, Any]:
    """What `told` needs of one recording: windows that each kind of mark takes, events that stood there twice, and
    whether its source left out the events of the type `trigger`, of which windows are made."""
    kinds = events['type']
    past = trigger not in EVENT_TYPE.values() and bool((kinds == PAST).any())
    return {'marked': dict(Counter(filter(None, taken))), 'twice': int((kinds == TWICE).sum()), 'past': past}


def told(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """What a set says of its marks; `parts`: of each recording its name, and what is known of it."""
    notes, why = [], Counter[str]()
    for _, part in parts:
        why.update(part.get('marked', {}))
    if n := why.total():
        n_all = n + sum(part['n_windows'] for _, part in parts)
        kinds = ', '.join(f'{kind}: {k}' for kind, k in why.most_common())
        where = _some([name for name, part in parts if part.get('marked')])
        notes.append(f'marked bad: {n} of {n_all} windows are left out ({kinds}), in {where}')
    if n := sum(part.get('twice', 0) for _, part in parts):
        where = _some([name for name, part in parts if part.get('twice')])
        notes.append(f'duplicate events: {n} that stood there before are left out, in {where}')
    if ended := [name for name, part in parts if part.get('past')]:
        which = f'{len(ended)} of {len(parts)} recordings are left out, whose last windows run off their files'
        notes.append(f'past the end: {which}: {_some(ended)}')
    return notes


def _some(names: list[str], most: int = 3) -> str:
    more = f' and {len(names) - most} more recordings' if len(names) > most else ''
    return ', '.join(names[:most]) + more
