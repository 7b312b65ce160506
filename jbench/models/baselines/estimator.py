"""What an estimator is given, how the handcrafted baselines are fitted, and the dummy, which looks at no signal.

An estimator is fitted once and answers alike for every seed. By default it is fitted on the train part alone; of
several candidates (strengths of a penalty) the one with the best headline on the validation part is taken. Under
`recipe.published` all are fitted as NeuralBench fits its own: on train and validation windows together, a penalty by
cross-validation. Windows come in subject order and are never clamped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from jbench import targets
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.spec.model import Signal
from jbench.targets import score
from jbench.targets.kind import About

BLOCK = 512  # windows read together
LEAST_VARIANCE = 1e-8  # windows with less are not fitted on
MOST_WINDOWS = 20_000  # fitted on: a uniform draw, seed 0, in order
FOLDS = 5


class Windows(Protocol):
    """Windows that are read when asked for: `x[numbers]` is f32 [N, C, T] (prepared_set.View; an array will do)."""

    def __len__(self) -> int: ...

    def __getitem__(self, numbers: Any) -> np.ndarray: ...


Predict = Callable[[Windows], np.ndarray]  # windows -> outputs f64 [N, n_out]


class Labelled(NamedTuple):
    """Windows with their targets: int [N] classes or stimuli, float [N, K] labels or values, int [N, L] keys."""

    x: Windows
    y: np.ndarray
    about: About = MappingProxyType({})  # subject, group and vectors, where scores need them


class Training(NamedTuple):
    """What an estimator is given."""

    train: Labelled
    valid: Labelled  # to tune on
    both: Labelled  # train, then valid: what the published protocol fits on
    kind: str  # of the target: 'classes' | 'labels' | 'value' | 'embedding' | 'keystrokes'
    n_out: int
    signal: Signal
    metric: str  # the headline
    published: bool  # repeat the reference's choices; then `vectors` of a baseline are those before they were scaled
    classes: tuple[str, ...] = ()  # what 0..n_out-1 are called


class Method(NamedTuple):
    """A baseline: how a window is described, what is learnt of the descriptions, which estimators are tried.

    `steps` and `candidates` are made for the targets y of the windows they are fitted on. The outputs of an estimator
    are the logarithms of `predict_proba` of classes, `decision_function` of labels, `predict` of values and embeddings.
    """

    name: str
    describe: Callable[[np.ndarray], np.ndarray]  # f64 [N, C, T] -> [N, ...], each window by itself
    steps: Callable[[str, np.ndarray], list[Any]]  # (Riemannian metric, y) -> scikit-learn transformers
    candidates: Callable[[np.ndarray], Sequence[Any]]  # y -> scikit-learn estimators; one alone is not tuned


def dummy(data: Training) -> Predict:
    """The rule that looks at no signal: most frequent class or key, prevalence of labels, mean of values or embeddings
    (metrics.dummy).

    Fitted on train and validation targets, as published; it has nothing to tune.
    """
    vectors = data.both.about.get('vectors')
    return lambda test: score.dummy(data.kind, data.both.y, len(test), n_out=data.n_out, vectors=vectors)


def constant(data: Training, value: float | None = None) -> Predict:
    """One value for all windows: `value` as it is, or the percentile of the training targets that has the best headline
    on the training part. Of weighted errors the mean, which the dummy answers, is not the best constant."""
    said = value
    if said is None:
        tried = np.unique(np.percentile(data.train.y.astype(np.float64), np.arange(101)))
        sign = 1 if METRICS[data.metric].better == 'higher' else -1
        scores = [_of_constant(data, v) for v in tried.tolist()]
        known = [(sign * s, v) for s, v in zip(scores, tried.tolist(), strict=True) if s is not None]
        said = max(known, key=lambda pair: pair[0])[1] if known else float(np.median(tried))
    return lambda test: np.full((len(test), data.n_out), said)


def _of_constant(data: Training, value: float) -> float | None:
    part = data.train
    outputs = np.full((len(part.y), data.n_out), value)
    return score.evaluate(data.kind, outputs, part.y, part.about)[data.metric]


def fit(method: Method, data: Training) -> Predict:
    """Fit a baseline; see the head of this module for what it is fitted and tuned on.

    Windows of (almost) no variance and those with values that are not finite are not fitted on; at most 20,000 are. A
    window to be predicted whose features are not finite, as of a flat one, gets the answer of an average window.

    Returns: a function of windows that gives f64 [N, n_out]: logarithms of the probabilities of classes (of 0 for a
    class without a window to be fitted on), logits of labels, values.

    Raises: RequestError for windows that cannot be fitted.
    """
    with _calm():
        described, y = _fitted_on(method, data)
        usual = _usual(described)
        steps, features = _learn(method, _filled(described, usual), y)
        average = _usual(features)

        def look(windows: Windows) -> Iterator[np.ndarray]:
            for x in blocks(windows):
                seen = _filled(method.describe(finite(x)), usual)
                for step in steps:
                    seen = step.transform(_filled(seen, np.nan))
                seen[~seen.any(tuple(range(1, seen.ndim)))] = np.nan  # the covariance of a flat window
                yield _filled(seen, average)

        model = _best(method.candidates(y), features, y, look, data)

    def predict(test: Windows) -> np.ndarray:
        with _calm():
            return np.concatenate([_outputs(model, f, data) for f in look(test)])

    return predict


def blocks(x: Windows, numbers: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Windows f64 [N, C, T], all or those of the given numbers, some hundreds at a time."""
    numbers = np.arange(len(x)) if numbers is None else numbers
    for first in range(0, len(numbers), BLOCK):
        yield x[numbers[first : first + BLOCK]].astype(np.float64)


def fitted_on(data: Training) -> tuple[Labelled, str]:
    """The windows that a baseline is fitted on, and what they are called."""
    return (data.both, 'train and valid') if data.published else (data.train, 'train')


def finite(x: np.ndarray) -> np.ndarray:
    """The same with 0 for what is not a number."""
    return np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def usable(name: str, x: Windows, where: str) -> np.ndarray:
    """Numbers of the windows that vary, in order. Raises: RequestError where none does."""
    keep = np.flatnonzero(np.concatenate([b.reshape(len(b), -1).var(1) for b in blocks(x)]) > LEAST_VARIANCE)
    if not len(keep):
        raise RequestError(
            f'model {name}: no window of {where} has a variance above {LEAST_VARIANCE:g}; '
            'it needs a scaled signal (signal.scaler=robust), not volts'
        )
    return keep


def bandpass(x: np.ndarray, low: float, high: float, sfreq: float) -> np.ndarray:
    """Windows [N, C, T] between two frequencies (Hz): Butterworth of order 4, forth and back, each window by itself."""
    from scipy import signal

    sos = signal.butter(4, (low, high), 'bandpass', fs=sfreq, output='sos')
    return np.asarray(signal.sosfiltfilt(sos, x, padlen=min(x.shape[-1] - 1, int(sfreq / low) + 1)))


def _fitted_on(method: Method, data: Training) -> tuple[np.ndarray, np.ndarray]:
    """Descriptions and targets of the windows to be fitted on.

    Raises: RequestError where they hold fewer than two classes, or too few windows of every one to cross-validate.
    """
    (part, where), least = fitted_on(data), FOLDS if data.published else 1
    keep = usable(method.name, part.x, where)
    if len(keep) > MOST_WINDOWS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MOST_WINDOWS, replace=False))
    y = part.y[keep]
    classes, counts = np.unique(y, return_counts=True)
    if targets.of(data.kind).single and (len(classes) < 2 or counts.max() < least):
        shown = ', '.join(f'{n} of class {c}' for c, n in zip(classes, counts, strict=True))
        wanted = 'windows of two classes' + (f', {least} of one of them' if least > 1 else '')
        raise RequestError(f'model {method.name}: it needs {wanted}; {where} holds {shown} (that vary)')
    y = targets.of(data.kind).sklearn_y(y, part.about)
    return np.concatenate([method.describe(x) for x in blocks(part.x, keep)]), y


def _usual(z: np.ndarray) -> np.ndarray:
    """The mean of every feature over the windows where it is finite, 0 where it never is."""
    return np.nan_to_num(np.nanmean(_filled(z, np.nan), 0))


def _filled(z: np.ndarray, value: np.ndarray | float) -> np.ndarray:
    return np.where(np.isfinite(z), z, value)


def _learn(method: Method, described: np.ndarray, y: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The steps fitted with the Riemannian metric, or the next simpler one where matrices are not positive definite,
    and what they make of the descriptions. Raises: RequestError where none can be fitted."""
    for metric in ('riemann', 'logeuclid', 'euclid'):
        features, steps = described, method.steps(metric, y)
        try:
            for step in steps:
                features = step.fit_transform(features, y)
            return steps, features
        except ValueError as error:  # numpy's LinAlgError is one
            if 'positive' not in str(error):
                raise
            reason = str(error).splitlines()[0]
    raise RequestError(
        f'model {method.name} cannot be fitted: {reason}; a channel may be a mixture of others: leave one out '
        '(signal.picks), or take another --model'
    )


def _best(
    candidates: Sequence[Any],
    features: np.ndarray,
    y: np.ndarray,
    look: Callable[[Windows], Iterator[np.ndarray]],
    data: Training,
) -> Any:
    """The fitted candidate with the best headline on the validation part, the first of equals."""
    fitted = [c.fit(features, y) for c in candidates]
    if len(fitted) == 1:
        return fitted[0]
    seen = np.concatenate([*look(data.valid.x)])
    part = data.valid
    scores = [score.evaluate(data.kind, _outputs(m, seen, data), part.y, part.about)[data.metric] for m in fitted]
    sign = 1 if METRICS[data.metric].better == 'higher' else -1
    return fitted[int(np.argmax([-np.inf if s is None else sign * s for s in scores]))]


def _outputs(model: Any, features: np.ndarray, data: Training) -> np.ndarray:
    """What a fitted estimator says of features: f64 [N, n_out]."""
    return targets.of(data.kind).sklearn_outputs(model, features, data.n_out)


@contextmanager
def _calm() -> Iterator[None]:
    """One thread: these matrices are small, and the bits stay the same on every number of cores. No warnings: a class
    smaller than the folds, a solver at its last iteration, the logarithm of a flat window."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all='ignore'):
        warnings.simplefilter('ignore')
        yield
