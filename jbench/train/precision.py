"""A network that computes in bfloat16 while its variables stay float32 (`Recipe.precision`).

Parameters and windows are rounded at its door, each time it is applied, and gradients come back through that rounding
as float32: the optimiser moves float32 numbers (masters), of which the network sees 8 bits. Outputs and features leave
it as float32, so that losses, their sums and scores are those of float32. Batch statistics, and what a network computes
of windows beforehand, stay float32; what a network mixes with such numbers goes on as float32.

bfloat16 has the range of float32, so that nothing needs to be scaled (Micikevicius et al. 2018; Kalamkar et al. 2019).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jbench.models.model import Answer, Batch, Model
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import DEFAULT, Recipe
from jbench.train.losses import AXIS

AT_ONCE = 2  # windows of the batch with which a network is tried


def computed(network: Model, recipe: Recipe) -> Model:
    """A network that computes as a recipe says."""
    return network if recipe.precision == DEFAULT.precision else in_bfloat16(network)


def in_bfloat16(network: Model) -> Model:
    """A network that computes in bfloat16; its variables, outputs and features are float32 as before."""

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        beforehand = network.precompute(batch['x']) if train else {}
        given = {**beforehand, **batch, 'x': _as(jnp.bfloat16, batch['x'])}
        stats = variables['batch_stats']
        rounded = {**variables, 'params': _as(jnp.bfloat16, variables['params'])}
        answer = network.apply(rounded, given, train=train, key=key)
        kept = jax.tree.map(lambda new, old: _of_type(old.dtype, new), answer.batch_stats, stats)
        return Answer(_as(jnp.float32, answer.outputs), kept, _as(jnp.float32, answer.features))

    return network._replace(apply=apply)


def check(network: Model, recipe: Recipe, signal: Signal) -> None:
    """Refuse a network that computes what bfloat16 has not, as Fourier transforms. Raises: RequestError."""
    if recipe.precision == DEFAULT.precision:
        return
    shape, rows = jax.ShapeDtypeStruct, (1, AT_ONCE)
    batch = {'x': shape((*rows, signal.n_chans, signal.n_times), jnp.float32), 'mask': shape(rows, jnp.bool_)}
    if signal.channel_mask:
        batch['channel_mask'] = shape((*rows, signal.n_chans), jnp.bool_)
    key = jax.random.key(0)

    def answered(variables: Variables, batch: Batch, train: bool) -> jax.Array:
        return network.apply(variables, batch, train=train, key=key if train else None).outputs

    try:
        for train in (True, False):
            program = jax.vmap(partial(answered, train=train), in_axes=(None, 0), axis_name=AXIS)
            jax.eval_shape(program, jax.eval_shape(network.init, key), batch)
    except (TypeError, ValueError) as error:
        raise RequestError(
            f'--set recipe.precision={recipe.precision}: this network computes what there is in float32 alone '
            f'({str(error).strip().splitlines()[0]}); leave it as {DEFAULT.precision}'
        ) from error


def _of_type(dtype: Any, a: jax.Array) -> jax.Array:
    """An array of a type; one that has it is handed on itself."""
    return a if a.dtype == dtype else a.astype(dtype)


def _as(dtype: Any, tree: Any) -> Any:
    """A tree whose float32 arrays are of another type, or become float32; what else there is stays."""

    def changed(a: jax.Array) -> jax.Array:
        return a.astype(dtype) if a.dtype in (jnp.float32, jnp.bfloat16) else a

    return jax.tree.map(changed, tree)
