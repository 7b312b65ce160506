"""Do a model and people err on the same images: error consistency, accuracy, distance of accuracies, shape bias."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import RequestError

AGGREGATES = ('signed', 'absolute')


class Answers(NamedTuple):
    """Who answered what rightly."""

    subjects: np.ndarray
    images: np.ndarray
    right: np.ndarray  # 1 right, 0 wrong, nan where a subject did not see an image, [subject, image]


def answers(right: np.ndarray, subject: np.ndarray, image: np.ndarray) -> Answers:
    """Trials of several subjects as a table of subjects and images, either sorted.

    Args:
        right: whether the answer was right, [trial].
        subject: who answered.
        image: what was shown.
    Raises:
        RequestError: lengths differ, or a subject saw an image twice.
    """
    if not len(right) == len(subject) == len(image):
        raise RequestError(f'answers: {len(right)} of {len(subject)} subjects to {len(image)} images, expected as many')
    subjects, row = np.unique(np.asarray(subject), return_inverse=True)
    images, column = np.unique(np.asarray(image), return_inverse=True)
    cell, n = np.unique(row * len(images) + column, return_counts=True)
    if (n > 1).any():
        who, what = divmod(int(cell[n.argmax()]), len(images))
        raise RequestError(
            f'answers: subject {subjects[who]} saw image {images[what]} {n.max()} times, expected once: tell sessions'
            ' or conditions apart in the names of images'
        )
    table = np.full((len(subjects), len(images)), np.nan)
    table[row, column] = right
    return Answers(subjects, images, table)


def kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Cohen's kappa of two lists of right and wrong answers to the same images (Geirhos et al. 2020, NeurIPS 33).

    Args:
        first: 1 right, 0 wrong, nan where there was no such image, [image].
        second: the same.
    Returns:
        nan where both are always right or both always wrong, and where no image is common.
    """
    there = ~(np.isnan(first) | np.isnan(second))
    a, b = first[there] > 0, second[there] > 0
    if not len(a):
        return float('nan')
    expected = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    return float('nan') if expected == 1 else float(((a == b).mean() - expected) / (1 - expected))


def error_consistency(
    model: np.ndarray, subjects: np.ndarray, condition: np.ndarray, *, aggregate: str = 'signed'
) -> Measured:
    """Kappa between a model and each subject, condition by condition.

    Args:
        model: 1 right, 0 wrong, [image].
        subjects: the same of each subject, nan for an image that was not shown, [subject, image].
        condition: of each image, [image].
        aggregate: 'signed', or 'absolute' as Brain-Score, where errors on opposite images count as on the same ones.
    Returns:
        Mean over conditions, then subjects; the standard deviation over both; [subject, condition].
    Raises:
        RequestError: lengths differ, nothing to compare.
    """
    pairs = [(np.asarray(model, float), row) for row in _rows(subjects, condition, 1)]
    return _kappas(pairs, condition, aggregate)


def error_consistency_ceiling(subjects: np.ndarray, condition: np.ndarray, *, aggregate: str = 'signed') -> Measured:
    """Kappa between all pairs of subjects, as `error_consistency`: a mean, which a model may exceed.

    Args:
        subjects: 1 right, 0 wrong, nan for an image that was not shown, [subject, image].
        condition: of each image, [image].
        aggregate: 'signed' or 'absolute'.
    Raises:
        RequestError: lengths differ, or there are fewer than two subjects.
    """
    pairs = list(itertools.combinations(_rows(subjects, condition, 2), 2))
    return _kappas(pairs, condition, aggregate)


def accuracy(choice: np.ndarray, truth: np.ndarray) -> Measured:
    """Share of right choices, the standard deviation of being right, and which were."""
    right = np.asarray(choice) == np.asarray(truth)
    if right.ndim != 1 or not right.size:
        raise RequestError(f'accuracy: {np.size(choice)} choices of {np.size(truth)} images: expected one each')
    return Measured(float(right.mean()), float(right.std()), right)


def accuracy_distance(model: np.ndarray, subjects: np.ndarray, *, cells: np.ndarray | None = None) -> Measured:
    """1 - |a - s| / max(s, 1 - s) of the accuracies a of a model and s of a subject, averaged over subjects.

    Args:
        model: 1 right, 0 wrong, [image].
        subjects: the same of each subject, nan for an image that was not shown, [subject, image].
        cells: of each image, the condition (or combination of them) whose accuracies are compared, [image]; None: all.
    Returns:
        Mean, standard deviation and values over subjects.
    Raises:
        RequestError: lengths differ.
    """
    cells = np.zeros(np.shape(subjects)[-1]) if cells is None else cells
    rows = _rows(subjects, cells, 1)
    return _distances([(np.asarray(model, float), row) for row in rows], cells)


def accuracy_distance_ceiling(subjects: np.ndarray, *, cells: np.ndarray | None = None) -> Measured:
    """`accuracy_distance` between all pairs of subjects."""
    cells = np.zeros(np.shape(subjects)[-1]) if cells is None else cells
    return _distances(list(itertools.combinations(_rows(subjects, cells, 2), 2)), cells)


def value_delta(first: float, second: float, *, scale: float = 1.0) -> float:
    """exp(-scale |first - second|): 1 where two values are equal."""
    return float(np.exp(-scale * abs(first - second)))


def shape_bias(choice: np.ndarray, shape: np.ndarray, texture: np.ndarray) -> float:
    """Share of choices of the shape among those of the shape or the texture, of images where the two differ (Geirhos
    et al. 2019, ICLR); nan where neither was ever chosen."""
    conflict = shape != texture
    by_shape, by_texture = (choice[conflict] == other[conflict] for other in (shape, texture))
    decided = by_shape.sum() + by_texture.sum()
    return float(by_shape.sum() / decided) if decided else float('nan')


def _rows(subjects: np.ndarray, condition: np.ndarray, least: int) -> np.ndarray:
    """Answers of subjects, checked."""
    rows = np.asarray(subjects, float)
    if rows.ndim != 2 or len(rows) < least or rows.shape[1] != len(condition) or not len(condition):
        raise RequestError(
            f'answers of subjects {rows.shape}, {len(condition)} conditions of images: expected [subject, image], at'
            f' least {least} subject{"s" * (least > 1)} and one condition an image'
        )
    return rows


def _kappas(pairs: Sequence[tuple[np.ndarray, np.ndarray]], condition: np.ndarray, aggregate: str) -> Measured:
    """Kappa of pairs of answers, [pair, condition]: aggregated over conditions, then pairs."""
    if aggregate not in AGGREGATES:
        raise RequestError(f'error consistency: aggregate {aggregate!r}, expected one of {", ".join(AGGREGATES)}')
    _same_length(pairs, condition)
    masks = [condition == c for c in np.unique(condition)]
    values = np.array([[kappa(a[mask], b[mask]) for mask in masks] for a, b in pairs])
    notes: tuple[str, ...] = ()
    if n := int(np.isnan(values).sum()):
        notes = (f'{n} of {values.size} values of kappa are not defined (both always right or wrong): left out',)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # of a mean of nothing
        value = float(np.nanmean(np.nanmean(values, 1)))
        error = float(np.nanstd(values))
    return Measured(abs(value) if aggregate == 'absolute' else value, error, values, notes)


def _distances(pairs: Sequence[tuple[np.ndarray, np.ndarray]], cells: np.ndarray) -> Measured:
    """Distance of accuracies of pairs of answers, averaged over the cells both have."""
    _same_length(pairs, cells)
    masks = [cells == c for c in np.unique(cells)]
    values = []
    for a, b in pairs:
        both = [mask & ~(np.isnan(a) | np.isnan(b)) for mask in masks]
        means = [(a[mask].mean(), b[mask].mean()) for mask in both if mask.any()]
        values.append(np.mean([1 - abs(x - y) / max(y, 1 - y) for x, y in means]) if means else np.nan)
    found = np.array(values)
    missing = int(np.isnan(found).sum())
    notes = (f'{missing} of {len(found)} subjects saw none of the images: left out',) if missing else ()
    if missing == len(found):
        return Measured(float('nan'), float('nan'), found, notes)
    return Measured(float(np.nanmean(found)), float(np.nanstd(found)), found, notes)


def _same_length(pairs: Sequence[tuple[np.ndarray, np.ndarray]], condition: np.ndarray) -> None:
    """Raise unless each has an answer an image."""
    for a, b in pairs:
        if a.shape != b.shape or a.shape != np.shape(condition):
            raise RequestError(f'answers of a model {a.shape}, of subjects {b.shape}: expected one an image')
