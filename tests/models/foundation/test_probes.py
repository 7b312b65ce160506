"""Heads on features, and an encoder with a head as one network."""

from __future__ import annotations

import encoders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.models import factory
from jbench.models.foundation import probes
from jbench.models.model import TokenGrid
from jbench.results import weights
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

SIGNAL = Signal(n_chans=3, n_times=60, sfreq=120.0)
HEADS = {n: factory(spec)(probes.features(8), 2, **dict(spec.options)) for n, spec in probes.HEADS.items()}


@pytest.fixture(scope='module')
def encoder():
    return encoders.tiny(SIGNAL, 5)


@pytest.fixture(scope='module')
def batch():
    return {'x': jnp.asarray(np.random.default_rng(0).normal(size=(4, 3, 60)), jnp.float32), 'mask': jnp.ones(4, bool)}


def test_an_encoder_with_another_head_says_how_its_tokens_lie(encoder):
    told = encoder._replace(tokens=TokenGrid((3, 3), 1))
    for frozen in (True, False):
        assert probes.attached(told, HEADS['linear'], frozen=frozen).tokens == told.tokens


@pytest.mark.slow
def test_an_encoder_has_features(encoder):
    assert probes.width(encoder, SIGNAL) == 8
    assert [t.name for t in probes.own_head(encoder)] == ['head.weight', 'head.bias']
    with pytest.raises(RequestError, match='no encoder with a head'):
        probes.width(HEADS['linear'], probes.features(8))


@pytest.mark.parametrize(
    'name', ['linear', pytest.param('mlp', marks=pytest.mark.long), pytest.param('mlp_800_200', marks=pytest.mark.slow)]
)
def test_one_network_is_the_head_after_the_encoder(encoder, batch, name):
    """Whatever the encoder's own head holds, in training too, where the encoder drops nothing."""
    head, made = HEADS[name], probes.attached(encoder, HEADS[name])
    own, outer = encoder.init(jax.random.key(0)), head.init(jax.random.key(1))
    own['params']['linear'] = jax.tree.map(lambda a: a + 7, own['params']['linear'])
    variables = probes.joined(encoder, own, outer)
    assert jax.tree.structure(variables) == jax.tree.structure(made.init(jax.random.key(2)))
    features = encoder.apply(own, batch, train=False, key=None).features['penultimate']
    inner = {'x': features[..., None], 'mask': batch['mask']}
    for train, key in ((False, None), (True, jax.random.key(3))):
        expected = head.apply(outer, inner, train=train, key=key).outputs
        found = made.apply(variables, batch, train=train, key=key)
        np.testing.assert_allclose(found.outputs, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.features['penultimate'], features, rtol=1e-6)


@pytest.mark.slow
def test_the_mlp_is_that_of_torch():
    head, rng = HEADS['mlp'], np.random.default_rng(1)
    variables, x = head.init(jax.random.key(0)), rng.normal(size=(5, 8)).astype(np.float32)
    t = {name: np.asarray(a, np.float64) for name, a in head.to_torch(variables).items()}
    assert {name: a.shape for name, a in t.items()} == {
        '0.weight': (256, 8),
        '0.bias': (256,),
        '3.weight': (2, 256),
        '3.bias': (2,),
    }
    h = x @ t['0.weight'].T + t['0.bias']
    expected = np.where(h > 0, h, np.expm1(h)) @ t['3.weight'].T + t['3.bias']
    given = {'x': x[..., None], 'mask': np.ones(5, bool)}
    np.testing.assert_allclose(head.apply(variables, given, train=False, key=None).outputs, expected, atol=1e-5)
    trained = head.apply(variables, given, train=True, key=jax.random.key(0)).outputs
    assert abs(trained - expected).max() > 1e-2  # it drops half


@pytest.mark.parametrize('name', ['linear', pytest.param('mlp', marks=pytest.mark.slow), 'mlp_800_200'])
def test_weights_are_kept_whole(encoder, tmp_path, name):
    made = probes.attached(encoder, HEADS[name])
    variables = made.init(jax.random.key(4))
    path = tmp_path / 'w.safetensors'
    path.write_bytes(weights.to_bytes(made, variables))
    found = weights.load(path, made)
    assert jax.tree.structure(found) == jax.tree.structure(variables)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(variables), strict=True):
        np.testing.assert_array_equal(a, b)
    names = [t.name for t in made.tensors]
    assert 'encoder.embed.weight' in names and 'encoder.head.weight' not in names and 'head.0.weight' in names


@pytest.mark.slow
def test_answers_depend_on_the_window_through_the_encoder(encoder, batch):
    """So that what attributes them to channels and times can differentiate."""
    made = probes.attached(encoder, HEADS['linear'])
    variables = made.init(jax.random.key(5))
    gradient = jax.jit(jax.grad(lambda x: made.apply(variables, batch | {'x': x}, train=False, key=None).outputs.sum()))
    grad = gradient(batch['x'])
    assert jnp.abs(grad).max() > 0
