"""Signal-JEPA against braindecode's recorded numbers, its parts, its channels."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import layout, tag

from jbench.models.foundation import signal_jepa as module
from jbench.models.foundation.signal_jepa import channels, signal_jepa
from jbench.models.foundation.signal_jepa_layers import n_vectors, overlapping
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

SMALL, TRAINED = (3, 160, 2), (3, 290, 2)
WIDER = ((19, 280, 3), (64, 512, 4), (1, 152, 1), (5, 2000, 2))


def build(shape: weights.Shape, **options: str) -> Model:
    c, t, n = shape
    return signal_jepa(Signal(n_chans=c, n_times=t, sfreq=128.0, positions=recorded.places(c)), n, **options)


def named(*names: str) -> Model:
    return signal_jepa(Signal(n_chans=len(names), n_times=160, sfreq=128.0, ch_names=names), 2, table='names')


def test_layout_and_counts() -> None:
    recorded.check_layout('signal_jepa', build(TRAINED), TRAINED)
    for c, t, n in ((4, 512, 2), (62, 300, 3)):
        n_flat = 256 * n_vectors(t)
        assert recorded.count(build((c, t, n))) == 2263184 + 34 * c + 4 + (n_flat + 1) * n
    assert recorded.count(named('Cz', 'Pz')) == 2263184 + 30 * 62 + 4 * 2 + 4 + 257 * 2


@pytest.mark.parametrize('shape', [SMALL, *(pytest.param(s, marks=pytest.mark.slow) for s in WIDER)], ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape) -> None:
    features = recorded.check_evaluation('signal_jepa', build(shape), shape, 1e-5)
    n = n_vectors(shape[1])
    assert features['tokens'].shape == (2, shape[0] * n, 64) and features['penultimate'].shape == (2, 256 * n)
    with jax.enable_x64(True):
        recorded.check_evaluation('signal_jepa', build(shape), shape, 1e-9)


@pytest.mark.parametrize('n_times', [32, 40, *range(152, 184, 3), 510])
def test_overlapping_taps_equal_the_plain_convolution(n_times: int) -> None:
    """Of every remainder of outputs and of samples, and both gradients; samples behind the last tap touch nothing."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(n_times)
        x, taps = rng.standard_normal((2, 3, n_times)), rng.standard_normal((32, 8))

        def plain(x: jax.Array, taps: jax.Array) -> jax.Array:
            order = ('NWC', 'WIO', 'NWC')
            found = jax.lax.conv_general_dilated(
                x.reshape(6, -1, 1), taps[:, None], (8,), 'VALID', dimension_numbers=order, precision='highest'
            )
            return found.reshape(2, 3, -1, 8)

        ours, pulled = jax.vjp(overlapping, x, taps)
        theirs, back = jax.vjp(plain, x, taps)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
        along = rng.standard_normal(ours.shape)
        for mine, other in zip(pulled(along), back(along), strict=True):
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-11)
        if unused := (n_times - 32) % 8:
            x[..., -unused:] = np.nan
            np.testing.assert_array_equal(overlapping(jax.numpy.asarray(x), taps), ours)


def test_ten_steps_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('signal_jepa', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes() -> None:
    recorded.check_dropout('signal_jepa', build(TRAINED), TRAINED)


@pytest.mark.slow
def test_devices_drop_as_one() -> None:
    recorded.check_devices(build(SMALL), build(SMALL, axis_name='devices'), SMALL)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('signal_jepa', build(TRAINED))


def test_start_of_the_tables() -> None:
    """By the positions of the channels, zeros where there is none; by those of the pretrained electrodes."""
    found = module.codes_of_places(recorded.places(5))
    np.testing.assert_array_equal(found[1], 0)
    np.testing.assert_allclose(found, recorded.recorded('signal_jepa')['table/positions'], atol=1e-4)
    _, start = module._rows(Signal(n_chans=1, n_times=160, sfreq=128.0, ch_names=('Cz',)), 'names')
    np.testing.assert_allclose(start, recorded.recorded('signal_jepa')['table/names'], atol=1e-4)


def test_channels_take_the_rows_of_their_names() -> None:
    """Whatever their order and case."""
    assert channels(('CZ', 'other', 'po4')) == {'CZ': 'Cz', 'po4': 'PO4'}
    assert len(set(module.ELECTRODES)) == 62
    rows, _ = module._rows(Signal(n_chans=3, n_times=160, sfreq=128.0, ch_names=('po4', 'Fp1', 'CZ')), 'names')
    assert [module.ELECTRODES[row] for row in rows] == ['PO4', 'Fp1', 'Cz']
    assert layout(named('Cz', 'Pz'))['pos_encoder.pos_encoder_spat.weight'] == (62, 30)


def test_what_it_cannot_read_is_refused() -> None:
    assert n_vectors(152) == 1 and n_vectors(151) == 0 and n_vectors(512) == 3
    with pytest.raises(RequestError, match=r'^signal_jepa: .*at least 152'):
        build((3, 151, 2))
    with pytest.raises(RequestError, match=r'T3: not among the 62.*table=positions'):
        named('Cz', 'T3')
    with pytest.raises(RequestError, match=r'no channel has a position.*table=names'):
        signal_jepa(Signal(n_chans=2, n_times=160, sfreq=128.0, ch_names=('Cz', 'Pz')), 2)
    with pytest.raises(RequestError, match='table=both: expected one of positions, names'):
        signal_jepa(Signal(n_chans=2, n_times=160, sfreq=128.0, ch_names=('Cz', 'Pz')), 2, table='both')


def test_codes_of_time() -> None:
    """Seconds count from 0 in every window."""
    codes = module.codes_of_time(3)
    np.testing.assert_array_equal(codes[0], np.tile([0, 1], 17))
    np.testing.assert_allclose(codes[2, :2], [np.sin(2), np.cos(2)])
