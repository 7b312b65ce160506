"""Scores that are means over the cells of streams (Task.stream): `about` holds the `cell` of each window, text [N].

A cell is of one subject, so that the mean over cells follows from how often each subject counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jbench.metrics import challenges, weighted
from jbench.metrics.challenges import Score
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.targets.kind import About, Each


def evaluate(scores: Mapping[str, Score], outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """The mean over cells of each score, None where no cell has one; nothing of windows that are in no cell."""
    if 'cell' not in about:
        return {}
    found = {name: challenges.of_cells(score, outputs, y, about['cell'])[0] for name, score in scores.items()}
    return {name: float(values.mean()) if len(values) else None for name, values in found.items()}


def per_subject(score: Score, outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About) -> Each:
    """The mean over the cells of each subject that has one with a score, sorted by name."""
    values, first = challenges.of_cells(score, outputs, y, about['cell'])
    owner = np.asarray(subjects, str)[first]
    return {str(name): float(values[owner == name].mean()) for name in np.unique(owner)}


def by_weights(score: Score, outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About) -> Weighted:
    """The mean over cells by how often each subject counts; owner: int [N], number of the subject of each window."""
    values, first = challenges.of_cells(score, outputs, y, about['cell'])
    return weighted.cells(values, owner[first], int(owner.max()) + 1)
