"""Signals of another length, as `torch.nn.functional.interpolate` makes them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def linear(x: jax.Array, n: int) -> jax.Array:
    """x [..., t] at n places, linearly interpolated (`mode='linear', align_corners=False`): [..., n].

    The middle of sample k lies at k + 0.5; beyond the middles of the first and the last the value stays.
    """
    t = x.shape[-1]
    if t == n:
        return x
    place = np.clip((np.arange(n) + 0.5) * t / n - 0.5, 0, t - 1)
    low = np.floor(place).astype(int)
    share = jnp.asarray(place - low, x.dtype)
    return x[..., low] * (1 - share) + x[..., np.minimum(low + 1, t - 1)] * share
