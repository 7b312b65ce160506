"""STEEGFormer against braindecode's recorded numbers: two layers of it, slow all eight; channels, windows."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled, lively, tag

from jbench.models import factory
from jbench.models.foundation import MODELS
from jbench.models.foundation import steegformer as module
from jbench.models.foundation.steegformer_channels import INDEX, NAMES, channels
from jbench.models.layers.deep import n_again
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

TRAINED = (4, 70, 2)
SHORT = ((1, 16, 1), (5, 100, 2), (12, 175, 3), (3, 1500, 2))
WHOLE = ((5, 100, 2), (11, 300, 3))
ENCODERS = {'steegformer_small': 25303552, 'steegformer_base': 85181184, 'steegformer_large': 302478336}


def build(shape: weights.Shape, name: str = 'steegformer_small', **options: object) -> Model:
    c, t, n = shape
    names = tuple(recorded.STEEGFORMER_CHANNELS)[:c]
    return getattr(module, name)(Signal(n_chans=c, n_times=t, sfreq=128.0, ch_names=names), n, **options)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in module.SIZES.items():
        layers = 1 if name == 'steegformer_large' else recorded.SHORT
        monkeypatch.setitem(module.SIZES, name, size._replace(layers=layers))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.SIZES, 'steegformer_small', module.Size(*recorded.NARROW))


def test_layout_and_counts() -> None:
    recorded.check_layout('steegformer_small', build(TRAINED), TRAINED)
    for name, expected in ENCODERS.items():
        for shape in ((4, 70, 1), (11, 300, 3)):
            width = module.SIZES[name].width
            assert recorded.count(build(shape, name)) == expected + shape[2] * (width + 1)
    lines = {m.name: m for m in MODELS if m.name.startswith('steegformer')}
    assert {name: m.n_parameters for name, m in lines.items()} == ENCODERS
    assert all(factory(m) is getattr(module, name) and m.least_times == 16 for name, m in lines.items())


def check_evaluation(name: str, shape: weights.Shape, x64: bool, **options: str) -> None:
    size = name if name in ENCODERS else 'steegformer_small'
    with jax.enable_x64(x64):
        features = recorded.check_evaluation(name, build(shape, size, **options), shape, 1e-9 if x64 else 1e-5)
    used = len(channels(tuple(recorded.STEEGFORMER_CHANNELS)[: shape[0]]))
    width = module.SIZES[size].width
    assert features['tokens'].shape == (recorded.ROWS, shape[1] // 16 * used, width)
    assert features['penultimate'].shape == (recorded.ROWS, width)
    if not options:
        np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('shape', SHORT, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape, short: None) -> None:
    for x64 in (False, True):
        check_evaluation('steegformer_short', shape, x64)


@pytest.mark.parametrize('name', ['steegformer_base', 'steegformer_large'])
def test_larger_sizes_equal_braindecode(name: str, short: None) -> None:
    check_evaluation(name, SHORT[1], x64=True)


def test_class_token_equals_braindecode(narrow: None) -> None:
    check_evaluation('steegformer_cls', SHORT[1], x64=True, pool='cls')
    with jax.enable_x64(True):
        recorded.check_steps('steegformer_cls', build(TRAINED, pool='cls'), TRAINED, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize('shape', WHOLE, ids=tag)
def test_whole_network_equals_braindecode(shape: weights.Shape) -> None:
    for x64 in (False, True):
        check_evaluation('steegformer_small', shape, x64)


@pytest.mark.parametrize('remat', [False, True])
def test_ten_steps_equal_braindecode(remat: bool, short: None) -> None:
    """Whether values are kept for the gradient or computed again."""
    with jax.enable_x64(True):
        recorded.check_steps('steegformer_short', build(TRAINED, remat=remat), TRAINED, 1e-9)


def test_memory_decides_whether_values_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 16 windows of 19 channels and 4 s: of the small kept, of the base some computed again."""
    small, base = (module.SIZES[f'steegformer_{size}'] for size in ('small', 'base'))
    each = {size: module.layer_bytes(size, 16, 609) for size in (small, base)}
    again = {size: n_again(each[size], size.layers - 1, rest=each[size], train=True, remat=None) for size in each}
    assert again[small] == 0 < again[base] < base.layers - 1
    monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')  # where scores of 609 tokens are kept
    assert module.layer_bytes(small, 16, 609) == each[small] + 4 * 16 * 8 * 609**2
    with pytest.raises(RequestError, match=r'remat=True goes with drop_path=0 alone'):
        build(TRAINED, remat=True, drop_path=0.1)


@pytest.mark.long
def test_ten_steps_of_the_whole_network_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('steegformer_small', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes(narrow: None) -> None:
    recorded.check_initial('steegformer_cls', build(TRAINED))


def test_channels_by_name() -> None:
    """In capitals or not; an unknown name moves no other; the names before 1991 have rows of their own."""
    found = channels(tuple(recorded.STEEGFORMER_CHANNELS))
    rows = {name: row for name, row in recorded.STEEGFORMER_CHANNELS.items() if row is not None}
    assert {name: NAMES.index(known) for name, known in found.items()} == rows
    assert channels(['?', 'cz']) == channels(['cz', '?']) == {'cz': 'Cz'}
    assert len(NAMES) == len(INDEX) == 142
    assert len({INDEX[name] for name in ('T3', 'T7', 'T5', 'P7', 'A1', 'M1')}) == 6


def test_only_the_used_channels_count(narrow: None) -> None:
    """In any order, and at any scale."""
    with jax.enable_x64(True):
        x, mask = np.random.default_rng(0).standard_normal((2, 3, 50)), np.ones(2, bool)
        names = ('Fp1', 'nothing', 'Cz')

        def answers(order: list[int], *windows: np.ndarray) -> list[np.ndarray]:
            chosen = tuple(names[i] for i in order)
            signal = Signal(n_chans=len(order), n_times=50, sfreq=128.0, ch_names=chosen)
            model = module.steegformer_small(signal, 2)
            answer = compiled(lambda v, x: model.apply(v, {'x': x, 'mask': mask}, train=False, key=None).outputs)
            return [answer(lively('steegformer_small', model), x[:, order]) for x in windows]

        (whole,), found = answers([2, 0], x), answers([0, 1, 2], x, x * [[1], [9], [1]], 3 + x * [[5], [1], [7]])
        close(found[0], whole, 1e-12)
        np.testing.assert_array_equal(found[1], found[0])
        close(found[2], whole, 1e-6)
        (other,) = answers([0, 1, 2], x[:, ::-1])
        assert np.abs(other - whole).max() > 1e-3


def test_a_channel_without_signal_is_zero() -> None:
    x = np.full((1, 2, 32), 7.0, np.float32)
    x[0, 1] = np.arange(32)
    found = module.standardised(x)
    np.testing.assert_array_equal(found[0, 0], 0)
    np.testing.assert_allclose([found[0, 1].mean(), found[0, 1].std()], [0, 1], atol=1e-6)


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match=r'^steegformer_base: windows of 15 samples are too short, .* at least 16'):
        build((3, 15, 2), 'steegformer_base')
    with pytest.raises(RequestError, match=r'^steegformer_small: .* 32768 samples are too long, .* 32767.*duration'):
        build((3, 32768, 2))
    build((3, 32767, 2))
    signal = Signal(n_chans=2, n_times=64, sfreq=128.0, ch_names=('x', 'E5'))
    with pytest.raises(RequestError, match=r'^steegformer_large: it knows none of the channels x, E5.* cbramod'):
        module.steegformer_large(signal, 2)
    with pytest.raises(RequestError, match=r'^steegformer_small: needs the names of all 2 channels, got 0'):
        module.steegformer_small(Signal(n_chans=2, n_times=64, sfreq=128.0), 1)
    with pytest.raises(RequestError, match='pool=max: expected one of avg, cls'):
        build(TRAINED, pool='max')
    with pytest.raises(RequestError, match='drop_path=1'):
        build(TRAINED, drop_path=1.0)


def test_a_dropped_path_is_dropped_whole(narrow: None) -> None:
    """Of the last layer each window does with or without either branch, at the rate; the others are scaled."""
    rate, x = 0.75, np.random.default_rng(0).standard_normal((8, 2, 40)).astype(np.float32)
    signal = Signal(n_chans=2, n_times=40, sfreq=128.0, ch_names=('C3', 'C4'))
    model, both = (module.steegformer_small(signal, 1, axis_name=a, drop_path=rate) for a in (None, 'i'))
    variables, batch = lively('steegformer_small', model), {'x': x, 'mask': np.ones(8, bool)}
    layer = variables['params']['layer_1']

    @compiled
    def outputs(gains: tuple[float, float], key: jax.Array | None = None) -> jax.Array:
        pairs = zip(gains, ('out', 'narrow'), strict=True)
        branches = {name: jax.tree.map(lambda a, g=g: a * g, layer[name]) for g, name in pairs}
        params = variables['params'] | {'layer_1': layer | branches}
        return model.apply(variables | {'params': params}, batch, train=key is not None, key=key).outputs[:, 0]

    answer = model.apply(variables, batch, train=True, key=jax.random.key(1)).features
    close(answer['penultimate'], answer['tokens'].mean(1), 1e-6)  # both drop the same windows
    whole = 1 / (1 - rate)
    possible = np.stack([outputs(gains) for gains in ((0.0, 0.0), (0.0, whole), (whole, 0.0), (whole, whole))])
    keys = jax.random.split(jax.random.key(0), 100)
    drawn = np.stack([outputs((1.0, 1.0), key) for key in keys])
    off = np.abs(drawn[None] - possible[:, None])
    assert off.min(0).max() < 1e-5
    counts = np.bincount(off.argmin(0).reshape(-1), minlength=4) / drawn.size
    np.testing.assert_allclose(counts, [rate**2, rate * (1 - rate), rate * (1 - rate), (1 - rate) ** 2], atol=0.05)

    @compiled
    def split(x: jax.Array) -> jax.Array:
        def device(rows: jax.Array) -> jax.Array:
            half = {'x': rows, 'mask': np.ones(4, bool)}
            return both.apply(variables, half, train=True, key=keys[0]).outputs[:, 0]

        return jax.vmap(device, axis_name='i')(x.reshape(2, 4, 2, 40)).reshape(8)

    close(split(x), drawn[0], 1e-5)


def test_a_file_with_the_names_of_braindecode_is_read_but_for_the_head(tmp_path: Path, narrow: None) -> None:
    from safetensors.numpy import save_file

    model = build(TRAINED)
    state = model.to_torch(lively('steegformer_small', model))
    file = {k.replace('head.', 'final_layer.'): v for k, v in state.items()}
    save_file(file, tmp_path / 'file.safetensors')
    start = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    found = model.to_torch(load(model, tmp_path / 'file.safetensors', exceptions=module.CHECKPOINT, start=start))
    for key, value in state.items():
        np.testing.assert_array_equal(found[key], 0 if key.startswith('head.') else value, err_msg=key)
    save_file({k: v for k, v in file.items() if k != 'encoder.1.0.fn.1.keys.weight'}, tmp_path / 'less.safetensors')
    with pytest.raises(RequestError, match=r'missing: encoder\.1\.0\.fn\.1\.keys\.weight'):
        load(model, tmp_path / 'less.safetensors', exceptions=module.CHECKPOINT, start=start)
