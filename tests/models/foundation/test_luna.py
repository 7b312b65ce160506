"""LUNA against braindecode's recorded numbers: two blocks of the large, the base; its channels, phases, drop path."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from families import often
from networks import close, compiled, lively, tag

from jbench.models.foundation import MODELS, luna
from jbench.models.foundation.luna import BASE, HUGE, LARGE, Size, channels, code_of_places, z_scored
from jbench.models.foundation.luna_layers import Unify, rotated, spectrum
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

SHORT = LARGE._replace(depth=2)
TRAINED = (4, 130, 2)
SHAPES = ((1, 40, 1), (2, 3, 2), (5, 130, 2), (19, 512, 3), (64, 401, 4), (128, 160, 2), (3, 2560, 5))
OPTIONS = luna._Options(None, dropout=0.1, drop_path=0.1, mlp_norm=False, remat=False)


def build(shape: weights.Shape, size: Size = SHORT, **options: object) -> Model:
    c, t, n = shape
    signal = Signal(n_chans=c, n_times=t, sfreq=256.0, positions=recorded.places(c))
    return luna.build('luna', size, signal, n, OPTIONS._replace(**options))


def test_layout_and_counts() -> None:
    """The published numbers count what is never learnt: frequencies of the blocks, a mask of d, a temperature."""
    recorded.check_layout('luna', build(TRAINED), TRAINED)
    recorded.check_layout('luna_norms', build(TRAINED, mlp_norm=True), TRAINED)
    published = {'luna_base': (6572089, BASE), 'luna_large': (40448425, LARGE), 'luna_huge': (303405113, HUGE)}
    expected = {model.name: model.n_parameters for model in MODELS}
    for name, (number, size) in published.items():
        assert expected[name] == number - size.depth * size.width // 4 - size.width - 1
        for c, t, n in ((4, 256, 1), (64, 1000, 4)):
            signal = Signal(n_chans=c, n_times=t, sfreq=256.0, positions=recorded.places(c))
            assert recorded.count(getattr(luna, name)(signal, n)) == expected[name] + (size.joined + 1) * n


@pytest.mark.parametrize('shape', often(SHAPES, ((2, 3, 2), (19, 512, 3))), ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape) -> None:
    """The channel whose place is not known is not read; a last patch is filled up."""
    for x64 in (False, True):
        with jax.enable_x64(x64):
            features = recorded.check_evaluation('luna', build(shape), shape, 1e-9 if x64 else 1e-5)
    assert features['tokens'].shape == (recorded.ROWS, -(-shape[1] // 40), 576)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('shape', [(5, 130, 2), (22, 256, 4)], ids=tag)
def test_whole_base_equals_braindecode(shape: weights.Shape) -> None:
    recorded.check_evaluation('luna_base', build(shape, BASE), shape, 1e-5)


def test_the_authors_norms() -> None:
    with jax.enable_x64(True):
        recorded.check_evaluation('luna_norms', build((5, 130, 2), mlp_norm=True), (5, 130, 2), 1e-9)
        recorded.check_steps('luna_norms', build(TRAINED, mlp_norm=True), TRAINED, 1e-9)


@pytest.mark.parametrize('remat', [False, True])
def test_ten_steps_equal_braindecode(remat: bool) -> None:
    """Whether values are kept for the gradient or computed again."""
    with jax.enable_x64(True):
        recorded.check_steps('luna', build(TRAINED, remat=remat), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes() -> None:
    recorded.check_dropout('luna', build(TRAINED), TRAINED)


@pytest.mark.long
def test_devices_drop_as_one() -> None:
    options = {'dropout': 0.3, 'drop_path': 0.5}
    recorded.check_devices(build(TRAINED, **options), build(TRAINED, axis_name='devices', **options), TRAINED)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('luna', build(TRAINED))


def test_remat_draws_the_same() -> None:
    with jax.enable_x64(True):
        model, again = build(TRAINED), build(TRAINED, remat=True)
        variables, (batch, _) = lively('luna', model), recorded.windows(TRAINED)
        key = jax.random.key(0)
        one, two = (
            compiled(lambda v, m=m: m.apply(v, batch, train=True, key=key).outputs)(variables) for m in (model, again)
        )
        assert one.dtype == jnp.float64
        close(two, one, 1e-12)


def test_attention_to_channels_drops_probabilities() -> None:
    """With dropout the shares of the channels no longer add up to 1: so the bias of the values shows."""
    part, x = Unify(2, 8, norm=False, rate=0.5, axis_name=None), np.ones((1, 4, 8), np.float32)
    params = part.init(jax.random.key(0), x, None)['params']
    params |= {'in_bias': jnp.ones(24), 'wide': jax.tree.map(jnp.zeros_like, params['wide'])}
    apply = compiled(lambda key: part.apply({'params': params}, x, key))
    ratio = np.stack([apply(key) / apply(None) for key in jax.random.split(jax.random.key(0), 20)])
    assert ratio.std() > 0.1


def test_channels_by_place() -> None:
    """Each name for itself."""
    assert list(channels(['x', 'Cz', 'Fpz-Cz'])) == ['Cz', 'Fpz-Cz']
    assert channels(['Cz', 'FC1'])['Cz'] == channels(['?', 'FC1', 'Cz'])['Cz']
    x, y, z = map(int, channels(['Cz', 'FC1'])['Cz'].split())
    assert abs(x) < 5 and abs(y) < 40 and 100 < z < 160


def test_a_channel_without_a_place_is_left_out() -> None:
    """And the order of the others does not matter."""
    x = np.random.default_rng(0).standard_normal((2, 3, 120)).astype(np.float32)
    places = recorded.places(3)

    def outputs(order: list[int], x: np.ndarray) -> np.ndarray:
        signal = Signal(n_chans=len(order), n_times=120, sfreq=256.0, positions=tuple(places[i] for i in order))
        model = luna.build('luna', LARGE._replace(depth=1), signal, 2, OPTIONS)
        batch = {'x': x[:, order], 'mask': np.ones(2, bool)}
        return compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(lively('luna', model))

    expected = outputs([0, 2], x)
    close(outputs([2, 1, 0], x * [[1], [9], [1]]), expected, 1e-5)
    assert np.abs(outputs([0, 2], x[:, [2, 1, 0]]) - expected).max() > 1e-2


def test_code_of_places() -> None:
    """One channel, or an axis on which all lie at one value: 0."""
    np.testing.assert_array_equal(code_of_places([(0.05, 0.0, -0.1)], 12), [[0, 1] * 6])
    two = code_of_places([(0.0, 1.0, 2.0), (4.0, 1.0, 1.0)], 64)
    assert two.shape == (2, 64) and not two[:, 60:].any()
    np.testing.assert_allclose(two[1, :12], [*waves(1), 0, 1, 0, 1, *waves(2), 0, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(two[0, 4:6], waves(1), atol=1e-6)


def waves(phase: float) -> tuple[float, float]:
    return float(np.sin(phase)), float(np.cos(phase))


def test_windows_are_scaled_by_channel() -> None:
    """A flat one is not: its mean is away from it by rounding alone."""
    x = np.random.default_rng(0).standard_normal((2, 30, 50)) * 1e-5 + 1e-4
    x[0] = np.linspace(0.1, 0.9, 30)[:, None]
    found = np.asarray(z_scored(x.astype(np.float32)))
    np.testing.assert_array_equal(found[0], 0)
    np.testing.assert_allclose(found[1].std(1, ddof=1), 1, rtol=1e-3)
    np.testing.assert_allclose(found[1].mean(1), 0, atol=1e-3)


@pytest.mark.parametrize('x64', [False, True])
def test_phases_of_rounding_are_zero(x64: bool) -> None:
    """Magnitudes and phases give back the coefficients; the phase of a part that is rounding does not come from it."""
    flat, one, wave = np.full(40, 0.3), -np.eye(40)[0], np.sin(2 * np.pi * 5 / 40 * np.arange(40))
    x = np.stack([flat, -flat, one, wave, np.zeros(40), np.random.default_rng(0).standard_normal(40)])
    with jax.enable_x64(x64):
        found = np.asarray(jax.jit(spectrum)(jnp.asarray(x, float)), float)
        slope = jax.grad(lambda x: spectrum(x).sum())(jnp.asarray(x, float))
    size, phase = found[:, :21], found[:, 21:]
    expected = np.fft.rfft(x)
    np.testing.assert_allclose(size * np.exp(1j * phase), expected, atol=1e-10 if x64 else 1e-4)
    assert np.isfinite(slope).all()
    np.testing.assert_array_equal(phase[0], 0)
    np.testing.assert_allclose(phase[1], [np.pi, *[0] * 20], rtol=1e-6)  # its overtones are nothing
    np.testing.assert_allclose(phase[2], np.pi, rtol=1e-6)  # never -pi
    np.testing.assert_allclose(phase[3], [*[0] * 5, -np.pi / 2, *[0] * 15], atol=1e-5)
    np.testing.assert_array_equal(found[4], 0)
    np.testing.assert_allclose(phase[5], np.angle(expected[5]), atol=1e-9 if x64 else 1e-4)


def test_rotation_turns_pairs_by_their_place() -> None:
    """The product of two depends on the distance of their places alone."""
    x = np.zeros((1, 6, 1, 8))
    x[:, :, 0, 2] = 1  # the second pair, at 10000 ** (-1 / 4) = 0.1 a place
    turned = np.asarray(rotated(jnp.asarray(x)))[0, :, 0]
    np.testing.assert_allclose(turned @ turned.T, np.cos(0.1 * (np.arange(6)[:, None] - np.arange(6))), atol=1e-6)


def test_a_dropped_path_is_dropped_whole() -> None:
    """Each window does with or without either branch, at the rate; the others are scaled."""
    rate, x = 0.75, np.random.default_rng(0).standard_normal((8, 1, 80)).astype(np.float32)
    signal = Signal(n_chans=1, n_times=80, sfreq=256.0, positions=((0.0, 0.0, 0.1),))
    model = luna.build('luna', BASE._replace(depth=1), signal, 1, OPTIONS._replace(drop_path=rate, dropout=0.0))
    variables, batch = lively('luna', model), {'x': x, 'mask': np.ones(8, bool)}
    block = variables['params']['layer_0']

    @compiled
    def outputs(gains: tuple[float, float], key: jax.Array | None = None) -> jax.Array:
        scaled = {
            n: jax.tree.map(lambda a, g=g: a * g, block[n]) for n, g in zip(('out', 'narrow'), gains, strict=True)
        }
        params = variables['params'] | {'layer_0': block | scaled}
        return model.apply(variables | {'params': params}, batch, train=key is not None, key=key).outputs[:, 0]

    whole = 1 / (1 - rate)
    possible = np.stack([outputs(gains) for gains in ((0.0, 0.0), (0.0, whole), (whole, 0.0), (whole, whole))])
    drawn = np.stack([outputs((1.0, 1.0), key) for key in jax.random.split(jax.random.key(0), 100)])
    off = np.abs(drawn[None] - possible[:, None])
    assert off.min(0).max() < 1e-5
    counts = np.bincount(off.argmin(0).reshape(-1), minlength=4) / drawn.size
    np.testing.assert_allclose(counts, [rate**2, rate * (1 - rate), rate * (1 - rate), (1 - rate) ** 2], atol=0.05)


def test_what_it_cannot_read_is_refused() -> None:
    def at(*places: tuple[float, float, float] | None) -> Model:
        return luna.luna_base(Signal(n_chans=2, n_times=40, sfreq=256.0, positions=places), 1)

    with pytest.raises(RequestError, match=r'^luna_base: needs the places of all 2 channels, .* got 0'):
        at()
    with pytest.raises(RequestError, match=r'^luna_base: the place of no channel is known: .* cbramod'):
        at(None, None)
    with pytest.raises(RequestError, match=r'^luna: windows of 1 samples are too short, .* at least 2'):
        build((2, 1, 1))
    with pytest.raises(RequestError, match=r'^luna: drop_path=1'):
        build(TRAINED, drop_path=1.0)
    with pytest.raises(RequestError, match=r'^luna: dropout=1'):
        build(TRAINED, dropout=1.0)


@pytest.mark.parametrize('whose', ['braindecode', 'authors', 'authors_without_norms'])
def test_a_file_is_read_but_for_the_head(whose: str, tmp_path: Path) -> None:
    """Under the names of either; what a file lacks is refused."""
    from safetensors.numpy import save_file

    model = build(TRAINED, BASE._replace(depth=1), mlp_norm=whose == 'authors')
    state = model.to_torch(lively('luna', model))
    one = np.ones(1, np.float32)
    theirs = {k: v for k, v in state.items() if not k.startswith('head.')}
    theirs |= {'mask_token': one, 'blocks.0.attn.rotary_emb.freqs': one}
    if whose == 'braindecode':
        theirs |= {'cross_attn.temperature': one, 'final_layer.learned_agg': one}
    else:
        place = 'channel_location_embedder.'
        theirs |= {'cross_attn.temparature': one, 'decoder_head.norm.bias': one, 'channel_emb.embeddings.weight': one}
        theirs |= {f'{place}norm.bias': one, 'cross_attn.ffn.norm.bias': one} if whose != 'authors' else {}
        theirs = {k.replace(place, f'{place}0.'): v for k, v in theirs.items()}
    file = tmp_path / 'file.safetensors'
    save_file(theirs, file)
    start = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    found = model.to_torch(load(model, file, exceptions=luna.CHECKPOINT[whose], start=start))
    for key, value in state.items():
        np.testing.assert_array_equal(found[key], 0 if key.startswith('head.') else value, err_msg=key)
    save_file({k: v for k, v in theirs.items() if k != 'norm.bias'}, file)
    with pytest.raises(RequestError, match=r'missing: norm\.bias'):
        load(model, file, exceptions=luna.CHECKPOINT[whose], start=start)
