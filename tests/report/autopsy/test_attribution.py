"""Integrated gradients and GradCAM: exact where the answer is known, complete for every network of the table."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from autopsies import C, T, case_of, of_table, outputs, planted, written
from families import often

from jbench.models import MODELS
from jbench.models.model import TokenGrid
from jbench.report.autopsy import activations, attribution, examine, findings, gradcam, gradients
from jbench.report.autopsy.case import Network
from jbench.spec.model import Signal

NETWORKS = [m.name for m in MODELS.values() if m.kind == 'network' and m.family == 'classic']
NETWORKS += ['jbench_tiny']  # other encoders take minutes
SIGNAL = Signal(n_chans=C, n_times=T, sfreq=60.0)


def test_a_linear_network_is_explained_exactly():
    """Weights times the distance from the mean; by frequency, the same sums in each channel."""
    case = planted()
    net, usual = case.network, np.float32([0.1, -0.2, 0.3, 0.0])
    towards = np.eye(2, dtype=np.float32)[case.answers['y']]
    found = attribution.integrated(net.model, net.variables, net.x, usual=usual, weights=towards, signal=case.signal)
    weights = np.asarray(net.variables['params']['weights'])
    expected = (net.x - usual[:, None]) * np.einsum('ctk,nk->nct', weights, towards)
    np.testing.assert_allclose(found.samples, expected, atol=1e-5)
    np.testing.assert_allclose(found.frequencies.sum(2), expected.sum(2), atol=1e-4)
    assert found.missing < 1e-5 and found.steps == attribution.STEPS
    assert abs(found.hz[found.frequencies.sum((0, 1)).argmax()] - 10) <= 1
    assert not np.any(found.samples[:, [0, 2, 3]]), 'channels that the network does not read'


@pytest.mark.slow
def test_more_points_are_taken_until_little_is_missing_and_what_is_missing_is_told():
    x = np.random.default_rng(0).normal(0, 1, (4, C, T)).astype(np.float32)

    def explained(sharpness):
        model = written(lambda p, x: (jnp.tanh(sharpness * x.mean((1, 2)))[:, None] * jnp.ones(2), {}), {})
        towards = np.ones((4, 2), np.float32)
        start = np.zeros(C, np.float32)
        return attribution.integrated(model, model.init(None), x, usual=start, weights=towards, signal=SIGNAL)

    smooth, sharp, step = (explained(s) for s in (10.0, 5e3, 1e6))
    assert smooth.missing <= 0.01 and smooth.steps == 32
    assert sharp.missing <= 0.01 and 32 < sharp.steps <= 256
    assert step.missing > 0.01 and step.steps == 256
    wrong = np.abs(sharp.samples.sum((1, 2)) - sharp.difference).sum() / np.abs(sharp.difference).sum()
    assert sharp.missing == pytest.approx(wrong)


def test_a_constant_network_gives_zeros():
    model = written(lambda p, x: (jnp.ones((len(x), 2)), {}), {})
    x = np.ones((2, C, T), np.float32)
    start, towards = np.zeros(C, np.float32), np.ones((2, 2), np.float32)
    found = attribution.integrated(model, model.init(None), x, usual=start, weights=towards, signal=SIGNAL)
    assert found.missing == 0 and not found.samples.any() and not found.frequencies.any()


def two_layers(p, x):
    """Filters, then a sum over time of their rectified answers; the feature is a copy, laid out in another way."""
    h = jnp.einsum('fc,bct->fbt', p['spatial'], x)
    found = {'filters': h.swapaxes(0, 1), 'unused': 2 * x[:, :2], 'late': h[..., 10:].transpose(1, 2, 0)}
    return jnp.einsum('fbt,fk->bk', jax.nn.relu(h), p['linear']), found


def test_gradcam_equals_a_computation_by_hand():
    rng = np.random.default_rng(1)
    params = {'spatial': rng.normal(size=(3, C)).astype('f4'), 'linear': rng.normal(size=(3, 2)).astype('f4')}
    model, x = written(two_layers, params), rng.normal(0, 1, (5, C, T)).astype(np.float32)
    towards = np.eye(2, dtype=np.float32)[[0, 1, 0, 1, 1]]
    found = gradcam.gradients(model, model.init(None), x, weights=towards, signal=SIGNAL)
    h = np.einsum('fc,bct->bft', params['spatial'], x)
    slope = (h > 0) * np.einsum('fk,bk->bf', params['linear'], towards)[..., None]
    np.testing.assert_allclose(found['filters'][0], h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found['filters'][1], slope, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found['late'][1], slope[..., 10:].swapaxes(1, 2), rtol=1e-4, atol=1e-5)
    assert not found['unused'][1].any(), 'the answer does not rest on it'
    by_hand = np.maximum((slope.mean(2, keepdims=True) * h).sum(1), 0)
    np.testing.assert_allclose(gradcam.cam(*found['filters'], time=1), by_hand, rtol=1e-3, atol=1e-5)
    swapped = [a.swapaxes(1, 2) for a in found['filters']]
    np.testing.assert_allclose(gradcam.cam(*swapped, time=0), by_hand, rtol=1e-3, atol=1e-5)


def test_features_that_follow_from_each_other_have_each_the_whole_gradient():
    """Two are one variable, a third is made of it: nothing is counted twice."""

    def apply(p, x):
        h = jnp.sin(x)
        late = h**2
        return late.sum(2)[:, :2], {'first': h, 'same': h, 'late': late}

    x, both = np.random.default_rng(0).normal(0, 1, (2, C, T)).astype(np.float32), np.ones((2, 2), np.float32)
    model = written(apply, {})
    found = gradcam.gradients(model, model.init(None), x, weights=both, signal=SIGNAL)
    read = np.arange(C)[:, None] < 2
    for name, slope in (('first', 2 * np.sin(x) * read), ('same', 2 * np.sin(x) * read), ('late', x**0 * read)):
        np.testing.assert_allclose(found[name][1], slope, atol=1e-6)


def test_what_passes_a_layer_by_is_not_of_its_gradient():
    """As around a residual block: the rest reads the layer in one layout, and what it came from in another."""

    def apply(p, x):
        h = x.swapaxes(1, 2)
        return jnp.stack([(3 * h).sum((1, 2)), (5 * x).sum((1, 2))], 1), {'layer': h.swapaxes(1, 2)}

    def doubled(p, x):
        return apply(p, 2 * x)

    x, both = np.ones((2, C, T), np.float32), np.ones((2, 2), np.float32)
    model = written(doubled, {})
    (value, gradient) = gradcam.gradients(model, model.init(None), x, weights=both, signal=SIGNAL)['layer']
    np.testing.assert_allclose(value, 2)
    np.testing.assert_allclose(gradient, 3)


def test_a_layer_read_by_its_token_of_no_time_alone_has_no_gradcam():
    """Of a head that reads the class token: nothing flat is drawn, and findings say why."""

    def apply(p, x):
        moments = jnp.tanh(x.mean(1).reshape(len(x), 6, 10).mean(2))[..., None] * jnp.ones(2)
        tokens = jnp.concatenate([moments.sum(1, keepdims=True), moments], 1)
        return tokens[:, 0] * jnp.float32([1, 2]), {'early': moments, 'tokens': tokens}

    x = np.random.default_rng(0).normal(0, 1, (8, C, T)).astype(np.float32)
    case = case_of(written(apply, {})._replace(tokens=TokenGrid((1, 6), 1)), x, np.arange(8) % 2)
    parts = examine._explained(case, case.network, examine.Parts(None, None))
    assert [*parts.cams] == ['early'] and parts.cams['early'].any()
    assert parts.timeless == ('tokens',) and parts.aside == ()
    (said,) = (one for one in findings._network(case, parts) if one.names == ('tokens',))
    assert said.text == 'The gradient reaches the layer tokens only through a token of no time, so it has no GradCAM.'


def in_a_step(p, x):
    """Filters of which the sum over time is read, together with them, from one step of a loop."""

    def step(carry, _):
        h = jnp.einsum('fc,bct->bft', p['spatial'], x)
        return jnp.einsum('bft,fk->bk', jax.nn.relu(h), p['linear']), h

    outputs, filters = jax.lax.scan(step, jnp.zeros((len(x), 2)), None, length=1)
    return outputs, {'filters': filters[0], 'unused': 2 * x[:, :2]}


@pytest.mark.parametrize('around', [jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(jax.jit(f)))])
def test_a_layer_inside_of_a_jit_of_the_network_has_its_gradient(around):
    """What the rest of the network reads lies inside, and comes out as a copy in another layout; a part that is called
    twice is two layers."""
    rng = np.random.default_rng(1)
    params = {'spatial': rng.normal(size=(3, C)).astype('f4'), 'linear': rng.normal(size=(3, 2)).astype('f4')}
    part = around(two_layers)

    def twice(p, x):
        (one, first), (other, second) = part(p, x), part(p, 2 * x)
        return one + other, first | {f'{name}_2': value for name, value in second.items()}

    x, towards = rng.normal(0, 1, (5, C, T)).astype(np.float32), np.eye(2, dtype=np.float32)[[0, 1, 0, 1, 1]]
    plain, inside = (
        gradcam.gradients(model, model.init(None), x, weights=towards, signal=SIGNAL)
        for model in (written(two_layers, params), written(twice, params))
    )
    assert inside.keys() == {*plain, *(f'{name}_2' for name in plain)} and inside['filters'][1].any()
    for name, (value, gradient) in plain.items():
        for copy, factor in ((name, 1), (f'{name}_2', 2)):
            np.testing.assert_allclose(inside[copy][0], factor * value, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(inside[copy][1], gradient, rtol=1e-4, atol=1e-5)


def test_what_only_another_feature_reads_does_not_hide_the_layer():
    """The copy of a layer that a second feature is made of: the answer rests on the layer."""

    def apply(p, x):
        h = jnp.sin(x)
        copy = h.swapaxes(1, 2)
        return h.sum(2)[:, :2], {'layer': copy, 'mean': copy.mean(1)}

    model, x = written(apply, {}), np.ones((2, C, T), np.float32)
    found = gradcam.gradients(model, model.init(None), x, weights=np.ones((2, 2), np.float32), signal=SIGNAL)
    np.testing.assert_allclose(found['layer'][1], np.ones((T, 1)) * (np.arange(C) < 2) * np.ones((2, 1, 1)))
    assert not found['mean'][1].any()


@pytest.mark.slow
def test_a_layer_inside_of_a_loop_is_said_not_to_be_seen():
    """Never that the answer does not rest on it."""
    params = {'spatial': np.ones((3, C), 'f4'), 'linear': np.ones((3, 2), 'f4')}
    x = np.random.default_rng(0).normal(0, 1, (8, C, T)).astype(np.float32)
    case = case_of(written(in_a_step, params), x, np.arange(8) % 2)
    parts = examine._explained(case, case.network, examine.Parts(None, None))
    assert (parts.unseen, parts.aside, [*parts.cams]) == (('filters',), ('unused',), [])
    (said,) = (one for one in findings._network(case, parts) if one.names == ('filters',))
    assert said.text.startswith('Whether the answer rests on the layer filters is not seen: ') and said.number is None
    assert 'lax.scan' in said.text and said.text.endswith('so it has no GradCAM.')


OUT_OF_A_LOOP = {  # ways to a layer of what its steps gave [steps, B, F, T]
    'a step': lambda ys: ys[0],
    'a computed step': lambda ys: jax.lax.dynamic_index_in_dim(ys, 0, keepdims=False),
    'take': lambda ys: jnp.take(ys, 0, axis=0),
    'unstack': lambda ys: jnp.unstack(ys)[0],
    'split': lambda ys: jnp.split(ys, 1)[0][0],
    'scaled': lambda ys: ys[0] * 1.0,
    'two functions': lambda ys: jax.nn.relu(jnp.sort(ys[0], axis=-1)),
}


@pytest.mark.parametrize('way', OUT_OF_A_LOOP)
def test_a_layer_that_is_made_of_what_a_loop_gave_is_not_seen(way):
    """However it is taken; another loop, of which the answer reads nothing, hides nothing."""
    params = {'spatial': np.ones((3, C), 'f4'), 'linear': np.ones((3, 2), 'f4')}

    def apply(p, x):
        def step(carry, _):
            h = jnp.einsum('fc,bct->bft', p['spatial'], x)
            return jnp.einsum('bft,fk->bk', jax.nn.relu(h), p['linear']), h

        outputs, ys = jax.lax.scan(step, jnp.zeros((len(x), 2)), None, length=1)
        _, unread = jax.lax.scan(step, jnp.zeros((len(x), 2)), None, length=2)
        found = {'filters': OUT_OF_A_LOOP[way](ys), 'unused': unread[1] * 2, 'late': jnp.sin(outputs)}
        return outputs, found

    model, x = written(apply, params), np.ones((3, C, T), np.float32)
    found = gradcam.gradients(model, model.init(None), x, weights=np.ones((3, 2), np.float32), signal=SIGNAL)
    assert [*found] == ['late', 'unused'] and not any(g.any() for _, g in found.values())


def test_chance_alone_rarely_reaches_the_floor():
    rng = np.random.default_rng(0)
    above = [v.mean(0).max() > attribution.floor(v) for v in rng.normal(0, 1, (100, 24, 10))]
    assert np.mean(above) <= 0.12
    planted = rng.normal(0, 1, (24, 10)) + 2 * (np.arange(10) == 3)
    assert np.flatnonzero(planted.mean(0) > attribution.floor(planted)).tolist() == [3]


@pytest.mark.parametrize('name', often(NETWORKS, ('fmri_linear', 'fmri_mlp', 'eegnet', 'jbench_tiny')))
def test_every_network(name):
    """Complete attributions; layers without dead units, each with a gradient, and the axis of time where it has one."""
    model, variables, x, signal = of_table(name)
    answer = outputs(model, variables, x, signal)
    towards = np.random.default_rng(1).normal(0, 1, answer.shape).astype(np.float32)
    usual = np.zeros(x.shape[1], np.float32)
    found = attribution.integrated(model, variables, x, usual=usual, weights=towards, signal=signal)
    assert np.isfinite(found.samples).all() and found.samples.any()
    assert found.missing <= 0.02, found
    np.testing.assert_allclose(found.frequencies.sum((1, 2)), found.samples.sum((1, 2)), rtol=1e-4, atol=1e-6)
    network = Network(model, variables, x, np.arange(3), usual, None)
    layers = {layer.name: layer for layer in activations.layers(network, signal)}
    grads = gradcam.gradients(model, variables, x, weights=towards, signal=signal)
    assert layers.keys() == grads.keys() and layers
    for layer, (a, g) in grads.items():
        assert a.shape == g.shape == (3, *layers[layer].shape) and np.isfinite(g).all()
        assert g.any(), f'no gradient reaches {layer}'
        assert np.isfinite(layers[layer].spread).all()
    batch = {'x': jnp.asarray(x), 'mask': jnp.ones(3, bool)}

    def loss(params, batch):
        return (model.apply({**variables, 'params': params}, batch, train=False, key=None).outputs ** 2).sum()

    flow = gradients.flow(network._replace(loss=loss, batches=(batch,)))
    assert flow is not None and np.isfinite(flow.gradient).all()
    assert len(flow.names) == len(jax.tree.leaves(variables['params']))


TIME = {  # layer -> axis of time, not counting windows
    'eegnet': {'spatial': 1, 'penultimate': 1},
    'shallow_fbcsp_net': {'penultimate': 1},
    'bdtcn': {'convolutions': 1, 'penultimate': None},
    'ctnet': {'tokens': 0},
    'fmri_mlp': {'penultimate': None},
}


@pytest.mark.parametrize('name', [n if n == 'eegnet' else pytest.param(n, marks=pytest.mark.slow) for n in TIME])
def test_the_axis_of_time_is_found(name):
    model, variables, x, signal = of_table(name, 480)
    found = activations.time_axes(model, variables, x, signal)
    assert {layer: found[layer] for layer in TIME[name]} == TIME[name]
