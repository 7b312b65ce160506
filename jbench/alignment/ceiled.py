"""A score beside its ceiling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import unknown

WEAK = 0.1  # a ceiling below it: little of the recording repeats, and what is divided by it says little


class CeiledScore(NamedTuple):
    """How brain-like a model is on one benchmark. nan: not defined, and a note says why."""

    value: float  # beside the ceiling; without one the raw score
    error: float  # of value: the raw error and the ceiling's, carried through the division
    raw: float  # before the ceiling
    raw_error: float
    ceiling: float | None
    ceiling_error: float | None
    values: np.ndarray  # the metric's own: [split, neuroid], [split], or what the metric says
    per_neuroid: np.ndarray  # [neuroid] mean over splits; empty where the metric has none
    per_split: np.ndarray  # [split] median over neuroids; empty where the metric has none
    notes: tuple[str, ...] = ()  # what a reader must know: no ceiling, above one, constant neuroids


class Scored(NamedTuple):
    """A score, what it rests on, and arrays for figures."""

    score: CeiledScore
    features: str  # SHA-256 of what the model answered
    arrays: dict[str, np.ndarray]


class Ratio(NamedTuple):
    """A value and its error."""

    value: float
    error: float


def _explained(r: float, e: float, c: float, ec: float) -> Ratio:
    """sign(r) r^2 / c (Brain-Score's r^2 / c, which calls an opposite prediction a good one, is the unsigned form)."""
    return Ratio(math.copysign(r * r, r) / c, math.hypot(2 * abs(r) / c * e, r * r / c**2 * ec))


def _unsigned(r: float, e: float, c: float, ec: float) -> Ratio:
    return Ratio(r * r / c, _explained(r, e, c, ec).error)


def _ratio(r: float, e: float, c: float, ec: float) -> Ratio:
    return Ratio(r / c, math.hypot(e / c, r / c**2 * ec))


def _squared(r: float, e: float, c: float, ec: float) -> Ratio:
    q = _ratio(r, e, c, ec)
    return Ratio(q.value**2, 2 * abs(q.value) * q.error)


def _root(r: float, e: float, c: float, ec: float) -> Ratio:
    """r / sqrt(c): of a ceiling that is a reliability (Rajalingham 2018)."""
    if c <= 0:
        return Ratio(math.nan, math.nan)
    return Ratio(r / math.sqrt(c), math.hypot(e / math.sqrt(c), r / (2 * c**1.5) * ec))


CEILED: dict[str, Callable[[float, float, float, float], Ratio]] = {
    'explained_variance': _explained,
    'explained_variance_unsigned': _unsigned,
    'ratio': _ratio,
    'ratio_squared': _squared,
    'ratio_root': _root,
}
NAMES = ('none', 'explained_variance_per_neuroid', 'above_chance', *CEILED)


def of_groups(
    measured: Measured, ceiling: Measured | None, how: str, groups: np.ndarray, *, chance: float | None = None
) -> CeiledScore:
    """The mean over groups of neuroids (subjects) of the score that each has by itself: its median over neuroids beside
    its own ceiling (Papale et al., Gifford et al. in Brain-Score).

    Args:
        measured: values [split, neuroid].
        ceiling: the same; a constant, which has no such values, is that of every group.
        how: as of `beside`.
        groups: whose each neuroid is, [neuroid].
        chance: of 'above_chance', the same for every group.

    Raises: RequestError, as `beside`.
    """
    each = []
    for name in np.unique(groups):
        mine = groups == name
        limit = None if ceiling is None else _part(ceiling, mine)
        each.append(beside(_part(measured, mine), limit, how, chance=chance))
    notes = [*measured.notes, *(f'ceiling: {n}' for n in (ceiling.notes if ceiling else ()))]
    notes += [n for one in each for n in one.notes]
    error = float(np.std([one.value for one in each]) / math.sqrt(len(each))) if len(each) > 1 else math.nan
    tops = [one.ceiling for one in each if one.ceiling is not None]
    return CeiledScore(
        value=float(np.mean([one.value for one in each])),
        error=error,
        raw=float(np.mean([one.raw for one in each])),
        raw_error=measured.error,
        ceiling=float(np.mean(tops)) if tops else None,
        ceiling_error=ceiling.error if ceiling is not None and tops else None,
        values=measured.values,
        per_neuroid=_by_neuroid(measured.values),
        per_split=np.empty(0),
        notes=(*dict.fromkeys(notes), f'the mean over {len(each)} groups of neuroids, each beside its own ceiling'),
    )


def _part(measured: Measured, mine: np.ndarray) -> Measured:
    if measured.values.ndim != 2:
        return measured
    values = measured.values[:, mine]
    medians = _by_split(values)
    there = medians[~np.isnan(medians)]
    return Measured(float(there.mean()) if len(there) else math.nan, measured.error, values)


def beside(
    measured: Measured, ceiling: Measured | None, how: str, *, chance: float | None = None, splits: bool = True
) -> CeiledScore:
    """A measured score beside its ceiling; what lies above one or has a weak ceiling is noted, never clipped.

    Args:
        measured: of the model.
        ceiling: None: there is none.
        how: 'none', a key of CEILED, 'above_chance' ((r - chance) / (c - chance)), or
            'explained_variance_per_neuroid' (the mean over neuroids of sign(r) r^2 / c of each).
        chance: of 'above_chance'.
        splits: whether the values are [split, neuroid] or [split]; else nothing is said of single ones.

    Raises: RequestError for another word.
    """
    if how not in NAMES:
        raise unknown('form of a ceiled score', how, NAMES)
    notes = list(measured.notes)
    empty = np.empty(0)
    per_neuroid, per_split = (_by_neuroid(measured.values), _by_split(measured.values)) if splits else (empty, empty)
    if ceiling is None or how == 'none':
        if how != 'none':
            notes.append('no ceiling: the score is raw')
        found, c = Ratio(measured.value, measured.error), None
    else:
        notes += [f'ceiling: {note}' for note in ceiling.notes]
        c = Ratio(ceiling.value, _finite(ceiling.error))
        found = _divided(measured, ceiling, c, how, chance, notes)
    if math.isnan(found.value) and not math.isnan(measured.value):
        notes.append('the ceiling gives no score: it is zero, negative, or not defined')
    if c is not None and 0 < c.value < WEAK:
        notes.append(f'weak ceiling, {c.value:.3g}: little of the recording repeats')
    if found.value > 1 and c is not None:
        notes.append(f'above its ceiling: {found.value:.4g}; the ceiling is an estimate, too')
    ends = (None, None) if c is None else (c.value, ceiling.error if ceiling is not None else None)
    return CeiledScore(
        value=found.value,
        error=found.error,
        raw=measured.value,
        raw_error=measured.error,
        ceiling=ends[0],
        ceiling_error=ends[1],
        values=measured.values,
        per_neuroid=per_neuroid,
        per_split=per_split,
        notes=tuple(notes),
    )


def _divided(
    measured: Measured, ceiling: Measured, c: Ratio, how: str, chance: float | None, notes: list[str]
) -> Ratio:
    if how == 'explained_variance_per_neuroid':
        return _neuroids(measured, ceiling, notes)
    if math.isnan(c.value) or c.value == 0:
        return Ratio(math.nan, math.nan)
    halves = measured.values, ceiling.values
    if how == 'ratio_root' and halves[0].ndim == 1 and halves[0].shape == halves[1].shape:
        return _halves(*halves)
    if how == 'above_chance':
        if chance is None or c.value == chance:
            return Ratio(math.nan, math.nan)
        return _ratio(measured.value - chance, _finite(measured.error), c.value - chance, c.error)
    if c.value < 0 and 'variance' in how:
        return Ratio(math.nan, math.nan)
    return CEILED[how](measured.value, _finite(measured.error), c.value, c.error)


def _halves(score: np.ndarray, ceiling: np.ndarray) -> Ratio:
    """Each half of the trials beside its own ceiling, s / sqrt(c): their mean and standard deviation."""
    each = np.array([s / math.sqrt(c) if c > 0 else math.nan for s, c in zip(score, ceiling, strict=True)])
    return Ratio(float(each.mean()), float(each.std()))


def _neuroids(measured: Measured, ceiling: Measured, notes: list[str]) -> Ratio:
    """The mean of sign(r) r^2 / c over neuroids whose ceiling is above zero."""
    r, c = _by_neuroid(measured.values), _by_neuroid(ceiling.values)
    with np.errstate(invalid='ignore'):
        usable = (c > 0) & ~np.isnan(r)
    if (left := int((~usable).sum())) > 0:
        notes.append(f'{left} of {len(c)} neuroids left out: no ceiling above zero, or no score')
    if not usable.any():
        return Ratio(math.nan, math.nan)
    each = np.copysign(r[usable] ** 2, r[usable]) / c[usable]
    error = float(each.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else math.nan
    return Ratio(float(each.mean()), error)


def _by_neuroid(values: np.ndarray) -> np.ndarray:
    """Mean over splits, NaN skipped; of [split, neuroid] alone."""
    return _mean(values, 0) if values.ndim == 2 else np.empty(0)


def _by_split(values: np.ndarray) -> np.ndarray:
    if values.ndim == 1:
        return values
    if values.ndim != 2:
        return np.empty(0)
    rows = [row[~np.isnan(row)] for row in values]
    return np.array([np.median(row) if len(row) else math.nan for row in rows])


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    there = ~np.isnan(values)
    n = there.sum(axis)
    return np.where(n > 0, np.where(there, values, 0).sum(axis) / np.maximum(n, 1), math.nan)


def _finite(error: float) -> float:
    """An error, and none where it is not defined."""
    return 0.0 if math.isnan(error) else error
