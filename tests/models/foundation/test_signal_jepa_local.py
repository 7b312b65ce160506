"""Signal-JEPA without its transformer against braindecode's recorded numbers."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import tag

from jbench.models.foundation import signal_jepa_local
from jbench.models.foundation.signal_jepa_layers import n_vectors
from jbench.models.foundation.signal_jepa_local import channels, signal_jepa_post_local, signal_jepa_pre_local
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

BUILT = {'signal_jepa_post_local': signal_jepa_post_local, 'signal_jepa_pre_local': signal_jepa_pre_local}
TRAINED = (3, 290, 2)
SHAPES = ((1, 152, 1), TRAINED, (62, 512, 4))


def build(name: str, shape: weights.Shape) -> Model:
    c, t, n = shape
    return BUILT[name](Signal(n_chans=c, n_times=t, sfreq=128.0), n)


@pytest.mark.parametrize('name', BUILT)
def test_layout_and_counts(name: str) -> None:
    recorded.check_layout(name, build(name, TRAINED), TRAINED)
    for c, t, n in ((4, 512, 2), (62, 300, 3)):
        assert recorded.count(build(name, (c, t, n))) == 13840 + 4 * c + 4 + (256 * n_vectors(t) + 1) * n
    assert recorded.count(build(name, (62, 512, 2))) == 15630


@pytest.mark.parametrize('shape', SHAPES, ids=tag)
@pytest.mark.parametrize('name', BUILT)
def test_evaluation_equals_braindecode(name: str, shape: weights.Shape) -> None:
    features = recorded.check_evaluation(name, build(name, shape), shape, 1e-5)
    n, rows = n_vectors(shape[1]), 4 if 'pre' in name else shape[0]
    assert features['tokens'].shape == (2, rows * n, 64) and features['penultimate'].shape == (2, 256 * n)
    with jax.enable_x64(True):
        recorded.check_evaluation(name, build(name, shape), shape, 1e-9)


@pytest.mark.parametrize(('part', 'most'), [(3000, 64), (1, 64), (1, 3)])
@pytest.mark.parametrize('name', BUILT)
def test_windows_in_parts_are_filtered_as_each(
    name: str, part: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of unequal length, of single windows, and as many as may be."""
    monkeypatch.setattr(signal_jepa_local, 'PART', part)
    monkeypatch.setattr(signal_jepa_local, 'MOST_PARTS', most)
    model = build(name, (3, 152, 2))
    v = model.init(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (7, 3, 152))

    def outputs(x: jax.Array) -> np.ndarray:
        batch = {'x': x, 'mask': np.ones(len(x), bool)}
        return np.asarray(model.apply(v, batch, train=False, key=None).outputs)

    expected = np.concatenate([outputs(x[i : i + 1]) for i in range(7)])
    np.testing.assert_allclose(outputs(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize('name', BUILT)
def test_ten_steps_equal_braindecode(name: str) -> None:
    with jax.enable_x64(True):
        recorded.check_steps(name, build(name, TRAINED), TRAINED, 1e-9)


@pytest.mark.long
@pytest.mark.parametrize('name', BUILT)
def test_initial_weights_are_drawn_as_braindecodes(name: str) -> None:
    recorded.check_initial(name, build(name, TRAINED))


@pytest.mark.parametrize('name', BUILT)
def test_short_windows_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match=rf'^{name}: .*at least 152'):
        build(name, (3, 151, 2))


def test_every_channel_is_used_by_its_place() -> None:
    assert channels(['Cz', 'x']) == {'Cz': '1', 'x': '2'}
