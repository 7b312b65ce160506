"""What of an encoder is new on every dataset: its head, and what stands before the feature that another head reads."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import narrow
import numpy as np
import pytest

from jbench.models.foundation import probes
from jbench.models.model import features
from jbench.spec.errors import RequestError
from jbench.spec.recipe import Recipe
from jbench.train import adaptation, lora, together

FILTERS = {'filters', 'filters_bias'}
BEFORE = {  # what no file of weights holds, before the head; by encoder and options
    ('signal_jepa', ()): FILTERS | {'table'},  # of its channels' places
    ('signal_jepa_post_local', ()): FILTERS,
    ('signal_jepa_pre_local', ()): FILTERS,
    ('eegpt', (('head', 'probe'), ('adapter', 'none'))): {'probe1_weight', 'probe1_bias'},
    ('eegpt', ()): {'adapter.weight', 'adapter.bias'},
    ('biot', (('adapter', 'random'),)): {'adapter.weight', 'adapter.bias'},
}
ALL = [(name, ()) for name in narrow.NARROW if (name, ()) not in BEFORE] + list(BEFORE)
NAMES = [name + ''.join(f'-{v}' for _, v in options) for name, options in ALL]
encoders = pytest.mark.parametrize(('name', 'options'), ALL, ids=NAMES)


def paths(tensors: Any) -> set[str]:
    return {'.'.join(t.path[1:]) for t in tensors}


@encoders
def test_the_head_is_what_depends_on_the_number_of_outputs(name: str, options: Any, monkeypatch) -> None:
    three, five = (narrow.built(name, monkeypatch, n_out=n, **dict(options))[0] for n in (3, 5))
    others = {t.name: t.shape for t in five.named()}
    assert {t for t in three.named() if others[t.name] != t.shape} == set(three.own_head())


@pytest.mark.parametrize(('name', 'options'), BEFORE)
def test_what_no_weights_hold_learns_whatever_else_does(name: str, options: Any, monkeypatch) -> None:
    """Behind an encoder's own head or another one; several tasks do not share it."""
    model, signal = narrow.built(name, monkeypatch, **dict(options))
    assert paths(model.new()) == together.head_of(model) == paths(model.own_head()) | BEFORE[name, options]
    local = name.endswith('local')  # without layers
    for adapted in ('two_stage',) if local else ('two_stage', 'lora', 'last_k'):
        for head in ('', 'linear'):
            recipe = Recipe(adaptation=adapted, head=head)
            made = adaptation.adapted(model, signal, 2, recipe, None)
            found = adaptation.resolved(adaptation.stages(recipe, made)[0], made)
            still = {path for path, factor in found.trainable if factor == 0}
            prefix = ('base.' if adapted == 'lora' else '') + ('encoder.' if head else '')
            assert still and not still & {prefix + path for path in BEFORE[name, options]}
            assert not {path for path in still if path.startswith('lora.')}


def test_matrices_that_could_be_adapted_are_named_once_for_all_layers(monkeypatch) -> None:
    monkeypatch.setitem(narrow.NARROW, 'labram', {'LAYERS': 3})
    model, _ = narrow.built('labram', monkeypatch)
    names = ['attn.proj', 'attn.qkv', 'mlp.0', 'mlp.2']
    with pytest.raises(RequestError) as error:
        lora.targets(model, ('*nope*',))
    for name in names:
        assert str(error.value).count(f'blocks.*.{name}.weight') == 1
        assert len(lora.targets(model, (f'blocks.*.{name}.weight',))) == 3
    assert 'blocks.0' not in str(error.value)


def test_tasks_share_pairs_of_low_rank(monkeypatch) -> None:
    model, signal = narrow.built('labram', monkeypatch)
    made = adaptation.adapted(model, signal, 2, Recipe(adaptation='lora'), None)
    assert together.head_of(made) == {'base.head.weight', 'base.head.bias'}


@pytest.mark.slow
@encoders
def test_another_head_reads_what_the_encoder_answers(name: str, options: Any, monkeypatch) -> None:
    """An encoder with a head on its features answers as the head on the features that were kept."""
    model, signal = narrow.built(name, monkeypatch, **dict(options))
    variables = narrow.drawn(model)
    head = probes.linear(probes.features(probes.width(model, signal)), 2)
    weights = narrow.drawn(head)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(3, signal.n_chans, signal.n_times)), jnp.float32)
    mask = jnp.ones(3, bool)
    kept = features(model, probes.FEATURE)(variables, x)[probes.FEATURE].reshape(3, -1, 1)
    expected = head.apply(weights, {'x': kept, 'mask': mask}, train=False, key=None).outputs
    for frozen in (True, False):
        whole = probes.attached(model, head, frozen=frozen)
        joined = probes.joined(model, variables, weights)
        found = jax.jit(lambda v, whole=whole: whole.apply(v, {'x': x, 'mask': mask}, train=False, key=None).outputs)(
            joined
        )
        assert np.ptp(found, 0).min() > 1e-4 * np.abs(found).max()  # windows differ
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize('adapted', ['lora', 'attention', 'last_k'])
def test_what_the_head_does_not_rest_on_is_refused(adapted: str, monkeypatch) -> None:
    """BENDR's convolutions come before all of its layers."""
    model, signal = narrow.built('bendr', monkeypatch)
    recipe = Recipe(adaptation=adapted, layer='vectors', aggregation='mean')
    with pytest.raises(RequestError, match=r'recipe\.layer'):
        adaptation.resolved(recipe, adaptation.adapted(model, signal, 2, recipe, None))


def test_last_layers_are_those_before_the_one_that_is_read(monkeypatch) -> None:
    monkeypatch.setitem(narrow.NARROW, 'labram', {'LAYERS': 3})
    model, signal = narrow.built('labram', monkeypatch)
    recipe = Recipe(adaptation='last_k', last_k=1, layer='layer_1', aggregation='mean')
    made = adaptation.adapted(model, signal, 2, recipe, None)
    still = {p for p, factor in adaptation.resolved(recipe, made).trainable if factor == 0}
    learns = {p for p in paths(made.named()) if p not in still}
    assert {p.partition('.')[0] + '.' + p.split('.')[1] for p in learns} == {'encoder.layer_1', 'head.out'}
    decayed = Recipe(layer_decay=0.5, layer='layer_1', aggregation='mean')
    rates = dict(adaptation.resolved(decayed, made).trainable)
    assert rates['encoder.layer_1.wide.weight'] == 0.5 and rates['encoder.layer_0.wide.weight'] == 0.25
    with pytest.raises(RequestError, match=r'3 layers, and this encoder has 2 up to recipe\.layer=layer_1'):
        adaptation.resolved(Recipe(adaptation='last_k', last_k=3, layer='layer_1', aggregation='mean'), made)
