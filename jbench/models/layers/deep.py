"""Equal layers one after another, whose values may be computed again for the gradient instead of kept; the mean after
the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

LIMIT = 5e9  # bytes that a gradient may keep of layers unasked


def n_again(layer_bytes: float, n: int, *, rest: float, train: bool, remat: bool | None) -> int:
    """How many of n layers, each of which would keep `layer_bytes` for the gradient, compute their values again.

    In training alone. `remat` True: all; False: none; None: so many that the others, and the `rest` bytes of what comes
    behind the n, stay within `LIMIT` as far as they can, but not a single one, as XLA undoes a loop of one. Count the
    last layer of a network to the rest: the gradient takes its values first, before others would be computed again.
    """
    if not train or remat is False:
        return 0
    if remat:
        return n
    over = min(n, n - int((LIMIT - rest) // layer_bytes))
    return over if over > 1 else 0


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
    branch: Callable[[jax.Array], jax.Array], x: jax.Array, h: jax.Array, mean_from: int
) -> tuple[jax.Array, jax.Array]:
    """x + branch(h) [b, l, d] for h [b, l, k], and its mean [b, d] over the tokens from number `mean_from` on.

    `branch` is affine, and the same for all tokens of a window: a last layer's projection. So its mean is that of the
    mean, for which no token needs a product; of a compiled program XLA leaves out which of the two nobody reads.
    """
    return x + branch(h), x[:, mean_from:].mean(1) + branch(h[:, mean_from:].mean(1))


def _loop(parent: nn.Module, alone: Any, x: jax.Array, keys: Sequence[jax.Array | None]) -> jax.Array:
    """x through the first layers of `parent`, a key each; `alone` is such a layer that has no weights."""
    weights = [parent.variables['params'][f'layer_{i}'] for i in range(len(keys))]

    def step(x: jax.Array, given: tuple[Any, jax.Array | None]) -> tuple[jax.Array, None]:
        return alone.apply({'params': given[0]}, x, given[1]), None

    drawn = [key for key in keys if key is not None]
    side_by_side = jax.tree.map(lambda *each: jnp.stack(each), *weights), jnp.stack(drawn) if drawn else None
    return lax.scan(jax.checkpoint(step), x, side_by_side)[0]
