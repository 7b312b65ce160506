"""A number a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jbench.events import Table, as_text, column
from jbench.metrics import challenges, regression, retrieval, weighted
from jbench.metrics.regression import Scores
from jbench.metrics.weighted import Weighted
from jbench.spec.errors import RequestError
from jbench.spec.task import Value
from jbench.targets import cells
from jbench.targets.kind import About, Counts, Each, Encoded, Kind, by_subject, require, require_finite


def collect(target: Value, events: Table, trigger_row: int, onset: float, duration: float) -> float:
    """A number; with `until` the seconds from the window's end to the time in `field` (not clipped)."""
    values = column(events, target.field)
    require(values, trigger_row, events, target.field, onset)
    try:
        number = float(values[trigger_row])
    except ValueError:
        raise RequestError(
            f'event {trigger_row}: {target.field!r} is {as_text(values[trigger_row])!r}, expected a number'
        ) from None
    return number - (onset + duration) if target.until else number


def encode(target: Value, raw: Sequence[float], classes: Sequence[str] | None) -> Encoded:
    """float32 [N, 1], clipped. Raises: RequestError for a number that is not finite."""
    y = np.asarray(raw, np.float64).reshape(len(raw), 1)
    if not np.isfinite(y).all():
        raise RequestError(f'{int((~np.isfinite(y)).sum())} of {len(y)} windows have no finite {target.field!r}')
    return Encoded((y if target.clip is None else np.clip(y, *target.clip)).astype(np.float32), ())


def n_out(y: np.ndarray, classes: Sequence[str], vectors: np.ndarray | None) -> int:
    """One output."""
    return int(y.shape[1])


def fits(outputs: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether shapes fit: [N, 1] both."""
    return y == outputs and outputs[1] == 1


def checked(y: np.ndarray, n_out: int) -> np.ndarray:
    """As float64. Raises: ValueError for a target that is not finite."""
    require_finite(y)
    return y.astype(np.float64)


def evaluate(outputs: np.ndarray, y: np.ndarray, about: About) -> Scores:
    """pearsonr, rmse, mae, r2, normalized_rmse (rmse / population sd of y), bmae (`regression.binned_mae`); of streams
    also wbmae (`challenges.weighted_binned_mae`)."""
    found = regression.value(outputs[:, 0], y[:, 0])
    return found | cells.evaluate({'wbmae': _wbmae}, outputs, y, about)


def _wbmae(outputs: np.ndarray, y: np.ndarray) -> float | None:
    return challenges.weighted_binned_mae(outputs[:, 0], y[:, 0])


def _alone(outputs: np.ndarray, y: np.ndarray) -> Scores:
    return evaluate(outputs, y, {})


def per_subject(outputs: np.ndarray, y: np.ndarray, subjects: np.ndarray, about: About, metric: str) -> Each:
    """As of all windows."""
    if metric == 'wbmae':
        return cells.per_subject(_wbmae, outputs, y, subjects, about)
    return by_subject(_alone, outputs, y, subjects, metric)


def by_weights(outputs: np.ndarray, y: np.ndarray, owner: np.ndarray, about: About, metric: str) -> Weighted:
    """Bins that a draw lacks are left out."""
    if metric == 'wbmae':
        return cells.by_weights(_wbmae, outputs, y, owner, about)
    return weighted.value(outputs[:, 0], y[:, 0], owner, metric)


def dummy(y_fit: np.ndarray, n: int, n_out: int | None, vectors: np.ndarray | None) -> np.ndarray:
    """The mean."""
    return np.tile(y_fit.astype(np.float64).mean(0), (n, 1))


def pooled(outputs: np.ndarray, y: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means."""
    return retrieval.means(outputs, unit), retrieval.means(y, unit)


def sklearn_y(y: np.ndarray, about: About) -> np.ndarray:
    """[N]."""
    return np.asarray(y[:, 0])


def counts(y: np.ndarray, names: Sequence[str], train: np.ndarray) -> Counts:
    """Least, median, most and sd of the values."""
    some = (('least', np.min), ('median', np.median), ('most', np.max), ('sd', np.std))
    return {name: partial(_number, y, of) for name, of in some}


def _number(y: np.ndarray, of: Callable[[np.ndarray], Any], part: np.ndarray) -> str:
    return f'{of(y[part]):.4g}'


def groups(y: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Numbers of the windows of each third of the values."""
    edges = np.quantile(y, [0, 1 / 3, 2 / 3, 1])
    third = np.searchsorted(edges[1:3], y[:, 0])
    return {f'{edges[k]:.3g} to {edges[k + 1]:.3g}': np.flatnonzero(third == k) for k in range(3)}


VALUE = Kind(
    'value',
    collect,
    encode,
    n_out,
    fits,
    checked,
    evaluate,
    per_subject,
    by_weights,
    dummy,
    pooled,
    sklearn_y=sklearn_y,
    counts=counts,
    groups=groups,
)
