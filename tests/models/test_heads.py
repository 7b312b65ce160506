"""What of a network is its head: the tensors that depend on the number of outputs, which another task draws anew."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jbench.models import MODELS, factory, pretrained
from jbench.models.classic.multiscale_ssm import multiscale_ssm
from jbench.models.foundation import probes
from jbench.models.model import Model, network
from jbench.plan import request
from jbench.spec.errors import RequestError
from jbench.spec.model import ModelSpec, Signal
from jbench.train import lora, together

PLACES = ((0.0, 0.1, 0.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.1), None)
SIGNAL = Signal(n_chans=4, n_times=128, sfreq=128.0, positions=PLACES)
CLASSIC = [m for m in MODELS.values() if m.family == 'classic' and m.targets != ('angles',)]  # test_pose_networks.py
SAYING = ('bdtcn', 'simpleconv_time_agg', 'fmri_mlp', 'multiscale_ssm')  # networks that say themselves what theirs is


def built(spec: ModelSpec, n_out: int) -> tuple[Model, Signal]:
    signal = dataclasses.replace(SIGNAL, n_times=max(128, spec.least_times))
    return factory(spec)(signal, n_out), signal


@pytest.mark.parametrize('spec', CLASSIC, ids=lambda m: m.name)
def test_the_head_is_what_depends_on_the_number_of_outputs(spec: ModelSpec) -> None:
    """A network whose table says that it has none, has none."""
    three, five = (built(spec, n)[0] for n in (3, 5))
    others = {t.name: t.shape for t in five.named()}
    differing, head = {t for t in three.named() if others.get(t.name) != t.shape}, set(three.own_head())
    assert differing and (differing <= head) == spec.head == bool(head) and len(head) <= 12


@pytest.mark.parametrize('name', SAYING)
def test_a_probe_reads_what_does_not_depend_on_the_number_of_outputs(name: str) -> None:
    (three, signal), (five, _) = (built(MODELS[name], n) for n in (3, 5))
    assert probes.width(three, signal) == probes.width(five, signal)
    assert together.head_of(three) == {'.'.join(t.path[1:]) for t in three.own_head()}


def filled(model: Model, value: float) -> Any:
    like = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda a: np.full(a.shape, value, a.dtype), like)


def test_weights_of_a_network_without_a_reference_are_read_less_its_head() -> None:
    """By the path of each array; as an encoder behind which another head stands, too."""
    learnt, other = (multiscale_ssm(SIGNAL, n) for n in (512, 3))
    file = learnt.to_torch(filled(learnt, 7))
    assert 'params.linear.weight' in file and 'params.fast.token.weight' in file
    begun = pretrained.begin(other, file, filled(other, 1), 'file')
    heads = {'.'.join(('params', *path)) for path in (('linear', 'weight'), ('linear', 'bias'))}
    assert {n for n, a in other.to_torch(begun).items() if (a != 7).any()} == heads
    read = probes.features(probes.width(other, SIGNAL))
    probe = probes.attached(other, probes.linear(read, 3), frozen=True)
    joined = probes.joined(other, begun, filled(probes.linear(read, 3), 0))
    kept = probe.to_torch(joined)
    assert {n for n, a in kept.items() if (a != 7).any()} == {'head.0.weight', 'head.0.bias'}
    assert 'encoder.params.fast.token.weight' in kept and not any('encoder.params.linear' in n for n in kept)
    with pytest.raises(RequestError, match='no matrices of attention'):
        lora.targets(other)


class Mine(nn.Module):
    """A network of one's own, without a reference: its last layer is called as here."""

    last: str

    @nn.compact
    def __call__(self, batch: Any, *, train: bool, key: Any) -> jax.Array:
        return nn.Dense(2, name=self.last)(nn.Dense(3, name='first')(batch['x'].mean(-1)))


def test_a_network_of_ones_own_calls_its_last_layer_head_or_says_what_it_is() -> None:
    named, told, silent = (
        network(Mine('head'), SIGNAL),
        network(Mine('out'), SIGNAL, head=('params.out',)),
        network(Mine('out'), SIGNAL),
    )
    assert [t.name for t in named.own_head()] == ['params.head.bias', 'params.head.kernel']
    assert [t.name for t in told.own_head()] == ['params.out.bias', 'params.out.kernel']
    with pytest.raises(RequestError, match=r'it takes no pretrained weights .*; its `head` must name it \(now: head, '):
        pretrained.own_head(silent, 'file')
    with pytest.raises(RequestError, match="unknown feature of this network, which a head reads 'penultimate'"):
        probes.width(told, SIGNAL)
    listed = told._replace(tensors=(), init=lambda key: {'params': [jnp.zeros(2)], 'batch_stats': {}})
    with pytest.raises(RequestError, match='params holds a list'):
        listed.own_head()


@pytest.mark.parametrize(
    ('task', 'weights', 'changes'),
    [
        ('fmri/image', ':weights=none', ()),
        ('fmri/image', '', (('recipe.adaptation', 'probe'),)),
        ('fmri/image', '', (('recipe.together', 'yes'),)),
        ('fmri/image', '', (('recipe.layer_decay', '.5'),)),
        ('pretrain/movies', '', ()),
    ],
)
def test_what_has_no_head_is_refused_before_anything_is_prepared(task: str, weights: str, changes: Any) -> None:
    asked = request.Request(task, f'fmri_linear{weights}', changes, simulated='yes')
    with pytest.raises(RequestError, match=r'fmri_linear.* has nothing before its last layer') as error:
        request.plan(asked, None, Path('absent'))
    assert '\n' not in str(error.value)
