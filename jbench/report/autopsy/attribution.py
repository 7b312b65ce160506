"""Integrated gradients: what each sample of each channel, and each frequency, adds to an answer.

Sundararajan, Taly & Yan (2017). Axiomatic attribution for deep networks. ICML. arXiv:1703.01365. The way leads from
the mean of training windows to the window. Attributions of a window add up to the difference of its answer from that of
the mean (completeness); what is missing of it is computed and told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.report.autopsy.case import given
from jbench.spec.model import Signal

STEPS, MOST_STEPS = 32, 256  # points on the way
ENOUGH = 0.01  # of what is missing
TOGETHER = 16  # windows at a time
DRAWS, LEVEL = 500, 0.95  # of signs


class Attribution(NamedTuple):
    """Of some windows."""

    samples: np.ndarray  # f64 [N, C, T]: adds up to `difference` over C and T
    frequencies: np.ndarray  # f64 [N, C, F]: adds up to it over C and F
    hz: np.ndarray  # [F]
    difference: np.ndarray  # [N] the answer to the window less that to the mean of training windows
    missing: float  # sum over windows of |attributions - difference|, beside the sum of |difference|
    steps: int


def integrated(
    model: Model, variables: Variables, x: np.ndarray, *, usual: np.ndarray, weights: np.ndarray, signal: Signal
) -> Attribution:
    """Integrated gradients of sum(outputs * weights), by the midpoint rule in the square root of the way (denser where
    it begins, as logarithms of power need), with twice the points until less than 1 % is missing (at most 256).

    Args:
        model: the network.
        variables: of it.
        x: f32 [N, C, T].
        usual: f32 [C], where the way begins, at all times.
        weights: f32 [N, K] or [N, frames, K].
        signal: for which the network was built.
    """

    def answer(x: jax.Array, weights: jax.Array) -> jax.Array:
        outputs = model.apply(variables, given(signal, x), train=False, key=None).outputs
        return (outputs * weights).sum(tuple(range(1, outputs.ndim)))

    @jax.jit
    def slope(at: jax.Array, x: jax.Array, start: jax.Array, weights: jax.Array) -> jax.Array:
        """Mean gradient over the way, whose points are the squares of `at` [S]."""

        def step(total: jax.Array, root: jax.Array) -> tuple[jax.Array, None]:
            gradient = jax.grad(lambda z: answer(z, weights).sum())(start + root**2 * (x - start))
            return total + 2 * root * gradient, None

        return jax.lax.scan(step, jnp.zeros_like(x), at)[0] / len(at)

    start = np.broadcast_to(usual[:, None], x.shape[1:])[None].repeat(len(x), 0).astype(np.float32)
    apart = x.astype(np.float64) - start
    ends = [_batched(jax.jit(answer), one, weights) for one in (x, start)]
    difference = ends[0] - ends[1]
    steps = STEPS
    while True:
        at = np.float32((np.arange(steps) + 0.5) / steps)
        gradient = _batched(partial(slope, at), x, start, weights)
        samples = gradient * apart
        missing = _missing(samples.sum((1, 2)), difference)
        if missing <= ENOUGH or steps >= MOST_STEPS:
            break
        steps *= 2
    frequencies, hz = by_frequency(gradient, apart, signal.sfreq)
    return Attribution(samples, frequencies, hz, difference, missing, steps)


def _batched(function: Callable[..., jax.Array], *arrays: np.ndarray) -> np.ndarray:
    """A function of rows, for some at a time: batches of one size."""
    parts, size = [], min(TOGETHER, len(arrays[0]))
    for first in range(0, len(arrays[0]), size):
        cut = [a[first : first + size] for a in arrays]
        n = len(cut[0])
        full = [np.concatenate([a, np.repeat(a[:1], size - n, 0)]) for a in cut]
        parts.append(np.asarray(function(*full), np.float64)[:n])
    return np.concatenate(parts)


def _missing(found: np.ndarray, difference: np.ndarray) -> float:
    wrong, whole = np.abs(found - difference).sum(), np.abs(difference).sum()
    return 0.0 if wrong <= 1e-9 else float(wrong / max(whole, 1e-12))


def by_frequency(gradient: np.ndarray, apart: np.ndarray, sfreq: float) -> tuple[np.ndarray, np.ndarray]:
    """The same attributions by frequency: a window is the sum of its Fourier components, and each adds the product of
    the mean gradient with it (Parseval).

    Args:
        gradient: f64 [N, C, T], mean over the way.
        apart: f64 [N, C, T], the window less where the way begins.
        sfreq: Hz.
    Returns: f64 [N, C, F], and F frequencies in Hz.
    """
    n = apart.shape[2]
    product = (np.fft.rfft(gradient).conj() * np.fft.rfft(apart)).real / n
    twice = np.full(product.shape[2], 2.0)
    twice[0] = 1
    if n % 2 == 0:
        twice[-1] = 1
    return product * twice, np.fft.rfftfreq(n, 1 / sfreq)


def floor(values: np.ndarray) -> float:
    """The largest mean that chance gives: 95 % of the greatest mean over columns where windows change sign at random.

    Args:
        values: f64 [N, P] of windows; their means over windows are judged.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (DRAWS, len(values)))
    return float(np.quantile((signs @ values / len(values)).max(1), LEVEL))
