"""BENDR against braindecode's recorded numbers (most of them of a small copy), its parts, its channels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import compiled, lively, tag

from jbench.models.foundation import adapters
from jbench.models.foundation import bendr as module
from jbench.models.foundation.bendr import BENDR, TARGETS, Sizes, bendr, channels
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

OLD = 'Fp1 Fp2 F7 F3 Fz F4 F8 T3 C3 Cz C4 T4 T5 P3 Pz P4 T6 O1 O2 A1 A2'.split()  # names before 1991
TRAINED, LONG = (4, 300, 2), (19, 97, 3)
WIDER = ((1, 1, 2), (64, 1024, 4), (3, 1537, 2), (128, 95, 1))


def small(shape: weights.Shape, final_norm: bool = True, axis_name: str | None = None) -> Model:
    c, t, n = shape
    signal = Signal(n_chans=c, n_times=t, sfreq=256.0)
    begin = adapters.start('bendr', signal, 'random', targets=TARGETS, pattern=(), drawn=False)
    return module.built(BENDR(begin, n, axis_name, 0.1, final_norm, Sizes(32, 96, 48, 2)), signal)


def whole(shape: weights.Shape) -> Model:
    c, t, n = shape
    return bendr(Signal(n_chans=c, n_times=t, sfreq=256.0), n, adapter='random')


def test_layout_and_counts() -> None:
    """The layout of the small copy; the numbers of the whole, without any values."""
    recorded.check_layout('bendr', small(TRAINED), TRAINED)
    for c, n in ((4, 2), (22, 4)):
        assert recorded.count(whole((c, 512, n))) == 157140537 + 19 * (c + 1) + 513 * n
    names = [tensor.name for tensor in whole((4, 512, 2)).tensors]
    assert len([name for name in names if name.startswith(('encoder.', 'contextualizer.'))]) == 99


@pytest.mark.parametrize('shape', [LONG, *(pytest.param(s, marks=pytest.mark.slow) for s in WIDER)], ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape) -> None:
    with jax.enable_x64(True):
        features = recorded.check_evaluation('bendr', small(shape), shape, 1e-9)
    n = module.n_vectors(shape[1])
    assert features['vectors'].shape == (2, n, 32) and features['tokens'].shape == (2, n + 1, 32)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize('shape', [LONG, *WIDER[1:]], ids=tag)
def test_evaluation_in_float32_equals_braindecode(shape: weights.Shape) -> None:
    recorded.check_evaluation('bendr', small(shape), shape, 1e-5)


@pytest.mark.slow
def test_the_whole_equals_braindecode() -> None:
    recorded.check_evaluation('bendr_whole', whole((4, 200, 2)), (4, 200, 2), 1e-5)


def test_ten_steps_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('bendr', small(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_dropout_spreads_as_braindecodes() -> None:
    recorded.check_dropout('bendr', small(TRAINED), TRAINED)


@pytest.mark.long
def test_devices_drop_as_one() -> None:
    recorded.check_devices(small(LONG), small(LONG, axis_name='devices'), LONG)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('bendr', small(TRAINED))


def test_number_of_vectors() -> None:
    assert [module.n_vectors(t) for t in (1, 96, 97, 256, 512, 1024, 1536)] == [1, 1, 2, 3, 6, 11, 16]


def test_the_last_norm_is_an_option() -> None:
    """Off, its gain does nothing, and the outputs are others."""
    batch, _ = recorded.windows(LONG)
    variables = lively('bendr', small(LONG))

    @compiled
    def outputs(gain):
        found = variables | {'params': variables['params'] | {'norm_out': {'scale': gain, 'bias': jnp.zeros(96)}}}
        return [small(LONG, on).apply(found, batch, train=False, key=None).outputs for on in (True, False)]

    (on, off), (on_2, off_2) = outputs(jnp.ones(96)), outputs(jnp.arange(96.0))
    np.testing.assert_array_equal(off, off_2)
    assert np.abs(on - on_2).max() > 1e-3 and np.abs(on - off).max() > 1e-3


def test_windows_are_scaled_as_a_whole() -> None:
    """From -1 to 1, whatever the unit; the 20th channel tells the range; a flat window stays finite."""
    x = np.random.default_rng(0).standard_normal((3, 19, 50)) * np.array([1e-5, 100, 0])[:, None, None]
    found = np.asarray(module.scaled(jnp.asarray(x, jnp.float32)))
    assert found.shape == (3, 20, 50)
    for row in (0, 1):
        assert found[row, :19].min() == -1 and abs(found[row, :19].max() - 1) < 1e-6
    np.testing.assert_allclose(found[0, 19], -1, atol=1e-6)
    np.testing.assert_allclose(found[1, 19], 2 * np.ptp(x[1]) / 4861 - 1, rtol=1e-5)
    np.testing.assert_array_equal(found[2], -1)


def test_start_of_the_mixture() -> None:
    """One where a channel has the name of a target, after renaming; all else zero; two of one name share their row."""
    names = ('fp1', 'T3', 'T7', 'other')
    assert channels(names) == {'fp1': 'Fp1', 'T3': 'T7', 'T7': 'T7'}
    assert set(channels(OLD).values()) == set(TARGETS) and 'A1' not in channels(OLD)
    assert channels(['other', *OLD]) == channels(OLD)
    signal = Signal(n_chans=4, n_times=96, sfreq=256.0, ch_names=names)
    begin = adapters.start(
        'bendr', signal, 'names', targets=TARGETS, pattern=adapters.same(names, TARGETS), drawn=False
    )
    mixture = adapters.Mixture(begin)
    x = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)
    found, variables = mixture.init_with_output(jax.random.key(0), x)
    expected = np.zeros((2, 19, 5), np.float32)
    expected[:, 0], expected[:, 7] = x[:, 0], (x[:, 1] + x[:, 2]) / np.sqrt(2)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(variables['params']['bias'], 0)


def test_what_it_cannot_read_is_refused() -> None:
    for names in (('A1', 'A2'), ()):
        with pytest.raises(RequestError, match=r'bendr: no channel can be placed.*--model=bendr:adapter=random'):
            bendr(Signal(n_chans=2, n_times=200, sfreq=256.0, ch_names=names), 2)
    with pytest.raises(RequestError, match='bendr: dropout=1'):
        bendr(Signal(n_chans=2, n_times=200, sfreq=256.0, ch_names=('Cz', 'Pz')), 2, dropout=1.0)
