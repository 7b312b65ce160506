"""SimpleConvTimeAgg against neuraltrain's recorded numbers (make_simpleconv_fixture.py), and the positions it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import make_simpleconv_fixture as record
import mne
import numpy as np
import pytest
import small
import weights
from weights import Shape

from jbench.data.electrodes import NEAREST, montage, positions
from jbench.models import MODELS
from jbench.models.classic import simpleconv_time_agg
from jbench.models.classic.simpleconv_time_agg import UNKNOWN, network_at, scaled
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal
from jbench.train.programs import Compiler, asked_signal

RECORDED = np.load(record.FILE)
MASK = np.array([True, False, True, True, False, True])  # the true rows among rows of padding


def build(shape: Shape, where: Any = None) -> Model:
    """The network on channels at recorded places, which are scaled already."""
    c, t, n = shape
    return network_at(record.places(c) if where is None else np.asarray(where), signal(c, t), n)


def signal(n_chans: int, n_times: int, known: tuple[Position, ...] = ()) -> Signal:
    return Signal(n_chans=n_chans, n_times=n_times, sfreq=120.0, positions=known)


def layout(model: Model) -> dict[str, tuple[int, ...]]:
    blank = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    return {name: value.shape for name, value in model.to_torch(blank).items()}


def lively(model: Model) -> Variables:
    return jax.tree.map(lambda v: jnp.asarray(v, float), model.from_torch(record.lively(layout(model))))


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options={'xla_backend_optimization_level': 0})


def close(actual: Any, expected: Any, rtol: float, what: str = '', floor: float = 0.0) -> None:
    scale = max(float(np.abs(expected).max(initial=0)), floor)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * scale, err_msg=what)


@pytest.mark.slow
def test_state_dict_and_counts() -> None:
    model = build(record.TRAINED)
    lines = [' '.join([name, *map(str, shape)]) for name, shape in layout(model).items()]
    assert lines == RECORDED['layout'].tolist()
    state = record.lively(layout(model))
    for name, value in model.to_torch(model.from_torch(state)).items():
        np.testing.assert_array_equal(value, state[name], err_msg=name)
    shapes = [jax.eval_shape(build(shape).init, jax.random.key(0)) for shape in weights.COUNTED]
    counts = [sum(leaf.size for leaf in jax.tree.leaves(s['params'])) for s in shapes]
    assert counts == [4177247, 4171877, 4173143, 4171324]


@pytest.mark.parametrize('shape', record.EVALUATED)
@pytest.mark.parametrize('x64', [False, pytest.param(True, marks=pytest.mark.slow)])
def test_evaluation_equals_neuraltrain(shape: Shape, x64: bool) -> None:
    with jax.enable_x64(x64):
        model = build(shape)
        x = jnp.asarray(weights.windows(shape, weights.EVAL_ROWS)[0], float)
        batch = {'x': x, 'mask': jnp.ones(len(x), bool)}
        logits = compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(lively(model))
        close(logits, RECORDED[f'eval/{shape[0]}'], 1e-10 if x64 else 1e-5)


@cache
def compiled_step() -> tuple[Model, Callable[..., Any]]:
    """Without dropout: (variables, batch, y) -> what came out, and the variables after one step of descent."""
    model = build(record.TRAINED)

    def step(variables: Variables, batch: dict[str, jax.Array], y: np.ndarray) -> dict[str, Any]:
        def mean_loss(params: Any) -> Any:
            logits, state, _ = model.apply(variables | {'params': params}, batch, train=True, key=None)
            losses = -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y]
            return jnp.where(batch['mask'], losses, 0).sum() / batch['mask'].sum(), (logits, state)

        (loss, (logits, state)), grads = jax.value_and_grad(mean_loss, has_aux=True)(variables['params'])
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        params = jax.tree.map(lambda p, g: p - record.LR * g, variables['params'], grads)
        found = {'loss': loss, 'grad_norm': norm, 'logits': logits[MASK], 'grads': grads}
        return found | {'variables': {'params': params, 'batch_stats': state}}

    return model, compiled(step)


@pytest.mark.slow
def test_ten_steps_equal_neuraltrain() -> None:
    """On a batch whose padding holds garbage: values, gradients, buffers."""
    expected = {k: RECORDED[f'steps/{k}'] for k in ('loss', 'grad_norm', 'logits', 'gradients', 'buffers')}
    model, step = compiled_step()
    x, y = weights.windows(record.TRAINED, record.TRAIN_ROWS)
    wide, labels = np.random.default_rng(0).normal(0, 100, (len(MASK), *x.shape[1:])), np.ones(len(MASK), int)
    wide[MASK], labels[MASK] = x, y
    variables = lively(model)
    for i in range(weights.STEPS):
        found = step(variables, {'x': jnp.asarray(wide, jnp.float32), 'mask': jnp.asarray(MASK)}, labels)
        if i == 0:
            close(found['logits'], expected['logits'], 1e-5)
            exported = model.to_torch({'params': found['grads'], 'batch_stats': found['variables']['batch_stats']})
            grads = {k: v for k, v in exported.items() if not k.startswith('merger.embedding')}
            grads = {k: v for k, v in grads.items() if '.running_' not in k and 'num_batches' not in k}
            for k, a, b in zip(grads, weights.sketch(record.NAME, grads), expected['gradients'], strict=True):
                close(a, b, 1e-4, k, floor=expected['grad_norm'][0] / 100)
        variables = found['variables']
        for k in ('loss', 'grad_norm'):
            np.testing.assert_allclose(found[k], expected[k][i], rtol=1e-4, err_msg=f'{k} of step {i}')
    buffers = [v for k, v in model.to_torch(variables).items() if '.running_' in k]
    np.testing.assert_allclose(np.concatenate(buffers), expected['buffers'], rtol=1e-4, atol=1e-4)


def mixtures(where: np.ndarray, centre: np.ndarray | None) -> np.ndarray:
    """Weights of the merger with the recorded heads, around a silenced point."""
    model = build(record.TRAINED)
    heads = jnp.asarray(record.lively(layout(model))['merger.heads'], float)
    scores = heads @ simpleconv_time_agg.embedding(jnp.asarray(where), jnp.asarray(simpleconv_time_agg.frequencies())).T
    return np.asarray(simpleconv_time_agg.merge_weights(scores, simpleconv_time_agg.alive(where, centre)))


@pytest.mark.slow
def test_channels_near_the_silenced_point_and_without_position_get_no_weight() -> None:
    with jax.enable_x64(True):
        where, centre = record.places(8), RECORDED['centre']
        found = mixtures(where, centre)
        close(found, RECORDED['mixtures'], 1e-10)
        np.testing.assert_allclose(found.sum(1), 1)
        assert [c for c in range(8) if not found[:, c].any()] == [0, 1, 2]
        assert [c for c in range(8) if not mixtures(where, None)[:, c].any()] == [1]


@pytest.mark.slow
def test_a_step_that_silences_every_channel_is_finite() -> None:
    with jax.enable_x64(True):
        assert not mixtures(np.full((8, 3), 0.5), np.full(3, 0.5)).any()
    key = jax.random.key(0)
    model = build(record.TRAINED, np.tile(simpleconv_time_agg.centre(key, jnp.float32) + 0.01, (8, 1)))
    batch = {'x': jnp.ones((2, 8, 40)), 'mask': jnp.ones(2, bool)}

    def loss(params: Any, variables: Variables) -> jax.Array:
        return jnp.square(model.apply(variables | {'params': params}, batch, train=True, key=key)[0]).sum()

    variables = lively(model)
    grads = compiled(jax.grad(loss))(variables['params'], variables)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))
    assert not grads['merger']['heads'].any()
    assert grads['linear']['bias'].any()


@pytest.mark.slow
def test_one_point_is_silenced_for_all_windows() -> None:
    model = build(record.TRAINED)
    x = jnp.asarray(np.repeat(weights.windows(record.TRAINED, 1)[0], 3, axis=0))
    draw = compiled(lambda v, k: model.apply(v, {'x': x, 'mask': jnp.ones(3, bool)}, train=True, key=k)[0])
    variables = lively(model)
    found = [np.asarray(draw(variables, jax.random.key(i))) for i in range(12)]
    assert all(np.ptp(logits, axis=0).max() < 1e-5 for logits in found)
    assert len({logits.tobytes() for logits in found}) > 1


def test_positions_are_asked_for() -> None:
    with pytest.raises(RequestError, match='positions of all 8 channels, got 7'):
        simpleconv_time_agg.simpleconv_time_agg(signal(8, 120, ((0.0, 0.0, 0.1),) * 7), 2)
    with pytest.raises(RequestError, match='none is known'):
        simpleconv_time_agg.simpleconv_time_agg(signal(8, 120, (None,) * 8), 2)


@pytest.mark.slow
def test_positions_in_metres_are_scaled_inside() -> None:
    """Each axis over the channels that have a position: as the reference is given them."""
    names = ['Fp1', 'X9', 'Cz', 'O2', 'P8']
    places = [p for p in positions(names) if p is not None]
    expected = np.full((5, 3), UNKNOWN)
    expected[[0, 2, 3, 4]] = (np.array(places) - np.min(places, 0)) / np.ptp(places, axis=0)
    np.testing.assert_array_equal(scaled(positions(names)), expected)
    np.testing.assert_array_equal(scaled(positions(['Cz', 'EMG'])), [[0, 0, 0], UNKNOWN])
    batch = {'x': jax.random.normal(jax.random.key(0), (2, 5, 40)), 'mask': jnp.ones(2, bool)}
    inside = simpleconv_time_agg.simpleconv_time_agg(signal(5, 40, positions(names)), 2)
    variables = lively(inside)
    found = [
        compiled(lambda v, model=model: model.apply(v, batch, train=False, key=None).outputs)(variables)
        for model in (inside, network_at(expected, signal(5, 40), 2))
    ]
    np.testing.assert_array_equal(*found)


# ---- positions of channels ----


@pytest.mark.parametrize(
    ('names', 'electrodes'),
    [
        (['Fp1', 'T3', 'Cz', 'O2', 'P8'], montage()),
        ([*(f'E{k}' for k in range(1, 129)), 'Cz'], mne.channels.make_standard_montage('GSN-HydroCel-129')),
        ([f'{k}' for k in range(1, 62)], mne.channels.make_standard_montage('easycap-M10')),
    ],
    ids=['10-05', 'net', 'numbered cap'],
)
def test_positions_are_those_of_a_recording_with_the_montage(names: list[str], electrodes) -> None:
    info = mne.create_info(names, 100.0, 'eeg')
    head = np.array([c['loc'][:3] for c in info.set_montage(electrodes)['chs']])
    np.testing.assert_allclose(positions(names), head, atol=1e-12)
    assert 0.05 < np.linalg.norm(head, axis=1).max() < 0.2  # metres


def test_names_are_matched_whole_then_up_to_the_first_hyphen() -> None:
    found = dict(zip(('Fp1', 'Cz-A1', 'O2', 'X9', 'cz'), positions(['Fp1', 'Cz-A1', 'O2', 'X9', 'cz']), strict=True))
    assert found['X9'] is found['cz'] is None
    assert found['Cz-A1'] == positions(['Fp1', 'Cz', 'O2'])[1] == positions(['Cz', 'EMG'])[0] != None  # noqa: E711
    assert positions(['Cz', 'EMG'])[1] is None
    assert positions(['EEG 036', 'EEG 061', 'EEG3', '5', 'x']) == positions(['P7', '?', 'C3', 'Pz', 'x'])
    assert set(NEAREST.values()) <= set(montage().ch_names) and len(NEAREST) == 125
    with pytest.raises(RequestError, match='none has a position: EMG1, EMG2'):
        positions(['EMG1', 'EMG2'])


def test_only_networks_that_ask_get_positions_and_they_wait_for_the_data() -> None:
    named = Signal(n_chans=2, n_times=120, sfreq=120.0, ch_names=('Cz', 'O2'))
    assert asked_signal(MODELS['eegnet'], named) == dataclasses.replace(named, ch_names=())
    found = asked_signal(MODELS['simpleconv_time_agg'], named)
    assert (found.positions, found.ch_names, found.channel_mask) == (positions(['Cz', 'O2']), (), False)
    every = dataclasses.replace(MODELS['eegnet'], asks=('ch_names', 'channel_mask'))
    found = asked_signal(every, named)
    assert (found.positions, found.ch_names, found.channel_mask) == ((), ('Cz', 'O2'), True)
    compiler = Compiler()
    compiler.foresee([dataclasses.replace(small.cell(), model=MODELS['simpleconv_time_agg'])])
    compiler.close()
    assert not compiler._made
