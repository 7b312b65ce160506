"""What the recorder of braindecode's numbers and the tests against them share: shapes, weights, windows. No torch here.

Weights and windows are not stored: both sides make them again from names and shapes.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

Shape = tuple[int, int, int]  # channels, samples, outputs
Layout = Mapping[str, tuple[int, ...]]  # names and shapes of a PyTorch state_dict, in its order

COUNTED = ((8, 480, 12), (19, 240, 2), (64, 480, 4), (129, 200, 1))  # where parameters are counted
TRAINED = ((8, 480, 12), (5, 160, 2))  # where ten steps are taken and layouts are recorded
GRID = tuple((c, t, 3) for t, c in product((120, 200, 240, 360, 480, 600, 1200), (2, 8, 19, 64, 129)))
EVALUATED = (*GRID, (8, 480, 12), (129, 200, 1))
INITIAL = (4, 240, 2)  # where the distributions of initial weights are recorded
DROPPED = (3, 120, 2)  # where logits under dropout are recorded
INITS = 200  # fresh networks
EVAL_ROWS, TRAIN_ROWS, STEPS = 3, 16, 10
DROPOUT_ROWS, DROPOUT_DRAWS = 4, 2000
LR = {
    'shallow_fbcsp_net': 0.03,
    'deep4net': 0.001,
    'eegnet': 0.1,
    'bdtcn': 0.01,
    'atcnet': 0.1,
    'eegconformer': 0.03,
    'ctnet': 0.01,
    'eegnex': 0.1,
}  # large enough that ten steps matter, small enough that rounding does not grow
LONG = {'multiplier': (1.8, 2.2), 'kernel_norm': (300, 1000)}  # of long convolutions
TABLES = ('encoding', 'cls_token', 'position_embedding', 'temporal_embedding')  # what is added to tokens


def windows(shape: Shape, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows f32[B, C, T], each channel of each with its own size and offset, and labels i64[B]."""
    c, t, n = shape
    rng = np.random.default_rng([c, t, n, rows])
    x = rng.standard_normal((rows, c, t)) * rng.uniform(0.3, 2, (rows, c, 1)) + rng.standard_normal((rows, c, 1))
    return x.astype(np.float32), rng.integers(0, n, rows)


def own_rng(*names: str) -> np.random.Generator:
    """Numbers that depend on these names alone, not on the order of tensors."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def lively(network: str, layout: Layout) -> dict[str, np.ndarray]:
    """A state_dict in which every tensor is far from its initial value and activations stay near 1.

    Norms of weights with a norm limit lie on both sides of it, running variances are positive.
    """
    return {name: _tensor(network, name, shape) for name, shape in layout.items()}


def sketch(network: str, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Norm of each tensor and its projection on a fixed random direction, which tells whether all is in its place."""
    wide = {name: np.asarray(value, float) for name, value in tensors.items()}
    fixed = {name: own_rng('sketch', network, name).standard_normal(value.shape) for name, value in wide.items()}
    return np.array([[np.sqrt((v**2).sum()), (v * fixed[name]).sum()] for name, v in wide.items()])


def moments(draws: Sequence[np.ndarray]) -> np.ndarray:
    """Of one tensor in many networks [7]: largest magnitude; means and standard deviations, over the networks, of three
    numbers of each: the mean of its values, of their squares, of their fourth powers (not as in a normal distribution
    where it is uniform).
    """
    values = np.stack(draws).astype(float).reshape(len(draws), -1)
    squares = values**2
    powers = np.array([v.mean(1) for v in (values, squares, squares**2)])
    return np.array([np.abs(values).max(), *powers.mean(1), *powers.std(1, ddof=1)])


def spread(draws: np.ndarray) -> np.ndarray:
    """Of numbers [draws, ...]: [3, ...] mean, mean squared deviation, and the standard deviation of the squares."""
    squares = (draws - draws.mean(0)) ** 2
    return np.array([draws.mean(0), squares.mean(0), squares.std(0)])


def _tensor(network: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    rng, last = own_rng(network, name), name.rpartition('.')[2]
    if last == 'num_batches_tracked':
        return np.zeros(shape, np.int64)
    if last == 'kernel_norm_initialized':
        return np.ones(shape, np.int64)
    if last == 'running_var':
        value = rng.uniform(0.5, 2, shape)
    elif last in LONG:
        value = rng.uniform(*LONG[last], shape)
    elif last == 'skip_weight' or '.kernel_list.' in name:
        value = rng.standard_normal(shape)
    elif len(shape) == 1 and last == 'weight':  # gain of a norm
        value = rng.uniform(0.5, 1.5, shape)
    elif len(shape) == 1 or last in TABLES:
        value = (1.0 if last in TABLES else 0.3) * rng.standard_normal(shape)
    elif last == 'original0':  # the norms of a weight norm
        value = rng.uniform(0.8, 2, shape)
    elif last == 'original1':  # its directions, of any length
        value = rng.standard_normal(shape)
    elif last == 'original':
        value = _around_limit(rng.standard_normal(shape), network)
    else:
        gain = 0.6 if len(shape) == 2 else 1.0  # of linear layers and convolutions
        value = rng.standard_normal(shape) * gain / math.sqrt(math.prod(shape[1:]))
    return np.asarray(value, np.float32)


def _around_limit(raw: np.ndarray, network: str) -> np.ndarray:
    """Norms from 0.3 to 2 times the limit: of each filter or, in ATCNet, of each column."""
    limit = 0.25 if raw.ndim == 2 else 1.0
    axes = (0,) if network == 'atcnet' else tuple(range(1, raw.ndim))
    norms = np.sqrt((raw**2).sum(axes, keepdims=True))
    return raw / norms * np.linspace(0.3, 2, norms.size).reshape(norms.shape) * limit
