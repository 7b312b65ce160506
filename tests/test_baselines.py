"""Handcrafted baselines against a plain script of the libraries, and everything that data can do to them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from pyriemann.estimation import Covariances
from pyriemann.geometry.tangentspace import tangent_space
from sklearn.linear_model import LogisticRegressionCV

from jbench.models import baselines
from jbench.spec import RequestError


def trials(n: int = 80, n_out: int = 2, n_chans: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Windows f32 [N, C, 100] whose classes differ in the power of a mixture of the channels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_out)
    sources = rng.normal(size=(n, n_chans, 100))
    sources[:, 0] *= 1 + 0.4 * y[:, None]
    return (rng.normal(size=(n_chans, n_chans)) @ sources).astype(np.float32), y


def by_hand(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The published recipe step by step: covariance, shrinkage, tangent space and scaling written out."""
    from pyriemann.geometry.mean import mean_riemann

    def covariances(z: np.ndarray) -> np.ndarray:
        c = Covariances('oas').transform(z.astype(np.float64))
        level = np.trace(c, axis1=1, axis2=2)[:, None, None] / c.shape[1]
        return 0.9 * c + 0.1 * level * np.eye(c.shape[1])

    train, tested = covariances(x), covariances(test)
    reference = mean_riemann(train)
    a, b = tangent_space(train, reference), tangent_space(tested, reference)
    centre, spread = a.mean(0), a.std(0)
    model = LogisticRegressionCV(
        Cs=[10.0**k for k in range(-3, 4)], cv=5, max_iter=1000, class_weight='balanced', scoring='accuracy'
    )
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # this script is written as scikit-learn 1.7 wanted it
        model.fit((a - centre) / spread, y)
    return model.predict_proba((b - centre) / spread)


@pytest.mark.parametrize('n_out', [2, 3])
def test_equals_a_plain_script(n_out: int) -> None:
    x, y = trials(90, n_out)
    test, _ = trials(40, n_out, seed=0)
    outputs = baselines.cov_ts_lr(x, y, 'classes', n_out)(test)
    np.testing.assert_allclose(outputs, by_hand(x, y, test), rtol=0, atol=1e-6)
    assert outputs.shape == (40, n_out) and np.allclose(outputs.sum(1), 1)


def test_learns_and_does_not_learn_shuffled_labels() -> None:
    x, y = trials(200)
    shuffled = np.random.default_rng(1).permutation(y[:120])
    right, wrong = (
        (baselines.cov_ts_lr(x[:120], labels, 'classes', 2)(x[120:]).argmax(1) == y[120:]).mean()
        for labels in (y[:120], shuffled)
    )
    assert right > 0.85 and wrong < 0.7


def test_the_recipe_reaches_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.linear_model

    given: dict = {}

    class Spy(LogisticRegressionCV):
        def __init__(self, **settings: object) -> None:
            given.update(settings)
            super().__init__(**settings)

        def fit(self, x: np.ndarray, y: np.ndarray) -> Spy:
            given['x'] = x
            return super().fit(x, y)

    monkeypatch.setattr(sklearn.linear_model, 'LogisticRegressionCV', Spy)
    baselines.cov_ts_lr(*trials(), 'classes', 2)
    np.testing.assert_allclose(given['Cs'], [1e-3, 1e-2, 1e-1, 1, 10, 100, 1000])
    assert (given['cv'], given['max_iter'], given['class_weight']) == (5, 1000, 'balanced')
    assert (given['scoring'], given['solver'], given['l1_ratios']) == ('accuracy', 'lbfgs', (0.0,))  # L2 alone
    assert 'penalty' not in given and 'n_jobs' not in given  # gone in scikit-learn 1.10
    assert given['x'].dtype == np.float64 and given['x'].shape == (80, 15)
    np.testing.assert_allclose(given['x'].std(0), 1)


def test_no_warning_and_the_same_answer_twice() -> None:
    x, y = trials(60)
    y[:3] = 2  # a class of three windows, fewer than folds
    x *= np.geomspace(1e-3, 1e3, 5)[:, None].astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        first, again = (baselines.cov_ts_lr(x, y, 'classes', 3)(x) for _ in range(2))
    assert first.tobytes() == again.tobytes()


def test_a_class_without_windows_is_never_predicted() -> None:
    x, y = trials(60)
    outputs = baselines.cov_ts_lr(x, y * 2, 'classes', 4)(x)
    assert outputs.shape == (60, 4)
    assert not outputs[:, [1, 3]].any() and outputs[:, [0, 2]].all()
    np.testing.assert_array_equal(outputs[:, [0, 2]], baselines.cov_ts_lr(x, y, 'classes', 2)(x))


def test_flat_and_damaged_trials_are_not_fitted_on() -> None:
    x, y = trials(70)
    expected = baselines.cov_ts_lr(x[:60], y[:60], 'classes', 2)(x)
    x[60:65] = 3.0
    x[65:70] = np.nan
    outputs = baselines.cov_ts_lr(x, y, 'classes', 2)(x[:60])
    np.testing.assert_array_equal(outputs, expected[:60])


def test_a_flat_test_window_gets_the_answer_of_an_average_one() -> None:
    x, y = trials(60)
    predict = baselines.cov_ts_lr(x, y, 'classes', 2)
    expected = predict(x[:8])
    x[3] = 0
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        outputs = predict(x[:8])
    others = [0, 1, 2, 4, 5, 6, 7]
    np.testing.assert_array_equal(outputs[others], expected[others])
    assert np.isfinite(outputs).all() and 0 < outputs[3, 0] < 1  # its features are 0, the mean of what was fitted


def test_at_most_so_many_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = trials(80)
    x[5] = 0
    monkeypatch.setattr(baselines, 'MOST_TRIALS', 30)
    kept_x, kept_y = baselines._trials(x, y)
    assert len(kept_x) == len(kept_y) == 30 and kept_x.dtype == np.float64
    place = [int(np.flatnonzero((x == one).all((1, 2)))[0]) for one in kept_x]
    assert place == sorted(set(place)) and 5 not in place
    np.testing.assert_array_equal(kept_y, y[place])
    np.testing.assert_array_equal(baselines._trials(x, y)[0], kept_x)
    np.testing.assert_array_equal(
        baselines.cov_ts_lr(x, y, 'classes', 2)(x), baselines.cov_ts_lr(x[place], y[place], 'classes', 2)(x)
    )


@pytest.mark.parametrize('kind', ['labels', 'value', 'keystrokes'])
def test_other_targets_are_refused(kind: str) -> None:
    with pytest.raises(RequestError, match=f'predicts classes; the target of this task is of kind {kind!r}'):
        baselines.cov_ts_lr(*trials(), kind, 2)


def in_volts(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x * np.float32(1e-6), y


def one_class(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x, y * 0 + 1


def four_of_each(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x[:8], np.arange(8) % 2


@pytest.mark.parametrize(
    ('spoil', 'message'),
    [
        (in_volts, r'no window of train and valid has a variance above 1e-08; .* \(signal.scaler=robust\)'),
        (one_class, 'train and valid hold 80 of class 1$'),
        (four_of_each, 'train and valid hold 4 of class 0, 4 of class 1$'),
    ],
)
def test_what_cannot_be_fitted_is_said_in_one_line(spoil: Callable, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        baselines.cov_ts_lr(*spoil(*trials()), 'classes', 2)
    assert '\n' not in str(caught.value)


def test_a_simpler_metric_where_matrices_are_not_positive_definite() -> None:
    tried = []

    class Pipeline:
        def __init__(self, metric: str) -> None:
            tried.append(metric)
            self.metric = metric

        def fit(self, x: np.ndarray, y: np.ndarray) -> Pipeline:
            if self.metric == 'riemann':
                raise np.linalg.LinAlgError('Matrix is not positive definite')
            if self.metric == 'logeuclid':
                raise ValueError('Matrices must be positive definite. You should add regularization ...')
            return self

    x, y = trials()
    assert baselines._fit(Pipeline, x, y).metric == 'euclid'
    assert tried == ['riemann', 'logeuclid', 'euclid']


def test_other_errors_are_not_hidden_by_the_fallback() -> None:
    class Pipeline:
        def __init__(self, metric: str) -> None:
            assert metric == 'riemann'

        def fit(self, x: np.ndarray, y: np.ndarray) -> Pipeline:
            raise ValueError('n_splits=5 cannot be greater than the number of members in each class.')

    with pytest.raises(ValueError, match='n_splits'):
        baselines._fit(Pipeline, *trials())


def test_dependent_channels_are_fitted_by_the_riemannian_metric() -> None:
    x, y = trials()
    x[:, 1], x[:, 2] = x[:, 0], 0  # shrinkage makes the matrices positive definite
    assert np.isfinite(baselines.cov_ts_lr(x, y, 'classes', 2)(x)).all()


@pytest.mark.parametrize('package', ['pyriemann', 'sklearn'])
def test_a_missing_extra_is_one_line(package: str) -> None:
    code = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == {package!r}:
            raise ModuleNotFoundError('No module named ' + repr(name), name=name)
sys.meta_path.insert(0, Blocker())
import numpy as np
from jbench.models import baselines
from jbench.spec import MissingExtraError
assert baselines.dummy(None, np.array([1, 1, 0]), 'classes', 2)(np.zeros((2, 1, 1))).argmax(1).tolist() == [1, 1]
try:
    baselines.cov_ts_lr(np.zeros((2, 1, 1)), np.zeros(2, int), 'classes', 2)
except MissingExtraError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert out.startswith('model cov_ts_lr needs pyriemann with scikit-learn, which is not installed: ')
    assert out.endswith("pip install -e '.[classical]' (in jbench's folder)\n") and out.count('\n') == 1


def test_dummy_answers_by_the_labels_alone() -> None:
    y = np.array([0, 2, 2, 1, 2])
    outputs = baselines.dummy(np.full((5, 1, 1), np.nan), y, 'classes', 3)(np.zeros((4, 1, 1)))
    assert outputs.shape == (4, 3) and outputs.argmax(1).tolist() == [2] * 4
