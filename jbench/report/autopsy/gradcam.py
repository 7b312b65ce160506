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

ROUNDING = 0.02  # of the largest mean: by how much bfloat16 may have it away from that of the tokens


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

    def apply(variables: Variables, x: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        answer = model.apply(variables, given(signal, x), train=False, key=None)
        return answer.outputs, dict(answer.features)

    arguments = variables, jnp.asarray(x)
    closed, shapes = jax.make_jaxpr(apply, return_shape=True)(*arguments)
    names = sorted(shapes[1])  # in the order of the outputs of the program: those of a dict are sorted
    places = dict(zip(names, (_source(closed.jaxpr, var) for var in closed.jaxpr.outvars[1:]), strict=True))

    @jax.jit
    def program(arguments: Any, weights: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        def answer(zeros: dict[str, jax.Array]) -> tuple[jax.Array, dict[str, jax.Array]]:
            added = [(places[name][0], zero) for name, zero in zeros.items()]
            outputs, *features = _run(closed, jax.tree.leaves(arguments), added)
            return (outputs * weights).sum(), dict(zip(names, features, strict=True))

        # nothing is changed by them, so that each gradient is what it would be alone
        zeros = {n: jnp.zeros(s.aval.shape, s.aval.dtype) for n, (s, _) in places.items() if s is not None}
        return jax.grad(answer, has_aux=True)(zeros)

    slopes, values = program(arguments, weights)
    found = {}
    for name, value in values.items():
        slope = np.zeros(value.shape)
        if name in slopes:
            slope = slopes[name]
            for lay_out in places[name][1]:
                slope = lay_out(slope)
        found[name] = np.asarray(value, np.float64), np.asarray(slope, np.float64)
    if FEATURE in found:
        found = {name: (a, g if g.any() else _of_mean(a, *found[FEATURE])) for name, (a, g) in found.items()}
    return found


def _of_mean(tokens: np.ndarray, mean: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient to tokens [N, l, d] by the one to their mean [N, d], over all of them or all but the first; zeros
    where it is neither, within what bfloat16 rounds."""
    shares = np.zeros_like(tokens)
    if tokens.ndim != 3 or mean.shape != tokens[:, 0].shape:
        return shares
    away = [np.abs(tokens[:, first:].mean(1) - mean).max() for first in range(min(2, tokens.shape[1]))]
    first = int(np.argmin(away))
    if away[first] <= ROUNDING * np.abs(mean).max():
        shares[:, first:] = gradient[:, None] / (tokens.shape[1] - first)
    return shares


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


def _run(closed: Any, arguments: list[jax.Array], added: list[tuple[Any, jax.Array]]) -> list[jax.Array]:
    """The outputs of a program, something being added to some of its variables."""
    jaxpr = closed.jaxpr
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *arguments], strict=True))

    def read(var: Any) -> Any:
        return var.val if isinstance(var, core.Literal) else known[var]

    for eqn in jaxpr.eqns:
        bound = eqn.primitive.get_bind_params(eqn.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)  # older and newer jax
        values = eqn.primitive.bind(*functions, *map(read, eqn.invars), **params)
        values = values if eqn.primitive.multiple_results else [values]
        for var, value in zip(eqn.outvars, values, strict=True):
            known[var] = sum((more for place, more in added if place is var), value)
    return [read(var) for var in jaxpr.outvars]
