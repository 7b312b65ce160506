"""Equal layers one after another, whose values may be computed again for the gradient instead of kept; the mean after
the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

LIMIT = 5e9  # bytes that a gradient may keep of layers unasked, everywhere: another program rounds otherwise


def n_again(layer_bytes: float, n: int, *, train: bool, remat: bool | None) -> int:
    """How many of n layers, each of which would keep `layer_bytes` for the gradient, compute their values again.

    Never the last one, whose values the gradient takes first, before others would be computed again. Outside of
    training none. `remat` True: all others; False: none; None: so many that the rest keep no more than `LIMIT`, but not
    a single one, as XLA undoes a loop of one.
    """
    if not train or remat is False:
        return 0
    over = n if remat else n - int(LIMIT // layer_bytes)
    return min(over, n - 1) if over > 1 else 0


def in_turn(
    parent: nn.Module, layer: Callable[..., Any], x: jax.Array, keys: Sequence[jax.Array | None], *, again: int
) -> jax.Array:
    """x through the layers 'layer_0', 'layer_1', ... of `parent`, a key each.

    Args:
        parent: the module that this is called in.
        layer: called as layer(i, name=...), or layer(0, parent=None): a module of (x, key). Layers may differ in their
            first weights alone.
        x: what goes in; what comes out has its shape.
        keys: one for each layer; all of them None: no dropout.
        again: how many layers, the first ones, keep only their input, and compute the rest again (`jax.checkpoint`).
            They are one loop over their weights, side by side: in a row of layers XLA for CPUs finds that a value is
            computed twice, and keeps it.
    """
    again = 0 if parent.is_initializing() else again
    if again:
        x = _loop(parent, layer(0, parent=None), x, keys[:again])
    for i in range(again, len(keys)):
        x = layer(i, name=f'layer_{i}')(x, keys[i])
    return x


def with_mean(
    end: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array, h: jax.Array, first: int = 0
) -> tuple[jax.Array, jax.Array]:
    """end(x, h) [b, l, d], and its mean over tokens from the first of them on [b, d], which is the end of the means.

    `end` is affine, the same for all tokens of a window: a last layer's projection. So a mean alone needs no product
    for each token; what of the two is not read, XLA leaves out.
    """
    return end(x, h), end(x[:, first:].mean(1), h[:, first:].mean(1))


def _loop(parent: nn.Module, alone: Any, x: jax.Array, keys: Sequence[jax.Array | None]) -> jax.Array:
    """x through the first layers of `parent`, a key each; `alone` is such a layer that has no weights."""
    weights = [parent.variables['params'][f'layer_{i}'] for i in range(len(keys))]

    def step(x: jax.Array, given: tuple[Any, jax.Array | None]) -> tuple[jax.Array, None]:
        return alone.apply({'params': given[0]}, x, given[1]), None

    drawn = [key for key in keys if key is not None]
    side_by_side = jax.tree.map(lambda *each: jnp.stack(each), *weights), jnp.stack(drawn) if drawn else None
    return lax.scan(jax.checkpoint(step), x, side_by_side)[0]
