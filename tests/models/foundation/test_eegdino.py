"""EEG-DINO against braindecode's recorded numbers: two layers of either size, slow all twelve of the small one."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import compiled, lively, tag

from jbench.models.foundation import eegdino as module
from jbench.models.foundation.eegdino import channels, eegdino_medium, eegdino_small
from jbench.models.foundation.tueg_channels import NAMES
from jbench.models.layers import blocks
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

TRAINED = (4, 400, 2)
SHORT = ((1, 150, 1), (4, 400, 2), (19, 450, 3), (3, 6000, 2))
MEDIUM = ((3, 450, 2), (19, 200, 1))
WHOLE = ((4, 400, 2), (19, 1000, 3))


def of(shape: weights.Shape) -> Signal:
    return Signal(n_chans=shape[0], n_times=shape[1], sfreq=200.0, ch_names=NAMES[: shape[0]])


def build(shape: weights.Shape, **options: object) -> Model:
    return eegdino_small(of(shape), shape[2], **options)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {name: size._replace(layers=recorded.SHORT) for name, size in module.SIZES.items()}
    monkeypatch.setattr(module, 'SIZES', sizes)


def test_layout(short: None) -> None:
    recorded.check_layout('eegdino_small_short', build(TRAINED), TRAINED)


def test_counts() -> None:
    for shape in ((1, 200, 1), (19, 6000, 4)):
        assert recorded.count(build(shape)) == 4433944 + 201 * shape[2]
        assert recorded.count(eegdino_medium(of(shape), shape[2])) == 33755456 + 513 * shape[2]


def check_evaluation(name: str, model: Model, shape: weights.Shape, x64: bool) -> None:
    features = recorded.check_evaluation(name, model, shape, 1e-9 if x64 else 1e-5)
    width = features['window'].shape[1]
    assert features['tokens'].shape == (recorded.ROWS, shape[0] * -(-shape[1] // 200), width)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('x64', [False, True])
@pytest.mark.parametrize('shape', SHORT, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape, x64: bool, short: None) -> None:
    with jax.enable_x64(x64):
        check_evaluation('eegdino_small_short', build(shape), shape, x64)


@pytest.mark.long
@pytest.mark.parametrize('shape', MEDIUM, ids=tag)
def test_medium_equals_braindecode(shape: weights.Shape, short: None) -> None:
    x64 = shape == MEDIUM[0]
    with jax.enable_x64(x64):
        check_evaluation('eegdino_medium_short', eegdino_medium(of(shape), shape[2]), shape, x64)


@pytest.mark.parametrize('shape', WHOLE, ids=tag)
def test_whole_network_equals_braindecode(shape: weights.Shape) -> None:
    x64 = shape == WHOLE[0]
    with jax.enable_x64(x64):
        check_evaluation('eegdino_small', build(shape), shape, x64)


def test_ten_steps_equal_braindecode(short: None) -> None:
    with jax.enable_x64(True):
        recorded.check_steps('eegdino_small_short', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes(short: None) -> None:
    recorded.check_dropout('eegdino_small_short', build(TRAINED), TRAINED)


@pytest.mark.long
def test_devices_drop_as_one(short: None) -> None:
    recorded.check_devices(build((2, 400, 2)), build((2, 400, 2), axis_name='devices'), (2, 400, 2))


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes(short: None) -> None:
    recorded.check_initial('eegdino_small_short', build(TRAINED))


@pytest.mark.long
def test_attention_drops_probabilities(monkeypatch: pytest.MonkeyPatch, short: None) -> None:
    """Without all other dropouts a key still changes the outputs."""
    monkeypatch.setattr(blocks, 'dropout', lambda x, *args, **options: x)
    model, (batch, _) = build(TRAINED, drop_path=0.0), recorded.windows(TRAINED)
    variables = lively('eegdino_small_short', model)
    both = compiled(lambda key: [model.apply(variables, batch, train=True, key=k).outputs for k in (None, key)])
    none, one = both(jax.random.key(0))
    assert np.abs(one - none).max() > 1e-3 * np.abs(none).max()


def test_slots_go_by_names(short: None) -> None:
    """Whatever their order and what lies between them; one unknown name changes nothing for the others."""
    assert channels(('t7', 'Cz', 'nothing', 'T3', 'P8', 'E22')) == {'t7': 'T3', 'Cz': 'CZ', 'P8': 'T6', 'E22': 'FP1'}
    plain, (batch, _) = build(TRAINED), recorded.windows(TRAINED)
    variables = lively('eegdino_small_short', plain)
    mixed = dataclasses.replace(of(TRAINED), n_chans=6, ch_names=('F4', 'nothing', 'FP2', 'F3', 'Fp1', 'fp2'))
    model = eegdino_small(mixed, TRAINED[2])
    x = batch['x']
    other = np.stack([x[:, 3], 9 + x[:, 0], x[:, 1], x[:, 2], x[:, 0], -x[:, 0]], 1)

    def evaluate(made: Model, x: np.ndarray) -> np.ndarray:
        return compiled(lambda x: made.apply(variables, batch | {'x': x}, train=False, key=None).outputs)(x)

    np.testing.assert_allclose(evaluate(model, other), evaluate(plain, x), atol=1e-5)
    elsewhere = eegdino_small(dataclasses.replace(of(TRAINED), ch_names=NAMES[4:8]), TRAINED[2])
    assert np.abs(evaluate(elsewhere, x) - evaluate(plain, x)).max() > 1e-3


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match=r'^eegdino_small: it knows none of the channels x, y: expected some of FP1'):
        eegdino_small(Signal(n_chans=2, n_times=200, sfreq=200.0, ch_names=('x', 'y')), 2)
    with pytest.raises(RequestError, match='eegdino_medium: needs the names of all 2 channels, got 0'):
        eegdino_medium(Signal(n_chans=2, n_times=200, sfreq=200.0), 2)
    with pytest.raises(RequestError, match='dropout=1'):
        build(TRAINED, dropout=1.0)
    with pytest.raises(RequestError, match='drop_path=-1'):
        build(TRAINED, drop_path=-1.0)
