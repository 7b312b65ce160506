"""Baselines made of scikit-learn and pyriemann: one description of a window, a few learnt steps, one estimator.

The first four are NeuralBench's, and with `recipe.published` they are fitted and tuned exactly as there: on train and
valid; C by five unshuffled stratified folds scored by accuracy, classes balanced; alpha by leaving one window out. By
default everything is fitted on train; C or alpha, of seven decades, is that of the best headline on valid; classes are
balanced where the headline is balanced accuracy or macro F1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from pyriemann.classification import FgMDM
from pyriemann.estimation import CoSpectra, Covariances, Shrinkage, XdawnCovariances
from pyriemann.spatialfilters import CSP, Xdawn
from pyriemann.tangentspace import TangentSpace
from scipy import signal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from jbench.models.baselines.estimator import FOLDS, Method, Predict, Training, bandpass, fit
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS

DECADES = np.logspace(-3, 3, 7)  # C of logistic regression, alpha of ridge regression
SHRINKAGE = 0.1
SPECTRUM = {'window': 128, 'overlap': 0.75, 'fmin': 2, 'fmax': 40}  # samples, share, Hz
RHYTHMS = (8.0, 32.0)  # Hz, of the sensorimotor cortex (MOABB's band)
BANDS = ((0.5, 4), (4, 8), (8, 12), (12, 16), (16, 30), (30, 45))  # Hz: delta, theta, alpha, sigma, beta, gamma
SEGMENT = 5.0  # s that share a spectrum
BIN = 0.05  # s


# ---- NeuralBench's ----


def cov_ts_lr(data: Training) -> Predict:
    """Covariance (OAS), shrinkage 0.1, tangent space, standardisation, logistic regression (Barachant et al. 2013).

    Labels are learnt one by one.
    """
    return fit(Method('cov_ts_lr', _covariances, _tangent, logistic(data)), data)


def cov_ts_ridge(data: Training) -> Predict:
    """As cov_ts_lr, with ridge regression of a value or an embedding."""
    return fit(Method('cov_ts_ridge', _covariances, _tangent, _ridge(data)), data)


def cospectra_log_lr(data: Training) -> Predict:
    """Co-spectra of 2 to 40 Hz, the logarithm of 1 + power on their diagonals, standardisation, logistic regression.

    Raises: RequestError for windows shorter than 128 samples, or a rate that cannot hold 40 Hz.
    """
    if data.signal.sfreq <= 2 * SPECTRUM['fmax']:
        raise RequestError(
            f'model cospectra_log_lr: it looks at frequencies up to {SPECTRUM["fmax"]:g} Hz, and the signal has '
            f'{data.signal.sfreq:g} Hz; signal.sfreq must be above {2 * SPECTRUM["fmax"]:g}'
        )
    if data.signal.n_times < SPECTRUM['window']:
        raise RequestError(
            f'model cospectra_log_lr: windows have {data.signal.n_times} samples, and its spectra take '
            f'{SPECTRUM["window"]}; a longer window (window.duration) or a higher rate (signal.sfreq) has them'
        )
    describe = partial(_cospectra, estimator=CoSpectra(fs=data.signal.sfreq, **SPECTRUM))
    return fit(Method('cospectra_log_lr', describe, scaled, logistic(data)), data)


def xdawn_ts_lr(data: Training) -> Predict:
    """xDAWN covariances (four filters of the rarest class, Ledoit-Wolf), then as cov_ts_lr (Barachant 2014).

    The rarest class is that of the windows it is fitted on.
    """

    def steps(metric: str, y: np.ndarray) -> list[Any]:
        classes, counts = np.unique(y, return_counts=True)
        rarest = [classes[counts.argmin()]]
        return [XdawnCovariances(nfilter=4, classes=rarest, estimator='lwf'), *_tangent(metric, y)]

    return fit(Method('xdawn_ts_lr', np.asarray, steps, logistic(data)), data)


# ---- what each field trusts ----


def csp_lda(data: Training) -> Predict:
    """8 to 32 Hz, covariance (OAS) over its trace, six common spatial patterns, log variance, linear discriminant
    (Ramoser et al. 2000); of more than two classes by joint diagonalisation (Grosse-Wentrup and Buss 2008)."""
    covariances = _rhythms('csp_lda', data)

    def describe(x: np.ndarray) -> np.ndarray:
        c = covariances(x)
        return c / np.trace(c, axis1=1, axis2=2)[:, None, None]

    return fit(Method('csp_lda', describe, lambda _, y: [CSP(nfilter=6)], _discriminant(data)), data)


def fgmdm(data: Training) -> Predict:
    """8 to 32 Hz, covariance (OAS), geodesic filtering, the nearest class mean (Barachant et al. 2010). Every
    class counts alike whatever the headline."""
    return fit(Method('fgmdm', _rhythms('fgmdm', data), lambda _, y: [], lambda y: [FgMDM('riemann')]), data)


def ts_lr(data: Training) -> Predict:
    """Covariance (OAS), tangent space, logistic regression with C = 0.1 on coordinates as they are (Barachant et al.
    2012): without standardisation, directions in which nothing varies count for little."""
    return fit(Method('ts_lr', _covariances, lambda metric, y: [TangentSpace(metric)], _plain(data, 0.1)), data)


def xdawn_cov_lr(data: Training) -> Predict:
    """xDAWN covariances (two filters a class, OAS), tangent space, logistic regression with C = 1, no standardisation
    (Barachant and Congedo 2014)."""

    def steps(metric: str, y: np.ndarray) -> list[Any]:
        return [XdawnCovariances(nfilter=2, estimator='oas'), TangentSpace(metric)]

    return fit(Method('xdawn_cov_lr', np.asarray, steps, _plain(data, 1.0)), data)


def xdawn_lda(data: Training) -> Predict:
    """Means of 50 ms, four xDAWN filters a class, linear discriminant with Ledoit-Wolf shrinkage (Rivet et al. 2009;
    Blankertz et al. 2011)."""

    def steps(_: str, y: np.ndarray) -> list[Any]:
        return [Xdawn(nfilter=4, estimator='oas'), FunctionTransformer(_flat), StandardScaler()]

    lda = _discriminant(data, solver='lsqr', shrinkage='auto')
    return fit(Method('xdawn_lda', partial(_means, n=_n_bins(data)), steps, lda), data)


def erp_lr(data: Training) -> Predict:
    """Means of 50 ms of every channel, standardisation, logistic regression."""
    return fit(Method('erp_lr', lambda x: _flat(_means(x, _n_bins(data))), scaled, logistic(data)), data)


def mean_lr(data: Training) -> Predict:
    """The mean of every channel (of fMRI: the volume), standardisation, logistic regression.

    Single volumes of fMRI are told apart so (Haxby et al. 2001 correlated them), and blocks of fNIRS.
    """
    return fit(Method('mean_lr', lambda x: _flat(_means(x, 1)), scaled, logistic(data)), data)


def band_power_lr(data: Training) -> Predict:
    """Log power of six bands of every channel, 0.5 to 45 Hz, in each 5 s; standardisation, logistic regression."""
    return fit(Method('band_power_lr', _powers('band_power_lr', data), scaled, logistic(data)), data)


def time_domain_lr(data: Training) -> Predict:
    """Log sd, log mean step and share of zero crossings of every channel (Hudgins et al. 1993), standardisation,
    logistic regression with C = 10."""
    return fit(Method('time_domain_lr', _time_domain, scaled, _plain(data, 10.0)), data)


def ridge(data: Training) -> Predict:
    """Band powers as in band_power_lr, ridge regression of a value or an embedding."""
    return fit(Method('ridge', _powers('ridge', data), scaled, _ridge(data)), data)


# ---- estimators ----


def logistic(data: Training) -> Callable[[np.ndarray], Sequence[Any]]:
    """Logistic regressions from the strongest penalty to the weakest, or the published one, which chooses by itself."""
    weight = 'balanced' if METRICS[data.metric].balanced else None
    each = [LogisticRegression(C=c, class_weight=weight, max_iter=1000) for c in DECADES]
    if data.published:
        each = [
            LogisticRegressionCV(
                Cs=DECADES,
                cv=FOLDS,
                max_iter=1000,
                class_weight='balanced',
                scoring='accuracy',
                solver='lbfgs',
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            )
        ]
    return lambda y: [OneVsRestClassifier(m) for m in each] if data.kind == 'labels' else each


def _plain(data: Training, c: float) -> Callable[[np.ndarray], Sequence[Any]]:
    """Logistic regression with a penalty that is not tuned."""
    weight = 'balanced' if METRICS[data.metric].balanced else None
    return lambda y: [LogisticRegression(C=c, class_weight=weight, max_iter=1000)]


def _discriminant(data: Training, **settings: Any) -> Callable[[np.ndarray], Sequence[Any]]:
    def candidates(y: np.ndarray) -> Sequence[Any]:
        n = len(np.unique(y))
        priors = np.full(n, 1 / n) if METRICS[data.metric].balanced else None
        return [LinearDiscriminantAnalysis(priors=priors, **settings)]

    return candidates


def _ridge(data: Training) -> Callable[[np.ndarray], Sequence[Any]]:
    each = [RidgeCV(alphas=DECADES)] if data.published else [Ridge(alpha=a) for a in DECADES[::-1]]
    return lambda y: each


# ---- steps and descriptions ----


def _tangent(metric: str, y: np.ndarray) -> list[Any]:
    return [Shrinkage(SHRINKAGE), TangentSpace(metric), StandardScaler()]


def scaled(metric: str, y: np.ndarray) -> list[Any]:
    """The steps of a `Method` that standardises each feature and does nothing else."""
    return [StandardScaler()]


def _covariances(x: np.ndarray) -> np.ndarray:
    return np.asarray(Covariances('oas').transform(x))


def _rhythms(name: str, data: Training) -> Callable[[np.ndarray], np.ndarray]:
    """Covariances of the sensorimotor rhythms. Raises: RequestError for a rate that cannot hold them."""
    (low, high), sfreq = RHYTHMS, data.signal.sfreq
    if sfreq <= 2 * high:
        raise RequestError(
            f'model {name}: it looks at {low:g} to {high:g} Hz, and the signal has {sfreq:g} Hz; '
            f'signal.sfreq must be above {2 * high:g}'
        )
    return lambda x: _covariances(bandpass(x, low, high, sfreq))


def _cospectra(x: np.ndarray, estimator: CoSpectra) -> np.ndarray:
    s = estimator.transform(x)  # [N, C, C, F]
    row, column = np.triu_indices(s.shape[1])
    upper = s[:, row, column]
    upper[:, row == column] = np.log1p(upper[:, row == column])
    return _flat(upper)


def _n_bins(data: Training) -> int:
    return min(data.signal.n_times, max(1, round(data.signal.n_times / data.signal.sfreq / BIN)))


def _means(x: np.ndarray, n: int) -> np.ndarray:
    """Means over n parts of the window: [N, C, n]."""
    edges = np.linspace(0, x.shape[-1], n + 1).round().astype(int)
    return np.add.reduceat(x, edges[:-1], axis=-1) / np.diff(edges)


def _powers(name: str, data: Training) -> Callable[[np.ndarray], np.ndarray]:
    """Log band powers. Raises: RequestError for windows in which no band has a frequency."""
    sfreq, n = data.signal.sfreq, data.signal.n_times
    hz = np.fft.rfftfreq(min(n // max(1, round(n / sfreq / SEGMENT)), max(1, round(2 * sfreq))), 1 / sfreq)
    if not any(((hz >= low) & (hz < high)).any() for low, high in BANDS):
        raise RequestError(
            f'model {name}: windows of {n} samples at {sfreq:g} Hz hold no frequency from {BANDS[0][0]:g} to '
            f'{BANDS[-1][1]:g} Hz; take longer windows (window.duration) or another --model'
        )
    return partial(_band_powers, sfreq=sfreq)


def _band_powers(x: np.ndarray, sfreq: float) -> np.ndarray:
    n, c, t = x.shape
    pieces = max(1, round(t / sfreq / SEGMENT))
    x = x[..., : t // pieces * pieces].reshape(n, c, pieces, -1)
    hz, power = signal.welch(x, sfreq, nperseg=min(x.shape[-1], round(2 * sfreq)))
    inside = [(hz >= low) & (hz < high) for low, high in BANDS]
    return _flat(np.log(np.stack([power[..., i].mean(-1) for i in inside if i.any()], -1)))


def _time_domain(x: np.ndarray) -> np.ndarray:
    crossings = np.diff(np.signbit(x), axis=-1).mean(-1)
    return _flat(np.stack([np.log(x.std(-1)), np.log(np.abs(np.diff(x, axis=-1)).mean(-1)), crossings], -1))


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1)
