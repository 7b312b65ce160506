"""Object solution times: when along time a population tells the object of an image (Kar et al. 2019, Nat. Neurosci.
22:974; as a metric, Kubilius, Schrimpf et al. 2019, NeurIPS 32).

Bin by bin a linear read-out is fitted to the responses to some images and gives, for the others, how well the object
of each is told from the rest (i1). The time is where i1 reaches that of the neurons at their own solution time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from jbench.alignment.metrics.choices import pattern, rates_of_probabilities
from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import RequestError

SPLITS, TEST, SEED = 10, 0.1, 1
EPOCHS, BATCH, RATE = 40, 64, 1e-4
DECAY = 0.463  # of weights and biases
CONVERGED = 1e-4  # loss of a batch
BETWEEN = ('preceding', 'highest')


def ost_correlation(
    responses: np.ndarray, labels: np.ndarray, target: tuple[np.ndarray, np.ndarray], *, starts: np.ndarray,
    between: str = 'preceding',
) -> Measured:  # fmt: skip
    """Spearman correlation of predicted and recorded solution times, over held-out images.

    Args:
        responses: of the model, [image, unit, bin].
        labels: object of each image, [image].
        target: i1 at the solution time and solution time (ms, nan: never solved) of each image, [image] each.
        starts: of the bins, ms, [bin].
        between: see `solution_times`.
    Returns:
        Mean, standard error and values over ten splits of 90 and 10 % of the images. nan and a note where no split has
        one: a model that gives each bin the same solves all images in the first bin or never.
    Raises:
        RequestError: shapes do not fit, fewer than two objects.
    """
    from sklearn.model_selection import ShuffleSplit

    i1, times = (np.asarray(part, float) for part in target)
    n = len(labels)
    if responses.ndim != 3 or responses.shape[::2] != (n, len(starts)) or not n == len(i1) == len(times):
        raise RequestError(
            f'solution times: responses {responses.shape}, {n} labels, {len(i1)} thresholds, {len(times)} times,'
            f' {len(starts)} bins: expected [image, unit, bin] and one of each an image'
        )
    objects, truth = np.unique(labels, return_inverse=True)
    if len(objects) < 2 or n < 10:
        raise RequestError(f'solution times: {n} images of {len(objects)} objects, expected at least ten of two')
    order = np.argsort(starts)
    starts, responses = np.asarray(starts, float)[order], responses[:, :, order]
    values = []
    for train, test in ShuffleSplit(SPLITS, test_size=TEST, random_state=SEED).split(np.zeros(n)):
        curves = _i1_over_time(responses, truth, train, test)
        predicted = solution_times(curves, i1[test], starts, between=between)
        values.append(spearman(predicted, times[test]))
    found = np.array(values)
    there = np.isfinite(found)
    if not there.any():
        note = 'no split has a correlation: predicted times are equal or missing, as those of a model without time'
        return Measured(float('nan'), float('nan'), found, (note,))
    notes = () if there.all() else (f'{(~there).sum()} of {len(found)} splits have no correlation: left out',)
    kept = found[there]
    return Measured(float(kept.mean()), float(kept.std() / np.sqrt(len(kept))), found, notes)


def solution_times(
    curves: np.ndarray, threshold: np.ndarray, starts: np.ndarray, *, between: str = 'preceding'
) -> np.ndarray:
    """When each image reaches its threshold, interpolated between two bins.

    Args:
        curves: i1, [bin, image].
        threshold: of each image, [image].
        starts: of the bins, ascending, ms.
        between: the bin before the first at the threshold that the line comes from: the 'preceding' one, or, as
            Brain-Score, that of the 'highest' value so far.
    Returns:
        ms, [image]: the first bin itself where that reaches the threshold; nan where none does.
    """
    if between not in BETWEEN:
        raise RequestError(f'solution times: between {between!r}, expected one of {", ".join(BETWEEN)}')
    times = np.full(len(threshold), np.nan)
    for k, (curve, level) in enumerate(zip(curves.T, threshold, strict=True)):
        reached = np.flatnonzero(curve >= level)
        if not len(reached):
            continue
        hit = reached[0]
        times[k] = starts[hit]
        before = curve[:hit]
        if np.isfinite(before).any():
            last = hit - 1 if between == 'preceding' and np.isfinite(before[-1]) else np.nanargmax(before)
            times[k] = starts[last] + (level - curve[last]) * (starts[hit] - starts[last]) / (curve[hit] - curve[last])
    return times


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman correlation where both are defined; nan of fewer than two values or of equal ones."""
    from scipy.stats import spearmanr

    there = ~(np.isnan(first) | np.isnan(second))
    a, b = first[there], second[there]
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float('nan')
    return float(spearmanr(a, b)[0])


def _i1_over_time(responses: np.ndarray, truth: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """i1 of held-out images, [bin, image]."""
    curves = []
    for k in range(responses.shape[2]):
        p = softmax_read_out(responses[train, :, k], truth[train], responses[test, :, k], n_objects=truth.max() + 1)
        curves.append(pattern('i1', rates_of_probabilities(p, truth[test]), truth[test]))
    return np.array(curves)


def softmax_read_out(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, *, n_objects: int) -> np.ndarray:
    """Probabilities of objects from a linear softmax read-out of standardised responses: Adam, at most 40 epochs of
    batches of 64, weight decay 0.463.

    Args:
        x: responses, [image, unit].
        y: object of each image, [image].
        x_test: responses to other images.
        n_objects: how many objects there are.
    Returns:
        float64 [test image, object].
    """
    mean, spread = x.mean(0), x.std(0)
    spread = np.where(spread == 0, 1, spread)
    shuffle = np.random.RandomState(0)
    rows, n = np.full((EPOCHS, -(-len(x) // BATCH), BATCH), -1), np.arange(len(x))
    for epoch in rows:
        order = n.copy()
        shuffle.shuffle(order)
        epoch.reshape(-1)[: len(x)] = order
    fit = _fitted(n_objects)
    z, z_test = ((np.asarray(v - mean, np.float32) / spread).astype(np.float32) for v in (x, x_test))
    return np.asarray(fit(z, np.asarray(y, np.int32), rows.astype(np.int32), z_test), np.float64)


@cache
def _fitted(n_objects: int) -> Any:
    """Compiled fit and prediction: [image, unit], objects, rows of each batch (-1: none), [test image, unit]."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.adam(RATE)

    def loss_of(weights: Any, x: Any, y: Any, counts: Any) -> Any:
        scores = x @ weights['w'] + weights['b']
        losses = optax.softmax_cross_entropy_with_integer_labels(scores, y)
        entropy = (losses * counts).sum() / counts.sum()
        size = (weights['w'] ** 2).sum() + (weights['b'] ** 2).sum()
        return entropy + DECAY / 2 * size, entropy

    @jax.jit
    def fit(x: Any, y: Any, rows: Any, x_test: Any) -> Any:
        first = jax.nn.initializers.variance_scaling(1.0, 'fan_in', 'truncated_normal')
        weights = {'w': first(jax.random.key(0), (x.shape[1], n_objects)), 'b': jnp.ones(n_objects)}

        def step(state: Any, batch: Any) -> Any:
            weights, moments = state
            slope, entropy = jax.grad(loss_of, has_aux=True)(weights, x[batch], y[batch], batch >= 0)
            change, moments = adam.update(slope, moments, weights)
            return (optax.apply_updates(weights, change), moments), entropy

        def more(carry: Any) -> Any:
            return (carry[0] < EPOCHS) & (carry[2] >= CONVERGED)

        def epoch(carry: Any) -> Any:
            k, state, _ = carry
            state, entropies = jax.lax.scan(step, state, rows[k])
            return k + 1, state, entropies[-1]

        _, (weights, _), _ = jax.lax.while_loop(more, epoch, (0, (weights, adam.init(weights)), jnp.inf))
        return jax.nn.softmax(x_test @ weights['w'] + weights['b'])

    return fit
