"""Read-outs of tasks: values of other implementations, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from jbench.alignment import readouts
from jbench.alignment.readouts import LABELS, imagenet_labels, object_probabilities, odd_one_out, own_labels
from jbench.spec.errors import RequestError

GEIRHOS = list(LABELS)[:16]


@pytest.fixture(scope='module')
def golden():
    return np.load(FIXTURES / 'alignment' / 'behaviour.npz')


def logits(*classes):
    """Of an image each, which is surely of a class."""
    return np.eye(1000, dtype=np.float32)[list(classes)] * 10


def test_classes_of_imagenet():
    names = readouts.synsets()
    assert len(set(names)) == 1000 and list(names) == sorted(names)
    assert (names[0], names[404], names[999]) == ('n01440764', 'n02690373', 'n15075141')
    found, number = imagenet_labels(logits(404, 0))
    assert found == ['n02690373', 'n01440764'] and number.tolist() == [404, 0]


def test_the_sixteen_labels_share_no_class():
    classes = [k for label in GEIRHOS for k in LABELS[label]]
    assert len(classes) == len(set(classes)) and {len(LABELS['bird']), len(LABELS['dog'])} == {49, 109}
    assert all(0 <= k < 1000 for label in LABELS.values() for k in label)


def test_own_labels_are_means_over_classes():
    found, p = own_labels(logits(404, 285, 766), GEIRHOS)
    assert found == ['airplane', 'cat', 'oven']
    raised = np.exp(logits(285)[0])
    assert p[1, GEIRHOS.index('cat')] == pytest.approx((raised / raised.sum())[281:287].mean())
    # a class among many counts for less than the only one
    even = np.zeros((1, 1000))
    even[0, [152, 499]] = 5, 4.9
    assert own_labels(even, GEIRHOS)[0] == ['knife']


def test_equal_labels_take_the_first_and_large_logits_do_not_overflow():
    assert own_labels(np.zeros((1, 1000)), ['oven', 'knife'])[0] == ['oven']
    assert np.isfinite(own_labels(logits(404) * 1e6, GEIRHOS)[1]).all()


def test_labels_in_any_spelling():
    assert own_labels(logits(786), ['Sewing machine', 'boot'])[0] == ['Sewing machine']


def test_probabilities_of_another_implementation(golden):
    names, p = object_probabilities(golden['readout_features'], golden['readout_labels'], golden['readout_test'])
    assert names == golden['choices'].tolist()
    np.testing.assert_allclose(p, golden['readout_probabilities'], atol=1e-9)


def test_probabilities_do_not_depend_on_the_order_of_images(golden):
    order = np.random.RandomState(0).permutation(60)
    given = golden['readout_features'], golden['readout_labels']
    _, p = object_probabilities(given[0][order], given[1][order], golden['readout_test'])
    np.testing.assert_allclose(p, golden['readout_probabilities'], atol=1e-9)


def test_more_features_than_images_is_the_same_regression():
    rng = np.random.RandomState(0)
    x, y, test = rng.randn(30, 80) + 3, np.repeat(list('abc'), 10), rng.randn(5, 80)
    x[:, 0] = 7  # a feature that never changes
    scaler = StandardScaler().fit(x)
    plain = LogisticRegression(solver='newton-cg', C=1e-3, tol=1e-10, max_iter=1000).fit(scaler.transform(x), y)
    names, p = object_probabilities(x.astype(np.float32), y, test)
    assert names == ['a', 'b', 'c']
    np.testing.assert_allclose(p, plain.predict_proba(scaler.transform(test)), atol=1e-6)


def test_two_images_of_two_objects():
    x = np.random.RandomState(0).randn(2, 50)
    _, p = object_probabilities(x, ['one', 'two'], x)
    np.testing.assert_allclose(p.sum(1), 1)
    assert p[0, 0] == pytest.approx(p[1, 1]) and p[0, 0] > 0.5
    _, of_three = object_probabilities(np.r_[x, x], ['one', 'two', 'one', 'two'], x)
    assert of_three[0, 0] > p[0, 0]


def test_two_objects_have_a_vector_of_weights_each():
    """The gradient of the loss of two vectors w and -w is zero at the solution."""
    rng = np.random.RandomState(1)
    x, y, test = rng.randn(40, 3), np.arange(40) % 2, rng.randn(6, 3)
    _, p = object_probabilities(x, y.astype(str), test)
    z = (test - x.mean(0)) / x.std(0)
    line = np.linalg.lstsq(np.c_[z, np.ones(6)], np.log(p[:, 1] / p[:, 0]), rcond=None)[0]
    train = (x - x.mean(0)) / x.std(0)
    right = 1 / (1 + np.exp(-train @ line[:3] - line[3]))
    np.testing.assert_allclose(1e-3 * train.T @ (right - y) + line[:3] / 2, 0, atol=1e-6)


@each('similarity', readouts.SIMILARITIES)
def test_odd_ones_of_another_implementation(similarity, golden):
    found = odd_one_out(golden['odd_features'], golden['odd_triplets'], similarity=similarity)
    np.testing.assert_array_equal(found, golden[f'odd_{similarity}'])


def test_odd_one_of_equal_pairs_and_of_nothing():
    x, triplet = np.array([[1.0, 0], [1, 0], [1, 0], [0, 0]]), np.array([[0, 1, 2], [3, 0, 1]])
    assert odd_one_out(x, triplet, similarity='cosine').tolist() == [2, 3]


@each(
    'call, said',
    [
        (lambda: own_labels(np.zeros((2, 512)), GEIRHOS), 'expected .image, 1000.'),
        (lambda: imagenet_labels(np.zeros(1000)), 'expected .image, 1000.'),
        (lambda: own_labels(logits(1), ['cats']), 'did you mean'),
        (lambda: object_probabilities(np.zeros((2, 3)), ['a', 'a'], np.zeros((1, 3))), 'of 1 objects'),
        (lambda: object_probabilities(np.zeros((2, 3)), ['a', 'b'], np.zeros((1, 4))), 'test features .1, 4.'),
        (lambda: odd_one_out(np.zeros((3, 2)), np.zeros((1, 2), int)), 'expected three'),
        (lambda: odd_one_out(np.zeros((3, 2)), np.zeros((1, 3), int), similarity='cos'), 'did you mean .cosine'),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises(RequestError, match=said):
        call()
