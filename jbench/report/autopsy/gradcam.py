"""GradCAM of the layers of a network over time.

Selvaraju et al. (2017). Grad-CAM: visual explanations from deep networks via gradient-based localization. ICCV.
arXiv:1610.02391. Of a feature A [units, times]: relu(sum over units of weight * A), the weight of a unit being the mean
over time of the gradient of the answer to it.

A network only tells its features; the gradient to one is taken by adding a zero to it inside of the computation, where
the rest of the network reads it. Tokens whose mean a network computes without them have their share of its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jbench.models.foundation.probes import FEATURE
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.report.autopsy.case import given
from jbench.spec.model import Signal

# what only lays values out in another way: a copy for the list of features, of which the network reads the original
LAYOUT = ('transpose', 'reshape', 'squeeze', 'slice', 'copy', 'convert_element_type')


def cam(feature: np.ndarray, gradient: np.ndarray, time: int) -> np.ndarray:
    """GradCAM f64 [N, times] of a feature [N, ...] and the gradient to it; `time` is its axis, not counting N."""
    a, g = (np.moveaxis(v, 1 + time, -1).reshape(len(v), -1, v.shape[1 + time]) for v in (feature, gradient))
    return np.asarray(np.maximum((g.mean(2, keepdims=True) * a).sum(1), 0))


def gradients(
    model: Model, variables: Variables, x: np.ndarray, *, weights: np.ndarray, signal: Signal
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Every feature [N, ...] of windows x [N, C, T], and the gradient of sum(outputs * weights) to it.

    A feature that the outputs do not rest on has a gradient of zeros.
    """

    def apply(x: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        answer = model.apply(variables, given(signal, x), train=False, key=None)
        return answer.outputs, dict(answer.features)

    closed, shapes = jax.make_jaxpr(apply, return_shape=True)(jnp.asarray(x))
    names = sorted(shapes[1])  # in the order of the outputs of the program: those of a dict are sorted
    found = {}
    for k, name in enumerate(names):
        found[name] = _gradient(closed, 1 + k, jnp.asarray(x), weights)
    if FEATURE in found:
        found = {name: (a, g if g.any() else _of_mean(a, *found[FEATURE])) for name, (a, g) in found.items()}
    return found


def _of_mean(tokens: np.ndarray, mean: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient to tokens [N, l, d] by the one to their mean [N, d], over all of them or all but the first; zeros
    where it is not their mean."""
    shares, rounding = np.zeros_like(tokens), 1e-4 * np.abs(mean).max()
    for first in (0, 1) if tokens.ndim == 3 else ():
        averaged = tokens[:, first:]
        if averaged.size and mean.shape == averaged[:, 0].shape and np.allclose(averaged.mean(1), mean, 0, rounding):
            shares[:, first:] = gradient[:, None] / averaged.shape[1]
            break
    return shares


def _gradient(closed: Any, number: int, x: jax.Array, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An output of a program, and the gradient of its first output, weighted, to it."""
    source, chain = _source(closed.jaxpr, closed.jaxpr.outvars[number])
    if source is None:
        value = jax.jit(lambda x: _run(closed, x, None, None)[number])(x)
        return np.asarray(value, np.float64), np.zeros(value.shape)

    @jax.jit
    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def weighted(more: jax.Array) -> tuple[jax.Array, jax.Array]:
            outputs = _run(closed, x, source, more)
            return (outputs[0] * weights).sum(), outputs[number]

        gradient, value = jax.grad(weighted, has_aux=True)(jnp.zeros(source.aval.shape, source.aval.dtype))
        for lay in chain:
            gradient = lay(gradient)
        return value, gradient

    value, gradient = both(x)
    return np.asarray(value, np.float64), np.asarray(gradient, np.float64)


def _source(jaxpr: Any, var: Any) -> tuple[Any, list[Callable[[jax.Array], jax.Array]]]:
    """The variable that the rest of a program reads where `var` is a copy in another layout, and what lays it out;
    None for a constant or an argument."""
    made = {out: eqn for eqn in jaxpr.eqns for out in eqn.outvars}
    chain: list[Callable[[jax.Array], jax.Array]] = []
    came_from = 0
    while var in made and len(_readers(jaxpr, var)) <= came_from and made[var].primitive.name in LAYOUT:
        eqn = made[var]
        chain.insert(0, partial(eqn.primitive.bind, **eqn.params))
        var, came_from = eqn.invars[0], 1
    return (var if var in made else None), chain


def _readers(jaxpr: Any, var: Any) -> list[Any]:
    return [eqn for eqn in jaxpr.eqns if any(v is var for v in eqn.invars)]


def _run(closed: Any, x: jax.Array, source: Any, more: jax.Array | None) -> list[jax.Array]:
    """The outputs of a program, `more` being added to one of its variables."""
    jaxpr = closed.jaxpr
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, x], strict=True))

    def read(var: Any) -> Any:
        return var.val if isinstance(var, core.Literal) else known[var]

    for eqn in jaxpr.eqns:
        bound = eqn.primitive.get_bind_params(eqn.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)  # older and newer jax
        values = eqn.primitive.bind(*functions, *map(read, eqn.invars), **params)
        values = values if eqn.primitive.multiple_results else [values]
        for var, value in zip(eqn.outvars, values, strict=True):
            known[var] = value + more if var is source else value
    return [read(var) for var in jaxpr.outvars]
