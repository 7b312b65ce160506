"""CBraMod against braindecode's recorded numbers: two layers of it, slow all twelve; windows that it refuses."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from families import often
from networks import compiled, lively, tag

from jbench.models.foundation import cbramod as module
from jbench.models.foundation.cbramod import cbramod, channels
from jbench.models.layers import blocks
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

TRAINED = (4, 400, 2)
SHORT = ((5, 600, 2), pytest.param((22, 200, 2), marks=pytest.mark.slow))
WHOLE = ((1, 200, 1), (5, 600, 2), (19, 400, 3), (64, 800, 4), (128, 200, 2), (24, 1800, 2), (3, 6000, 5))


def build(shape: weights.Shape, **options: object) -> Model:
    c, t, n = shape
    return cbramod(Signal(n_chans=c, n_times=t, sfreq=200.0), n, **options)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'LAYERS', recorded.SHORT)


def test_layout_and_counts() -> None:
    recorded.check_layout('cbramod', build(TRAINED), TRAINED)
    for shape in ((4, 200, 1), (64, 6000, 4)):
        assert recorded.count(build(shape)) == 4924000 + 201 * shape[2]


def check_evaluation(name: str, shape: weights.Shape, x64: bool) -> None:
    with jax.enable_x64(x64):
        features = recorded.check_evaluation(name, build(shape), shape, 1e-9 if x64 else 1e-5)
    assert features['tokens'].shape == (recorded.ROWS, shape[0] * shape[1] // 200, 200)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('shape', SHORT, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape, short: None) -> None:
    for x64 in (False, True):
        check_evaluation('cbramod_short', shape, x64)


@pytest.mark.parametrize('shape', often(WHOLE, ((1, 200, 1), (64, 800, 4), (3, 6000, 5))), ids=tag)
def test_whole_network_equals_braindecode(shape: weights.Shape) -> None:
    check_evaluation('cbramod', shape, x64=WHOLE.index(shape) % 2 == 1)


def test_ten_steps_equal_braindecode(short: None) -> None:
    with jax.enable_x64(True):
        recorded.check_steps('cbramod_short', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_ten_steps_of_the_whole_network_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('cbramod', build(TRAINED), TRAINED, 1e-9)


def test_a_dropout_that_keeps_all_changes_nothing(short: None) -> None:
    with jax.enable_x64(True):
        model = build(TRAINED, dropout=1e-12)
        variables, (batch, _) = lively('cbramod_short', model), recorded.windows(TRAINED)

        @compiled
        def outputs(key: jax.Array | None) -> jax.Array:
            return model.apply(variables, batch, train=True, key=key).outputs

        np.testing.assert_allclose(outputs(jax.random.key(0)), outputs(None), rtol=1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes(short: None) -> None:
    recorded.check_dropout('cbramod_short', build(TRAINED), TRAINED)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('cbramod', build(TRAINED))


def test_every_channel_is_used_by_its_place() -> None:
    assert channels(['Cz', 'x']) == {'Cz': '1', 'x': '2'}


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match=r'^cbramod: windows of 199 samples are too short, .* at least 200'):
        build((2, 199, 1))
    with pytest.raises(RequestError, match=r'^cbramod: windows of 500 samples .* as 400 or 600.* window\.duration'):
        build((2, 500, 1))
    with pytest.raises(RequestError, match='dropout=1'):
        build(TRAINED, dropout=1.0)


@pytest.mark.long
def test_attention_drops_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few to show in the spread of outputs: without all other dropouts a key still changes the outputs."""
    monkeypatch.setattr(module, 'LAYERS', 1)
    monkeypatch.setattr(blocks, 'dropout', lambda x, *args, **options: x)
    model, (batch, _) = build((3, 400, 2)), recorded.windows((3, 400, 2))
    variables = lively('cbramod', model)

    @compiled
    def both(key: jax.Array) -> list[jax.Array]:
        return [model.apply(variables, batch, train=True, key=k).outputs for k in (None, key)]

    none, one = both(jax.random.key(0))
    assert np.abs(one - none).max() > 1e-3 * np.abs(none).max()


@pytest.mark.slow
def test_dropout_follows_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes the rows of all devices together: two devices do what one does."""
    monkeypatch.setattr(module, 'LAYERS', 1)
    model, both = build((1, 200, 1)), build((1, 200, 1), axis_name='i')
    x = np.random.default_rng(0).standard_normal((4, 1, 200)).astype(np.float32)
    variables = lively('cbramod', model)

    def outputs(made: Model, x: jax.Array, key: jax.Array) -> jax.Array:
        return made.apply(variables, {'x': x, 'mask': np.ones(len(x), bool)}, train=True, key=key).outputs

    @compiled
    def every(x: jax.Array, keys: jax.Array) -> list[jax.Array]:
        split = jax.vmap(lambda rows: outputs(both, rows, keys[0]), axis_name='i')(x.reshape(2, 2, 1, 200))
        return [*jax.lax.map(lambda key: outputs(model, x, key), keys), split.reshape(4, 1)]

    one, other, split = map(np.asarray, every(x, jax.random.split(jax.random.key(0))))
    np.testing.assert_allclose(split, one, rtol=1e-5, atol=1e-6)
    assert np.abs(one - other).max() > 1e-3
