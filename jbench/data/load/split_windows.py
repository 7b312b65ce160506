"""Which windows of a prepared set train, validate and test, which are left out, and what makes that less than clean."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jbench.data.load.grouping import listed
from jbench.data.load.other_splits import suggestion
from jbench.data.load.splits import SPLITS, assign, check_shares
from jbench.data.recording import EVENT_TYPE
from jbench.data.windows import fitting
from jbench.events import Table
from jbench.spec.errors import RequestError, SplitError
from jbench.spec.task import ByBlock, ByGroup, Predefined, SplitSpec, Task, Where

TOUCH = 1e-6  # s: windows that share less than this do not overlap


class Division(NamedTuple):
    """The parts of a set of m windows."""

    part: np.ndarray  # [m] 'train' | 'valid' | 'test' | '' for none
    counted: np.ndarray  # bool [m]: the other windows are as if they were not there
    warnings: list[str]


def divide(events: Table, windows: Table, task: Task, dataset: str) -> Division:
    """Divide windows as a task asks: without its excluded subjects, by its split, less what it drops.

    Args:
        events: the event table, [n] rows.
        windows: columns 'event' (row of the trigger) and 'onset' (s, in its recording), [m] rows.
        task: as applied to the dataset.
        dataset: its name.
    Raises: RequestError for a split that makes no sense; SplitError for one that what is there does not allow, or that
    leaves a part without a window.
    """
    rows, mine = np.asarray(windows['event']), [e for e in task.exclude if e.dataset == dataset]
    windows = {**windows, 'duration': np.full(len(rows), task.window.duration)}
    before, after = (
        np.isin(events['subject'], [e.subject for e in mine if e.after_split is drawn]) for drawn in (False, True)
    )
    out, dropped = before | after, []
    for where in task.drop:
        gone = fitting(events, where) & ~out
        dropped.append(
            f'dropped once the split was drawn: {gone[rows].sum()} of {len(rows)} windows, those of {_words(where)}'
        )
        out |= gone

    def drawn(split: SplitSpec) -> np.ndarray:
        part = of_windows(events, windows, ~before, split)
        if lacking := [name for name in SPLITS if not (part[~out[rows]] == name).any()]:
            raise SplitError(f'the {lacking[0]} part holds no window; its groups have no event that makes one')
        return part

    try:
        part = drawn(task.split)
    except SplitError as error:
        asked = task.split
        if isinstance(asked, ByGroup) and (asked.fold or asked.folds):
            raise SplitError(f'{dataset}: {error}; fewer folds, or another split.by, may suit what is here') from None
        raise SplitError(f'{dataset}: {error}; {suggestion(events, windows, ~out, asked, drawn)}') from None
    others = getattr(task.split, 'within', '')  # windows of other units are meant to be in no part
    nowhere = 0 if others else int(((part == '') & ~before[rows]).sum())
    notes = [f'{nowhere} of {len(rows)} windows are in no part of the split'] if nowhere else []
    for e in mine:
        here = '' if e.subject in events['subject'] else ', of whom nothing was read'
        notes.append(f'excluded: subject {e.subject}{here}: {e.reason}')
    part[out[rows]] = ''
    notes = [*_overhang(events, windows), *check(events, windows, part, task.split), *notes, *dropped]
    return Division(part, ~out[rows], notes)


def drawn_from(events: Table, task: Task, dataset: str) -> Table:
    """The event table from which a split is drawn: without the subjects that are excluded before."""
    out = np.isin(events['subject'], [e.subject for e in task.exclude if e.dataset == dataset and not e.after_split])
    return {k: np.asarray(v)[~out] for k, v in events.items()}


def undivided(windows: Table) -> Division:
    """All windows in no part: what is there before a split is drawn."""
    n = len(windows['event'])
    return Division(np.full(n, '', '<U5'), np.ones(n, bool), [])


def _words(where: Where) -> str:
    least = '' if where.least is None else f'at least {where.least:g}'
    return ' '.join(t for t in ('' if where.keep else 'not', where.field, ', '.join(where.values), least) if t)


def of_windows(events: Table, windows: Table, used: np.ndarray, split: SplitSpec) -> np.ndarray:
    """The part of every window: 'train', 'valid', 'test', or '' for none, str [m].

    Args:
        events: the event table, [n] rows.
        windows: columns 'event' (row of the trigger), 'onset' and 'duration' (s, in its recording), [m] rows.
        used: bool [n]; the other rows of the table are as if they were not there.
        split: how; all windows of an event are in one part, but with ByBlock.
    Raises: as `assign`.
    """
    rows = np.asarray(windows['event'])
    if isinstance(split, ByBlock):
        return np.where(used[rows], _by_block(np.asarray(events['recording'])[rows], windows, split), '')
    of_event = np.full(len(used), '', dtype='U5')
    of_event[used] = assign({k: np.asarray(v)[used] for k, v in events.items()}, split)
    return of_event[rows]


def check(events: Table, windows: Table, part: np.ndarray, split: SplitSpec | None = None) -> list[str]:
    """What makes this split less than independent, one sentence a finding.

    Args:
        events: the event table, [n] rows.
        windows: columns 'event' (row of the trigger), 'onset' and 'duration' (s, in its recording), [m] rows.
        part: of every window, [m].
        split: how; with it, a subject in several splits is looked for.
    Raises:
        RuntimeError: the split is by subject, yet a subject is in several splits: a fault of the program.
    """
    rows = np.asarray(windows['event'])
    found = []
    by = split.by if isinstance(split, ByGroup) else split.valid_by if isinstance(split, Predefined) else ''
    if by == 'subject':
        owners: dict[str, set[str]] = {}
        for subject, name in {(str(s), str(p)) for s, p in zip(events['subject'][rows], part, strict=True) if p}:
            owners.setdefault(subject, set()).add(name)
        shared = sorted(s for s, names in owners.items() if len(names) > 1)
        if isinstance(split, ByGroup):  # of folds, rows of a subject may validate: of those that train, or that test
            beside = [{'train', 'valid'}] * bool(split.fold or split.folds)
            beside += [{'test', 'valid'}] * bool(split.validate_by)
            if any(owners[s] not in beside for s in shared):
                raise RuntimeError(f'split by subject, but {listed(shared)} are in several splits')
        if shared:
            found.append(f'{len(shared)} subjects are in several splits: {listed(shared)}')
    clash = _overlaps(np.asarray(events['recording'])[rows], windows, part)
    if clash.any():
        recordings = len(np.unique(np.asarray(events['recording'])[rows[clash]]))
        tests = int((clash & (part == 'test')).sum())
        found.append(
            f'{int(clash.sum())} of {int((part != "").sum())} windows ({tests} of them test) overlap in time with a '
            f'window of another split, in {recordings} recording{"s" * (recordings != 1)}'
        )
    return found


def _by_block(recording: np.ndarray, windows: Table, split: ByBlock) -> np.ndarray:
    """The part of every window [m]: that of the blocks it lies in, '' if it lies within `gap` s of another part.

    The time from the start of the first window of a recording to the end of its last is cut into `n` equal blocks.
    Each recording deals them anew, by (seed, its number). Raises: RequestError where a part gets no block.
    """
    check_shares(split)
    n_test = math.ceil(split.test * split.n)
    n_valid = math.ceil(split.valid / (1 - split.test) * (split.n - n_test))
    if split.n - n_test - n_valid < 1:
        raise RequestError(f'split.n={split.n}: {n_test} blocks to test and {n_valid} to validate leave none to train')
    dealt = np.repeat(['test', 'valid', 'train'], [n_test, n_valid, split.n - n_test - n_valid])
    start = np.asarray(windows['onset'], np.float64)
    stop = start + np.asarray(windows['duration'], np.float64)
    out = np.full(len(start), '', '<U5')
    for number in np.unique(recording):
        here = np.flatnonzero(recording == number)
        part = dealt[np.random.RandomState([split.seed, number]).permutation(split.n)]
        borders = np.linspace(start[here].min(), stop[here].max(), split.n + 1)[1:-1]
        low = np.searchsorted(borders, start[here] - split.gap, 'right')
        high = np.searchsorted(borders, stop[here] + split.gap, 'left')
        runs = np.concatenate([[0], np.cumsum(part[1:] != part[:-1])])  # neighbouring blocks of one part
        alone = runs[low] == runs[high]
        out[here[alone]] = part[low[alone]]
    return out


def _overhang(events: Table, windows: Table) -> list[str]:
    """A warning where windows run off their recording: what misses is zero."""
    whole = np.isin(events['type'], list(EVENT_TYPE.values()))
    ends = dict(zip(events['recording'][whole].tolist(), events['duration'][whole].tolist(), strict=True))
    last = np.array([ends.get(r, np.inf) for r in events['recording'][windows['event']].tolist()])
    n = int(((windows['onset'] < 0) | (windows['onset'] + windows['duration'] > last + 1e-6)).sum())
    return [f'{n} of {len(last)} windows run off their recording; what misses is filled with zeros'] if n else []


def _overlaps(recording: np.ndarray, windows: Table, part: np.ndarray) -> np.ndarray:
    """Which windows share time with a window of another split: bool [m]."""
    start = np.asarray(windows['onset'], np.float64)
    stop = start + np.asarray(windows['duration'], np.float64)
    clash = np.zeros(len(part), bool)
    order = np.argsort(recording, kind='stable')
    for here in np.split(order, np.flatnonzero(np.diff(recording[order])) + 1):
        here = here[part[here] != '']
        for name in np.unique(part[here]):
            others, rest = here[part[here] == name], here[part[here] != name]
            others = others[np.argsort(start[others], kind='stable')]
            reach = np.append(-np.inf, np.maximum.accumulate(stop[others]))
            begun = np.searchsorted(start[others], stop[rest] - TOUCH)  # windows of `name` that start before the stop
            clash[rest] |= reach[begun] > start[rest] + TOUCH
    return clash
