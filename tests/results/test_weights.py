"""Weights beside a result: bytes that depend on the numbers alone, and whatever is damaged is named."""

from __future__ import annotations

import hashlib
import random
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open

from jbench.models import MODELS, factory
from jbench.models.model import Model
from jbench.results import result_file, weights
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

SIGNAL = Signal(n_chans=4, n_times=64, sfreq=120.0)


def drawn(key: jax.Array) -> dict:
    """Variables of several shapes and types, some in a list."""
    params = {
        'a': {'b': jax.random.normal(key, (3, 2))},
        'empty': jnp.zeros((0, 2)),
        'list': [jnp.ones(2), jnp.zeros(())],
    }
    return {'params': params, 'batch_stats': {'n': jnp.int32(7), 'seen': jnp.array([True, False])}}


PLAIN = Model(drawn, lambda *args, **options: None)
TWICE = Model(lambda key: {'params': {'a': {'b': jnp.ones(2)}, 'a.b': jnp.zeros(2)}, 'batch_stats': {}}, PLAIN.apply)
NETWORKS = {'plain': PLAIN, 'ambiguous': TWICE, 'eegnet': factory(MODELS['eegnet'])(SIGNAL, 3)}


@pytest.mark.parametrize('name', NETWORKS)
def test_what_is_written_comes_back_to_the_bit(name, tmp_path):
    model = NETWORKS[name]
    variables = model.init(jax.random.key(1))
    blob = weights.to_bytes(model, variables)
    weights.place(tmp_path / 'seed3.json').write_bytes(blob)
    found = weights.load(tmp_path / 'seed3.safetensors', model, hashlib.sha256(blob).hexdigest())
    assert jax.tree.structure(found) == jax.tree.structure(jax.device_get(variables))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(variables), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
    assert weights.to_bytes(model, found) == blob == weights.to_bytes(model, jax.tree.map(np.asarray, variables))
    with safe_open(tmp_path / 'seed3.safetensors', 'np') as file:
        assert file.metadata() == {'format': 'pt'}
        assert sum(file.get_tensor(k).nbytes for k in file.keys()) == weights.size(model)  # noqa: SIM118
        names = set(file.keys())
    if name == 'eegnet':
        assert names == set(model.to_torch(variables)) and 'bnorm_1.num_batches_tracked' in names
    if name == 'plain':
        assert {'params.a.b', 'batch_stats.n', 'params.list.0'} < names


def test_the_bytes_have_not_changed():
    variables = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), jax.eval_shape(partial(drawn, jax.random.key(0))))
    digest = hashlib.sha256(weights.to_bytes(PLAIN, variables)).hexdigest()
    assert digest[:12] == '326e37b7fe8e'


def test_arrays_are_written_rows_first():
    columns_first = {
        'params': {'w': np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))},
        'batch_stats': {},
    }
    rows_first = {'params': {'w': np.ascontiguousarray(columns_first['params']['w'])}, 'batch_stats': {}}
    assert weights.to_bytes(PLAIN, columns_first) == weights.to_bytes(PLAIN, rows_first)


def test_damage_is_found(tmp_path):
    model, path, rng = NETWORKS['eegnet'], tmp_path / 'seed3.safetensors', random.Random(7)
    blob = weights.to_bytes(model, model.init(jax.random.key(1)))
    digest = hashlib.sha256(blob).hexdigest()
    for _ in range(20):
        bad = bytearray(blob)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(RequestError, match=rf'{path}: damaged: expected sha256 {digest}, found '):
            weights.load(path, model, digest)
    for cut in (b'', blob[:-1], blob[:100], b'\xff' * 8 + blob):
        path.write_bytes(cut)
        with pytest.raises(RequestError, match=rf'{path}: damaged: not a complete safetensors file'):
            weights.load(path, model)
    path.unlink()
    with pytest.raises(RequestError, match=f'{path}: cannot read the weights: No such file'):
        weights.load(path, model)


def test_weights_of_another_network_are_refused_by_name(tmp_path):
    path = tmp_path / 'seed3.safetensors'
    path.write_bytes(weights.to_bytes(PLAIN, PLAIN.init(jax.random.key(1))))
    with pytest.raises(RequestError, match=r'do not fit the network:\n  missing: '):
        weights.load(path, NETWORKS['eegnet'])

    def other(key: jax.Array) -> dict:
        variables = drawn(key)
        return {'params': {**variables['params'], 'new': jnp.ones(1)}, 'batch_stats': {'n': jnp.float32(7)}}

    with pytest.raises(RequestError) as refused:
        weights.load(path, Model(other, PLAIN.apply))
    assert 'batch_stats.n: found int32 [], expected float32 []' in str(refused.value)
    assert 'params.new: found nothing, expected float32 [1]' in str(refused.value)
    assert 'batch_stats.seen: found bool [2], expected nothing' in str(refused.value)


def test_a_result_without_weights_leaves_none_of_before(tmp_path: Path):
    from test_results import make_predictions, make_result

    for blob, there in ((b'first', True), (b'second', True), (None, False)):
        result_file.write(tmp_path, make_result(), make_predictions(), blob)
        path = tmp_path / 'seed33.safetensors'
        assert path.exists() == there and (not there or path.read_bytes() == blob)
