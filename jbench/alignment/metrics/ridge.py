"""Least squares with and without a penalty, by n x n or p x p products, whichever are smaller."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .design import Fold, rows
from .products import product, threads

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
CLOSE = 1e-5  # errors in float32 (good to 1e-6) that lie so near the least are computed again in float64
LARGE = 1e7  # products a penalty from which the search runs in JAX
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
        with threads(len(y)):
            return Fitted(one.gram_test @ cho_solve(cho_factor(penalised), y), alpha)
    x, x_test = rows(one)
    penalised, covariance = product(x.T, x, 'float64') + alpha * np.eye(x.shape[1]), product(x.T, y, 'float64')
    with threads(x.shape[1]):
        coefficients = cho_solve(cho_factor(penalised), covariance)
    return Fitted(product(x_test, coefficients, 'float64'), alpha)


def least_squares(one: Fold, y: np.ndarray) -> Fitted:
    """Ordinary least squares with an intercept; of many solutions the one of least norm.

    Args:
        one: features.
        y: [n, q], centred.
    """
    from scipy.linalg import lstsq

    if one.gram is not None and one.gram_test is not None and len(one.gram) <= one.made.x.shape[1]:
        values, vectors = _eigh(one.gram)
        kept = values > values[-1] * len(values) * np.finfo(float).eps
        solved = vectors[:, kept] @ ((vectors[:, kept].T @ y) / values[kept][:, None])
        return Fitted(one.gram_test @ solved, 0.0)
    x, x_test = rows(one)
    least = max(x.shape) * float(np.finfo(x.dtype).eps)  # a direction below is rounding: centred rows always have one
    return Fitted(x_test @ lstsq(x.astype(float), y, cond=least, lapack_driver='gelsd')[0], 0.0)


def _eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and vectors."""
    with threads(len(matrix)):
        values, vectors = np.linalg.eigh(matrix)
    return values, vectors


def ridge_cv(one: Fold, y: np.ndarray, alphas: tuple[float, ...] = ALPHAS) -> Fitted:
    """Ridge regression with that one of the penalties whose leave-one-out error is least, one for all targets.

    Args:
        one: features.
        y: [n, q], centred.
        alphas: penalties, ascending.
    """
    n, given = len(y), np.asarray(alphas, float)
    if one.gram is not None and one.gram_test is not None:
        values, left = _eigh(one.gram)
        values = np.where(values > values[-1] * n * np.finfo(float).eps, values, 0)  # K has no direction of the mean
        turned = left.T @ y
        alpha = _best(left, values, turned, np.zeros_like(y), given)
        return Fitted(one.gram_test @ (left @ (turned / (values + alpha)[:, None])), alpha)
    x, x_test = rows(one)
    values, right = _eigh(product(x.T, x, 'float64'))
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    values, right = values[kept], right[:, kept]
    left = product(x, right, 'float64') / np.sqrt(values)
    turned = left.T @ y
    alpha = _best(left, values, turned, y, given)
    coefficients = right @ (turned * (np.sqrt(values) / (values + alpha))[:, None])
    return Fitted(product(x_test, coefficients, 'float64'), alpha)


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

    if n * left.shape[1] * turned.shape[1] < LARGE:
        return float(alphas[_plain(left, turned, base, shrink, diagonal).argmin()])
    rough = _searched((left, turned, base), shrink, diagonal, 'float32')
    near = np.flatnonzero(rough <= rough.min() * (1 + CLOSE))
    if len(near) == 1:
        return float(alphas[near[0]])
    exact = _searched((left, turned, base), shrink[:, near], diagonal[:, near], 'float64')
    return float(alphas[near[exact.argmin()]])


def _plain(
    left: np.ndarray, turned: np.ndarray, base: np.ndarray, shrink: np.ndarray, diagonal: np.ndarray
) -> np.ndarray:
    """The leave-one-out error of each penalty, one after the other."""
    found = []
    for s, d in zip(shrink.T, diagonal.T, strict=True):
        c = base + left @ (s[:, None] * turned)
        found.append(np.sum(np.einsum('nq,nq->n', c, c) / d**2))
    return np.array(found)


def _searched(
    given: tuple[np.ndarray, np.ndarray, np.ndarray], shrink: np.ndarray, diagonal: np.ndarray, dtype: str
) -> np.ndarray:
    """The same in JAX, some penalties at a time: as many as a batch holds, the last repeated to fill it."""
    import jax
    import jax.numpy as jnp

    n_alphas = shrink.shape[1]
    filled = np.minimum(np.arange(-(-n_alphas // BATCH) * BATCH), n_alphas - 1).reshape(-1, BATCH)
    scanned = [np.moveaxis(m[:, filled], 1, 0) for m in (shrink, diagonal)]  # [batch, n, penalty]
    with jax.enable_x64(dtype == 'float64'):
        found = _search()(*(jnp.asarray(np.asarray(m, dtype)) for m in (*given, *scanned)))
        return np.asarray(found).ravel()[:n_alphas].astype(float)


@functools.cache
def _search() -> Callable[..., Any]:
    """The compiled search."""
    import jax
    import jax.numpy as jnp

    def errors(u: Any, h: Any, base: Any, shrink: Any, diagonal: Any) -> Any:
        def batch(given: Any) -> Any:
            s, d = given
            c = jnp.matmul(u, (s[:, :, None] * h[:, None, :]).reshape(len(h), -1), precision='highest')
            c = c.reshape(len(u), s.shape[1], -1) + base[:, None]
            return jnp.sum(jnp.sum(c * c, axis=2) / d**2, axis=0)

        return jax.lax.map(batch, (shrink, diagonal))

    return jax.jit(errors)
