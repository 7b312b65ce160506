"""What the layers of a network answer: the features that it names, their spread, units that never change.

Encoders say how their tokens lie over channels and moments (`Model.tokens`): their features are laid out so, without
the token that is of no moment. Of other features the axis of time is found: the two halves of windows are disturbed,
one after the other, and time is the axis along which the change of the feature moves on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jbench.models.model import Model, features
from jbench.models.torch_weights import Variables
from jbench.report.autopsy.case import BATCH, Network, given
from jbench.spec.model import Signal

DEAD = 1e-6  # of the largest spread of a unit of the layer
PROBES = 4  # windows that are disturbed
APART = 0.1  # of an axis, by which the centre of the change moves on where it is time (0.5 at most)


class Layer(NamedTuple):
    """A feature over windows."""

    name: str
    shape: tuple[int, ...]  # of a window
    time: int | None  # axis of time in `shape`
    mean: float
    spread: np.ndarray  # [units] sd of each over windows and time
    zeros: float  # share of values that are 0

    @property
    def dead(self) -> np.ndarray:
        """Numbers of the units that do not change, whatever the window."""
        return np.flatnonzero(self.spread <= DEAD * max(self.spread.max(initial=0), 1e-30))


def layers(network: Network, signal: Signal) -> list[Layer]:
    """Every feature of a network over its windows; [] where it names none."""
    compute, variables = features(network.model), network.variables
    sums: dict[str, list[np.ndarray]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    axes = time_axes(network.model, variables, network.x[:PROBES], signal)
    for first in range(0, len(network.x), BATCH):
        x = network.x[first : first + BATCH]
        x = np.concatenate([x, np.repeat(x[:1], BATCH - len(x), 0)])
        n = min(BATCH, len(network.x) - first)
        for name, a in _features(compute, variables, x, signal).items():
            a = laid_out(network.model, a[:n])
            shapes[name] = a.shape[1:]
            a = _units_last(a, axes[name])
            parts = [a.sum(0), (a**2).sum(0), (a == 0).sum(0), np.full(a.shape[1], len(a))]
            sums[name] = [s + p for s, p in zip(sums.get(name, [np.zeros(1)] * 4), parts, strict=True)]
    found = []
    for name, (total, squares, zeros, n_values) in sums.items():
        mean = total / n_values
        spread = np.sqrt(np.maximum(squares / n_values - mean**2, 0))
        spread[spread <= 1e-7 * np.abs(mean)] = 0  # what rounding leaves
        share = float(zeros.sum() / n_values.sum())
        found.append(Layer(name, shapes[name], axes[name], float(mean.mean()), spread, share))
    return found


def laid_out(model: Model, feature: np.ndarray) -> np.ndarray:
    """A feature [N, ...], its tokens as the grid that the network says they are."""
    grid = None if model.tokens is None else model.tokens.laid_out(feature)
    return feature if grid is None else grid


def time_axes(model: Model, variables: Variables, x: np.ndarray, signal: Signal) -> dict[str, int | None]:
    """The axis of time of each feature, laid out, counted without that of windows; None of one that has none.

    Args:
        model: the network.
        variables: of the network.
        x: f32 [n, C, T], some windows.
        signal: for which the network was built.
    """
    half, rng = x.shape[2] // 2, np.random.default_rng(0)
    noise = rng.normal(0, 1, x.shape).astype(np.float32) * (x.std() or 1.0)
    early, late = noise.copy(), noise.copy()
    early[..., half:], late[..., :half] = 0, 0
    compute = features(model)
    plain, *moved = (_features(compute, variables, one, signal) for one in (x, x + early, x + late))
    axes = dict[str, int | None]()
    for name, a in plain.items():
        if model.tokens is not None and model.tokens.laid_out(a) is not None:
            axes[name] = model.tokens.time
        else:
            axes[name] = _time_axis(a, *(np.abs(m[name] - a) for m in moved))
    return axes


def _time_axis(a: np.ndarray, early: np.ndarray, late: np.ndarray) -> int | None:
    apart: list[float] = []
    if a.ndim < 3:  # one axis alone holds units
        return None
    for axis in range(1, a.ndim):
        rest = tuple(k for k in range(a.ndim) if k != axis)
        first, second = (m.sum(rest) for m in (early, late))
        if a.shape[axis] < 2 or not first.sum() or not second.sum():
            apart.append(0.0)
            continue
        place = np.arange(a.shape[axis]) / (a.shape[axis] - 1)
        apart.append(float(place @ second / second.sum() - place @ first / first.sum()))
    return int(np.argmax(apart)) if apart and max(apart) >= APART else None


def _features(
    compute: Callable[..., dict[str, jax.Array]], variables: Variables, x: np.ndarray, signal: Signal
) -> dict[str, np.ndarray]:
    batch = given(signal, x)
    return {name: np.asarray(a, np.float64) for name, a in compute(variables, **batch).items()}


def _units_last(a: np.ndarray, time: int | None) -> np.ndarray:
    """Values of units: [windows (and times), units]."""
    if time is None:
        return a.reshape(len(a), -1)
    moved = np.moveaxis(a, 1 + time, 1)
    return moved.reshape(len(a) * moved.shape[1], -1)
