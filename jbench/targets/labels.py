"""Any number of labels a window."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from jbench.events import Table, as_text, column, overlapping, present, unique_sorted
from jbench.metrics import classification, weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.task import Labels
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, counted, require_finite, times

DUMMY_SEED = 33


def collect(target: Labels, events: Table, trigger_row: int, onset: float, duration: float) -> list[str]:
    """The distinct labels of all overlapping events of the type."""
    values = column(events, target.field)
    rows = overlapping(events, target.event, onset, duration)
    return list(unique_sorted(as_text(v) for v in values[rows[present(values[rows])]]))


def encode(target: Labels, raw: Sequence[Sequence[str]], classes: Sequence[str] | None) -> Encoded:
    """float32 0/1 [N, K]."""
    known = unique_sorted(v for row in raw for v in row) if classes is None else tuple(classes)
    return Encoded((counted(raw, known, target.field) > 0).astype(np.float32), known)


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output a label."""
    return int(y.shape[1])


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, K] both."""
    return y == outputs


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As float64. Raises: ValueError for a target that is not finite."""
    require_finite(y)
    return y.astype(np.float64)


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """f1_score_macro (threshold 0.5 after the sigmoid, plain mean over labels: a label that is neither true nor
    predicted counts 0), hamming (share of wrong label decisions), exact_match."""
    return classification.labels(outputs, y)


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """Labels that a subject never shows are left out of its mean F1: there it has none."""
    return by_subject(partial(classification.labels, only_true=True), outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """Labels that a draw lacks are left out."""
    return weighted.labels(outputs, y, owner, metric)


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """Each label drawn with its prevalence, RandomState(33), as +1 or -1."""
    prevalence = (y_fit > 0).mean(0)
    return np.where(np.random.RandomState(DUMMY_SEED).random_sample((n, len(prevalence))) < prevalence, 1.0, -1.0)


def class_weights(y: np.ndarray, n_out: int | None) -> np.ndarray:
    """n_negative / n_positive, 1 for a label without a positive window."""
    positive = (y > 0).sum(0)
    return np.where(positive > 0, (len(y) - positive) / np.maximum(positive, 1), 1.0).astype(np.float32)


def sklearn_outputs(model: Any, features: np.ndarray, n_out: int) -> np.ndarray:
    """Logits."""
    return np.asarray(model.decision_function(features), np.float64).reshape(len(features), n_out)


def counts(y: np.ndarray, names: Sequence[str], train: np.ndarray) -> Counts:
    """Windows that have each label."""
    return {f'class {name}': partial(times, y[:, k] > 0) for k, name in enumerate(names)}


def groups(y: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Numbers of the windows that have each label."""
    return {name: np.flatnonzero(y[:, k] > 0) for k, name in enumerate(names)}


def shares(y: np.ndarray, names: Sequence[str]) -> tuple[Sequence[str], np.ndarray]:
    """The share of windows that have each label."""
    return names, (y > 0).mean(0)


LABELS = Kind(
    'labels',
    collect,
    encode,
    n_out,
    fits,
    checked,
    evaluate,
    per_subject,
    by_weights,
    dummy,
    together=True,
    class_weights=class_weights,
    sklearn_outputs=sklearn_outputs,
    least=1,
    counts=counts,
    groups=groups,
    shares=shares,
)
