"""Regressions from units of a model to neuroids: how well responses to new stimuli are predicted (Pearson r)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jbench.spec.errors import RequestError, unknown

from .correlation import flat, listed, over_splits, pearson_columns
from .design import Design, Fold, design, fold, rows
from .measured import Measured
from .pls import COMPONENTS, pls
from .products import product
from .ridge import least_squares, ridge, ridge_cv
from .splits import Splits, splits


class Predicted(NamedTuple):
    """What a regression says of stimuli that it has not seen."""

    prediction: np.ndarray  # [stimulus, neuroid]
    alpha: float | None = None  # the penalty, where one was chosen
    notes: tuple[str, ...] = ()


class Regression(NamedTuple):
    """A regression by name; `dual`: n x n products or p x p ones (None: by shape)."""

    name: str
    fit: Callable[[Fold, np.ndarray], Predicted]  # of training's targets [n, q], as they are
    dual: bool | None = None

    def __call__(self, x_train: np.ndarray, y_train: np.ndarray, x_test: np.ndarray, **how: Any) -> Predicted:
        """Fit and predict; `dtype` as in `regress_split`."""
        n, m = len(x_train), len(x_test)
        made = design(np.concatenate([x_train, x_test]), how.get('dtype', 'float32'), dual=self.dual)
        return self.fit(fold(made, np.arange(n), np.arange(n, n + m)), np.asarray(y_train, float))


def pls_of(components: int) -> Regression:
    """PLS of another number of components than 25."""
    return Regression('pls', partial(_pls, components=components))


def _pls(one: Fold, y: np.ndarray, components: int = COMPONENTS) -> Predicted:
    mean = y.mean(axis=0)
    fitted = pls(one, y - mean, components)
    few = fitted.components < components
    notes = (f'pls: {fitted.components} components for {components}, no more to be found',) if few else ()
    return Predicted(fitted.prediction + mean, None, notes)


def _ridge(one: Fold, y: np.ndarray) -> Predicted:
    mean = y.mean(axis=0)
    return Predicted(ridge(one, y - mean).prediction + mean)


def _ridge_cv(one: Fold, y: np.ndarray) -> Predicted:
    mean = y.mean(axis=0)
    fitted = ridge_cv(one, y - mean)
    return Predicted(fitted.prediction + mean, fitted.alpha)


def _least_squares(one: Fold, y: np.ndarray) -> Predicted:
    mean = y.mean(axis=0)
    return Predicted(least_squares(one, y - mean).prediction + mean)


def _best_unit(one: Fold, y: np.ndarray) -> Predicted:
    """For each neuroid the unit of the largest r in training (signed); its response is the prediction."""
    x, _ = rows(one)
    centred = y - y.mean(axis=0)
    norms = np.linalg.norm(x, axis=0).astype(float)
    alive = ~flat(one.made.x[one.train] + one.made.mean.astype(x.dtype))
    if not alive.any():
        nothing = np.tile(y.mean(axis=0), (len(one.test), 1))
        return Predicted(nothing, None, ('neuron_to_neuron: every unit is constant',))
    r = product(x[:, alive].T, centred, one.made.dtype) / norms[alive][:, None]
    pick = np.flatnonzero(alive)[r.argmax(axis=0)]
    return Predicted(one.made.x[np.ix_(one.test, pick)].astype(float) + one.made.mean[pick])


REGRESSIONS: dict[str, Regression] = {
    r.name: r
    for r in (
        Regression('pls', _pls),
        Regression('ridge', _ridge),
        Regression('ridgecv', _ridge_cv),
        Regression('linear_predictivity', _least_squares),
        Regression('neuron_to_neuron', _best_unit, dual=False),
        Regression('dual_ridge', _ridge, dual=True),
        Regression('dual_ridgecv', _ridge_cv, dual=True),
    )
}


def find(name: str | Regression) -> Regression:
    """A regression by its name.

    Raises:
        RequestError: if there is none of that name.
    """
    if isinstance(name, Regression):
        return name
    if name not in REGRESSIONS:
        raise unknown('regression', name, REGRESSIONS)
    return REGRESSIONS[name]


def regress_cv(
    name: str | Regression,
    x: np.ndarray,
    y: np.ndarray,
    *,
    how: Splits | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    dtype: str = 'float32',
) -> Measured:
    """Median over neuroids, mean over splits, of r between predicted and measured responses to stimuli left out.

    Args:
        name: a key of REGRESSIONS, or a regression.
        x: [stimulus, unit].
        y: [stimulus, neuroid], the same stimuli in the same order.
        how: the splits; None: ten of 90 % and 10 %.
        labels: class of each stimulus, for splits of equal classes.
        dtype: of the features in memory, 'float32' or 'float64'; products are float64.

    Raises:
        RequestError: if shapes differ, or stimuli are too few.
    """
    regression, y, kept, notes = find(name), *targets(x, y)
    drawn = splits(len(y), how, labels)
    made = design(x, dtype, dual=regression.dual)
    each = [_one(regression, made, rows, y, kept) for rows in drawn]
    alphas = [p.alpha for _, p in each if p.alpha is not None]
    notes += counted([note for _, p in each for note in p.notes], len(drawn))
    notes += (f'alpha: {", ".join(f"{a:g}" for a in alphas)}',) if alphas else ()
    return over_splits(np.array([r for r, _ in each]), notes)


def regress_split(
    name: str | Regression,
    x_train: np.ndarray,
    y_train: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    *,
    groups: Sequence[Any] | np.ndarray | None = None,
    dtype: str = 'float32',
) -> Measured:
    """Median over neuroids of r on test stimuli that are given; error is nan, as one split has none.

    Args:
        name: a key of REGRESSIONS, or a regression.
        x_train, x_test: [stimulus, unit].
        y_train, y_test: [stimulus, neuroid].
        groups: of each neuroid, as its subject: each group is fitted by itself, with a penalty of its own.
        dtype: of the features in memory, 'float32' or 'float64'; products are float64.

    Raises:
        RequestError: if shapes differ.
    """
    if x_train.shape[1:] != x_test.shape[1:] or y_train.shape[1:] != y_test.shape[1:]:
        raise RequestError(
            f'training: features {x_train.shape} and responses {y_train.shape}; test: {x_test.shape} and '
            f'{y_test.shape}; each has the same units and neuroids in both'
        )
    n, m = len(y_train), len(y_test)
    x = np.concatenate([x_train, x_test])
    regression, y, kept, notes = find(name), *targets(x, np.concatenate([y_train, y_test]))
    if n != len(x_train):
        raise RequestError(f'{len(x_train)} stimuli of training in features and {n} in responses')
    made = design(x, dtype, dual=regression.dual)
    split = np.arange(n), np.arange(n, n + m)
    owners = np.zeros(y.shape[1], int) if groups is None else np.asarray(groups).astype(str)
    if len(owners) != y.shape[1]:
        raise RequestError(f'{len(owners)} groups for {y.shape[1]} neuroids; one a neuroid')
    values = np.full((1, y.shape[1]), np.nan)
    for owner in dict.fromkeys(owners.tolist()):
        mine = owners == owner
        r, predicted = _one(regression, made, split, y, kept & mine)
        values[0, mine] = r[mine]
        who = '' if groups is None else f' of {owner}'
        notes += tuple(f'{note}{who}' for note in predicted.notes)
        notes += () if predicted.alpha is None else (f'alpha{who}: {predicted.alpha:g}',)
    return over_splits(values, notes)._replace(error=float('nan'))


def reverse_cv(
    name: str | Regression,
    x: np.ndarray,
    y: np.ndarray,
    *,
    how: Splits | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    dtype: str = 'float32',
) -> Measured:
    """`regress_cv` from neuroids to units of the model: its value is of units (reverse_pls).

    Brain-Score draws these splits in the order of the model's rows; here rows have one order.

    Args:
        name: a key of REGRESSIONS, or a regression.
        x: [stimulus, unit].
        y: [stimulus, neuroid], the same stimuli in the same order; neuroids with nan are left out.
        how, labels, dtype: as in `regress_cv`.

    Raises:
        RequestError: as `regress_cv`.
    """
    y, kept, notes = targets(x, y)
    measured = regress_cv(name, y[:, kept], np.asarray(x), how=how, labels=labels, dtype=dtype)
    return measured._replace(notes=notes + tuple(note.replace('neuroid', 'unit') for note in measured.notes))


def counted(said: list[str], n: int) -> tuple[str, ...]:
    """Each note once, and in how many of n splits it was said."""
    return tuple(f'{note} ({said.count(note)} of {n} splits)' for note in dict.fromkeys(said))


def targets(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Responses in float64, which neuroids have no nan, and what is to be noted."""
    y = np.asarray(y, float)
    if y.ndim != 2 or len(y) != len(x) or not y.size:
        raise RequestError(
            f'features of shape {np.shape(x)} and responses of shape {y.shape}; '
            '[stimulus, unit] and [stimulus, neuroid] of the same stimuli'
        )
    kept = np.isfinite(y).all(axis=0)
    if not kept.any():
        raise RequestError(f'responses: none of {y.shape[1]} neuroids has a finite response to every stimulus')
    gone = np.flatnonzero(~kept)
    return y, kept, (f'{listed("neuroid", gone)} left out: not measured for every stimulus',) if len(gone) else ()


def _one(
    regression: Regression, made: Design, split: tuple[np.ndarray, np.ndarray], y: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, Predicted]:
    """r of each neuroid in one split (nan where it is not fitted or does not vary), and the prediction."""
    train, test = split
    notes: tuple[str, ...] = ()
    fitted = kept.copy()
    fitted[kept] = ~flat(y[np.ix_(train, kept)])
    if (kept & ~fitted).any():
        notes += (f'{listed("neuroid", np.flatnonzero(kept & ~fitted))} constant in training: left out',)
    out = np.full(y.shape[1], np.nan)
    if not fitted.any():
        return out, Predicted(np.zeros((len(test), 0)), None, notes)
    predicted = regression.fit(fold(made, train, test), y[np.ix_(train, fitted)])
    out[fitted], said = score(predicted.prediction, y[np.ix_(test, fitted)], np.flatnonzero(fitted))
    return out, predicted._replace(notes=(*predicted.notes, *notes, *said))


def score(prediction: np.ndarray, measured: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """r of each neuroid over test stimuli, and notes; a constant prediction has r = 0, as it says nothing.

    Args:
        prediction, measured: [stimulus, neuroid].
        which: numbers of the neuroids, for the notes.

    Raises:
        RequestError: with one stimulus.
    """
    if len(measured) < 2:
        raise RequestError(f'{len(measured)} test stimulus; a correlation needs two at least')
    notes: tuple[str, ...] = ()
    r = pearson_columns(prediction, measured)
    silent = flat(measured)
    still = flat(prediction) & ~silent
    r[still] = 0
    if silent.any():
        notes += (f'{listed("neuroid", which[silent])} constant in test: no r',)
    if still.any():
        notes += (f'{listed("neuroid", which[still])} predicted to be constant: r = 0',)
    return r, notes
