"""A vector a window, made of its stimulus; answered by retrieval.

Of a stimulus, raw and encoded targets say only its name: its vector is one for all windows that show it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jbench.events import Table, as_text, column, overlapping, present
from jbench.metrics import retrieval, weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec import encoders
from jbench.spec.errors import RequestError
from jbench.spec.task import Embedding
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, require, require_finite


def collect(target: Embedding, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """Name and group of the stimulus of a window. A sound or film is named with the part of it that the window has.

    Raises: RequestError where no event shows a stimulus.
    """
    row = trigger_row
    if target.event:
        shown = overlapping(events, target.event, onset, duration)
        shown = shown[present(column(events, target.field)[shown])]
        if not len(shown):
            raise RequestError(f'window at {onset:g} s: no {target.event} event with a {target.field!r} overlaps it')
        row = int(shown[0])
    name, group = column(events, target.field), column(events, target.group)
    require(name, row, events, target.field, onset)
    owner = trigger_row if present(group[trigger_row : trigger_row + 1])[0] else row
    require(group, owner, events, target.group, onset)
    text = as_text(name[row])
    if encoders.find(target.encoder).timed:
        text = encoders.part_name(text, onset - float(events['onset'][row]), duration)
    return [text, as_text(group[owner])]


def encode(target: Embedding, raw: Sequence[Sequence[str]], classes: Sequence[str] | None) -> Encoded:
    """int64 [N], number of the stimulus among `classes`, and the group of each window."""
    names, number = np.unique([name for name, _ in raw], return_inverse=True)
    return Encoded(number.astype(np.int64), tuple(names.tolist()), tuple(group for _, group in raw))


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a dimension."""
    assert vectors is not None, 'a prepared set of an embedding has the vectors of its stimuli'
    return int(vectors.shape[1])


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, D] and [N]."""
    return y == outputs[:1]


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As they are."""
    return y


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """top5_acc and its kin (spec/metrics.py). Raises: ValueError for a target that is not finite."""
    vectors = about['vectors'][y]
    require_finite(vectors)
    return {**retrieval.evaluate(outputs, vectors, about['group'], about['subject'])}


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """The candidates are those of all subjects."""
    return retrieval.per_subject(outputs, about['vectors'][y], about['group'], subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted | None:
    """The candidates are those of all subjects, however often one is drawn; None for scores that are no share of
    hits of subjects."""
    if metric.startswith(('instance', 'batch')):
        return None
    right, whose = retrieval.hits(outputs, about['vectors'][y], about['group'], owner, metric)
    return weighted.hits(right, whose, int(owner.max()) + 1, metric)


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The mean."""
    if vectors is None:
        raise ValueError('no dummy for an embedding without the vectors of its stimuli')
    counts = np.bincount(y_fit, minlength=len(vectors))
    return np.tile(counts @ vectors.astype(np.float64) / counts.sum(), (n, 1))


def sklearn_y(y: np.ndarray, about: About) -> np.ndarray:
    """[N, D]."""
    return np.asarray(about['vectors'][y])


def counts(y: np.ndarray, names: Sequence[str], train: np.ndarray) -> Counts:
    """How many stimuli there are."""
    used = set(y[train].tolist())
    return {
        'stimuli': lambda part: len(set(y[part].tolist())),
        'stimuli that train too': lambda part: len(set(y[part].tolist()) & used),
    }


EMBEDDING = Kind(
    'embedding',
    collect,
    encode,
    n_out,
    fits,
    checked,
    evaluate,
    per_subject,
    by_weights,
    dummy,
    sklearn_y=sklearn_y,
    listed=False,
    counts=counts,
)
