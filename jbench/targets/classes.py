"""One class a window: of its trigger, or the state that overlaps it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from jbench.events import Table, as_text, column, overlapping, present, unique_sorted
from jbench.metrics import challenges, classification, retrieval, weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.task import Classes, StateClasses
from jbench.targets import cells
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, counted, every, lookup, require, times


def collect(target: Classes, events: Table, trigger_row: int, onset: float, duration: float) -> str:
    """The trigger's label."""
    values = column(events, target.field)
    require(values, trigger_row, events, target.field, onset)
    return as_text(values[trigger_row])


def collect_state(target: StateClasses, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """Labels of all overlapping events of the type (repeats kept)."""
    values = column(events, target.field)
    rows = overlapping(events, target.event, onset, duration)
    return [as_text(v) for v in values[rows[present(values[rows])]]]


def encode(target: Classes, raw: Sequence[str], classes: Sequence[str] | None) -> Encoded:
    """int64 [N]: sorted labels -> 0..K-1, or as the mapping says; a class is called by all labels mapped to it."""
    if target.mapping:
        index = dict(target.mapping)
        y = np.array([lookup(index, label, target.field) for label in raw], np.int64)
        names = ['|'.join(label for label, k in target.mapping if k == n) for n in range(max(index.values()) + 1)]
        return Encoded(y, tuple(names))
    known = unique_sorted(raw) if classes is None else tuple(classes)
    return Encoded(counted([[v] for v in raw], known, target.field).argmax(1), known)


def encode_state(target: StateClasses, raw: Sequence[Sequence[str]], classes: Sequence[str] | None) -> Encoded:
    """int64 [N]: the commonest state of a window, the first of equals; without one the last class, '(none)'."""
    known = unique_sorted(v for row in raw for v in row) if classes is None else tuple(classes)
    counts = counted(raw, known, target.field)
    absent = counts.sum(1, keepdims=True) == 0
    return Encoded(np.concatenate([counts, absent], 1).argmax(1), (*known, '(none)'))


def triggers(target: Classes, events: Table, rows: list[int]) -> list[int]:
    """Only events whose label begins with the prefix make windows."""
    if not target.prefix:
        return rows
    labels = column(events, target.field)
    return [i for i in rows if str(labels[i]).startswith(target.prefix)]


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a class."""
    return len(classes)


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, K] and [N]."""
    return y == outputs[:1]


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """Raises: ValueError for what is no class."""
    if y.dtype.kind not in 'iu' or y.min() < 0 or y.max() >= n_out:
        raise ValueError(f'classes must be integers in 0..{n_out - 1}, got {y.min()}..{y.max()} ({y.dtype})')
    return y


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """bal_acc, acc, f1_macro, auroc, auprc; of streams also bal_acc_cells (`challenges.balanced_accuracy`)."""
    return classification.classes(outputs, y) | cells.evaluate({'bal_acc_cells': _cell}, outputs, y, about)


def _cell(outputs: np.ndarray, y: np.ndarray) -> float:
    return challenges.balanced_accuracy(outputs.argmax(1), y)


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """A subject need not show every class (in a diagnosis task it shows one). So here, unlike in `evaluate`, classes
    without a window of the subject are left out of the mean of bal_acc, f1_macro and auroc (scikit-learn's rule for
    balanced accuracy): predicting them already lowers the scores of the others. Cells keep their own rule."""
    if metric == 'bal_acc_cells':
        return cells.per_subject(_cell, outputs, y, subjects, about)
    return by_subject(partial(classification.classes, only_true=True), outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """Classes that a draw lacks are left out."""
    if metric == 'bal_acc_cells':
        return cells.by_weights(_cell, outputs, y, owner, about)
    return weighted.classes(outputs, y, owner, metric)


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The most frequent class, the first of equals."""
    counts = np.bincount(y_fit, minlength=n_out or 0)
    return np.tile(np.eye(len(counts))[counts.argmax()], (n, 1))


def pooled(outputs: np.ndarray, y: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs are averaged as probabilities, and given as their logarithms; the class is the commonest one, the first
    of equals."""
    p = retrieval.means(np.exp(classification.log_probabilities(outputs)), unit)
    votes = np.zeros(p.shape, int)
    np.add.at(votes, (unit, y), 1)
    return classification.log_of(p), votes.argmax(1)


def class_weights(y: np.ndarray, n_out: int | None) -> np.ndarray:
    """scikit-learn's 'balanced' rule N / (number of observed classes * count), 1 for a class without windows."""
    counts = np.bincount(y, minlength=n_out or 0)
    seen = counts > 0
    return np.where(seen, len(y) / (seen.sum() * np.maximum(counts, 1)), 1.0).astype(np.float32)


def sklearn_outputs(model: Any, features: np.ndarray, n_out: int) -> np.ndarray:
    """Logarithms of probabilities, which are 0 for a class without a window to be fitted on."""
    p = np.zeros((len(features), n_out))
    p[:, model.classes_] = model.predict_proba(features)
    return classification.log_of(p)


def counts(y: np.ndarray, names: Sequence[str], train: np.ndarray) -> Counts:
    """Windows of each class."""
    return {f'class {name}': partial(times, y == k) for k, name in enumerate(names)}


def groups(y: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Numbers of the windows of each class."""
    return {name: np.flatnonzero(y == k) for k, name in enumerate(names)}


def shares(y: np.ndarray, names: Sequence[str]) -> tuple[Sequence[str], np.ndarray]:
    """The share of each class."""
    return names, np.bincount(y, minlength=len(names)) / y.size


CLASSES = Kind(
    'classes',
    collect,
    encode,
    n_out,
    fits,
    checked,
    evaluate,
    per_subject,
    by_weights,
    dummy,
    pooled,
    triggers=triggers,
    class_weights=class_weights,
    sklearn_outputs=sklearn_outputs,
    single=True,
    least=2,
    counts=counts,
    groups=groups,
    shares=shares,
)
STATE = CLASSES._replace(collect=collect_state, encode=encode_state, triggers=every, together=True)
