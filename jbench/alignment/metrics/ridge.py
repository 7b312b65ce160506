"""Least squares with and without a penalty, by n x n or p x p products, whichever are smaller."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .design import Fold, rows
from .products import product

# Brain-Score's: four small ones, then each decade more finely than the first
ALPHAS: tuple[float, ...] = (
    *(0.01, 0.1, 0.5, 1.0),
    *np.linspace(1e1, 1e2, 4, endpoint=False).tolist(),
    *np.linspace(1e2, 1e3, 18, endpoint=False).tolist(),
    *np.linspace(1e3, 1e4, 18, endpoint=False).tolist(),
    *np.linspace(1e4, 1e5, 18, endpoint=False).tolist(),
    *np.linspace(1e5, 1e6, 18, endpoint=False).tolist(),
    *np.linspace(1e6, 1e7, 19).tolist(),
)
CLOSE = 1e-3  # errors in float32 that lie so near the least are computed again in float64
BATCH = 6  # penalties per product of the search


class Fitted(NamedTuple):
    """Predictions, centred, and the penalty."""

    prediction: np.ndarray  # [m, q]
    alpha: float


def ridge(one: Fold, y: np.ndarray, alpha: float = 1.0) -> Fitted:
    """Ridge regression with an intercept.

    Args:
        one: features.
        y: [n, q], centred.
        alpha: penalty.
    """
    from scipy.linalg import cho_factor, cho_solve

    if one.gram is not None and one.gram_test is not None:
        penalised = one.gram + alpha * np.eye(len(one.gram))
        return Fitted(one.gram_test @ cho_solve(cho_factor(penalised), y), alpha)
    x, x_test = rows(one)
    dtype = one.made.dtype
    penalised = product(x.T, x, dtype) + alpha * np.eye(x.shape[1])
    return Fitted(product(x_test, cho_solve(cho_factor(penalised), product(x.T, y, dtype)), dtype), alpha)


def least_squares(one: Fold, y: np.ndarray) -> Fitted:
    """Ordinary least squares with an intercept; of many solutions the one of least norm.

    Args:
        one: features.
        y: [n, q], centred.
    """
    from scipy.linalg import lstsq

    if one.gram is not None and one.gram_test is not None and len(one.gram) <= one.made.x.shape[1]:
        values, vectors = np.linalg.eigh(one.gram)
        kept = values > values[-1] * len(values) * np.finfo(one.made.dtype).eps
        solved = vectors[:, kept] @ ((vectors[:, kept].T @ y) / values[kept][:, None])
        return Fitted(one.gram_test @ solved, 0.0)
    x, x_test = rows(one)
    least = max(x.shape) * float(np.finfo(x.dtype).eps)  # a direction below is rounding: centred rows always have one
    return Fitted(x_test @ lstsq(x.astype(float), y, cond=least, lapack_driver='gelsd')[0], 0.0)


def ridge_cv(one: Fold, y: np.ndarray, alphas: tuple[float, ...] = ALPHAS) -> Fitted:
    """Ridge regression with that one of the penalties whose leave-one-out error is least, one for all targets.

    Args:
        one: features.
        y: [n, q], centred.
        alphas: penalties, ascending.
    """
    n, given = len(y), np.asarray(alphas, float)
    if one.gram is not None and one.gram_test is not None:
        values, left = np.linalg.eigh(one.gram)
        values = np.where(values > values[-1] * n * np.finfo(float).eps, values, 0)  # K has no direction of the mean
        turned = left.T @ y
        alpha = _best(left, values, turned, np.zeros_like(y), given)
        return Fitted(one.gram_test @ (left @ (turned / (values + alpha)[:, None])), alpha)
    x, x_test = rows(one)
    dtype = one.made.dtype
    values, right = np.linalg.eigh(product(x.T, x, dtype))
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    values, right = values[kept], right[:, kept]
    left = product(x, right, dtype) / np.sqrt(values)
    turned = left.T @ y
    alpha = _best(left, values, turned, y, given)
    coefficients = right @ (turned * (np.sqrt(values) / (values + alpha))[:, None])
    return Fitted(product(x_test, coefficients, dtype), alpha)


def _best(left: np.ndarray, values: np.ndarray, turned: np.ndarray, base: np.ndarray, alphas: np.ndarray) -> float:
    """The penalty of least leave-one-out error: searched in float32, the nearest compared in float64.

    Residuals of leaving one out are c / d, alpha c = U s U'y with s = alpha / (values + alpha) and alpha d the diagonal
    of U s U', less 1/n of the intercept. Where U [n, r] does not span everything, the rest has s = 1: then `base` is y,
    and s is taken less 1.

    Args:
        left: U [n, r].
        values: eigenvalues [r].
        turned: U'y [r, q].
        base: zeros or y, [n, q].
        alphas: ascending.
    """
    n, spans = len(left), left.shape[0] == left.shape[1]
    shrink = alphas / (values[:, None] + alphas)  # [r, alpha]
    if not spans:
        shrink = shrink - 1
    diagonal = (0 if spans else 1) - 1 / n + (left * left) @ shrink  # [n, alpha]

    def errors(which: np.ndarray, dtype: str) -> np.ndarray:
        u, h, y, s = (np.asarray(m, dtype) for m in (left, turned, base, shrink))
        found = []
        for start in range(0, len(which), BATCH):
            some = which[start : start + BATCH]
            stacked = np.concatenate([s[:, k, None] * h for k in some], axis=1)
            c = (u @ stacked).reshape(n, len(some), -1) + y[:, None]
            found.append(np.sum(np.einsum('naq,naq->na', c, c) / diagonal[:, some] ** 2, axis=0))
        return np.concatenate(found)

    rough = errors(np.arange(len(alphas)), 'float32')
    near = np.flatnonzero(rough <= rough.min() * (1 + CLOSE))
    return float(alphas[near[errors(near, 'float64').argmin()]])
