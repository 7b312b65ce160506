"""Which other split suits what is here, where the one that a task asks for does not: only what works is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from shlex import quote

import numpy as np

from jbench.events import Table, as_text, present
from jbench.spec.errors import RequestError
from jbench.spec.task import ByGroup, Predefined, SplitSpec

COLUMNS = ('subject', 'session', 'run', 'recording', 'onset')  # from coarse to fine
MOST = 8  # values that a message names for a test part


def suggestion(
    events: Table, windows: Table, used: np.ndarray, split: SplitSpec, parts: Callable[[SplitSpec], np.ndarray]
) -> str:
    """In words, the `--set` changes with which these windows have three parts, and two targets to learn.

    Args:
        events: the event table, [n] rows.
        windows: columns 'event' (row of the trigger) and, where known, 'target', [m] rows.
        used: bool [n]; rows that are neither excluded nor dropped.
        split: that is not possible.
        parts: the part of every window under another split, str [m]. Raises RequestError where that is not possible.
    """
    rows = np.asarray(windows['event'])
    targets = np.asarray(windows.get('target', np.zeros(len(rows))))
    here = used[rows]
    for other in _others({k: np.asarray(v)[rows[here]] for k, v in events.items()}, split):
        try:
            part = np.where(here, parts(other), '')
        except RequestError:
            continue
        learnt = len(np.unique(targets[part == 'train']))
        if {'train', 'valid', 'test'} <= set(part.tolist()) and learnt >= min(2, len(np.unique(targets[here]))):
            return f'what is here can be split with {_changes(split, other)}'
    return 'none that --set can name suits what is here: more recordings are needed'


def _others(triggers: Table, split: SplitSpec) -> Iterator[SplitSpec]:
    """Other splits of the same kind, those nearest to the asked one first."""
    columns = [name for name in COLUMNS if name in triggers]
    if isinstance(split, ByGroup):
        plain = replace(split, stratify=None)
        yield from (replace(plain, by=name) for name in (split.by, *columns))
    elif isinstance(split, Predefined):
        yield replace(split, valid_by='_index')
        for name in columns:
            values = list(dict.fromkeys(map(as_text, triggers[name][present(np.asarray(triggers[name]))])))
            test = tuple(values[:: max(5, -(-len(values) // MOST))])
            if not any(',' in value for value in test):
                yield replace(split, field=name, test=test, valid_by=name)


def _changes(split: SplitSpec, other: SplitSpec) -> str:
    """The arguments of the command that make one split of the other."""
    new = {k: v for k, v in vars(other).items() if v != getattr(split, k)}
    text = {k: ','.join(v) if isinstance(v, tuple) else 'none' if v is None else str(v) for k, v in new.items()}
    return ' '.join(f'--set split.{k}={quote(v) if v else v}' for k, v in text.items())
