"""The networks of fMRI and EMG against the recorded numbers of their references (make_device_fixtures.py)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import make_device_fixtures as record
import numpy as np
import pytest
import weights
from networks import close, compiled
from weights import Shape

from jbench.models import MODELS, factory, validate
from jbench.models.classic import emg2qwerty
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.train import parallel, programs

RECORDED = np.load(record.FILE)
MASK = np.array([True, False, True, True])  # the true rows among rows of padding
CASES = [
    (name, shape, x64)
    for name, shapes in record.SHAPES.items()
    for shape in shapes
    for x64 in ((False,) if name == 'emg2qwerty' else (False, True))  # its convolutions take minutes in float64
]


def build(name: str, shape: Shape, **options: Any) -> Model:
    c, t, n = shape
    return factory(MODELS[name])(Signal(n_chans=c, n_times=t, sfreq=2000.0), n, **options)


def lively(name: str, model: Model) -> Variables:
    blank = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    layout = {key: value.shape for key, value in model.to_torch(blank).items()}
    return jax.tree.map(lambda v: jnp.asarray(v, float), model.from_torch(weights.lively(name, layout)))


def padded(name: str, shape: Shape) -> dict[str, jax.Array]:
    """The recorded windows among rows of garbage."""
    x = np.full((len(MASK), *shape[:2]), 77.0)
    x[MASK] = record.windows(name, shape)
    return {'x': jnp.asarray(x, float), 'mask': jnp.asarray(MASK)}


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'shape', 'x64'), CASES)
def test_it_computes_what_its_reference_computes(name: str, shape: Shape, x64: bool) -> None:
    """Outputs in evaluation; loss, gradients and running statistics of a step of training without its noise."""
    expected = {key: RECORDED[f'{name}/{shape[0]}/{key}'] for key in ('eval', 'loss', 'gradients', 'buffers', 'layout')}
    with jax.enable_x64(x64):
        model = build(name, shape)
        variables, batch = lively(name, model), padded(name, shape)

        def both(variables: Variables, batch: Any) -> Any:
            def loss(params: Any) -> Any:
                outputs, state, _ = model.apply(variables | {'params': params}, batch, train=True, key=None)
                return jnp.square(outputs[MASK] - 1).mean(), state

            outputs, *_ = model.apply(variables, batch, train=False, key=None)
            return outputs[MASK], jax.value_and_grad(loss, has_aux=True)(variables['params'])

        outputs, ((loss, state), gradients) = compiled(both)(variables, batch)
        close(outputs, expected['eval'], 1e-9 if x64 else 1e-5)
        np.testing.assert_allclose(loss, expected['loss'], rtol=1e-9 if x64 else 1e-5)
        exported = model.to_torch({'params': gradients, 'batch_stats': state})
        assert [' '.join([k, *map(str, v.shape)]) for k, v in exported.items()] == expected['layout'].tolist()
        buffers = [v for k, v in exported.items() if '.running_' in k]
        close(np.concatenate([np.zeros(0), *buffers]), expected['buffers'], 1e-6)
        found = weights.sketch(name, {k: v for k, v in exported.items() if '.running_' not in k and v.ndim})
        whole = np.sqrt((expected['gradients'][:, 0] ** 2).sum())
        for k, (a, b) in enumerate(zip(found, expected['gradients'], strict=True)):
            close(a, b, 1e-6 if x64 else 1e-3, f'gradient {k}', floor=whole / 100)


@pytest.mark.parametrize(
    ('name', 'shape', 'expected'),
    [
        ('emg2qwerty', (32, 10000, 99), 5293315),
        ('fmri_mlp', (20484, 4, 1536), 5214853),
        ('fmri_linear', (20484, 4, 1536), 31464965),
    ],
)
def test_parameters_are_counted_as_the_reference_has_them(name: str, shape: Shape, expected: int) -> None:
    variables = jax.eval_shape(build(name, shape).init, jax.random.key(0))
    assert sum(a.size for a in jax.tree.leaves(variables['params'])) == expected
    small = record.SHAPES[name][0]
    variables = jax.eval_shape(build(name, small).init, jax.random.key(0))
    assert sum(a.size for a in jax.tree.leaves(variables['params'])) == RECORDED[f'{name}/{small[0]}/count']


def test_frames_of_an_answer() -> None:
    batch = {'x': jnp.zeros((2, 32, 10000)), 'mask': jnp.ones(2, bool)}
    model = build('emg2qwerty', (32, 10000, 99))
    variables = jax.eval_shape(model.init, jax.random.key(0))
    out, *_ = jax.eval_shape(lambda v: model.apply(v, batch, train=False, key=None), variables)
    assert out.shape == (2, 498, 99)


@pytest.mark.parametrize(
    ('shape', 'says'),
    [((32, 2047, 3), 'windows of 2047 samples are too short'), ((31, 4000, 3), 'two bands of as many electrodes')],
)
def test_windows_that_the_emg_network_does_not_fit(shape: Shape, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        build('emg2qwerty', shape)


# ---- what is random ----


@pytest.mark.slow
def test_masks_hide_what_they_should() -> None:
    """At most 3 stretches of fewer than 25 frames and 2 of fewer than 4 frequencies, each row its own, all the same
    number; the mean is that of the rows that count."""
    x = jnp.asarray(np.random.default_rng(0).normal(5, 1, (2, 6, 200, 33)))
    mask = jnp.array([True] * 4 + [False] * 2)
    x = x.at[:, 4:].set(1000.0)
    hide = jax.jit(lambda key: emg2qwerty.spec_augment(x, mask, key, None))
    shares, counts = [], set()
    for k in range(40):
        out = np.asarray(hide(jax.random.key(k)))[:, :4]
        hidden = out != np.asarray(x)[:, :4]
        np.testing.assert_allclose(out[hidden], np.asarray(x)[:, :4].mean(), rtol=1e-5)
        frames, bins = hidden.all(3), hidden.all(2)
        np.testing.assert_array_equal(hidden, frames[..., None] | bins[:, :, None])
        assert frames.sum(2).max() <= 3 * 24 and bins.sum(2).max() <= 2 * 3
        runs = (np.diff(frames.astype(int), axis=2, prepend=0) == 1).sum(2)
        counts.add(int(runs.max()))
        shares.append(frames.mean())
        if runs.max() > 1:
            assert len({tuple(row) for row in frames.reshape(-1, 200)}) > 6
    assert counts == {0, 1, 2, 3}
    assert 0.05 < np.mean(shares) < 0.12  # one and a half of 12 of 200 frames


@pytest.mark.slow
@pytest.mark.parametrize('name', ['fmri_linear', 'fmri_mlp'])
def test_it_keeps_the_contract_of_networks(name: str) -> None:
    signal = Signal(n_chans=9, n_times=4, sfreq=0.5)
    validate.check(lambda: programs.build(MODELS[name], signal, 3), name, signal, 3, parallel.AXIS, several=True)


@pytest.mark.long
def test_the_emg_network_keeps_the_contract_of_networks() -> None:
    """Split over devices, too: masks and statistics are those of the whole batch."""
    signal = Signal(n_chans=4, n_times=2064, sfreq=2000.0)
    made = MODELS['emg2qwerty']
    validate.check(
        lambda: programs.build(made, signal, 3), made.name, signal, 3, parallel.AXIS, several=True, frames=True
    )


def test_a_network_of_frames_and_one_of_windows_are_told_apart() -> None:
    """The trial of somebody's own network knows which of both a task asks for."""
    signal = Signal(n_chans=9, n_times=4, sfreq=0.5)
    with pytest.raises(RequestError, match=r'gives float32 \[6, 3\]; expected float \[6, any, 3\], \[windows, frames'):
        validate.check(
            lambda: programs.build(MODELS['fmri_linear'], signal, 3), 'mine', signal, 3, parallel.AXIS, frames=True
        )
    wide = Signal(n_chans=2, n_times=2048, sfreq=2000.0)
    with pytest.raises(RequestError, match=r'gives float32 \[6, 1, 3\]; expected float \[6, 3\]'):
        validate.check(lambda: programs.build(MODELS['emg2qwerty'], wide, 3), 'mine', wide, 3, parallel.AXIS)
