"""What tests of networks share: those with recorded numbers, their weights, windows and compiled steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import weights
from places import FIXTURES
from weights import Shape

from jbench.models import MODELS, factory
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.model import Signal

RECORDED = FIXTURES / 'networks'
WITHOUT_PEER = {'simpleconv_time_agg', 'emg2qwerty', 'fmri_linear', 'fmri_mlp', 'multiscale_ssm'}  # not in braindecode
WITHOUT_PEER |= {'vemg2pose', 'neuropose'}  # which answer angles: test_pose_networks.py
NETWORKS = [m.name for m in MODELS.values() if m.family == 'classic' and m.name not in WITHOUT_PEER]


def build(name: str, shape: Shape, **options: Any) -> Model:
    c, t, n = shape
    return factory(MODELS[name])(Signal(n_chans=c, n_times=t, sfreq=120.0), n, **options)


@cache
def recorded(name: str) -> Mapping[str, np.ndarray]:
    return np.load(RECORDED / f'{name}.npz')


def tag(shape: Shape) -> str:
    return ','.join(map(str, shape))


def layout(model: Model) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the state_dict that a network writes."""
    blank = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    return {name: value.shape for name, value in model.to_torch(blank).items()}


def lively(name: str, model: Model) -> Variables:
    """The recorded weights, in the float type that jax uses now."""
    found = model.from_torch(weights.lively(name, layout(model)))
    return jax.tree.map(lambda v: jnp.asarray(v, float), found)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options={'xla_backend_optimization_level': 0})


def windows(shape: Shape, rows: int, mask: np.ndarray | None = None) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The recorded windows as a batch, and their labels; with a mask, laid out on its true rows among zeros."""
    x, y = weights.windows(shape, rows)
    mask = np.ones(rows, bool) if mask is None else mask
    wide, labels = np.zeros((len(mask), *x.shape[1:])), np.zeros(len(mask), int)
    wide[mask], labels[mask] = x, y
    return {'x': wide.astype(jax.dtypes.canonicalize_dtype(float)), 'mask': mask}, labels  # NumPy: nothing to compile


def close(actual: Any, expected: Any, rtol: float, what: str = '', floor: float = 0.0) -> None:
    """Within rtol of the largest expected magnitude, or of `floor` where that is more."""
    scale = max(float(np.abs(expected).max(initial=0)), floor)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * scale, err_msg=what)


@cache
def compiled_step(name: str, shape: Shape) -> tuple[Model, Callable[..., dict[str, Any]]]:
    """A network without dropout, and its compiled plain gradient step: (variables, batch, y) -> what came out."""
    model, lr = build(name, shape), weights.LR[name]

    def step(variables: Variables, batch: dict[str, Any], y: np.ndarray) -> dict[str, Any]:
        def mean_loss(params: Any) -> Any:
            logits, state, _ = model.apply(variables | {'params': params}, batch, train=True, key=None)
            losses = -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y]
            return jnp.where(batch['mask'], losses, 0).sum() / batch['mask'].sum(), (logits, state)

        (loss, (logits, state)), grads = jax.value_and_grad(mean_loss, has_aux=True)(variables['params'])
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        params = jax.tree.map(lambda p, g: p - lr * g, variables['params'], grads)
        found = {'loss': loss, 'grad_norm': norm, 'logits': logits, 'grads': grads}
        return found | {'variables': {'params': params, 'batch_stats': state}}

    # at the level of the tests LLVM leaves convolutions of many channels slow
    options = {'xla_backend_optimization_level': 2} if name in ('deep4net', 'eegnex') else None
    return model, jax.jit(step, compiler_options=options)
