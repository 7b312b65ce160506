"""Which window belongs to which: the moment of a film that several people see, and the window that comes next.

Targets are two numbers a window; outputs are vectors of `WIDTH` numbers, which are compared with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jbench.events import Table, as_text, column
from jbench.metrics import contrast, weighted
from jbench.metrics.contrast import Ranks
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.task import Moment, Next
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, require

WIDTH = 32  # numbers that a network answers
TOP = (1, 5)
Ranked = Callable[[np.ndarray, np.ndarray, np.ndarray], Ranks]


def collect_moment(target: Moment, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """The moment (film and s since its start; of several datasets as one the dataset, too) and who sees it.

    Raises: RequestError for an event without a film.
    """
    film = column(events, target.field)
    require(film, trigger_row, events, target.field, onset)
    at = onset - float(events['onset'][trigger_row])
    of = f'{as_text(events["dataset"][trigger_row])}/' if 'dataset' in events else ''
    return [f'{of}{as_text(film[trigger_row])}@{at:.1f}', as_text(column(events, 'subject')[trigger_row])]


def collect_next(target: Next, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """The recording and event that hold the window, and when it begins, in lengths of a window."""
    names = (as_text(column(events, name)[trigger_row]) for name in ('subject', 'session', 'run'))
    at = (onset - float(events['onset'][trigger_row])) / duration
    return ['/'.join([*names, str(trigger_row)]), f'{at:.2f}']


def encode_moment(target: Moment, raw: Sequence[Sequence[str]], classes: Sequence[str] | None) -> Encoded:
    """int64 [N, 2]: numbers of the moment and of who sees it."""
    numbers = [np.unique([row[k] for row in raw], return_inverse=True)[1] for k in range(2)]
    return Encoded(np.stack(numbers, 1).astype(np.int64), ())


def encode_next(target: Next, raw: Sequence[Sequence[str]], classes: Sequence[str] | None) -> Encoded:
    """int64 [N, 2]: number of the recording, and which of its windows it is, counted in lengths of a window."""
    names, number = np.unique([row[0] for row in raw], return_inverse=True)
    at, first = np.array([float(row[1]) for row in raw]), np.full(len(names), np.inf)
    np.minimum.at(first, number, at)
    return Encoded(np.stack([number, np.rint(at - first[number])], 1).astype(np.int64), ())


def asks_moment(y: np.ndarray) -> bool:
    """Whether somebody else saw the moment of any window, y [N, 2]."""
    return len(np.unique(y, axis=0)) > len(np.unique(y[:, 0]))


def asks_next(y: np.ndarray) -> bool:
    """Whether any window, y [N, 2], has a next one."""
    there = {*map(tuple, y.tolist())}
    return any((recording, place + 1) in there for recording, place in there)


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """Always the same."""
    return WIDTH


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, WIDTH] and [N, 2]."""
    return y == (outputs[0], 2) and outputs[1] == WIDTH


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As they are."""
    return y


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """Random vectors: those that are all alike would share one rank, and never hit."""
    return np.random.default_rng(0).standard_normal((n, WIDTH))


def _top(metric: str) -> int:
    return int(metric.rpartition('_top')[2])


def _evaluate(outputs: np.ndarray, y: np.ndarray, about: About, *, name: str, ranked: Ranked) -> Scores:
    ranks, _ = ranked(outputs, y[:, 0], y[:, 1])
    return {f'{name}_top{k}': float((ranks < k).mean()) if len(ranks) else None for k in TOP}


def _per_subject(
    outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str, *, ranked: Ranked
) -> Each:
    """The share of hits of each subject; the candidates are those of all."""
    ranks, asked = ranked(outputs, y[:, 0], y[:, 1])
    right, whose = ranks < _top(metric), np.asarray(subjects, str)[asked]
    return {str(s): float(right[whose == s].mean()) for s in np.unique(whose)}


def _by_weights(
    outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str, *, ranked: Ranked
) -> Weighted | None:
    """The candidates are those of all subjects, however often one is drawn."""
    ranks, asked = ranked(outputs, y[:, 0], y[:, 1])
    return weighted.hits(ranks < _top(metric), owner[asked], int(owner.max()) + 1, metric) if len(ranks) else None


def _counts(y: np.ndarray, names: Sequence[str], train: np.ndarray, *, what: str) -> Counts:
    return {what: lambda part: len(np.unique(y[part][:, 0]))}


def _kind(name: str, collect: Callable[..., Any], encode: Callable[..., Encoded], ranked: Ranked, what: str) -> Kind:
    return Kind(
        name,
        collect,
        encode,
        n_out,
        fits,
        checked,
        partial(_evaluate, name=name, ranked=ranked),
        partial(_per_subject, ranked=ranked),
        partial(_by_weights, ranked=ranked),
        dummy,
        listed=False,
        counts=partial(_counts, what=what),
    )


ASKS = {  # by kind: whether windows ask anything, and what they lack where none does
    'moment': (asks_moment, 'shows a moment that another person saw, too'),
    'next': (asks_next, 'has one that comes after it'),
}
MOMENT = _kind('moment', collect_moment, encode_moment, contrast.moments, 'moments')
NEXT = _kind('next', collect_next, encode_next, contrast.following, 'recordings')
