"""Networks of joint angles against braindecode's, recorded; and what else is theirs: joints, shapes, batches."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import poses
import pytest
import weights
from families import often
from places import FIXTURES

from jbench.models import MODELS, factory
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

PEER = np.load(FIXTURES / 'pose_networks.npz')


def made(name: str, n_times: int = 0, n_out: int = 1000, n_chans: int = poses.N_CHANS) -> Model:
    signal = Signal(n_chans=n_chans, n_times=n_times or poses.N_TIMES[name], sfreq=poses.SFREQ)
    return factory(MODELS[name])(signal, n_out)


def of_peer(name: str, net: Model) -> Any:
    """Variables with the weights that the recorder took."""
    layout = {t.name: t.shape for t in net.tensors}
    return net.from_torch(weights.lively(name, layout))


def batch(x: np.ndarray) -> dict[str, jax.Array]:
    return {'x': jnp.asarray(x), 'mask': jnp.ones(len(x), bool)}


@pytest.mark.slow
@pytest.mark.parametrize('name', poses.PEERS)
def test_state_dict_and_number_of_parameters(name: str) -> None:
    net = made(name)
    lines = [' '.join([t.name, *map(str, t.shape)]) for t in net.tensors]
    assert lines == PEER[f'{name}/layout'].tolist()
    assert {t.name for t in net.own_head()} == {'final_layer.weight', 'final_layer.bias'}
    like: Any = jax.eval_shape(net.init, jax.random.key(0))
    n = sum(a.size for a in jax.tree.leaves(like['params']))
    assert n == PEER[f'{name}/n_parameters'] == MODELS[name].n_parameters


@pytest.mark.parametrize('name', often(poses.PEERS, ('vemg2pose', 'neuropose')))
def test_answers_and_gradients_are_those_of_the_reference(name: str) -> None:
    """Answers in float32, to 1e-4 of the largest. Norms and projections of gradients in float64, as the reference's, to
    1e-6 of a norm: in float32 a value may cross 0 at a ReLU, after which NeuroPose's differ by more than rounding.
    """
    net, (x, y) = made(name), poses.windows(name)
    variables = of_peer(name, net)
    said = jax.jit(lambda v: net.apply(v, batch(x), train=False, key=None).outputs)(variables)
    assert said.shape == (poses.ROWS, poses.N_JOINTS * poses.N_TIMES[name])
    seen = np.asarray(said).reshape(y.shape)[:, :, :: poses.EVERY]
    np.testing.assert_allclose(seen, PEER[f'{name}/eval'], rtol=0, atol=1e-4 * np.abs(PEER[f'{name}/eval']).max())

    @jax.jit
    @partial(jax.value_and_grad, has_aux=True)
    def loss(params: Any) -> tuple[jax.Array, Any]:
        answer = net.apply(variables | {'params': params}, batch(x.astype(float)), train=True, key=None)
        return jnp.abs(answer.outputs - y.reshape(len(y), -1)).mean(), answer.batch_stats

    with jax.enable_x64(True):
        (value, after), grads = loss(jax.tree.map(lambda a: a.astype(float), variables['params']))
    np.testing.assert_allclose(value, PEER[f'{name}/loss'], rtol=1e-9)
    named = net.to_torch({'params': grads, 'batch_stats': variables['batch_stats']})
    learnt = [t.name for t in net.tensors if t.path and t.path[0] == 'params']
    ours, peer = weights.sketch(name, {k: named[k] for k in learnt}), PEER[f'{name}/gradients']
    scale = np.maximum(peer[:, :1], 1e-3 * peer[:, 0].max())
    np.testing.assert_allclose(ours / scale, peer / scale, rtol=0, atol=1e-6)
    stats = net.to_torch({'params': variables['params'], 'batch_stats': after})
    buffers = np.concatenate([np.zeros(0), *(v.ravel() for k, v in stats.items() if '.running_' in k)])
    np.testing.assert_allclose(buffers, PEER[f'{name}/buffers'], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('name', poses.PEERS)
def test_outputs_that_are_no_joints_and_short_windows_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match='no multiple of n_joints=20'):
        made(name, n_out=30)
    with pytest.raises(RequestError, match=f'at least {MODELS[name].least_times}'):
        made(name, n_times=MODELS[name].least_times - 1)
    shape = jax.eval_shape(
        lambda v: made(name).apply(v, batch(poses.windows(name)[0]), train=False, key=None).outputs,
        jax.eval_shape(made(name).init, jax.random.key(0)),
    ).shape
    assert shape == (poses.ROWS, poses.N_JOINTS * poses.N_TIMES[name])


def test_a_wrist_of_few_electrodes_is_refused() -> None:
    with pytest.raises(RequestError, match='needs at least 16 channels'):
        made('neuropose', n_chans=8)
