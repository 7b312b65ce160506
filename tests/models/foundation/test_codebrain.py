"""CodeBrain against braindecode's recorded numbers: two blocks of it, slow all eight; its montage, its window."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled, layout, lively, tag

from jbench.models.foundation import codebrain as module
from jbench.models.foundation.codebrain import channels, codebrain
from jbench.models.foundation.tueg_channels import NAMES
from jbench.models.layers import blocks, long_convolution
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

TRAINED = (4, 400, 2)
SHORT = ((1, 200, 1), (4, 400, 2), (19, 850, 3), (62, 400, 2), (6, 6000, 2), (19, 11800, 1))
WHOLE = ((4, 399, 2), (19, 1000, 3))


def build(shape: weights.Shape, **options: object) -> Model:
    c, t, n = shape
    return codebrain(Signal(n_chans=c, n_times=t, sfreq=200.0), n, **{'montage': 'given', **options})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'BLOCKS', recorded.SHORT)


def test_layout(short: None) -> None:
    recorded.check_layout('codebrain_short', build(TRAINED), TRAINED)


def test_counts() -> None:
    for shape in ((4, 200, 1), (64, 6000, 4)):
        assert recorded.count(build(shape)) == 13529200 + 201 * shape[2]
    # 275 in the reference at 19 channels, with two heads of pretraining and six tensors of its own head
    assert len(layout(build(TRAINED))) == 275 - 2 - 6 + 2


def check_evaluation(name: str, shape: weights.Shape, x64: bool, **options: object) -> None:
    with jax.enable_x64(x64):
        features = recorded.check_evaluation(name, build(shape, **options), shape, 1e-9 if x64 else 1e-5)
    assert features['tokens'].shape == (recorded.ROWS, shape[0] * (shape[1] // 200), 200)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('x64', [False, True])
@pytest.mark.parametrize('shape', SHORT, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape, x64: bool, short: None) -> None:
    check_evaluation('codebrain_short', shape, x64)


@pytest.mark.parametrize('shape', SHORT[1:3], ids=tag)
def test_a_wider_window_equals_braindecode(shape: weights.Shape, short: None) -> None:
    check_evaluation('codebrain_short_window', shape, x64=shape == TRAINED, window=5)


@pytest.mark.parametrize('shape', WHOLE, ids=tag)
def test_whole_network_equals_braindecode(shape: weights.Shape) -> None:
    check_evaluation('codebrain', shape, x64=shape == WHOLE[0])


def test_ten_steps_equal_braindecode(short: None) -> None:
    with jax.enable_x64(True):
        recorded.check_steps('codebrain_short', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes(short: None) -> None:
    recorded.check_dropout('codebrain_short', build(TRAINED), TRAINED)


@pytest.mark.long
def test_devices_drop_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'BLOCKS', 1)
    recorded.check_devices(build((2, 200, 2)), build((2, 200, 2), axis_name='devices'), (2, 200, 2))


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes(short: None) -> None:
    recorded.check_initial('codebrain_short', build(TRAINED))


@pytest.mark.long
@pytest.mark.parametrize('window', [1, 3])
def test_attention_drops_probabilities(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout elsewhere a key still changes the outputs."""
    monkeypatch.setattr(module, 'BLOCKS', 1)
    drop = blocks.dropout

    def only_heads(x: jax.Array, *args: object, **options: object) -> jax.Array:
        return drop(x, *args, **options) if x.shape[-2:] == (module.HEADS, 100) else x

    monkeypatch.setattr(blocks, 'dropout', only_heads)
    model, (batch, _) = build((2, 400, 2), window=window), recorded.windows((2, 400, 2))
    variables = lively('codebrain_short', model)
    both = compiled(lambda key: [model.apply(variables, batch, train=True, key=k).outputs for k in (None, key)])
    none, one = both(jax.random.key(0))
    assert np.abs(one - none).max() > 1e-3 * np.abs(none).max()


def test_size_of_taps_stays_as_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the norm of the initial taps; a training pass at other weights gives it back as it was."""
    monkeypatch.setattr(module, 'BLOCKS', 1)
    model, (batch, _) = build((2, 200, 2)), recorded.windows((2, 200, 2))
    variables = compiled(model.init)(jax.random.key(0))
    pieces = np.asarray(variables['params']['block_0']['long']['pieces'])
    fixed = variables['batch_stats']['block_0']['long']
    taps = long_convolution.taps(pieces, jnp.full(400, 2.0), 1024)
    close(fixed['size'], np.linalg.norm(taps, axis=2), 1e-5)
    np.testing.assert_array_equal(fixed['decay'], 2)
    other = variables | {'params': jax.tree.map(lambda a: 2 * a, variables['params'])}
    after = compiled(lambda v: model.apply(v, batch, train=True, key=None).batch_stats)(other)
    jax.tree.map(np.testing.assert_array_equal, after, variables['batch_stats'])


def test_taps_are_stretched_pieces() -> None:
    """Two numbers twice as they are, then stretched 2, 4, ... times, each piece half the one before."""
    pieces = np.random.default_rng(0).standard_normal((10, 1, 1, 2)).astype(np.float32)
    found = np.asarray(long_convolution.taps(pieces, jnp.full(1, 2.0), 1030))[0, 0]
    a, b = pieces[2, 0, 0] * 2**7
    expected = [*pieces[0, 0, 0] * 2**9, *pieces[1, 0, 0] * 2**8, a, 0.75 * a + 0.25 * b, 0.25 * a + 0.75 * b, b]
    np.testing.assert_allclose(found[:8], expected, rtol=1e-5)
    np.testing.assert_allclose(found[[1023, 1024, 1029]], [pieces[9, 0, 0, 1], 0, 0], rtol=1e-5)
    np.testing.assert_allclose(long_convolution.taps(pieces, jnp.full(1, 2.0), 5)[0, 0], found[:5], rtol=1e-6)


@pytest.mark.parametrize('length', [1, 2, 7, 19, 23])
def test_long_convolution_equals_its_sums(length: int) -> None:
    x, forward, backward = np.random.default_rng(1).standard_normal((3, length))
    lags = np.concatenate([backward[length - 2 :: -1] if length > 1 else [], forward])  # from 1 - length on
    expected = np.convolve(x, lags)[length - 1 : 2 * length - 1]
    with jax.enable_x64(True):
        np.testing.assert_allclose(long_convolution.along(x, forward, backward), expected, atol=1e-12)


def test_nineteen_channels_go_by_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of pretraining, whatever theirs; others are left out."""
    monkeypatch.setattr(module, 'BLOCKS', 1)
    names = ('x', *(name.replace('T3', 'T7').capitalize() for name in reversed(NAMES)))
    assert channels(names) == dict(zip(names[1:], reversed(NAMES), strict=True))
    plain, shape = build((19, 200, 2)), (19, 200, 2)
    mixed = codebrain(Signal(n_chans=20, n_times=200, sfreq=200.0, ch_names=names), 2)
    batch, _ = recorded.windows(shape)
    variables = lively('codebrain_short', plain)
    x = batch['x']
    other = np.concatenate([9 + x[:, :1], x[:, ::-1]], 1)

    def evaluate(made: Model, x: np.ndarray) -> np.ndarray:
        return compiled(lambda x: made.apply(variables, batch | {'x': x}, train=False, key=None).outputs)(x)

    one = evaluate(plain, x)
    np.testing.assert_allclose(evaluate(mixed, other), one, atol=1e-6)
    assert np.abs(evaluate(plain, x[:, ::-1]) - one).max() > 1e-3  # the order matters


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match=r'^codebrain: windows of 199 samples are too short, .* at least 200'):
        build((2, 199, 1))
    signal = Signal(n_chans=18, n_times=200, sfreq=200.0, ch_names=NAMES[:18])
    with pytest.raises(RequestError, match=r'^codebrain: no channel for PZ: got FP1.*montage=given'):
        codebrain(signal, 2)
    with pytest.raises(RequestError, match=r'no channel for FP1, .*got channels without names'):
        codebrain(Signal(n_chans=19, n_times=200, sfreq=200.0), 2)
    with pytest.raises(RequestError, match='montage=all: expected one of tueg, given'):
        build(TRAINED, montage='all')
    for window in (0, 4, -1):
        with pytest.raises(RequestError, match=f'window={window}: expected an odd number'):
            build(TRAINED, window=window)
    with pytest.raises(RequestError, match='dropout=1'):
        build(TRAINED, dropout=1.0)


def test_weights_without_a_first_pass_are_refused(short: None) -> None:
    """braindecode would take the norm of the taps from whatever the weights are when it first computes."""
    model = build(TRAINED)
    found = weights.lively('codebrain_short', layout(model))
    flag = 'residual_layer.residual_blocks.1.sgconv.kernel_norm_initialized'
    assert model.to_torch(model.from_torch(found))[flag] == 1
    found[flag] = np.array(False)
    with pytest.raises(RequestError, match=f'another value: {flag} is False, expected 1'):
        model.from_torch(found)
