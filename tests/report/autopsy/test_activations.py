"""Dead units are found, and gradients that vanish."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from autopsies import case_of, of_table, planted, written

from jbench.report.autopsy import activations, findings, gradients
from jbench.report.autopsy.case import Network
from jbench.report.autopsy.examine import Parts


@pytest.mark.slow
def test_units_that_were_killed_are_dead():
    """EEGNet's last norm answers (almost) 0 for two of its units: what is behind it never changes there."""
    model, variables, x, signal = of_table('eegnet')
    network = Network(model, variables, x, np.arange(3), np.zeros(5, np.float32), None)
    assert [len(layer.dead) for layer in activations.layers(network, signal)] == [0, 0]
    killed = variables['params']['bn_separable']['scale'].at[jnp.array([3, 7])].set(jnp.array([0, 1e-9]))
    params = {**variables['params'], 'bn_separable': {**variables['params']['bn_separable'], 'scale': killed}}
    network = network._replace(variables={**variables, 'params': params})
    found = {layer.name: layer.dead.tolist() for layer in activations.layers(network, signal)}
    assert found == {'penultimate': [3, 7], 'spatial': []}


def test_a_layer_is_described_as_numpy_does():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(4, 3)).astype(np.float32)

    def apply(p, x):
        h = jnp.maximum(jnp.einsum('bct,cf->bft', x, weights), 0)
        return h.mean(2)[:, :2], {'h': h}

    case = case_of(written(apply, {}), rng.normal(0, 1, (46, 4, 20)).astype(np.float32), np.arange(46) % 2)
    (layer,) = activations.layers(case.network, case.signal)
    h = np.maximum(np.einsum('bct,cf->bft', case.network.x, weights), 0)
    assert (layer.shape, layer.time) == ((3, 20), 1)
    np.testing.assert_allclose(layer.spread, h.std((0, 2)), rtol=1e-4)
    assert layer.mean == pytest.approx(h.mean(), rel=1e-4) and layer.zeros == pytest.approx((h == 0).mean())


def test_gradients_are_those_of_the_loss_by_tensor():
    case = planted()
    params = {'a': np.float32([3.0, 4.0]), 'b': np.float32([1.0]), 'c': np.float32([2.0])}
    network = case.network._replace(
        variables={'params': params, 'batch_stats': {}},
        loss=lambda p, batch: batch['k'] * (p['a'] ** 2).sum() + p['b'][0],
        batches=({'k': 1.0}, {'k': 3.0}),
    )
    flow = gradients.flow(network)
    assert flow.names == ('a', 'b', 'c') and flow.vanished == ('c',)
    np.testing.assert_allclose(flow.gradient, [20, 1, 0])
    np.testing.assert_allclose(flow.weight, [5, 1, 2])
    np.testing.assert_allclose(flow.relative, [4, 1, 0])
    assert gradients.flow(network._replace(batches=())) is None


def test_a_tensor_of_zeros_does_not_make_others_vanish():
    """As of biases that stay where they started: none has a norm that its gradient could stand beside."""
    case = planted()
    params = {'frozen': np.zeros(2, 'f4'), 'unread': np.zeros(2, 'f4'), 'w': np.float32([3, 4]), 'v': np.float32([1])}
    network = case.network._replace(
        variables={'params': params, 'batch_stats': {}},
        loss=lambda p, batch: p['frozen'].sum() + (p['w'] ** 2).sum() + 3 * p['v'][0],
        batches=({},),
    )
    flow = gradients.flow(network)
    assert flow.vanished == ('unread',)
    (said,) = (f for f in findings._network(case, Parts(None, None, flow=flow)) if 'Beside its' in f.text)
    assert said.text.startswith('Beside its weights, the gradient is largest in v (3) and smallest in w (2); ')
    assert said.text.endswith('none reaches 1 of 4 tensors: unread.')
