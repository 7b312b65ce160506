"""BIOT against braindecode's recorded numbers, its parts against their literal forms, its channels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import compiled, tag

from jbench.models.foundation import adapters
from jbench.models.foundation import biot as module
from jbench.models.foundation.biot import attend, biot, channels
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

OLD = 'Fp1 Fp2 F7 F3 Fz F4 F8 T3 C3 Cz C4 T4 T5 P3 Pz P4 T6 O1 O2 A1 A2'.split()  # names before 1991
SMALL, TRAINED = (4, 200, 2), (4, 300, 2)
WIDER = ((21, 450, 3), (64, 1000, 4), (1, 599, 1), (19, 3000, 2), (128, 200, 5))


def build(shape: weights.Shape, **options: object) -> Model:
    c, t, n = shape
    return biot(Signal(n_chans=c, n_times=t, sfreq=200.0), n, **{'adapter': 'random', **options})


def test_layout_and_counts() -> None:
    recorded.check_layout('biot', build(TRAINED), TRAINED)
    for c, n in ((4, 2), (22, 4)):
        assert recorded.count(build((c, 256, n))) == 3186688 + 18 * (c + 1) + 257 * n


@pytest.mark.parametrize('shape', [SMALL, *(pytest.param(s, marks=pytest.mark.slow) for s in WIDER)], ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape) -> None:
    features = recorded.check_evaluation('biot', build(shape), shape, 1e-5)
    assert features['tokens'].shape == (recorded.ROWS, 18 * (shape[1] // 100 - 1), 256)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), rtol=1e-5, atol=1e-5)
    with jax.enable_x64(True):
        recorded.check_evaluation('biot', build(shape), shape, 1e-9)


def test_ten_steps_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('biot', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes() -> None:
    recorded.check_dropout('biot', build(TRAINED), TRAINED)


@pytest.mark.long
def test_devices_drop_as_one() -> None:
    recorded.check_devices(build(SMALL), build(SMALL, axis_name='devices'), SMALL)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('biot', build(TRAINED))


def test_start_of_the_mixture() -> None:
    """Whole pairs +1 and -1 on top of torch's uniform numbers, half a pair and unknown ones the numbers alone."""
    names = ('fp1', 'Oz', 'F7', 'T3', 'Fp1')
    assert channels(names) == {'fp1': 'FP1-F7', 'F7': 'FP1-F7, F7-T7', 'T3': 'F7-T7'}
    signal = Signal(n_chans=5, n_times=200, sfreq=200.0, ch_names=names)
    found = adapters.differences(names, module.PAIRS)
    begin = adapters.start('biot', signal, 'names', targets=module.PAIRS, pattern=found, drawn=True)
    adapter = adapters.Mixture(begin).init(jax.random.key(0), jnp.zeros((1, 5, 1)))['params']
    pattern = np.zeros((18, 5))
    pattern[0, [0, 2]], pattern[1, [2, 3]] = (1, -1), (1, -1)
    noise = np.asarray(adapter['weight']) - pattern
    assert 0.4 < np.abs(noise).max() < 5**-0.5 and np.abs(noise.mean()) < 0.1
    np.testing.assert_array_equal(adapter['bias'], 0)


def test_channels_of_the_old_names() -> None:
    """All 18 differences from the names before 1991; an unknown name moves no other."""
    found = channels(OLD)
    assert {pair for pairs in found.values() for pair in pairs.split(', ')} == set(module.PAIRS)
    assert found['T3'] == 'F7-T7, T7-P7' and found['A1'] == 'C4-A1' and 'Cz' not in found
    assert channels(['nothing', *OLD]) == found


def test_what_it_cannot_read_is_refused() -> None:
    for times, message in {199: 'at least 200', 100200: 'at most 100199'}.items():
        with pytest.raises(RequestError, match=rf'^biot: .*{message}'):
            build((4, times, 2))
    for names in ((), ('C3', 'C4'), ('Fp1', 'T7')):
        with pytest.raises(RequestError, match=r'no channel can be placed.*--model=biot:adapter=random'):
            biot(Signal(n_chans=max(len(names), 1), n_times=200, sfreq=200.0, ch_names=names), 2)
    with pytest.raises(RequestError, match='adapter=both: expected one of names, random'):
        build(SMALL, adapter='both')
    with pytest.raises(RequestError, match='dropout=1'):
        build(SMALL, attention_dropout=1.0)


@pytest.mark.parametrize('x64', [False, True])
@pytest.mark.parametrize('n', [200, 201, 1000, 1001])
def test_sizes_are_quantiles(n: int, x64: bool) -> None:
    """Of windows with ties, zeros and tiny values too."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((5, 4, n)) * 10.0 ** rng.integers(-30, 3, (5, 4, 1))
    x[0, 0], x[0, 1, : n // 2], x[0, 2] = 0, 3, np.round(x[0, 2])
    x[0, 3] = -7
    with jax.enable_x64(x64):
        x = x.astype(jax.dtypes.canonicalize_dtype(float))
        found = compiled(module.sizes)(x)
    wanted = np.quantile(np.abs(x.astype(float)), 0.95, axis=-1)
    np.testing.assert_allclose(found, np.where(wanted == 0, 1, wanted), rtol=1e-12 if x64 else 1e-6)


def test_spectra_equal_the_transform() -> None:
    """And their gradient is zero where they are."""
    with jax.enable_x64(True):
        x = np.random.default_rng(0).standard_normal((2, 3, 730))
        frames = np.stack([x[..., i : i + 200] for i in range(0, 600, 100)], axis=2)
        np.testing.assert_allclose(module.spectra(jnp.asarray(x)), np.abs(np.fft.rfft(frames)), atol=1e-11)
        zero = jax.grad(lambda x: module.spectra(x).sum())(jnp.zeros((1, 1, 300)))
        np.testing.assert_array_equal(zero, 0)


def test_attention_equals_its_literal_form() -> None:
    with jax.enable_x64(True):
        q, k, v = 3 * np.random.default_rng(1).standard_normal((3, 2, 7, 8, 32))

        def literal(q, k, v):
            context = jnp.einsum('blhd,blhe->bhde', jax.nn.softmax(k, 1), v)
            return jnp.einsum('blhd,bhde->blhe', jax.nn.softmax(q, -1) * 32**-0.5, context)

        def both(*x):
            return [jax.value_and_grad(lambda *x, f=f: (f(*x) ** 3).sum(), (0, 1, 2))(*x) for f in (literal, attend)]

        expected, found = compiled(both)(q, k, v)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), found, expected)
