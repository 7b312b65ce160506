"""The program that jax traces of a function, as steps one after the other, so that what it computes can be added to.

Programs within it that `jax.jit` and `jax.checkpoint` leave whole are laid open: a layer that lies inside of one is a
place like any other. Loops, branches and functions with a derivative of their own stay one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import jax
from jax.extend import core

OPENED = ('jit', 'pjit', 'checkpoint', 'remat', 'remat2')  # older and newer jax


class Step(NamedTuple):
    """One operation, from places to places."""

    eqn: Any
    reads: list[int]
    makes: list[int]

    @property
    def whole(self) -> bool:
        """Whether it holds programs, of which only what comes out is seen."""
        parts = [p for v in self.eqn.params.values() for p in (v if isinstance(v, tuple | list) else (v,))]
        return any(hasattr(part, 'eqns') or hasattr(part, 'jaxpr') for part in parts)


class Program(NamedTuple):
    """Steps in order."""

    steps: list[Step]
    inputs: list[int]
    constants: dict[int, Any]
    outputs: list[int]

    def made(self) -> dict[int, Step]:
        """Which step makes what lies at a place; none an input or a constant."""
        return {place: step for step in self.steps for place in step.makes}

    def read(self, output: int) -> set[int]:
        """The places that an output (by its number) rests on, or may."""
        read = {self.outputs[output]}
        for step in reversed(self.steps):
            if not read.isdisjoint(step.makes):
                read.update(step.reads)
        return read

    def run(self, arguments: Sequence[jax.Array], added: Mapping[int, Sequence[jax.Array]]) -> list[jax.Array]:
        """Its outputs for (flat) arguments, something being added at some of the places."""
        known = {**self.constants, **dict(zip(self.inputs, arguments, strict=True))}
        for eqn, reads, makes in self.steps:
            bound = eqn.primitive.get_bind_params(eqn.params)
            functions, params = bound if isinstance(bound, tuple) else ((), bound)  # older and newer jax
            values = eqn.primitive.bind(*functions, *map(known.__getitem__, reads), **params)
            for place, one in zip(makes, values if eqn.primitive.multiple_results else [values], strict=True):
                known[place] = sum(added.get(place, ()), one)
        return [known[place] for place in self.outputs]


def traced(function: Callable[..., Any], *arguments: Any) -> tuple[Program, Any]:
    """The program of a function for such arguments, and the shapes of what it gives back."""
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    inputs, constants = list(range(len(closed.jaxpr.invars))), dict[int, Any]()
    places = _Places(dict(zip(closed.jaxpr.invars, inputs, strict=True)), constants, count(len(inputs)))
    steps = list(_steps(closed, places))
    return Program(steps, inputs, constants, [places.of(var) for var in closed.jaxpr.outvars]), shapes


class _Places(NamedTuple):
    """Where the variables of a (part of a) program lie."""

    known: dict[Any, int]
    constants: dict[int, Any]
    new: Iterator[int]

    def of(self, var: Any) -> int:
        return self.constant(var.val) if isinstance(var, core.Literal) else self.known[var]

    def constant(self, value: Any) -> int:
        self.constants[place := next(self.new)] = value
        return place


def _steps(part: Any, places: _Places) -> Iterator[Step]:
    """The steps of a part of a program, whose inputs lie at `places`, to which its own are added."""
    jaxpr, values = getattr(part, 'jaxpr', part), getattr(part, 'consts', ())
    places.known.update(zip(jaxpr.constvars, map(places.constant, values), strict=True))
    for eqn in jaxpr.eqns:
        reads = [places.of(var) for var in eqn.invars]
        if eqn.primitive.name in OPENED:
            inner = eqn.params['jaxpr']
            jaxpr_of = getattr(inner, 'jaxpr', inner)
            inside = places._replace(known=dict(zip(jaxpr_of.invars, reads, strict=True)))  # its own each time
            yield from _steps(inner, inside)
            makes = [inside.of(var) for var in jaxpr_of.outvars]
        else:
            makes = [next(places.new) for _ in eqn.outvars]
            yield Step(eqn, reads, makes)
        places.known.update(zip(eqn.outvars, makes, strict=True))
