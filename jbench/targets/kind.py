"""What is known of one kind of target, and what several kinds share.

An event table is a dict of equally long numpy columns (jbench/events.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.events import Table, as_text, present
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.errors import RequestError, unknown

About = Mapping[str, np.ndarray]  # of windows, beside their targets: subject, group, vectors
Each = dict[str, float]  # a score for each subject
Counts = dict[str, Callable[[np.ndarray], Any]]  # by what they are of: (numbers of windows) -> how many


class Encoded(NamedTuple):
    """Targets of all windows of a data set."""

    y: np.ndarray  # int64 [N] | float32 [N, K] (labels), [N, 1] (value) | int32 [N, length] (keystrokes)
    classes: tuple[str, ...]  # what 0..K-1 stand for (of an embedding: the stimuli); empty for a value
    groups: tuple[str, ...] = ()  # of each window: what is to be retrieved (embedding)


def _targets(y: np.ndarray, about: About) -> np.ndarray:
    return y


def every(target: Any, events: Table, rows: list[int]) -> list[int]:
    """All rows."""
    return rows


def _predicted(model: Any, features: np.ndarray, n_out: int) -> np.ndarray:
    return np.asarray(model.predict(features), np.float64).reshape(len(features), n_out)


def _none(y: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    return {}


class Kind(NamedTuple):
    """A kind of target: its functions and facts, by which everything else handles it."""

    name: str  # in a prepared set, where states are classes like others
    # ---- from events to arrays ----
    collect: Callable[..., Any]  # (target, events, trigger_row, onset, duration) -> raw target of a window, JSON
    encode: Callable[..., Encoded]  # (target, raw, classes or None) -> targets of all windows
    n_out: Callable[[np.ndarray, Sequence[str], np.ndarray | None], int]  # (y, classes, vectors) -> width of the output
    # ---- scores; the numbers come from jbench/metrics ----
    fits: Callable[[tuple[int, ...], tuple[int, ...]], bool]  # shapes of outputs [N, K] and of targets
    checked: Callable[[np.ndarray, int], np.ndarray]  # (y, K) -> y as scores want it; ValueError
    evaluate: Callable[[np.ndarray, np.ndarray, About], Scores]  # (outputs, y, about) -> all scores
    # (outputs, y, subjects, about, metric) -> the metric for each subject
    per_subject: Callable[[np.ndarray, np.ndarray, np.ndarray, About, str], Each]
    # (outputs, y, number of each window's subject, about, metric) -> the metric by how often each subject counts; None:
    # it is no score of subjects
    by_weights: Callable[[np.ndarray, np.ndarray, np.ndarray, About, str], Weighted | None]
    # (y to fit on, windows to predict, n_out, vectors) -> outputs of the rule that looks at no signal
    dummy: Callable[[np.ndarray, int, int | None, np.ndarray | None], np.ndarray]
    # (outputs, y, unit int [N]) -> outputs and y of each unit, a recording or a subject; None: they are not averaged
    pooled: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    # (outputs, y) -> the error of each window f64 [N], of which the headline is the mean; None: it is no such mean
    errors: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    # ---- windows ----
    triggers: Callable[[Any, Table, list[int]], list[int]] = every  # (target, events, rows) -> those that make windows
    measured: bool = False  # raw targets are channels of a recording: `collect` has none
    together: bool = False  # triggers may start together: what they say is not the target
    # ---- learning ----
    class_weights: Callable[[np.ndarray, int | None], np.ndarray] | None = None  # (y, n_out) -> f32 [n_out]
    # (y, n_out) -> what a model that gives n_out numbers is taught, where y has more
    answered: Callable[[np.ndarray, int], np.ndarray] = lambda y, n_out: y
    sklearn_y: Callable[[np.ndarray, About], np.ndarray] = _targets  # what an estimator of scikit-learn is fitted to
    # (fitted estimator, features, n_out) -> its outputs f64 [N, n_out]
    sklearn_outputs: Callable[[Any, np.ndarray, int], np.ndarray] = _predicted
    # ---- facts ----
    single: bool = False  # y [N] is the number of one class
    least: int = 0  # classes that there must be, to be told apart
    frames: bool = False  # an answer is a path of any number of frames, y [N, length] a sequence
    listed: bool = True  # a result lists what the outputs stand for; False: these are stimuli, and may be many
    # ---- what --stage=check shows ----
    counts: Callable[[np.ndarray, Sequence[str], np.ndarray], Counts] = lambda y, names, train: {}
    groups: Callable[[np.ndarray, Sequence[str]], dict[str, np.ndarray]] = _none  # (y, names) -> windows of a class
    # (y of a part, names) -> those shown, and the share of each; None: y is a number, or a stimulus
    shares: Callable[[np.ndarray, Sequence[str]], tuple[Sequence[str], np.ndarray]] | None = None


def by_subject(
    evaluate: Callable[[np.ndarray, np.ndarray], Scores],
    outputs: np.ndarray,
    y: np.ndarray,
    subjects: np.ndarray,
    metric: str,
) -> Each:
    """One score for each subject [N], of its windows alone, sorted by name; those without one are left out."""
    names, owner = np.unique(np.asarray(subjects, str), return_inverse=True)
    order = np.argsort(owner, kind='stable')
    scores: Each = {}
    for name, rows in zip(names, np.split(order, np.cumsum(np.bincount(owner))[:-1]), strict=True):
        value = headline(evaluate(outputs[rows], y[rows]), metric)
        if value is not None:
            scores[str(name)] = value
    return scores


def headline(metrics: Mapping[str, float | None], name: str) -> float | None:
    """The score called `name`. Raises: KeyError naming the scores there are."""
    if name not in metrics:
        raise KeyError(f'no metric {name!r} among {", ".join(sorted(metrics))}')
    return metrics[name]


def require(values: np.ndarray, row: int, events: Table, field: str, onset: float) -> None:
    """Raises: RequestError where an event has no value in a column."""
    if not present(values[row : row + 1])[0]:
        where = f'event {row} (type {as_text(events["type"][row])!r}, window at {onset:g} s)'
        raise RequestError(f'{where} has no {field!r}: it can not trigger a window of this task')


def lookup(index: Mapping[str, int], label: str, field: str) -> int:
    """The number of a label. Raises: RequestError with the labels there are."""
    if label not in index:
        raise unknown(f'value of {field!r}', label, index)
    return index[label]


def require_finite(y: np.ndarray) -> None:
    """Raises: ValueError for targets [N, K] that are not finite, however good the outputs."""
    if bad := int((~np.isfinite(y)).any(1).sum()):
        raise ValueError(f'{bad} of {len(y)} targets are not finite')


def counted(rows: Iterable[Sequence[str]], known: Sequence[str], field: str) -> np.ndarray:
    """How often each of the known labels stands in each row: int64 [N, K]."""
    index = {label: i for i, label in enumerate(known)}
    rows = list(rows)
    counts = np.zeros((len(rows), len(known)), np.int64)
    for i, row in enumerate(rows):
        for label in row:
            counts[i, lookup(index, label, field)] += 1
    return counts


def times(mine: np.ndarray, part: np.ndarray) -> int:
    """How many windows of a part are among `mine`, bool [N]."""
    return int(mine[part].sum())
