"""Layers of pretrained encoders have an axis of time, where their networks say, and GradCAM along it."""

from __future__ import annotations

import math
from typing import Any

import jax
import narrow
import numpy as np
import pytest
from families import often
from shapes import fitting

from jbench.models import MODELS, factory
from jbench.models.model import Model, features
from jbench.report.autopsy import activations, gradcam
from jbench.report.autopsy.case import given
from jbench.spec.model import Signal
from jbench.train.precision import in_bfloat16

LOCAL = ('signal_jepa_post_local', 'signal_jepa_pre_local')  # of few numbers: there is no narrow copy
AVERAGED = ('bendr', 'biot', 'cbramod', 'reve_small', 'steegformer_small')  # heads read means made without the tokens
CHOSEN = ('biot', 'labram', 'eegpt', *LOCAL)
ASIDE = {  # the answer does not rest on these
    'eegdino_small': {'window'},
    'codebrain': {'block_1'},  # the last, of which only what goes aside is read
}


def built(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Signal]:
    if name in narrow.NARROW:
        return narrow.built(name, monkeypatch, 1000)
    signal = fitting(MODELS[name], 1000)
    return factory(MODELS[name])(signal, 2), signal


def changes(model: Model, variables: Any, x: np.ndarray, signal: Signal, where: slice) -> dict[str, np.ndarray]:
    """By how much each feature of tokens changes, moment by moment, where some samples of windows do."""
    other = x.copy()
    other[..., where] += np.random.default_rng(1).normal(0, x.std(), other[..., where].shape)
    compute, axes = features(model), activations.time_axes(model, variables, x, signal)
    plain, changed = (compute(variables, **given(signal, one)) for one in (x, other))
    found = {}
    for name in plain:
        a, b = (activations.laid_out(model, np.asarray(f[name], np.float64)) for f in (plain, changed))
        if a.ndim > 2:
            found[name] = np.abs(b - a).mean(tuple(k for k in range(a.ndim) if k != 1 + axes[name]))
    return found


@pytest.mark.parametrize('name', often([*narrow.NARROW, *LOCAL], CHOSEN))
def test_time_lies_where_the_encoder_says(name, monkeypatch):
    """What changes early moves the early moments of a layer most, what changes late the late ones; an answer has a
    gradient to every layer that it rests on."""
    model, signal = built(name, monkeypatch)
    variables = model.init(jax.random.key(0))
    x = np.random.default_rng(0).normal(0, 1, (3, signal.n_chans, signal.n_times)).astype(np.float32)
    fifth = signal.n_times // 5
    early = changes(model, variables, x, signal, slice(0, fifth))
    late = changes(model, variables, x, signal, slice(4 * fifth, None))
    assert 'tokens' in early
    for layer, moments in early.items():
        moved = late[layer] / late[layer].sum() - moments / moments.sum()
        quarter = math.ceil(len(moved) / 4)
        assert len(moved) >= 4 and moved[:quarter].mean() < 0 < moved[-quarter:].mean(), (layer, moved)
        assert moved.argmin() < quarter and moved.argmax() >= len(moved) - quarter, (layer, moved)
    assert any(moments.max() > 1.4 * np.median(moments) for moments in late.values())  # no accident of the draw
    weights = np.tile(np.float32([1, -1]), (3, 1))
    found = gradcam.gradients(model, variables, x, weights=weights, signal=signal)
    assert {layer for layer, (_, g) in found.items() if not g.any()} == ASIDE.get(name, set())
    if name in AVERAGED:
        np.testing.assert_allclose(found['tokens'][1].sum(1), found['penultimate'][1], rtol=1e-6)
    for layer in early:
        a, g = (activations.laid_out(model, v) for v in found[layer])
        cam = gradcam.cam(a, g, model.tokens.time)
        assert cam.shape == (3, len(early[layer]))


@pytest.mark.slow
def test_tokens_averaged_in_bfloat16_have_their_share_too(monkeypatch):
    model, signal = built('reve_small', monkeypatch)
    model = in_bfloat16(model)
    variables = model.init(jax.random.key(0))
    x = np.random.default_rng(0).normal(0, 1, (3, signal.n_chans, signal.n_times)).astype(np.float32)
    found = gradcam.gradients(model, variables, x, weights=np.tile(np.float32([1, -1]), (3, 1)), signal=signal)
    assert [layer for layer, (_, g) in found.items() if not g.any()] == []
    np.testing.assert_allclose(found['tokens'][1].sum(1), found['penultimate'][1], rtol=1e-6)


def test_every_encoder_is_asked():
    first = {m.name.partition('_')[0] for m in MODELS.values() if m.family == 'foundation'} - {'jbench'}
    assert first == {name.partition('_')[0] for name in narrow.NARROW}
