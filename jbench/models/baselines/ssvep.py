"""Baselines of steady-state and code-modulated responses: what is the same in every window of a class.

Both look at a bank of sub-bands, the n-th from n times the lowest flicker on, and add the squared correlations of the
bands with the weights n^-1.25 + 0.25 of Chen et al. (2015).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.linalg import eigh

from jbench.metrics.classification import log_of
from jbench.models.baselines.classical import logistic, scaled
from jbench.models.baselines.estimator import (
    Method,
    Predict,
    Training,
    Windows,
    bandpass,
    blocks,
    finite,
    fit,
    fitted_on,
    usable,
)
from jbench.spec.errors import RequestError

N_BANDS = 5
N_HARMONICS = 5
MARGIN = 2.0  # Hz that a sub-band holds below its lowest flicker
TOP = 90.0  # Hz, where all sub-bands end
LOWEST = 8.0  # Hz, of the bank where classes have no frequency
FREQUENCY = re.compile(r'(\d+(?:\.\d+)?) *(?:hz)?', re.IGNORECASE)
TOLERANCE = 1e-10  # of the greatest eigenvalue: a direction with less holds nothing


def fbcca(data: Training) -> Predict:
    """Filter-bank canonical correlation with sines and cosines of up to five harmonics (Chen et al. 2015).

    The names of the classes are the frequencies (Hz). Where every class has one, nothing is learnt: the answer is the
    class of the greatest score. Else (rest) a logistic regression of all scores is fitted.

    Returns: a function of windows that gives logarithms f64 [N, n_out] of shares, which sum to 1 and are 0 for a
    class without a window to be fitted on.

    Raises: RequestError where fewer than two names are frequencies below half the sampling rate.
    """
    hz, (n_times, sfreq) = frequencies(data.classes), (data.signal.n_times, data.signal.sfreq)
    if len(hz) < 2 or max(hz.values()) >= sfreq / 2:
        raise RequestError(
            f'model fbcca: the names of at least two classes must be frequencies below {sfreq / 2:g} Hz; the classes '
            f'are {", ".join(data.classes)}; --model=trca needs no frequency'
        )
    bank, t = sub_bands(min(hz.values()), sfreq), np.arange(n_times) / sfreq
    harmonics = [k for k in range(1, N_HARMONICS + 1) if k * max(hz.values()) < sfreq / 2]  # as many for every class
    waves = [
        _basis(np.stack([f(2 * np.pi * k * h * t) for k in harmonics for f in (np.sin, np.cos)])) for h in hz.values()
    ]

    def scores(x: np.ndarray) -> np.ndarray:
        total = np.zeros((len(x), len(waves)))
        for weight, z in _filtered(x, bank, sfreq):
            total += weight * np.stack([_greatest(_basis(z) @ wave.T) for wave in waves], 1)
        return total

    if set(np.unique(fitted_on(data)[0].y)) <= set(hz):
        return _shares(scores, list(hz), data)
    return fit(Method('fbcca', scores, scaled, logistic(data)), data)


def trca(data: Training) -> Predict:
    """Ensemble task-related component analysis with a filter bank (Nakanishi et al. 2018).

    For every class and sub-band the spatial filter under which its windows resemble each other most; a new window is
    compared with the mean window of every class under the filters of all. A class with a single window is never
    answered.

    Returns: a function of windows that gives logarithms f64 [N, n_out] of shares, which sum to 1.

    Raises: RequestError where fewer than two classes have two windows, or the rate is too low.
    """
    sfreq, hz = data.signal.sfreq, frequencies(data.classes)
    bank = sub_bands(min(hz.values(), default=LOWEST), sfreq)
    if bank[0][0] >= bank[0][1]:
        raise RequestError(
            f'model trca: it looks at {bank[0][0]:g} Hz and more, and the signal has {sfreq:g} Hz (signal.sfreq)'
        )
    part, where = fitted_on(data)
    keep = usable('trca', part.x, where)
    y = part.y[keep]
    classes = [int(k) for k in np.flatnonzero(np.bincount(y) > 1)]
    if len(classes) < 2:
        raise RequestError(f'model trca: it needs two windows of each of two classes that vary; {where} holds fewer')
    shape = data.signal.n_chans, data.signal.n_times
    total = np.zeros((len(bank), len(classes), *shape))
    power = np.zeros((len(bank), len(classes), shape[0], shape[0]))
    first = 0
    for x in blocks(part.x, keep):
        mine, first = y[first : first + len(x)], first + len(x)
        for b, (_, z) in enumerate(_filtered(x, bank, sfreq)):
            for k, c in enumerate(classes):
                total[b, k] += z[mine == c].sum(0)
                power[b, k] += np.einsum('nct,ndt->cd', z[mine == c], z[mine == c])
    spatial = np.stack(
        [[_related(s, q) for s, q in zip(*both, strict=True)] for both in zip(total, power, strict=True)]
    )
    templates = [_unit(w @ s) for w, s in zip(spatial, total, strict=True)]  # [K, K * T] each

    def scores(x: np.ndarray) -> np.ndarray:
        out = np.zeros((len(x), len(classes)))
        for (weight, z), w, template in zip(_filtered(x, bank, sfreq), spatial, templates, strict=True):
            r = _unit(w @ z) @ template.T
            out += weight * np.sign(r) * r**2
        return out

    return _shares(scores, classes, data)


def frequencies(names: Sequence[str]) -> dict[int, float]:
    """The frequency (Hz) of each class whose name is one: '13', '9.25 Hz'."""
    found = {k: FREQUENCY.fullmatch(name.strip()) for k, name in enumerate(names)}
    return {k: float(m[1]) for k, m in found.items() if m and float(m[1]) > 0}


def sub_bands(lowest: float, sfreq: float) -> list[tuple[float, float]]:
    """Sub-bands (Hz) from the multiples of the lowest flicker to the top, those of at least one flicker's width."""
    top = min(TOP, 0.45 * sfreq)
    starts = [n * lowest for n in range(1, N_BANDS + 1)]
    return [(max(s - MARGIN, s / 2), top) for s in starts if s + lowest <= top] or [(lowest / 2, top)]


def _filtered(x: np.ndarray, bank: list[tuple[float, float]], sfreq: float) -> Iterator[tuple[float, np.ndarray]]:
    """The weight of every sub-band, and the windows in it, centred."""
    for n, (low, high) in enumerate(bank, 1):
        z = bandpass(x, low, high, sfreq)
        yield n**-1.25 + 0.25, z - z.mean(-1, keepdims=True)


def _basis(x: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span the rows of x [..., K, T] (zeros where they are dependent)."""
    value, vector = np.linalg.eigh(x @ np.swapaxes(x, -1, -2))
    kept = value > TOLERANCE * value[..., -1:]
    scale = np.where(kept, 1 / np.sqrt(np.where(kept, value, 1)), 0)
    return np.swapaxes(vector * scale[..., None, :], -1, -2) @ x


def _greatest(m: np.ndarray) -> np.ndarray:
    """The greatest squared singular value of matrices [N, C, K]."""
    return np.asarray(np.linalg.eigvalsh(np.swapaxes(m, -1, -2) @ m)[..., -1])


def _related(total: np.ndarray, power: np.ndarray) -> np.ndarray:
    """The filter [C] of most covariance between windows, from their sum [C, T] and the sum of their powers [C, C]."""
    level = TOLERANCE * np.trace(power) / len(power)
    # each window with itself adds 1 to every eigenvalue
    return np.asarray(eigh(total @ total.T, power + level * np.eye(len(power)))[1][:, -1])


def _unit(x: np.ndarray) -> np.ndarray:
    """Windows as centred vectors [N, K * T] of length 1 (0 for a flat one)."""
    flat = x.reshape(len(x), -1)
    flat = flat - flat.mean(1, keepdims=True)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), np.finfo(float).tiny)


def _shares(scores: Callable[[np.ndarray], np.ndarray], classes: list[int], data: Training) -> Predict:
    """Logarithms of the softmax of scores [N, len(classes)], among the classes that have a window to be fitted on."""
    seen = np.isin(classes, fitted_on(data)[0].y)

    def predict(test: Windows) -> np.ndarray:
        out = np.zeros((len(test), data.n_out))
        found = np.concatenate([scores(finite(x)) for x in blocks(test)])
        odds = np.exp(found - found.max(1, keepdims=True)) * seen
        out[:, classes] = odds / odds.sum(1, keepdims=True)
        return log_of(out)

    return predict
