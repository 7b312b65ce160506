"""Equal layers one after another, whose values may be computed again for the gradient instead of kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

LIMIT = 8e9  # bytes that a gradient may keep of layers unasked, everywhere: another program rounds otherwise


def in_turn(
    parent: nn.Module, layer: Callable[..., Any], x: jax.Array, keys: Sequence[jax.Array | None], *, again: bool
) -> jax.Array:
    """x through the layers 'layer_0', 'layer_1', ... of `parent`, a key each.

    Args:
        parent: the module that this is called in.
        layer: called as layer(i, name=...), or layer(0, parent=None): a module of (x, key). Layers may differ in their
            first weights alone.
        x: what goes in; what comes out has its shape.
        keys: one for each layer; all of them None: no dropout.
        again: whether each layer keeps only its input, and computes the rest again (`jax.checkpoint`). The layers are
            then one loop over their weights, side by side: in a row of layers XLA for CPUs finds that a value is
            computed twice, and keeps it.
    """
    names = [f'layer_{i}' for i in range(len(keys))]
    if not again or parent.is_initializing():
        for i, (name, key) in enumerate(zip(names, keys, strict=True)):
            x = layer(i, name=name)(x, key)
        return x
    params = jax.tree.map(lambda *each: jnp.stack(each), *[parent.variables['params'][name] for name in names])
    alone = layer(0, parent=None)

    def step(x: jax.Array, given: tuple[Any, jax.Array | None]) -> tuple[jax.Array, None]:
        return alone.apply({'params': given[0]}, x, given[1]), None

    drawn = [key for key in keys if key is not None]
    return lax.scan(jax.checkpoint(step), x, (params, jnp.stack(drawn) if drawn else None))[0]
