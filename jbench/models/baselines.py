"""Handcrafted baselines: fitted once on train then valid windows, in subject order; the same answer for every seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jbench import metrics
from jbench.spec import MissingExtraError, RequestError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

BLOCK = 4096  # windows read together

LEAST_VARIANCE = 1e-8  # trials with less are not fitted on
MOST_TRIALS = 20_000
SHRINKAGE = 0.1
FOLDS = 5


class Windows(Protocol):
    """Windows that are read when asked for: `x[numbers]` is f32 [N, C, T] (loader.View; an array will do)."""

    def __len__(self) -> int: ...

    def __getitem__(self, numbers: Any) -> np.ndarray: ...


Predict = Callable[[Windows], np.ndarray]  # windows -> outputs [N, K]


def dummy(x: Windows, y: np.ndarray, kind: str, n_out: int) -> Predict:
    """The rule that looks at no signal: most frequent class, prevalence of labels, mean of values (metrics.dummy)."""
    return lambda test: metrics.dummy(kind, y, len(test), n_out=n_out)


def cov_ts_lr(x: Windows, y: np.ndarray, kind: str, n_out: int) -> Predict:
    """Covariance (OAS), shrinkage 0.1, tangent space, standardisation, cross-validated logistic regression.

    The published pipeline (NeuralBench's CovTsLR; Barachant et al. 2013): C from 1e-3 to 1e3 by decades, five
    stratified unshuffled folds scored by accuracy, balanced class weights. Inputs are not clamped.

    Args:
        x: f32 [N, C, T], train windows then validation windows.
        y: int [N].
        kind: 'classes'.
        n_out: number of classes; those without a window in y are never predicted.

    Returns: a function of windows that gives probabilities f64 [N, n_out].

    Raises: MissingExtraError; RequestError for other targets, and for windows that cannot be fitted.
    """
    if kind not in ('classes', 'state'):
        raise RequestError(f'model cov_ts_lr predicts classes; the target of this task is of kind {kind!r}')
    try:
        from pyriemann.estimation import Covariances, Shrinkage
        from pyriemann.tangentspace import TangentSpace
        from sklearn.linear_model import LogisticRegressionCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise MissingExtraError('pyriemann with scikit-learn', 'classical', 'model cov_ts_lr') from error

    def build(metric: str) -> Pipeline:
        return make_pipeline(
            Covariances('oas'),
            Shrinkage(SHRINKAGE),
            TangentSpace(metric),
            StandardScaler(),
            LogisticRegressionCV(
                Cs=np.logspace(-3, 3, 7),
                cv=FOLDS,
                max_iter=1000,
                class_weight='balanced',
                scoring='accuracy',
                solver='lbfgs',
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            ),
        )

    pipeline = _fit(build, *_trials(x, y))
    *_, scaler, regression = (step for _, step in pipeline.steps)

    def predict(test: Windows) -> np.ndarray:
        out = np.zeros((len(test), n_out))
        for first in range(0, len(test), BLOCK):
            with np.errstate(divide='ignore', invalid='ignore'):  # a window without variance has no logarithm
                tangent = pipeline[:-2].transform(test[first : first + BLOCK].astype(np.float64))
            features = scaler.transform(np.where(np.isfinite(tangent), tangent, np.nan))
            chances = regression.predict_proba(np.nan_to_num(features))
            out[first : first + BLOCK, regression.classes_] = chances
        return out

    return predict


def _fit(build: Callable[[str], Pipeline], x: np.ndarray, y: np.ndarray) -> Pipeline:
    """Fit with the Riemannian metric, or the next simpler one where matrices are not positive definite."""
    *others, last = 'riemann', 'logeuclid', 'euclid'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # a class smaller than the folds, a solver at its last iteration: as published
        for metric in others:
            try:
                return build(metric).fit(x, y)
            except ValueError as error:  # numpy's LinAlgError is one
                if 'positive' not in str(error):
                    raise
        return build(last).fit(x, y)


def _trials(x: Windows, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Float64 trials that vary, at most 20,000 of them (a uniform draw, seed 0, in order).

    Raises: RequestError where too few are left for cross-validation.
    """
    blocks = (x[first : first + BLOCK] for first in range(0, len(x), BLOCK))
    keep = np.flatnonzero(np.concatenate([b.reshape(len(b), -1).var(1) for b in blocks]) > LEAST_VARIANCE)
    if not len(keep):
        raise RequestError(
            f'model cov_ts_lr: no window of train and valid has a variance above {LEAST_VARIANCE:g}; '
            'it needs a scaled signal (signal.scaler=robust), not volts'
        )
    if len(keep) > MOST_TRIALS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MOST_TRIALS, replace=False))
    classes, counts = np.unique(y[keep], return_counts=True)
    if len(classes) < 2 or counts.max() < FOLDS:
        shown = ', '.join(f'{n} of class {c}' for c, n in zip(classes, counts, strict=True))
        raise RequestError(
            f'model cov_ts_lr: cross-validation needs windows of two classes, {FOLDS} of one of them; '
            f'train and valid hold {shown}'
        )
    return x[keep].astype(np.float64), y[keep]
