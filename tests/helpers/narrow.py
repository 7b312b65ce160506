"""A narrow copy of every pretrained encoder, whose layers do what those of the whole one do."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shapes import fitting

from jbench.models import MODELS, factory
from jbench.models.foundation import bendr, eegdino, luna, reve, steegformer
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.model import Signal

SIZES = {'steegformer_small': steegformer.Size(32, 2, 2)}
NARROW: dict[str, dict[str, Any]] = {  # model -> what of its module is smaller
    'bendr': {'BENDR': partial(bendr.BENDR, sizes=bendr.Sizes(32, 96, 48, 1))},
    'biot': {'LAYERS': 1},
    'labram': {'LAYERS': 1},
    'cbramod': {'LAYERS': 1},
    'luna_base': {'BASE': luna.Size(2, 32, 1)},
    'reve_small': {'SMALL': reve.Size(64, 1, 1, 3)},
    'signal_jepa': {'LAYERS': 1},
    'steegformer_small': {'SIZES': SIZES},
    'eegpt': {'WIDTH': 32, 'LAYERS': 1, 'HEADS': 2},
    'eegdino_small': {'SIZES': {'small': eegdino.SIZES['small']._replace(layers=1, hidden=32)}},
    'codebrain': {'BLOCKS': 2},
}


def built(
    name: str, monkeypatch: pytest.MonkeyPatch, n_times: int = 400, n_out: int = 2, **options: Any
) -> tuple[Model, Signal]:
    """The copy, and the signal that it is built for; its module is narrow until the test ends."""
    module = importlib.import_module(MODELS[name].target.partition(':')[0])
    for attribute, value in NARROW.get(name, {}).items():
        monkeypatch.setattr(module, attribute, value)
    signal = fitting(MODELS[name], n_times)
    return factory(MODELS[name])(signal, n_out, **options), signal


def drawn(model: Model) -> Variables:
    """Numbers for all its variables; no program of initial values is compiled."""
    rng, like = np.random.default_rng(0), jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda a: jnp.asarray(rng.normal(0.5 * (a.ndim < 2), 0.1, a.shape), a.dtype), like)
