"""The table of candidates, and those without weights."""

from __future__ import annotations

import io
import re
import zipfile

import jax
import numpy as np
import pytest
from each import each
from places import ROOT, alignment_dir

from jbench.alignment import activations, brain_model, candidates, stimuli
from jbench.alignment.candidates import gabor, hmax, pixels
from jbench.alignment.image_model import LOGITS, Preprocess, prepared
from jbench.spec.errors import RequestError

PARTS = {'__init__', 'parts', 'network', 'features', 'of_stimuli'}  # no candidates that see pixels


def noise(n=3, size=64, seed=0):
    images = np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), np.uint8)
    return stimuli.of_arrays('noise', {'stimulus_id': [f'n{k}' for k in range(n)]}, list(images))


def test_every_file_has_a_candidate():
    files = {p.stem for p in (ROOT / 'jbench/alignment/candidates').glob('*.py')} - PARTS
    assert files == {re.search(r'(\w+):', row.target)[1] for row in candidates.CANDIDATES.values()}


@each('name', candidates.CANDIDATES)
def test_rows_name_layers_that_the_model_has(name):
    row = candidates.CANDIDATES[name]
    assert tuple(row.regions) == brain_model.REGIONS and row.title
    module = __import__(row.target.partition(':')[0], fromlist=['_'])
    layers = {'pixels': ('pixels',), 'gabor': ('energy',)}.get(name) or getattr(module, 'LAYERS', None)
    layers = layers or module.layers(name)
    assert {*row.regions.values(), row.readout} <= set(layers) and len(set(layers)) == len(layers)
    assert (LOGITS in layers) == row.takes_weights


def test_an_unknown_name_and_weights_for_nothing_are_refused(tmp_path):
    with pytest.raises(RequestError, match="did you mean 'pixels'"):
        candidates.image_model('pixel')
    with pytest.raises(RequestError, match=r'gabor has no weights.*models with weights: alexnet'):
        candidates.image_model('gabor', weights=tmp_path)


def test_pixels_are_the_image():
    image = noise(1, 28)
    found = activations.activations(pixels.pixels(), image, 'pixels')
    np.testing.assert_allclose(found[0, 0], image.image('n0').transpose(2, 0, 1) / 255, atol=1e-7)


def test_an_image_is_resized_as_pillow_does_and_scaled():
    from PIL import Image

    image = noise(1, 50).image('n0')
    how = Preprocess(20, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4), 'bicubic')
    small = np.asarray(Image.fromarray(image).resize((20, 20), Image.Resampling.BICUBIC), float)
    np.testing.assert_allclose(prepared(image, how), (small / 255 - how.mean) / how.std, atol=1e-5)
    with pytest.raises(RequestError, match='unknown filter'):
        prepared(image, Preprocess(20, filter='nearest'))


@pytest.mark.slow
@each('k', range(gabor.ORIENTATIONS))
def test_gabor_energy_is_largest_for_its_own_grating_at_any_phase(k):
    angle, place = k * np.pi / gabor.ORIENTATIONS, np.arange(gabor.SIZE)
    along = place * np.cos(angle) + place[:, None] * np.sin(angle)
    waves = [np.cos(2 * np.pi * 0.1 * along + phase) for phase in (0, 1, 2)]
    images = np.repeat((0.5 + 0.4 * np.stack(waves))[..., None], 3, -1).astype(np.float32)
    energy = np.asarray(gabor._energy(images)['energy'])[:, :32, 2:5, 2:5].mean((2, 3))
    assert (energy.argmax(1) == gabor.ORIENTATIONS + k).all()  # the second frequency
    np.testing.assert_allclose(energy[:, gabor.ORIENTATIONS + k], energy[0, gabor.ORIENTATIONS + k], rtol=0.02)


@pytest.fixture(scope='module')
def responses():
    model = hmax.hmax()
    image = np.zeros((hmax.SIZE, hmax.SIZE, 3), np.float32)
    image[30:90, 40:60] = 0.8
    image[70:80, 20:110] = 0.5
    pair = np.stack([image, np.roll(image, (8, 8), (0, 1))])
    return jax.device_get(activations.called(model.apply, hmax.LAYERS, pair))


@pytest.mark.slow
def test_hmax_shapes(responses):
    shapes = {layer: v.shape[1:] for layer, v in responses.items()}
    assert shapes == {'s1': (64, 128, 128), 'c1': (11364,), 's2': (439800,), 'c2': (400,)}
    assert all(np.isfinite(v).all() and (v >= 0).all() for v in responses.values())
    assert responses['s1'].max() <= 1 + 1e-4 and responses['c2'].max() <= 1  # cosines; exp of negatives


@pytest.mark.slow
def test_s1_is_the_cosine_between_filter_and_pixels():
    grey = np.random.default_rng(0).random((1, hmax.SIZE, hmax.SIZE)).astype(np.float32)
    grey[:, 60:100, 60:100] = 0
    found, around = hmax._s1(grey), np.pad(grey[0], 18)
    for k, row in enumerate(hmax.GABORS):
        kernels, width, edge = hmax.gabors(*row), row[0], 18 - row[0] // 2
        np.testing.assert_allclose(np.linalg.norm(kernels, axis=(1, 2)), 1, rtol=1e-5)
        np.testing.assert_allclose(kernels.sum((1, 2)), 0, atol=1e-5)
        for y, x in ((0, 0), (127, 127), (40, 90), (58, 80)):
            under = around[edge + y : edge + y + width, edge + x : edge + x + width]
            norm = np.linalg.norm(under[np.abs(kernels).sum(0) > 0])
            expected = np.abs((kernels * under).sum((1, 2))) / max(norm, hmax.DARK)
            np.testing.assert_allclose(found[k][0, y, x], expected, atol=1e-4)


@pytest.mark.slow
def test_hmax_grows_invariant_to_place(responses):
    def change(layer):
        a, b = responses[layer].reshape(2, -1)
        return np.linalg.norm(a - b) / np.linalg.norm(a)

    assert change('c2') < 0.5 * change('c1') < change('s1')


@pytest.mark.slow
def test_hmax_templates_are_responses_of_its_own_and_come_from_the_seed():
    first, again, other = (hmax.templates(seed) for seed in (0, 0, 1))
    assert {k: v.shape for k, v in first.items()} == {f'width_{n}': (100, n, n, 4) for n in hmax.TEMPLATES}
    assert all((first[k] == again[k]).all() and (first[k] != other[k]).any() for k in first)
    assert hmax.hmax(0).digest != hmax.hmax(1).digest


def test_s2_is_the_distance_to_templates():
    rng = np.random.default_rng(0)
    band = rng.random((1, 6, 6, 4)).astype(np.float32)
    templates = {f'width_{n}': rng.random((2, n, n, 4)).astype(np.float32) for n in hmax.TEMPLATES}
    templates['width_4'][1] = band[0, 1:5, 2:6]
    ((found,), *others) = hmax._s2([band], templates)
    assert found.shape == (1, 3, 3, 2) and [len(o) for o in others] == [0, 0, 0]
    apart = ((band[0, :4, :4] - templates['width_4'][0]) ** 2).sum()
    np.testing.assert_allclose(found[0, 0, 0, 0], np.exp(-apart / 2), rtol=1e-4)
    np.testing.assert_allclose(found[0, 1, 2, 1], 1, atol=1e-5)


# ---- real data ----

REFERENCE = {('pixels', 'ridge'): 0.265, ('pixels', 'pls'): 0.214, ('gabor', 'ridge'): 0.484, ('gabor', 'pls'): 0.476}


@pytest.mark.long  # a minute; the whole command does nearly the same, test_scores_of_recordings.py
@each('name', ['pixels', 'gabor'])
def test_neurons_of_v4_are_predicted_as_in_the_catalogue(name):
    """Cowley et al. 2023, session 210325: 10 folds, 150 principal components, median over neurons."""
    from PIL import Image

    folder = alignment_dir() / 'CowleyV4'
    with zipfile.ZipFile(folder / 'images_210325.zip') as archive:
        files = sorted(n for n in archive.namelist() if n.endswith('.jpg'))
        images = [np.asarray(Image.open(io.BytesIO(archive.read(n))).convert('RGB')) for n in files]
    shown = stimuli.of_arrays('210325', {'stimulus_id': files}, images)
    counts = np.load(folder / 'responses_raw_210325.npz')['counts']
    rates = np.nanmean(np.where(counts < 0, np.nan, counts), 2).T
    model = candidates.image_model(name)
    x = activations.activations(model, shown, model.layers[0]).reshape(len(files), -1).astype(float)
    for how in ('ridge', 'pls'):
        assert abs(predicted(x, rates, how) - REFERENCE[name, how]) < 0.02, how


def predicted(x, rates, how):
    """Median correlation over neurons."""
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.decomposition import PCA
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import StandardScaler

    found = np.zeros_like(rates)
    for train, test in KFold(10, shuffle=True, random_state=0).split(x):
        scale = StandardScaler().fit(x[train])
        pca = PCA(150, svd_solver='randomized', random_state=0).fit(scale.transform(x[train]))
        fit = RidgeCV(np.logspace(0, 6, 13)) if how == 'ridge' else PLSRegression(25, scale=False)
        fit.fit(pca.transform(scale.transform(x[train])), rates[train])
        found[test] = fit.predict(pca.transform(scale.transform(x[test])))
    return np.median([np.corrcoef(a, b)[0, 1] for a, b in zip(found.T, rates.T, strict=True)])
