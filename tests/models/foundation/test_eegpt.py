"""EEGPT against braindecode's recorded numbers: two layers of it, slow all eight; its channels, patches and heads."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled, lively, tag

from jbench.models import factory
from jbench.models.foundation import MODELS
from jbench.models.foundation import eegpt as module
from jbench.models.foundation.eegpt import NAMES, TARGETS, channels, eegpt, n_patches, patches
from jbench.models.layers import deep
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

TRAINED = (4, 150, 2)
SHORT = ((2, 64, 1), (3, 200, 2), (64, 101, 3), (5, 1000, 2))
WHOLE = ((3, 200, 2), (22, 500, 4))
OPTIONS: dict[str, dict[str, object]] = {  # by the names of records
    'eegpt': {},
    'eegpt_short': {},
    'eegpt_named': {'adapter': 'none', 'stride': 64},
    'eegpt_probe': {'head': 'probe', 'stride': 16},
}
VARIANTS = {'eegpt_named': ((3, 64, 2), (4, 200, 2), (8, 321, 3)), 'eegpt_probe': ((3, 100, 2), (5, 256, 3))}


def build(shape: weights.Shape, name: str = 'eegpt', **options: object) -> Model:
    c, t, n = shape
    names = (*recorded.EEGPT_CHANNELS, *map(str, range(c)))[:c]
    return eegpt(Signal(n_chans=c, n_times=t, sfreq=256.0, ch_names=names), n, **{**OPTIONS[name], **options})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'LAYERS', recorded.SHORT)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(('WIDTH', 'LAYERS', 'HEADS'), recorded.NARROW, strict=True):
        monkeypatch.setattr(module, name, value)


def test_layout_and_counts() -> None:
    recorded.check_layout('eegpt', build(TRAINED), TRAINED)
    for c, t, n in ((4, 64, 1), (64, 1000, 4)):
        assert recorded.count(build((c, t, n))) == 25287168 + 19 * (c + 1) + 513 * n
        assert recorded.count(build((c, t, n), adapter='none')) == 25287168 + 513 * n
    assert recorded.count(build((19, 1024, 4), adapter='none', head='probe')) == 25321940
    (line,) = (m for m in MODELS if m.name == 'eegpt')
    assert line.n_parameters == recorded.count(build((22, 256, 4))) - 513 * 4
    assert factory(line) is eegpt and line.least_times == module.PATCH


@pytest.mark.parametrize('name', VARIANTS)
def test_layout_of_variants(name: str, narrow: None) -> None:
    recorded.check_layout(name, build(TRAINED, name), TRAINED)


def check_evaluation(name: str, shape: weights.Shape, x64: bool) -> None:
    with jax.enable_x64(x64):
        features = recorded.check_evaluation(name, build(shape, name), shape, 1e-9 if x64 else 1e-5)
    p = n_patches(shape[1], int(str(OPTIONS[name].get('stride', 32))))
    assert features['tokens'].shape == (recorded.ROWS, 4 * p, module.WIDTH)
    if name == 'eegpt_probe':
        assert features['penultimate'].shape == (recorded.ROWS, 16 * p)
    else:
        np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('shape', SHORT, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape, short: None) -> None:
    for x64 in (False, True):
        check_evaluation('eegpt_short', shape, x64)


@pytest.mark.parametrize(('name', 'shape'), [(n, s) for n, shapes in VARIANTS.items() for s in shapes])
def test_variants_equal_braindecode(name: str, shape: weights.Shape, narrow: None) -> None:
    check_evaluation(name, shape, x64=True)


@pytest.mark.long
@pytest.mark.parametrize('shape', WHOLE, ids=tag)
def test_whole_network_equals_braindecode(shape: weights.Shape) -> None:
    for x64 in (False, True):
        check_evaluation('eegpt', shape, x64)


@pytest.mark.parametrize('remat', [False, True])
def test_ten_steps_equal_braindecode(remat: bool, short: None) -> None:
    with jax.enable_x64(True):
        recorded.check_steps('eegpt_short', build(TRAINED, remat=remat), TRAINED, 1e-9)


def test_layers_that_are_computed_again_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'LAYERS', 4)  # three in the loop
    x, y = jax.random.normal(jax.random.key(1), (3, 4, 150)), jnp.array([0, 1, 1])
    batch = {'x': x, 'mask': jnp.ones(3, bool)}

    def gradient(remat: bool) -> dict[str, jax.Array]:
        model = build(TRAINED, remat=remat)

        def loss(params: dict[str, jax.Array]) -> jax.Array:
            found = model.apply({'params': params, 'batch_stats': {}}, batch, train=True, key=None).outputs
            return -jax.nn.log_softmax(found)[jnp.arange(3), y].sum()

        return jax.jit(jax.grad(loss))(lively('eegpt', model)['params'])

    with jax.enable_x64(False):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), *map(gradient, (False, True)))


def test_layers_are_computed_again_where_they_would_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'LAYERS', 3)  # two in the loop

    def again(x: jax.Array, *, train: bool) -> bool:
        model = build(TRAINED)
        variables = jax.eval_shape(model.init, jax.random.key(0))
        batch = {'x': x, 'mask': jnp.ones(len(x), bool)}
        return 'remat' in str(jax.make_jaxpr(lambda v: model.apply(v, batch, train=train, key=None).outputs)(variables))

    published = 64 * n_patches(1024, 32) * (len(TARGETS) + module.SUMMARY)  # the batch, of 4 s
    assert 15e9 < 8 * module.layer_bytes(published) < 20e9  # 19.4 by the compiler's analysis, with all else
    few, n_tokens = jnp.zeros((2, 4, 150)), 2 * n_patches(150, 32) * (len(TARGETS) + module.SUMMARY)
    assert not again(few, train=True)
    monkeypatch.setattr(deep, 'LIMIT', module.layer_bytes(n_tokens) - 1)
    assert again(few, train=True)
    assert not again(few, train=False)


@pytest.mark.long
@pytest.mark.parametrize('name', VARIANTS)
def test_ten_steps_of_variants_equal_braindecode(name: str, narrow: None) -> None:
    with jax.enable_x64(True):
        recorded.check_steps(name, build(TRAINED, name), TRAINED, 1e-9)


@pytest.mark.long
def test_ten_steps_of_the_whole_network_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('eegpt', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_of_the_probe_spreads_as_braindecodes(narrow: None) -> None:
    recorded.check_dropout('eegpt_probe', build(TRAINED, 'eegpt_probe'), TRAINED)


@pytest.mark.long
def test_devices_drop_as_one(narrow: None) -> None:
    shared = build(TRAINED, 'eegpt_probe', axis_name='devices')
    recorded.check_devices(build(TRAINED, 'eegpt_probe'), shared, TRAINED)


@pytest.mark.long
@pytest.mark.parametrize('name', VARIANTS)
def test_initial_weights_are_drawn_as_braindecodes(name: str, narrow: None) -> None:
    recorded.check_initial(name, build(TRAINED, name))


def test_channels_by_name() -> None:
    """In capitals or not, with dots or not; an unknown name takes no other's row and moves no other."""
    names = tuple(recorded.EEGPT_CHANNELS)
    assert channels(names, 'none') == {k: v for k, v in recorded.EEGPT_CHANNELS.items() if v}
    assert channels(['?', 'Cz'], 'none') == channels(['Cz', '?'], 'none') == {'Cz': 'CZ'}
    assert channels(['T3', 'Cz', 'AFz'], 'names') == {'T3': 'T7', 'Cz': 'CZ'}
    assert channels(['x', 'Cz']) == {'x': 'mixture', 'Cz': 'mixture'}
    assert len(NAMES) == len(set(NAMES)) == 62 and len(TARGETS) == 19 and set(TARGETS) < set(NAMES)


def test_mixtures_start_by_name() -> None:
    names = ('Cz', 'x', 'T3')
    model = eegpt(Signal(n_chans=3, n_times=64, sfreq=256.0, ch_names=names), 2, adapter='names')
    found = compiled(lambda key: model.init(key)['params']['adapter'])(jax.random.key(0))
    wanted = np.zeros((19, 3))
    wanted[TARGETS.index('CZ'), 0] = wanted[TARGETS.index('T7'), 2] = 1
    np.testing.assert_array_equal(found['weight'], wanted)
    np.testing.assert_array_equal(found['bias'], 0)


def test_only_the_used_channels_count(narrow: None) -> None:
    """In any order; the reference is theirs alone. A reference common to all channels changes nothing."""
    with jax.enable_x64(True):
        x, mask = np.random.default_rng(0).standard_normal((2, 4, 90)), np.ones(2, bool)
        names = ('Fp1', 'AFz', 'Cz', 'O2')

        def answers(order: list[int], *windows: np.ndarray) -> list[np.ndarray]:
            chosen = tuple(names[i] for i in order)
            signal = Signal(n_chans=len(order), n_times=90, sfreq=256.0, ch_names=chosen)
            model = eegpt(signal, 2, adapter='none')
            answer = compiled(lambda v, x: model.apply(v, {'x': x, 'mask': mask}, train=False, key=None).outputs)
            return [answer(lively('eegpt', model), x[:, order]) for x in windows]

        (whole,), found = answers([3, 0, 2], x), answers([0, 1, 2, 3], x, x * [[1], [9], [1], [1]], x + x[:, 1:2])
        close(found[0], whole, 1e-12)
        np.testing.assert_array_equal(found[1], found[0])
        close(found[2], whole, 1e-12)
        (other,) = answers([0, 1, 2, 3], x[:, ::-1])
        assert np.abs(other - whole).max() > 1e-3


@pytest.mark.parametrize('stride', [16, 32, 64])
@pytest.mark.parametrize('times', [64, 65, 100, 128, 250])
def test_patches_are_cut_every_stride(times: int, stride: int) -> None:
    """The last is filled up with zeros."""
    x = np.random.default_rng(0).standard_normal((2, 3, times)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 64)))
    starts = [0, *(s + stride for s in range(0, times - 64, stride))]
    wanted = np.stack([padded[:, :, s : s + 64] for s in starts], 1)
    np.testing.assert_array_equal(patches(jnp.asarray(x), stride), wanted)
    assert n_patches(times, stride) == len(starts)


def test_the_mean_knows_no_time_the_probe_does(narrow: None) -> None:
    """Patches in another order: the same outputs from the mean, others from the authors' head."""
    x = np.random.default_rng(0).standard_normal((2, 2, 128)).astype(np.float32)
    mask = np.ones(2, bool)
    for head, same in (('mean', True), ('probe', False)):
        model = build((2, 128, 2), stride=64, head=head)
        variables = lively('eegpt', model)
        answer = compiled(lambda x, m=model, v=variables: m.apply(v, {'x': x, 'mask': mask}, train=False, key=None))
        one, other = (np.asarray(answer(v).outputs) for v in (x, np.roll(x, 64, -1)))
        assert (np.abs(one - other).max() < 1e-5 * np.abs(one).max()) == same


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match=r'^eegpt: windows of 63 samples are too short, .* at least 64'):
        build((3, 63, 2))
    with pytest.raises(RequestError, match=r'^eegpt: needs at least 2 channels'):
        build((1, 64, 2))
    for options, message in (
        ({'stride': 48}, 'stride=48: expected a divisor of 64'),
        ({'stride': 0}, 'stride=0: expected a divisor of 64'),
        ({'adapter': 'both'}, 'adapter=both: expected one of names, random, none'),
        ({'head': 'flat'}, 'head=flat: expected one of mean, probe'),
    ):
        with pytest.raises(RequestError, match=f'^eegpt: {message}'):
            build(TRAINED, **options)
    signal = Signal(n_chans=3, n_times=64, sfreq=256.0, ch_names=('x', 'AFz', 'Cz'))
    with pytest.raises(RequestError, match=r'^eegpt: it knows 1 of the channels x, AFz, Cz.*eegpt:adapter=random'):
        eegpt(signal, 2, adapter='none')
    nameless = Signal(n_chans=3, n_times=64, sfreq=256.0)
    with pytest.raises(RequestError, match='needs the names of all 3 channels, got 0'):
        eegpt(nameless, 2, adapter='none')
    with pytest.raises(RequestError, match=r'no channel can be placed.*--model=eegpt:adapter=random'):
        eegpt(nameless, 2, adapter='names')
    eegpt(nameless, 2)


@pytest.mark.parametrize('adapter', ['random', 'none'])
def test_a_file_with_the_names_of_braindecode_is_read_but_for_what_is_new(
    adapter: str, tmp_path: Path, narrow: None
) -> None:
    """Its ids belong to another montage and are not looked at."""
    from safetensors.numpy import save_file

    model = build(TRAINED, adapter=adapter)
    state = model.to_torch(lively('eegpt', model))
    encoder = {k: v for k, v in state.items() if k.startswith('target_encoder.')}
    theirs = {'chans_id': np.zeros((1, 19), np.int64), 'final_layer.probe1.bias': np.ones(16, np.float32)}
    theirs['chan_proj.proj.bias'] = np.ones(19, np.float32)
    save_file(encoder | theirs, tmp_path / 'file.safetensors')
    start = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    exceptions = module.CHECKPOINT[adapter]
    found = model.to_torch(load(model, tmp_path / 'file.safetensors', exceptions=exceptions, start=start))
    for key, value in found.items():
        np.testing.assert_array_equal(value, encoder.get(key, 0), err_msg=key)
    assert set(found) - set(encoder) == {k for k in state if k.startswith(('head.', 'adapter.'))}
