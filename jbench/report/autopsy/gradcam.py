"""GradCAM of the layers of a network over time.

Selvaraju et al. (2017). Grad-CAM: visual explanations from deep networks via gradient-based localization. ICCV.
arXiv:1610.02391. Of a feature A [units, times]: relu(sum over units of weight * A), the weight of a unit being the mean
over time of the gradient of the answer to it.

A network only tells its features; the gradient to one is taken by adding a zero to it inside of the computation, where
the rest of the network reads it. Tokens whose mean a network computes without them have their share of its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.foundation.probes import FEATURE
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.report.autopsy import program
from jbench.report.autopsy.case import given
from jbench.report.autopsy.program import Program, Step
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

    A feature that the outputs do not rest on has a gradient of zeros. One that is made inside of a loop, a branch or a
    function with a derivative of its own, and read there alone, is left out: nothing can be added to it.
    """

    def apply(variables: Variables, x: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        answer = model.apply(variables, given(signal, x), train=False, key=None)
        return answer.outputs, dict(answer.features)

    arguments = variables, jnp.asarray(x)
    whole, shapes = program.traced(apply, *arguments)
    names = sorted(shapes[1])  # in the order of the outputs of the program: those of a dict are sorted
    made, read = whole.made(), whole.read(0)
    places = {name: _source(made, read, place) for name, place in zip(names, whole.outputs[1:], strict=True)}

    @jax.jit
    def run(arguments: Any, weights: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        def answer(zeros: dict[str, jax.Array]) -> tuple[jax.Array, dict[str, jax.Array]]:
            added = dict[int, list[jax.Array]]()
            for name, zero in zeros.items():
                added.setdefault(places[name][0], []).append(zero)
            outputs, *features = whole.run(jax.tree.leaves(arguments), added)
            return (outputs * weights).sum(), dict(zip(names, features, strict=True))

        # nothing is changed by them, so that each gradient is what it would be alone
        return jax.grad(answer, has_aux=True)({n: _zeros(made[s], s) for n, (s, _) in places.items() if s in made})

    slopes, values = run(arguments, weights)
    found = {}
    for name, value in values.items():
        slope: Any = np.zeros(value.shape)
        if name in slopes:
            slope = slopes[name]
            for lay_out in places[name][1]:
                slope = lay_out(slope)
        found[name] = np.asarray(value, np.float64), np.asarray(slope, np.float64)
    if FEATURE in found:
        found = {name: (a, g if g.any() else _of_mean(a, *found[FEATURE])) for name, (a, g) in found.items()}
    hidden = {name for output, name in enumerate(names, 1) if _hidden(whole, output)}
    return {name: (a, g) for name, (a, g) in found.items() if g.any() or name not in hidden}


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


def _source(made: Mapping[int, Step], read: Set[int], place: int) -> tuple[int, list[Callable[[jax.Array], jax.Array]]]:
    """The place that the answer reads where that of a feature is a copy in another layout, and what lays it out."""
    chain: list[Callable[[jax.Array], jax.Array]] = []
    while place in made and place not in read and made[place].eqn.primitive.name in LAYOUT:
        eqn, reads, _ = made[place]
        chain.insert(0, partial(eqn.primitive.bind, **eqn.params))
        place = reads[0]
    return place, chain


def _hidden(whole: Program, output: int) -> bool:
    """Whether an output rests on something that comes out of a step beside another that the answer reads, which may be
    made of it inside."""
    read = whole.read(0)
    aside = whole.read(output) - read
    return any(s.whole and not (aside.isdisjoint(s.makes) or read.isdisjoint(s.makes)) for s in whole.steps)


def _zeros(step: Step, place: int) -> jax.Array:
    """Of what a step makes there."""
    aval = step.eqn.outvars[step.makes.index(place)].aval
    return jnp.zeros(aval.shape, aval.dtype)
