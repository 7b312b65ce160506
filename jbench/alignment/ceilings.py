"""How well the best model could do: the agreement of recordings with themselves, and of subjects with each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.spec.errors import RequestError

from .metrics.correlation import listed, over_splits, pearson, pearson_columns, ranks
from .metrics.measured import Measured
from .metrics.regression import regress_cv
from .metrics.similarity import upper
from .metrics.splits import Splits, splits

HALVES = Splits(n=10, train=0.5, seed=1)


class Bounds(NamedTuple):
    """Between what and what the score of a perfect model of all subjects lies."""

    upper: float  # of each subject with the mean of all
    lower: float  # of each subject with the mean of the others
    uppers: np.ndarray  # [subject]
    lowers: np.ndarray  # [subject]


# ---- split halves ----


def spearman_brown(r: np.ndarray) -> np.ndarray:
    """Reliability of all repetitions from that of halves, 2 r / (1 + r); not below -1, where the formula runs away."""
    r = np.asarray(r, float)
    with np.errstate(divide='ignore', invalid='ignore'):
        corrected = 2 * r / (1 + r)
    return np.where(r <= -1 / 3, -1.0, corrected)


def internal_consistency(trials: np.ndarray, *, how: Splits = HALVES) -> Measured:
    """Pearson r between means of halves of the repetitions, corrected by Spearman and Brown; the median over neuroids.

    A stimulus that lacks repetitions (nan) is halved by those it has, in the order drawn: with none missing the halves
    are scikit-learn's. The ten halves are not independent: the error is of the drawing of halves alone.

    Args:
        trials: [repetition, stimulus, neuroid], nan where there is none.
        how: number and seed of the random halves.

    Returns:
        `values` [split, neuroid] are corrected.

    Raises:
        RequestError: if no neuroid has three stimuli of two repetitions.
    """
    trials = np.asarray(trials, float)
    if trials.ndim != 3:
        raise RequestError(f'trials of shape {trials.shape}; [repetition, stimulus, neuroid]')
    counts = np.isfinite(trials).sum(axis=0)
    usable = counts >= 2
    if trials.shape[0] < 2 or not (usable.sum(axis=0) >= 3).any():
        raise RequestError(
            f'a ceiling by halves of {trials.shape[0]} repetitions, at most {counts.max(initial=0)} of a stimulus: it '
            'needs two repetitions of three stimuli at least; score without ceiling, or give raw trials, not their mean'
        )
    values = np.array([_halves(trials, rows) for rows in splits(len(trials), how)])
    return over_splits(values, _missing(counts, values))


def _missing(counts: np.ndarray, values: np.ndarray) -> tuple[str, ...]:
    """Notes of what was not there."""
    notes: tuple[str, ...] = ()
    single = np.atleast_1d((counts < 2).any(axis=1))
    if single.any():
        notes += (f'{single.sum()} of {len(single)} stimuli lack a second repetition of some neuroid: left out of it',)
    if counts.min() < counts.max():
        notes += (f'{counts.min()} to {counts.max()} repetitions of a stimulus',)
    gone = np.flatnonzero(np.isnan(values).all(axis=0))
    if len(gone):
        notes += (f'{listed("neuroid", gone)} constant, or of fewer than three stimuli: left out',)
    low = np.flatnonzero((values <= -1).any(axis=0))
    return notes + ((f'{listed("neuroid", low)} with halves of r <= -1/3: -1',) if len(low) else ())


def _halves(trials: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Corrected r of each neuroid between the means of two halves."""
    ordered = trials[np.concatenate(rows)]  # the repetitions of the first half first
    there = np.isfinite(ordered)
    if there.all():
        first, second = ordered[: len(rows[0])].mean(axis=0), ordered[len(rows[0]) :].mean(axis=0)
        return spearman_brown(pearson_columns(first, second))
    place, half = np.cumsum(there, axis=0), there.sum(axis=0) // 2
    filled = np.where(there, ordered, 0)
    early = there & (place <= half)
    late = there & (place > half)
    with np.errstate(invalid='ignore', divide='ignore'):
        first, second = ((filled * part).sum(axis=0) / part.sum(axis=0) for part in (early, late))
    out = np.full(trials.shape[2], np.nan)
    for k, ok in enumerate((half > 0).T):
        if ok.sum() >= 3:
            out[k] = pearson(first[ok, k], second[ok, k])
    return spearman_brown(out)


def internal_consistency_temporal(trials: np.ndarray, *, how: Splits = HALVES) -> tuple[Measured, ...]:
    """`internal_consistency` of each time bin, with the same halves in all.

    Args:
        trials: [repetition, stimulus, neuroid, time bin], nan where there is none.
        how: number and seed of the random halves.

    Raises:
        RequestError: as `internal_consistency`.
    """
    if np.ndim(trials) != 4:
        raise RequestError(f'trials of shape {np.shape(trials)}; [repetition, stimulus, neuroid, time bin]')
    return tuple(internal_consistency(trials[..., k], how=how) for k in range(trials.shape[3]))


# ---- subjects ----


def cross_subject(
    responses: Mapping[str, np.ndarray],
    *,
    name: str = 'pls',
    how: Splits | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    dtype: str = 'float32',
) -> Measured:
    """How well all other subjects together predict each, by the regression of the benchmark.

    Args:
        responses: [stimulus, neuroid] of each subject, the same stimuli in the same order.
        name: the regression.
        how: the splits; None: ten of 90 % and 10 %.
        labels: class of each stimulus, for splits of equal classes.
        dtype: of the features in memory, 'float32' or 'float64'; products are float64.

    Returns:
        The mean over subjects, its standard error over them, and `values` [subject].

    Raises:
        RequestError: with fewer than two subjects, or if their stimuli differ.
    """
    sizes = {subject: len(r) for subject, r in responses.items()}
    if len(sizes) < 2 or len(set(sizes.values())) > 1:
        raise RequestError(f'stimuli of each subject: {sizes}; two subjects at least, and the same stimuli of all')
    values, notes = [], []
    for subject, own in responses.items():
        others = np.concatenate([r for other, r in responses.items() if other != subject], axis=1)
        there = np.isfinite(others).all(axis=0)
        if not there.any():
            raise RequestError(f'no neuroid of the subjects beside {subject} has a response to every stimulus')
        measured = regress_cv(name, others[:, there], own, how=how, labels=labels, dtype=dtype)
        values.append(measured.value)
        notes += [f'{subject}: {note}' for note in measured.notes]
    return over_splits(np.array(values), tuple(notes))


def rsa_ceiling(rdms: np.ndarray) -> Bounds:
    """Spearman's rho of each subject's RDM with the mean of all (upper), and with that of the others (lower).

    Args:
        rdms: [subject, stimulus, stimulus].

    Raises:
        RequestError: with fewer than two subjects, or three stimuli.
    """
    lowers = leave_one_out(rdms, rank=True).values
    pairs = _pairs(rdms)
    mean = ranks(pairs.mean(axis=0))
    uppers = np.array([pearson(ranks(own), mean) for own in pairs])
    return Bounds(float(uppers.mean()), float(lowers.mean()), uppers, lowers)


def leave_one_out(matrices: np.ndarray, *, rank: bool = False) -> Measured:
    """Correlation of each subject's similarities or dissimilarities with the mean of the others.

    Args:
        matrices: [subject, stimulus, stimulus], symmetric.
        rank: Spearman's rho rather than Pearson's r.

    Returns:
        The mean over subjects, its standard error over them, and `values` [subject].

    Raises:
        RequestError: with fewer than two subjects, or three stimuli.
    """
    pairs = _pairs(matrices)
    total = pairs.sum(axis=0)
    way = _way(rank)
    return over_splits(np.array([way(own, (total - own) / (len(pairs) - 1)) for own in pairs]))


def against_subjects(matrix: np.ndarray, matrices: np.ndarray, *, rank: bool = True) -> Measured:
    """Correlation of a model's RDM or RSM with that of each subject, the score of an RSA benchmark before its ceiling.

    Args:
        matrix: [stimulus, stimulus] of the model.
        matrices: [subject, stimulus, stimulus].
        rank: Spearman's rho (RDMs) or Pearson's r (Coggan's RSMs).

    Returns:
        The mean over subjects, its standard error over them, and `values` [subject].

    Raises:
        RequestError: if the stimuli differ.
    """
    matrix, pairs = np.asarray(matrix, float), _pairs(matrices, 1)
    if matrix.shape != np.shape(matrices)[1:]:
        raise RequestError(f'a matrix of shape {matrix.shape} and of subjects {np.shape(matrices)}; the same stimuli')
    own, way = upper(matrix), _way(rank)
    if not np.isfinite(own).all():
        bad = int(((~np.isfinite(matrix)).sum(axis=0) >= len(matrix) - 1).sum())
        raise RequestError(f'the model has one response in all units to {bad} of {len(matrix)} stimuli: no RDM')
    return over_splits(np.array([way(own, subject) for subject in pairs]))


def _way(rank: bool) -> Callable[[np.ndarray, np.ndarray], float]:
    """Spearman's rho or Pearson's r of two vectors."""
    return (lambda a, b: pearson(ranks(a), ranks(b))) if rank else pearson


def _pairs(matrices: np.ndarray, least: int = 2) -> np.ndarray:
    """Pairs of stimuli of each subject, [subject, pair].

    Raises:
        RequestError: if they are not symmetric matrices of three stimuli and `least` subjects at least.
    """
    m = np.asarray(matrices, float)
    if m.ndim != 3 or m.shape[1] != m.shape[2] or len(m) < least or m.shape[1] < 3:
        raise RequestError(f'matrices of shape {m.shape}; [subject, stimulus, stimulus], {least} and 3 at least')
    pairs = np.array([upper(one) for one in m])
    if not np.isfinite(pairs).all():
        bad = np.flatnonzero(~np.isfinite(pairs).all(axis=1))
        raise RequestError(f'{listed("subject", bad)}: pairs that are not finite; leave out these stimuli of all')
    if not np.allclose(m, np.swapaxes(m, 1, 2), rtol=1e-5, atol=1e-8 * float(np.abs(pairs).max())):
        raise RequestError('matrices are not symmetric: an RDM is the same above and below its diagonal')
    return pairs
