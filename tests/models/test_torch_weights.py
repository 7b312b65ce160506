"""Weights of a state_dict: exactly those of the network, or with exceptions that are declared."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from safetensors.numpy import save_file

from jbench.models.layers.blocks import Linear
from jbench.models.model import Model, load, network
from jbench.models.torch_weights import Exceptions, Tensor, described, export, linear_tensors, restore
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal


class Net(nn.Module):
    """Two layers."""

    n_out: int

    @nn.compact
    def __call__(self, batch, *, train, key):
        return Linear(4, self.n_out, name='head')(Linear(3, 4, name='body')(batch['x'].mean(-1)))


def net(n_out: int = 2) -> Model:
    tensors = [*linear_tensors('enc.body', ('body',), 3, 4), *linear_tensors('head', ('head',), 4, n_out)]
    return network(Net(n_out), Signal(n_chans=3, n_times=8, sfreq=100.0), tensors)


@pytest.fixture
def found() -> dict[str, np.ndarray]:
    """A state_dict of the network."""
    return net().to_torch(net().init(jax.random.key(1)))


@pytest.fixture
def start() -> dict:
    return jax.device_get(net().init(jax.random.key(2)))


def refusal(found: dict[str, np.ndarray], exceptions: Exceptions, **start: dict) -> list[str]:
    """The lines of the refusal behind the first."""
    with pytest.raises(RequestError) as refused:
        net().from_torch(found, exceptions, **start)
    return [line.strip() for line in str(refused.value).splitlines()[1:]]


def test_without_exceptions_every_difference_is_named(found):
    back = net().from_torch(found)
    np.testing.assert_array_equal(back['params']['body']['weight'], found['enc.body.weight'])
    found['more'] = found.pop('enc.body.bias')
    assert refusal(found, Exceptions()) == ['missing: enc.body.bias [4]', 'unexpected: more [4]']


def test_a_constant_is_written_and_must_be_there():
    """Other tensors that the network does not keep are written as 0, and read whatever they are."""
    tensors = [Tensor('flag', (), (), constant=1), Tensor('count', (), ())]
    written = export(tensors, {})
    assert {name: (value.item(), value.dtype) for name, value in written.items()} == {
        'flag': (1, np.int64),
        'count': (0, np.int64),
    }
    assert restore(tensors, {'flag': np.array(True), 'count': np.array(7)}, {}) == {}
    with pytest.raises(RequestError, match='another value: flag is False, expected 1'):
        restore(tensors, {'flag': np.array(False), 'count': np.array(0)}, {})


def test_renamed_tensors_keep_what_a_star_stands_for(found):
    other = {name.replace('enc.', 'module.encoder.').replace('head.', 'fc.'): a for name, a in found.items()}
    names = Exceptions(renamed=(('module.encoder.body.*', 'enc.body.*'), ('module.*', 'lost.*'), ('fc.*', 'head.*')))
    assert refusal(other, names) == ['renamed: module.* fits no tensor of the file']  # the first that fits decides
    names = names._replace(renamed=(names.renamed[0], names.renamed[2]))
    jax.tree.map(np.testing.assert_array_equal, net().from_torch(other, names), net().from_torch(found))
    assert 'unexpected: fc.bias [2]' in refusal(other, names._replace(renamed=names.renamed[:1]))
    wrong = refusal(other, Exceptions(renamed=(('*.body.*', 'enc.*'), ('fc.weight', 'fc.bias'))))
    assert 'renamed: *.body.* and enc.* have different numbers of *' in wrong
    assert 'renamed: two tensors would be fc.bias' in wrong
    both = Exceptions(renamed=(('*.encoder.*.*', 'enc.*.*'),))
    assert 'renamed: *.encoder.*.* and enc.*.* have different numbers of *' in refusal(other, both)


def test_absent_tensors_keep_their_start(found, start):
    bias = found.pop('enc.body.bias')
    back = net().from_torch(found, Exceptions(absent=('*.bias',)), start)
    np.testing.assert_array_equal(back['params']['body']['bias'], start['params']['body']['bias'])
    np.testing.assert_array_equal(back['params']['head']['bias'], found['head.bias'])  # which is there
    assert refusal(found, Exceptions(absent=('body.*',)), start=start) == [
        'absent: body.* fits no tensor of the network that the file lacks',
        'missing: enc.body.bias [4]',
    ]
    with pytest.raises(RequestError, match=re.escape('no weights are read for enc.body.bias: give `start`')):
        net().from_torch(found, Exceptions(absent=('*.bias',)))
    full = found | {'enc.body.bias': bias}
    assert 'absent: *.bias fits no tensor' in refusal(full, Exceptions(absent=('*.bias',)), start=start)[0]


def test_ignored_tensors_are_those_that_the_network_lacks(found):
    more = found | {'mask': np.ones(3, np.float32), 'decoder.weight': np.full(2, np.nan)}
    back = net().from_torch(more, Exceptions(ignored=('mask', 'decoder.*')))
    jax.tree.map(np.testing.assert_array_equal, back, net().from_torch(found))
    assert refusal(more, Exceptions(ignored=('decoder.*', 'a head that it may lack.*'))) == ['unexpected: mask [3]']


def test_what_was_read_is_told_in_a_line(found):
    more = found | {'mask': np.ones(3, np.float32), 'old.weight': np.ones(2), 'old.bias': np.ones(2)}
    exceptions = Exceptions(ignored=('mask', 'old.*', 'absent.*'), head=('head.*',))
    told = '2 tensors read; new, as drawn: 2 (head.*); of the file not read: 5 (head.*, mask, old.*)'
    assert described(net().tensors, more, exceptions) == told
    assert described(net().tensors, found).endswith('4 tensors read; new, as drawn: none; of the file not read: none')


def test_a_new_head_keeps_its_start_whatever_the_file_has(found, start):
    new = Exceptions(head=('head.*',))
    for n_out in (2, 5):  # as wide as the old one by chance, and not
        wanted = jax.device_get(net(n_out).init(jax.random.key(2)))
        for there in (found, {k: v for k, v in found.items() if not k.startswith('head.')}):
            back = net(n_out).from_torch(there, new, wanted)
            jax.tree.map(np.testing.assert_array_equal, back['params']['head'], wanted['params']['head'])
            np.testing.assert_array_equal(back['params']['body']['weight'], found['enc.body.weight'])
    assert refusal(found, Exceptions(head=('haed.*',)), start=start) == ['head: haed.* fits no tensor of the network']
    short = found | {'enc.body.weight': np.ones((4, 2), np.float32)}
    assert refusal(short, new, start=start) == ['wrong shape: enc.body.weight is [4, 2], expected [4, 3]']


def test_a_file_is_read_with_exceptions(found, start, tmp_path: Path):
    path = tmp_path / 'w.safetensors'
    save_file({f'model.{k}': v for k, v in found.items() if not k.startswith('head')}, path)
    exceptions = Exceptions(renamed=(('model.*', '*'),), head=('head.*',))
    back = load(net(), path, exceptions=exceptions, start=start)
    outputs = net().apply(back, {'x': jnp.ones((1, 3, 8)), 'mask': jnp.ones(1, bool)}, train=False, key=None).outputs
    assert np.isfinite(outputs).all()
    with pytest.raises(RequestError, match=r'w\.safetensors: these weights do not fit the network'):
        load(net(), path)
