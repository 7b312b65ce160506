"""Are the neurons of a model distributed over the values of a property as recorded ones are."""

from __future__ import annotations

import numpy as np

from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import RequestError

DRAWS = 1000
SEED = 0
MISSING = 0.1  # of the draws; where more of them have no value at all, the similarity is 0


def ks_similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """1 less the greatest distance of two cumulative distributions, over the greatest that there could be from the
    second: that of all mass in its first or in its last bin.

    Args:
        first: shares of bins that sum to 1, [..., bin].
        second: the same, [bin].
    Returns:
        [...], 0 to 1.
    """
    reached = np.cumsum(second)
    greatest = max(np.abs(1 - reached).max(), reached[:-1].max())
    return 1 - np.abs(np.cumsum(first, -1) - reached).max(-1) / greatest


def property_similarity(
    model: np.ndarray, data: np.ndarray, edges: np.ndarray, *, draws: int = DRAWS, seed: int = SEED
) -> Measured:
    """`ks_similarity` of histograms, over samples of the model of the size of the data.

    Values outside of the edges count in the bin next to them. Neurons without a value (nan) count in the size of a
    sample alone. Neither input is changed.

    Args:
        model: value of a property of each unit, [unit].
        data: of each recorded neuron, [neuron].
        edges: of the bins, ascending.
        draws: samples of the model, with replacement.
        seed: of the samples.
    Returns:
        Mean, standard deviation and values over the draws. 0 where more than a tenth of the draws, or the model, have
        no value.
    Raises:
        RequestError: no data, or edges that make fewer than two bins or do not ascend.
    """
    if len(edges) < 3 or not (np.diff(edges) > 0).all():
        raise RequestError(f'histogram of a property: edges {np.round(edges, 4)}: expected at least three, ascending')
    there, units = _bins(data, edges), _bins(model, edges)
    if not (there >= 0).any():
        raise RequestError(f'histogram of a property: none of {len(data)} recorded neurons has a value')
    if not (units >= 0).any():
        note = f'none of {len(model)} units of the model has this property: similarity 0'
        return Measured(0.0, 0.0, np.zeros(draws), (note,))
    n_bins = len(edges) - 1
    expected = np.bincount(there[there >= 0], minlength=n_bins) / (there >= 0).sum()
    samples = np.random.RandomState(seed).choice(units, (draws, len(data)))
    rows = np.repeat(np.arange(draws), len(data)) * (n_bins + 1) + samples.ravel() + 1  # a bin more: of those without
    counts = np.bincount(rows, minlength=draws * (n_bins + 1)).reshape(draws, n_bins + 1)[:, 1:]
    with np.errstate(invalid='ignore'):
        values = ks_similarity(counts / counts.sum(1, keepdims=True), expected)
    if (empty := np.isnan(values)).sum() > MISSING * draws:
        note = f'{empty.sum()} of {draws} samples have no unit with this property: similarity 0'
        return Measured(0.0, 0.0, values, (note,))
    return Measured(float(np.nanmean(values)), float(np.nanstd(values)), values)


def property_ceiling(data: np.ndarray, edges: np.ndarray, *, draws: int = DRAWS, seed: int = SEED) -> Measured:
    """`property_similarity` of recorded neurons with themselves."""
    return property_similarity(data, data, edges, draws=draws, seed=seed)


def _bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Bin of each value, the last edge belonging to the last bin; -1 of nan."""
    clipped = np.clip(np.asarray(values, float), edges[0], edges[-1])
    found = np.minimum(np.searchsorted(edges, clipped, 'right') - 1, len(edges) - 2)
    return np.where(np.isnan(clipped), -1, found)
