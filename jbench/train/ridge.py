"""A linear probe in closed form: ridge regression on standardised features, in float64, by one pass over them.

Of classes every window weighs N / (K n_c), as in OpenEEGBench 0.6.0 (braindecode), and one column a class is 1 or 0;
other targets are regressed on as they are learnt, every window alike. With weighted means and standard deviations,

    minimise over W, b: sum_i w_i |y_i - W z_i - b|^2 + lambda |W|^2,  z_i = (x_i - mean) / sd

for lambda = 10^-8, ..., 10^8, of which the best score on the validation part counts (of equals the larger one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

PENALTIES = tuple(10.0**k for k in range(-8, 9))
CONSTANT = 1e-12  # share of its mean square below which the variance of a feature is none

Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # features [n, d], targets [n, K], weights [n]


class Sums(NamedTuple):
    """What one pass leaves of windows, float64."""

    weight: float
    x: np.ndarray  # [d]
    y: np.ndarray  # [K]
    xx: np.ndarray  # [d, d]
    xy: np.ndarray  # [d, K]


class Line(NamedTuple):
    """Outputs are x @ weight.T + bias."""

    weight: np.ndarray  # f64 [K, d]
    bias: np.ndarray  # f64 [K]


def sums(blocks: Iterable[Block]) -> Sums:
    """Weighted sums over all windows. Raises: ValueError without a window."""
    total: list[Any] = []
    for x, y, w in blocks:
        x, y, w = (np.asarray(a, np.float64) for a in (x, y, w))
        weighted = x * w[:, None]
        part = [float(w.sum()), weighted.sum(0), w @ y, weighted.T @ x, weighted.T @ y]
        total = [a + b for a, b in zip(total, part, strict=True)] if total else part
    if not total:
        raise ValueError('ridge: no window')
    return Sums(*total)


def lines(total: Sums, penalties: Iterable[float] = PENALTIES) -> list[Line]:
    """The solution for each penalty, by one eigendecomposition; a feature that does not vary gets no weight."""
    mean_x, mean_y = total.x / total.weight, total.y / total.weight
    square = np.diag(total.xx) / total.weight
    variance = square - mean_x**2
    varies = variance > CONSTANT * square
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)
    centred = total.xx - total.weight * np.outer(mean_x, mean_x)
    gram = centred * np.outer(scale, scale)
    cross = (total.xy - total.weight * np.outer(mean_x, mean_y)) * scale[:, None]
    values, vectors = np.linalg.eigh(gram)
    inner, values = vectors.T @ cross, np.maximum(values, 0)
    out = []
    for penalty in penalties:
        weight = (vectors @ (inner / (values + penalty)[:, None])).T * scale
        out.append(Line(weight, mean_y - weight @ mean_x))
    return out


def best(found: list[Line], score: Callable[[Line], float | None]) -> int:
    """The place of the line with the highest score, of equals the last one, whose penalty is larger; -1 where no score
    is defined."""
    place, highest = -1, -np.inf
    for k, line in enumerate(found):
        value = score(line)
        if value is not None and value >= highest:
            place, highest = k, value
    return place


def class_weights(y: np.ndarray, n_out: int) -> np.ndarray:
    """Weight N / (K n_c) of each window of class c, K the classes that are there, f64 [N]."""
    counts = np.bincount(y, minlength=n_out)
    each = len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return np.asarray(each[y], np.float64)
