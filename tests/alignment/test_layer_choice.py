"""Principal components of layers; the layer that a region gets."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from places import FIXTURES
from sklearn.decomposition import PCA

from jbench.alignment import activations, layers, stimuli
from jbench.alignment.activations import Limits
from jbench.alignment.image_model import ImageModel, Preprocess
from jbench.spec.errors import RequestError

GOLDEN = np.load(FIXTURES / 'alignment' / 'pca.npz')


def test_projections_are_those_of_the_reference_but_for_signs():
    found = layers.components(GOLDEN['pca_fit'], 8)
    ours, expected = layers.project(GOLDEN['pca_new'], found), GOLDEN['pca_projection']
    sign = np.sign((ours * expected).sum(0))
    np.testing.assert_allclose(ours * sign, expected, atol=1e-9)
    np.testing.assert_allclose(found.variance, GOLDEN['pca_explained_variance'], rtol=1e-10)


@each('shape, n', [((30, 50), 7), ((80, 50), 7), ((50, 50), 30)])
def test_components_equal_those_of_scikit_learn(shape, n):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) * np.linspace(3, 0.2, shape[1]) + 5
    ours, theirs = layers.components(x, n), PCA(n, svd_solver='full').fit(x)
    np.testing.assert_allclose(
        ours.axes * np.sign((ours.axes * theirs.components_).sum(1))[:, None], theirs.components_, atol=1e-8
    )
    np.testing.assert_allclose(ours.variance, theirs.explained_variance_, rtol=1e-8)
    assert (np.take_along_axis(ours.axes, np.abs(ours.axes).argmax(1)[:, None], 1) > 0).all()


def test_parts_in_memory_change_nothing(monkeypatch):
    x = np.random.default_rng(0).standard_normal((20, 300)).astype(np.float32)
    whole = layers.components(x, 5)
    monkeypatch.setattr(layers, 'CHUNK', 20 * 7)
    for a, b in zip(layers.components(x, 5), whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert whole.axes.dtype == np.float32


def test_few_features_are_left_as_they_are_and_few_rows_give_fewer_components():
    x = np.random.default_rng(0).standard_normal((6, 40))
    assert layers.components(x, 40) is None and layers.project(x, None) is x
    found = layers.components(x, 30)
    assert found.axes.shape == (5, 40)  # the mean takes one
    np.testing.assert_allclose(layers.project(x, found).var(0, ddof=1), found.variance)
    with pytest.raises(RequestError, match='at least 2 images, got 1'):
        layers.components(x[:1], 30)
    with pytest.raises(RequestError, match='are the same for all 6 images'):
        layers.components(np.ones((6, 40)), 30)


def _apply(images):
    flat = images.reshape(len(images), -1)
    return {'early': images * 0, 'middle': flat[:, :50], 'late': flat.mean(1, keepdims=True)}


MODEL = ImageModel('small', ('early', 'middle', 'late'), Preprocess(8), _apply, 'digest')


def images(n=12, seed=0):
    found = np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3), np.uint8)
    return stimuli.of_arrays(f'set {seed}', {'stimulus_id': [str(k) for k in range(n)]}, list(found))


def test_the_layer_with_the_highest_score_is_chosen_and_nan_is_no_score():
    shown, shapes = images(), []

    def score(x):
        shapes.append(x.shape)
        return {192: np.nan, 50: 0.2, 1: 0.1}[x.shape[1]]

    found = layers.choose_layer(MODEL, 'V4', MODEL.layers, shown, score)
    assert (found.region, found.layer, found.stimuli) == ('V4', 'middle', shown.digest)
    assert shapes == [(12, 192), (12, 50), (12, 1)] and dict(found.scores)['late'] == 0.1
    with pytest.raises(RequestError, match='no layer for V4: the score of each is NaN'):
        layers.choose_layer(MODEL, 'V4', MODEL.layers, shown, lambda x: np.nan)
    assert layers.choose_layer(MODEL, 'V4', MODEL.layers, shown, lambda x: 0.5).layer == 'early'


def test_components_are_fitted_on_other_images(monkeypatch):
    monkeypatch.setattr(layers, 'COMPONENTS', 4)
    monkeypatch.setattr(layers.components, '__defaults__', (4,))
    seen, shown, other = {}, images(), images(20, 1)
    pixels = {s.identifier: np.stack([s.image(i) for i in s.ids]).reshape(len(s), -1) / 255 for s in (shown, other)}
    for fitted in (None, other):
        layers.choose_layer(
            MODEL, 'IT', ['middle'], shown, lambda x: seen.setdefault(len(seen), x).sum(), fitted_on=fitted
        )
    for k, fit in enumerate((shown, other)):
        pca = PCA(4, svd_solver='full').fit(pixels[fit.identifier][:, :50])
        expected = pca.transform(pixels[shown.identifier][:, :50])
        np.testing.assert_allclose(np.abs(seen[k]), np.abs(expected), atol=1e-5)


def test_a_model_reduced_to_components_is_a_model_like_others(monkeypatch):
    monkeypatch.setattr(layers.components, '__defaults__', (4,))
    shown, fitted = images(70, 2), images(20, 1)
    small = layers.reduced(MODEL, ['middle', 'late'], fitted)
    assert small.digest not in (MODEL.digest, layers.reduced(MODEL, ['middle'], shown).digest)
    pixels = [np.stack([s.image(i) for i in s.ids]).reshape(len(s), -1)[:, :50] / 255 for s in (fitted, shown)]
    found = layers.flat(activations.activations(small, shown, 'middle', limits=Limits(memory=4 * 70 * 4)))
    expected = PCA(4, svd_solver='full').fit(pixels[0]).transform(pixels[1])
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-5)
    for layer in ('early', 'late'):  # not asked for; no more units than components
        same = [activations.activations(m, shown, layer) for m in (MODEL, small)]
        np.testing.assert_array_equal(*same)
    assert layers.reduced(MODEL, ['late'], fitted) is MODEL
    with pytest.raises(RequestError, match='temporal model'):
        layers.reduced(MODEL._replace(time_bins=((0, 10),)), ['late'], fitted)


def test_a_layer_over_the_budget_is_refused_at_once():
    called = []
    with pytest.raises(RequestError, match='early'):
        layers.choose_layer(MODEL, 'IT', ['late', 'early'], images(), called.append, limits=Limits(memory=4 * 12 * 100))
    assert called == []
