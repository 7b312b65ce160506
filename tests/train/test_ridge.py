"""The closed form against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from jbench.train import ridge


@pytest.fixture(scope='module')
def windows():
    """Features of very different size, one of which does not vary; three unequal classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 200, p=[0.6, 0.3, 0.1])
    x = rng.normal(size=(200, 7)) * 10.0 ** np.arange(-3, 4) + 5
    x[:, 2] += 0.02 * y
    return np.concatenate([x, np.zeros((200, 1))], 1), y


def blocks(x, y, w, size):
    return [(x[i : i + size], y[i : i + size], w[i : i + size]) for i in range(0, len(x), size)]


def theirs(x, y, w, penalty):
    scaler = StandardScaler().fit(x, sample_weight=w)
    fitted = Ridge(alpha=penalty).fit(scaler.transform(x), y, sample_weight=w)
    return fitted.predict(scaler.transform(x))


@pytest.mark.parametrize('size', [200, 33])
def test_outputs_are_those_of_scikit_learn(windows, size):
    x, y = windows
    taught, w = np.eye(3)[y], ridge.class_weights(y, 3)
    found = ridge.lines(ridge.sums(blocks(x, taught, w, size)))
    assert len(found) == 17
    for line, penalty in list(zip(found, ridge.PENALTIES, strict=True))[::4]:
        expected = theirs(x, taught, w, penalty)
        np.testing.assert_allclose(x @ line.weight.T + line.bias, expected, rtol=1e-6, atol=1e-8)
        assert not line.weight[:, -1].any()


def test_windows_of_values_weigh_the_same(windows):
    x, _ = windows
    y, w = x[:, :1] * 3 + x[:, 1:2], np.ones(len(x))
    line = ridge.lines(ridge.sums(blocks(x, y, w, 64)), [10.0])[0]
    np.testing.assert_allclose(x @ line.weight.T + line.bias, theirs(x, y, w, 10.0).reshape(-1, 1), rtol=1e-7)


def test_classes_weigh_the_same(windows):
    _, y = windows
    w = ridge.class_weights(y, 4)  # the last class has no window
    np.testing.assert_allclose([w[y == c].sum() for c in range(3)], len(y) / 3)


def test_of_equal_scores_the_larger_penalty_counts():
    found = ridge.lines(ridge.sums([(np.eye(3), np.eye(3), np.ones(3))]))
    scores = dict(zip(map(id, found), [None, 0.2, 0.7, 0.7, 0.1, *[None] * 12], strict=True))
    assert ridge.best(found, lambda line: scores[id(line)]) == 3
    assert ridge.best(found, lambda line: None) == -1


def test_no_window_is_refused():
    with pytest.raises(ValueError, match='no window'):
        ridge.sums([])
