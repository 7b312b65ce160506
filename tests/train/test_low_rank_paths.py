"""Low rank adapts nothing in vain: of a narrow copy of every encoder each pair changes the answer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import narrow
import numpy as np
import pytest

from jbench.models import MODELS
from jbench.spec.errors import RequestError
from jbench.spec.recipe import Recipe
from jbench.train import adaptation

RECIPE = Recipe(adaptation='lora', lora_rank=1)


def adapted(name: str, monkeypatch, n_times: int = 400, recipe: Recipe = RECIPE, **options: Any):
    model, signal = narrow.built(name, monkeypatch, n_times, **options)
    return adaptation.adapted(model, signal, 2, recipe, None), signal


def strengths(model, signal) -> dict[str, np.ndarray]:
    """How much the answers change with each matrix of the pairs, of a packed one of each of its own."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(2, signal.n_chans, signal.n_times)), jnp.float32)
    variables = narrow.drawn(model)

    def answer(pairs):
        given = {**variables, 'params': {**variables['params'], 'lora': pairs}}
        outputs = model.apply(given, {'x': x, 'mask': jnp.ones(2, bool)}, train=False, key=None).outputs
        return (outputs * jnp.asarray([[1.0, -2.0], [0.5, 3.0]])).sum()

    slopes = jax.jit(jax.grad(answer))(variables['params']['lora'])
    return {name: np.abs(np.asarray(pair['b'])).max((-2, -1)) for name, pair in slopes.items()}


@pytest.mark.slow
@pytest.mark.parametrize('name', narrow.NARROW)
def test_every_pair_changes_the_answer(name: str, monkeypatch) -> None:
    found = strengths(*adapted(name, monkeypatch))
    assert found and all((v > 0).all() for v in found.values()), {k: v for k, v in found.items() if not (v > 0).all()}


def test_every_family_is_tried() -> None:
    plain = ('jbench_tiny', 'signal_jepa_pre_local', 'signal_jepa_post_local')  # without a transformer
    sizes = {n.partition('_')[0] for n in narrow.NARROW}
    assert {
        m.name.partition('_')[0] for m in MODELS.values() if m.family == 'foundation' and m.name not in plain
    } == sizes


@pytest.mark.slow
def test_a_token_that_attends_to_itself_has_no_query_and_key(monkeypatch) -> None:
    """CodeBrain's default window, and CBraMod over one second, keep values and projections alone."""
    model, _ = adapted('codebrain', monkeypatch)
    shapes = {t.name: t.shape for t in model.tensors if t.name.startswith('lora.') and 'in_proj' in t.name}
    assert len(shapes) == 4 and all(shape[0] == 1 for shape in shapes.values())
    wide, _ = adapted('codebrain', monkeypatch, window=3)
    assert all(t.shape[0] == 3 for t in wide.tensors if t.name in shapes)
    found = strengths(*adapted('cbramod', monkeypatch, 200))
    packed = {name: v.shape for name, v in found.items() if 'in_proj' in name}
    assert sorted(packed.values()) == [(1,), (3,)] and all((v > 0).all() for v in found.values())


@pytest.mark.slow
def test_no_layer_behind_the_one_that_is_read_is_adapted(monkeypatch) -> None:
    monkeypatch.setitem(narrow.NARROW, 'labram', {'LAYERS': 3})
    recipe = Recipe(adaptation='lora', lora_rank=1, layer='layer_1', aggregation='mean')
    model, signal = adapted('labram', monkeypatch, recipe=recipe)
    found = strengths(model, signal)
    assert {name.partition('.attn')[0] for name in found} == {'blocks.0', 'blocks.1'}
    assert all((v > 0).all() for v in found.values())
    last = Recipe(adaptation='lora', lora_targets=('blocks.2.*',), layer='layer_1', aggregation='mean')
    with pytest.raises(RequestError, match=r'recipe\.layer=layer_1: every matrix'):
        adapted('labram', monkeypatch, recipe=last)
