"""Partial least squares as scikit-learn's PLSRegression fits it (NIPALS, scale=False), without its passes over X.

NIPALS alternates w = X'u, t = Xw, c = Y't, u = Yc until w stands still, which is a power iteration on M = Y'XX'Y
(targets x targets, or stimuli x stimuli where those are fewer). It is run on M, from the same start and with the same
rule when to stop, because scikit-learn stops it early (tolerance 1e-6) and its weights depend on where. X is touched
once, for its products; a component then costs what M and one product with the Gram matrix cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .design import Fold, rows
from .products import product, threads

COMPONENTS = 25
MAX_ITER, TOLERANCE = 500, 1e-6  # scikit-learn's
GONE = 1e-13  # of the covariance that there was: what is left is rounding


class Fitted(NamedTuple):
    """Predictions, centred, and of how many components."""

    prediction: np.ndarray  # [m, q]
    components: int


def pls(one: Fold, y: np.ndarray, components: int = COMPONENTS) -> Fitted:
    """Fit by the rows of training, predict those of test; fewer components where no more can be found.

    Args:
        one: features.
        y: [n, q], centred.
        components: at most.
    """
    n, p = len(one.train), one.made.x.shape[1]
    most = min(components, n - 1, p)
    if one.gram is not None and one.gram_test is not None:
        with threads(n):
            return _dual(one.gram, one.gram_test, y, most)
    with threads(p):
        return _primal(*rows(one), y, most)


def _power(m: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The y weights from which NIPALS takes its x weights.

    Those of c are Sc, S = X'Y: the cosine of two in a row is c'Mc_old over the roots of c'Mc and of that before.
    """
    c, image = start, m @ start
    size = c @ image
    for _ in range(MAX_ITER - 1 if len(start) > 1 else 0):
        new = image / np.sqrt(image @ image)
        new_image = m @ new
        new_size = new @ new_image
        if new_size <= 0:  # nothing but rounding
            break
        moved = 2 - 2 * (new @ image) / np.sqrt(new_size * size)
        c, image, size = new, new_image, new_size
        if moved < TOLERANCE:
            break
    return c


def _smaller(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y [a, q] as r [a, min(a, q)] @ basis' with basis [q, min(a, q)] orthonormal: NIPALS does not see the rotation."""
    if y.shape[1] <= y.shape[0]:
        return y, np.eye(y.shape[1])
    basis, r = np.linalg.qr(y.T)
    return r.T, basis


def _start(y: np.ndarray, basis: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
    """Weights that pick the first target with anything left, as NIPALS starts; None: nothing is left."""
    for j in range(len(basis)):
        if np.linalg.norm(y @ basis[j]) > 1e-10 * scale[j]:
            return np.array(basis[j])
    return None


def _dual(k: np.ndarray, k_test: np.ndarray, y: np.ndarray, most: int) -> Fitted:
    """By n x n products: scores t are K u, and predictions K_test U (T'KU)^-1 T'Y."""
    scale = np.linalg.norm(y, axis=0)
    rest, basis = _smaller(np.array(y, float))
    z, whole = product(k, rest, 'float64'), None
    scores, weights, images = (np.zeros((len(k), most)) for _ in range(3))
    found = 0
    for a in range(most):
        m = rest.T @ z
        whole = np.trace(m) if whole is None else whole
        start = _start(rest, basis, scale)
        if start is None or not np.trace(m) > GONE * whole:
            break
        c = _power(m, start)
        t = z @ c
        t -= scores[:, :a] @ (scores[:, :a].T @ t)
        norm = np.linalg.norm(t)
        t /= norm
        weights[:, a], scores[:, a] = rest @ c / norm, t
        images[:, a] = k @ weights[:, a]
        kt = k @ t
        kt -= scores[:, :a] @ (scores[:, :a].T @ kt)
        loading = rest.T @ t
        rest = rest - np.outer(t, loading)
        z = z - np.outer(kt, loading)
        z -= np.outer(t, t @ z)
        found = a + 1
    if not found:
        return Fitted(np.zeros((len(k_test), y.shape[1])), 0)
    t, u = scores[:, :found], weights[:, :found]
    return Fitted((k_test @ u) @ np.linalg.solve(t.T @ images[:, :found], t.T @ y), found)


def _primal(x: np.ndarray, x_test: np.ndarray, y: np.ndarray, most: int) -> Fitted:
    """By p x p products (Dayal and MacGregor's second algorithm): rotations r with t = Xr."""
    c_xx, s_whole = product(x.T, x, 'float64'), product(x.T, y, 'float64')
    s, basis = _smaller(s_whole)
    scale = np.linalg.norm(s_whole, axis=0)
    whole = float(np.sum(s * s))
    loadings: list[np.ndarray] = []
    rotations: list[np.ndarray] = []
    y_loadings: list[np.ndarray] = []
    for _ in range(most):
        m = s.T @ s
        start = _start(s, basis, scale)
        if start is None or not np.trace(m) > GONE * whole:
            break
        w = s @ _power(m, start)
        w /= np.linalg.norm(w)
        r = np.array(w)
        for before, rotation in zip(loadings, rotations, strict=True):
            r -= (before @ w) * rotation
        image = c_xx @ r
        size = r @ image
        loadings.append(image / size)
        rotations.append(r)
        y_loadings.append(s.T @ r / size)
        s = s - size * np.outer(loadings[-1], y_loadings[-1])
    if not rotations:
        return Fitted(np.zeros((len(x_test), y.shape[1])), 0)
    coefficients = np.array(rotations).T @ (np.array(y_loadings) @ basis.T)
    return Fitted(product(x_test, coefficients, 'float64'), len(rotations))
