"""Runs for tests of the autopsy: networks that are written down, and every network of the table, on small windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import MODELS, factory
from jbench.models.model import Answer, Model
from jbench.report.autopsy.case import Case, Network, given, predictor
from jbench.spec.model import Signal

N, C, T, K = 48, 4, 60, 2
NAMES = ('Fz', 'C3', 'C4', 'Oz')


def written(apply: Callable[[Any, jax.Array], tuple[jax.Array, dict[str, jax.Array]]], params: Any) -> Model:
    """A network without state: `apply(params, x)` gives outputs and features."""

    def run(variables: Any, batch: Any, *, train: bool, key: Any) -> Answer:
        outputs, features = apply(variables['params'], batch['x'])
        return Answer(outputs, variables['batch_stats'], features)

    return Model(lambda key: {'params': params, 'batch_stats': {}}, run)


def case_of(model: Model, x: np.ndarray, y: np.ndarray, sfreq: float = 60.0, **changes: Any) -> Case:
    """A run of classes: the answers of a network to windows x [N, C, T]."""
    variables = model.init(jax.random.key(0))
    signal = Signal(n_chans=x.shape[1], n_times=x.shape[2], sfreq=sfreq, ch_names=NAMES[: x.shape[1]])
    network = Network(model, variables, x, np.arange(len(x)), np.zeros(x.shape[1], np.float32), None)
    answers = {'id': np.arange(len(x)), 'y': y, 'subject': np.array(['01', '02'] * (len(x) // 2))}
    answers['outputs'] = np.zeros((len(x), K), np.float32)
    case = Case(
        facts={'task': 'a task', 'model': 'a model'},
        kind='classes',
        metric='bal_acc',
        level='window',
        classes=('left', 'right'),
        answers=answers,
        chance=0.5,
        others=(),
        places=(),
        signal=signal,
        network=network,
    )
    case.answers['outputs'] = predictor(case, network)(x)
    return case._replace(**changes)


def planted(first: int = 24, last: int = 36, size: float = 1.2) -> Case:
    """The class is in channel C3, in some samples (0.4 to 0.6 s), at 10 Hz; a linear network looks there alone."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    wave = np.sin(2 * np.pi * 10 * np.arange(T) / 60.0) * ((np.arange(T) >= first) & (np.arange(T) < last))
    x = rng.normal(0, 1, (N, C, T)).astype(np.float32)
    x[:, 1] += np.float32(size) * (2 * y - 1)[:, None] * wave
    weights = np.zeros((C, T, K), np.float32)
    weights[1, :, 1] = wave

    def apply(params: Any, x: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        return jnp.einsum('bct,ctk->bk', x, params['weights']), {}

    return case_of(written(apply, {'weights': weights}), x, y)


def of_table(name: str, n_times: int = 128) -> tuple[Model, Any, np.ndarray, Signal]:
    """A network of the table with first weights: the network, its variables, windows, and their signal."""
    spec = MODELS[name]
    moves = spec.targets == ('angles',)
    c, t = (6, 2064) if 'keystrokes' in spec.targets else (16, spec.least_times) if moves else (5, n_times)
    places = tuple((0.01 * k, 0.05, 0.1) for k in range(c)) if 'positions' in spec.asks else ()
    signal = Signal(n_chans=c, n_times=t, sfreq=120.0, positions=places, ch_names=tuple('abcdefghijklmnop'[:c]))
    model = factory(spec)(signal, 20 if moves else 3)
    x = np.random.default_rng(0).normal(0, 1, (3, c, t)).astype(np.float32)
    return model, model.init(jax.random.key(0)), x, signal


def outputs(model: Model, variables: Any, x: np.ndarray, signal: Signal) -> np.ndarray:
    return np.asarray(model.apply(variables, given(signal, jnp.asarray(x)), train=False, key=None).outputs)
