"""LaBraM against braindecode's numbers: two layers of it, slow all twelve; its channels, windows, drop path."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled, lively, tag

from jbench.models.foundation import labram as module
from jbench.models.foundation.labram import labram, stretch
from jbench.models.foundation.labram_channels import NAMES, NUMBERED, channels
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow

TRAINED = (4, 400, 2)
SHORT = ((5, 600, 2), pytest.param((2, 3300, 2), marks=pytest.mark.slow))
WHOLE = ((1, 150, 1), (5, 600, 2), (19, 450, 3), (64, 800, 4), (70, 1000, 2), (3, 4000, 2), (22, 6000, 5))


def build(shape: weights.Shape, names: tuple[str, ...] | None = None, **options: object) -> Model:
    c, t, n = shape
    names = names or tuple(recorded.LABRAM_CHANNELS)[:c]
    return labram(Signal(n_chans=c, n_times=t, sfreq=200.0, ch_names=names), n, **options)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'LAYERS', recorded.SHORT)


def test_layout_and_counts() -> None:
    recorded.check_layout('labram', build(TRAINED), TRAINED)
    for shape in ((4, 256, 1), (64, 6000, 4)):
        assert recorded.count(build(shape)) == 5819936 + 201 * shape[2]


def check_evaluation(name: str, shape: weights.Shape, x64: bool) -> None:
    with jax.enable_x64(x64):
        features = recorded.check_evaluation(name, build(shape), shape, 1e-9 if x64 else 1e-5)
    used = len(channels(tuple(recorded.LABRAM_CHANNELS)[: shape[0]]))
    assert features['tokens'].shape == (recorded.ROWS, 1 + used * max(shape[1] // 200, 1), 200)
    np.testing.assert_allclose(features['penultimate'], np.asarray(features['tokens']).mean(1), atol=1e-5)


@pytest.mark.parametrize('shape', SHORT, ids=tag)
def test_evaluation_equals_braindecode(shape: weights.Shape, short: None) -> None:
    for x64 in (False, True):
        check_evaluation('labram_short', shape, x64)


@pytest.mark.long
@pytest.mark.parametrize('shape', WHOLE, ids=tag)
def test_whole_network_equals_braindecode(shape: weights.Shape) -> None:
    check_evaluation('labram', shape, x64=WHOLE.index(shape) % 2 == 1)


def test_ten_steps_equal_braindecode(short: None) -> None:
    with jax.enable_x64(True):
        recorded.check_steps('labram_short', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_ten_steps_of_the_whole_network_equal_braindecode() -> None:
    with jax.enable_x64(True):
        recorded.check_steps('labram', build(TRAINED), TRAINED, 1e-9)


@pytest.mark.long
def test_initial_weights_are_drawn_as_braindecodes() -> None:
    recorded.check_initial('labram', build(TRAINED))


def test_channels_by_name() -> None:
    """A number, a name in capitals or not, an anode; an unknown name moves no other, and what it holds is not read."""
    assert channels(tuple(recorded.LABRAM_CHANNELS)) == {k: v for k, v in recorded.LABRAM_CHANNELS.items() if v}
    assert len(NAMES) == len(set(NAMES)) == 128 and set(NUMBERED.values()) <= set(NAMES) and len(NUMBERED) == 771
    sensors = {'MLC11-1609': 'FCZ', 'MZF01': 'AFZ', 'MEG0113': 'F7', 'MEG2543': 'PO8'}
    assert channels([*sensors, 'MEG0114', 'MLC99']) == sensors
    assert channels(['?', 'Cz']) == channels(['Cz', '?']) == {'Cz': 'CZ'}


def test_only_the_used_channels_count(short: None) -> None:
    """In any order; two channels may be read as one name."""
    with jax.enable_x64(True):
        x, mask = np.random.default_rng(0).standard_normal((2, 4, 250)), np.ones(2, bool)
        names = ('Fp1', 'nothing', 'Cz', 'EEG8')

        def answers(order: list[int], *windows: np.ndarray) -> list[np.ndarray]:
            model = build((len(order), 250, 2), tuple(names[i] for i in order))
            answer = compiled(lambda v, x: model.apply(v, {'x': x, 'mask': mask}, train=False, key=None).outputs)
            return [answer(lively('labram', model), x[:, order]) for x in windows]

        ((whole,), found) = (
            answers([3, 0, 2], x),
            answers([0, 1, 2, 3], x, x * [[1], [9], [1], [1]], x * [[1], [1], [1], [2]]),
        )
        close(found[0], whole, 1e-12)
        np.testing.assert_array_equal(found[1], found[0])
        assert np.abs(found[2] - whole).max() > 1e-3


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(RequestError, match=r'^labram: it knows none of the channels x, E5: expected .* cbramod'):
        build((2, 200, 1), ('x', 'E5'))
    with pytest.raises(RequestError, match=r'^labram: needs the names of all 2 channels, got 0'):
        labram(Signal(n_chans=2, n_times=200, sfreq=200.0), 1)
    with pytest.raises(RequestError, match=r'^labram: .*drop_path=1'):
        build(TRAINED, drop_path=1.0)


def test_rows_of_seconds() -> None:
    """One each up to 15; then the first stays and the others are stretched: ends without extrapolation."""
    np.testing.assert_array_equal(stretch(15), np.eye(15, 16))
    for n in (16, 17, 30, 300):
        rows = stretch(n)
        assert rows.shape == (n, 16) and rows[0, 0] == 1 and rows[1, 1] == 1
        np.testing.assert_allclose(rows.sum(1), 1)
        centre = rows[1:] @ np.arange(-1, 15)  # in rows after the first
        np.testing.assert_allclose(centre, np.clip((np.arange(n - 1) + 0.5) * 15 / n - 0.5, 0, 14))


@pytest.mark.long
def test_a_dropped_path_is_dropped_whole(short: None) -> None:
    """Each window does with or without either branch of the last layer, at the rate; the others are scaled."""
    rate, x = 0.75, np.random.default_rng(0).standard_normal((8, 2, 200)).astype(np.float32)
    model = build((2, 200, 1), ('C3', 'C4'), drop_path=rate)
    variables, batch = lively('labram', model), {'x': x, 'mask': np.ones(8, bool)}
    layer = variables['params']['layer_1']

    @compiled
    def outputs(gains: tuple[float, float], key: jax.Array | None = None) -> jax.Array:
        scaled = layer | {f'gain_{i + 1}': layer[f'gain_{i + 1}'] * g for i, g in enumerate(gains)}
        params = variables['params'] | {'layer_1': scaled}
        return model.apply(variables | {'params': params}, batch, train=key is not None, key=key).outputs[:, 0]

    whole = 1 / (1 - rate)
    possible = np.stack([outputs(gains) for gains in ((0.0, 0.0), (0.0, whole), (whole, 0.0), (whole, whole))])
    drawn = np.stack([outputs((1.0, 1.0), key) for key in jax.random.split(jax.random.key(0), 100)])
    off = np.abs(drawn[None] - possible[:, None])
    assert off.min(0).max() < 1e-5
    counts = np.bincount(off.argmin(0).reshape(-1), minlength=4) / drawn.size
    np.testing.assert_allclose(counts, [rate**2, rate * (1 - rate), rate * (1 - rate), (1 - rate) ** 2], atol=0.05)


def test_a_file_with_the_names_of_braindecode_is_read_but_for_the_head(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    model = build(TRAINED)
    state = model.to_torch(lively('labram', model))
    save_file({k: v for k, v in state.items() if not k.startswith('head.')}, tmp_path / 'file.safetensors')
    start = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    found = model.to_torch(load(model, tmp_path / 'file.safetensors', exceptions=module.CHECKPOINT, start=start))
    for key, value in state.items():
        np.testing.assert_array_equal(found[key], 0 if key.startswith('head.') else value, err_msg=key)
