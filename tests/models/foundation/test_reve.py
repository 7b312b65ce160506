"""REVE against braindecode's recorded numbers: two layers of it, the small one, one layer of the large; its places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled, lively, tag

from jbench.models.foundation import MODELS, probes, reve
from jbench.models.foundation.reve import BASE, LARGE, SMALL, Size, channels, n_patches
from jbench.models.layers.deep import n_again
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import Recipe

pytestmark = pytest.mark.slow

SHORT = BASE._replace(depth=2)
TRAINED = (4, 400, 2)
SHAPES = ((1, 200, 1), (5, 450, 2), (19, 800, 3), (64, 560, 4), (128, 379, 2), (3, 2000, 5))
PLACES = {'Cz': [0.0, 0.01, 0.1], 'Fpz': [0.0, 0.09, 0.0], 'Fp1-F7': [-0.03, 0.08, 0.01]}


def build(shape: weights.Shape, size: Size = SHORT, remat: bool = False) -> Model:
    c, t, n = shape
    signal = Signal(n_chans=c, n_times=t, sfreq=200.0, positions=recorded.places(c))
    return reve.build('reve', size, signal, n, positions='', remat=remat)


def of_bank(bank: str, *names: str) -> Model:
    """One layer over two patches of these channels."""
    signal = Signal(n_chans=len(names), n_times=400, sfreq=200.0, ch_names=names)
    return reve.build('reve', BASE._replace(depth=1), signal, 2, positions=bank, remat=None)


def at(*places: tuple[float, float, float] | None) -> Model:
    """The same of channels at these places."""
    signal = Signal(n_chans=len(places), n_times=400, sfreq=200.0, positions=places)
    return reve.build('reve', BASE._replace(depth=1), signal, 2, positions='', remat=None)


def test_layout_and_counts() -> None:
    recorded.check_layout('reve', build(TRAINED), TRAINED)
    sizes = {'reve_small': SMALL, 'reve_base': BASE, 'reve_large': LARGE}
    expected = {model.name: model.n_parameters for model in MODELS}
    assert expected['reve_base'] == 69189120
    for name, size in sizes.items():
        for c, t, n in ((4, 256, 1), (64, 6000, 4)):
            signal = Signal(n_chans=c, n_times=t, sfreq=200.0, positions=recorded.places(c))
            assert recorded.count(getattr(reve, name)(signal, n)) == expected[name] + (size.width + 1) * n


@pytest.mark.parametrize('shape', SHAPES, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape) -> None:
    """The channel whose place is not known is not read."""
    for x64 in (False, True):
        with jax.enable_x64(x64):
            features = recorded.check_evaluation('reve', build(shape), shape, 1e-9 if x64 else 1e-5)
    used = sum(place is not None for place in recorded.places(shape[0]))
    assert features['tokens'].shape == (recorded.ROWS, used * n_patches(shape[1]), 512)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize(('name', 'size'), [('reve_small', SMALL), ('reve_large', LARGE._replace(depth=1))])
def test_other_sizes_equal_braindecode(name: str, size: Size) -> None:
    recorded.check_evaluation(name, build(TRAINED, size), TRAINED, 1e-5)


@pytest.mark.parametrize('remat', [False, True])
def test_ten_steps_equal_braindecode(remat: bool) -> None:
    """Whether values are kept for the gradient or computed again."""
    with jax.enable_x64(True):
        recorded.check_steps('reve', build(TRAINED, remat=remat), TRAINED, 1e-9)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('reve', build(TRAINED))


def test_half_precision_keeps_the_norms_wide() -> None:
    """Squares of large values are no float16."""
    norm = reve._Rms(4)
    variables = {'params': {'scale': np.ones(4, np.float16)}}
    found = norm.apply(variables, np.full((1, 4), 1000, np.float16))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, 1, rtol=1e-3)


def test_memory_decides_whether_values_are_kept() -> None:
    """Of the base: kept for 19 channels of 4 s, some of the layers for 64 of 10 s."""
    sizes = [reve.layer_bytes(BASE, 16, length) for length in (19 * n_patches(800), 64 * n_patches(2000))]
    assert [n_again(size, BASE.depth - 1, rest=size, train=True, remat=None) for size in sizes] == [0, 12]


def test_a_layer_that_is_computed_again_is_no_feature_in_training() -> None:
    encoder = build(TRAINED, remat=True)
    variables = jax.eval_shape(encoder.init, jax.random.key(0))
    batch = {'x': jnp.zeros(TRAINED[:2])[None], 'mask': jnp.ones(1, bool)}

    def answer(layer: str, train: bool) -> Any:
        model = probes.tapped(encoder, Recipe(layer=layer, aggregation='mean'))
        return jax.eval_shape(lambda v: model.apply(v, batch, train=train, key=None).features, variables)

    assert answer('layer_0', train=False)['penultimate'].shape == (1, BASE.width)
    with pytest.raises(RequestError, match=r'layer_0: the encoder computes this layer again.*remat=no'):
        answer('layer_0', train=True)
    last = f'layer_{SHORT.depth - 1}'  # is never computed again
    found = answer(last, train=True)
    assert found[last].shape == found['tokens'].shape and found['penultimate'].shape == (1, BASE.width)


@pytest.fixture
def bank(tmp_path: Path) -> str:
    (tmp_path / 'positions.json').write_text(json.dumps(PLACES))
    return str(tmp_path / 'positions.json')


def test_channels_by_place(bank: str) -> None:
    """Each name for itself: as it is, by its anode, not at all."""
    names = ['x', 'Cz', 'Fpz-Cz', 'Fp1-F7', 'cz', 'EEG8']
    assert channels(names, bank) == {'Cz': '0 10 100', 'Fpz-Cz': '0 90 0', 'Fp1-F7': '-30 80 10', 'EEG8': '0 10 100'}
    assert list(channels(['x', 'Cz', 'Fpz-Cz'])) == ['Cz', 'Fpz-Cz']


def test_a_file_of_places_stands_for_the_places(bank: str) -> None:
    """What a channel without one holds is not read; the order of channels does not matter."""
    x = np.random.default_rng(0).standard_normal((2, 3, 400)).astype(np.float32)
    by_name, by_place = of_bank(bank, 'Cz', '?', 'Fpz-Cz'), at((0.0, 0.09, 0.0), (0.0, 0.01, 0.1))

    def outputs(model: Model, x: np.ndarray) -> np.ndarray:
        batch = {'x': x, 'mask': np.ones(2, bool)}
        return compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(lively('reve', model))

    expected = outputs(by_place, x[:, [2, 0]])
    close(outputs(by_name, x), expected, 1e-5)
    np.testing.assert_array_equal(outputs(by_name, x * [[1], [9], [1]]), outputs(by_name, x))


def test_what_it_cannot_read_is_refused(tmp_path: Path, bank: str) -> None:
    with pytest.raises(RequestError, match=r'^reve: windows of 199 samples are too short, .* at least 200'):
        build((3, 199, 1))
    with pytest.raises(RequestError, match=r'^reve: the place of none of the 2 channels is known: .* cbramod'):
        at(None, None)
    with pytest.raises(RequestError, match=r'known by .*positions\.json: expected'):
        of_bank(bank, 'x', 'cz')
    with pytest.raises(RequestError, match=r'^reve_base: needs the places of all 2 channels, got 0'):
        reve.reve_base(Signal(n_chans=2, n_times=200, sfreq=200.0), 1)
    with pytest.raises(RequestError, match=r'No such file.* positions\.json of reve-positions'):
        channels(['Cz'], str(tmp_path / 'no.json'))
    for text in ('[1]', '{"Cz": 1}', '{"Cz": [1, 2]}', '{"Cz": ["a", 1, 2]}', '{'):
        (tmp_path / 'wrong.json').write_text(text)
        with pytest.raises(RequestError, match=r'wrong\.json: '):
            channels(['Cz'], str(tmp_path / 'wrong.json'))


def test_a_file_with_the_names_of_braindecode_is_read_but_for_the_head(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    model = at((0.0, 0.0, 0.1))
    state = model.to_torch(lively('reve', model))
    theirs = {k: v for k, v in state.items() if not k.startswith('head.')} | {'final_layer.1.weight': np.ones(3)}
    save_file(theirs, tmp_path / 'file.safetensors')
    start = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    found = model.to_torch(load(model, tmp_path / 'file.safetensors', exceptions=reve.CHECKPOINT, start=start))
    for key, value in state.items():
        np.testing.assert_array_equal(found[key], 0 if key.startswith('head.') else value, err_msg=key)
