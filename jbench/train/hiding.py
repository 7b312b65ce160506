"""Masked reconstruction: a network that sees windows with samples hidden, and says what they are.

Hidden are patches in time, of all channels, and whole channels (`Recipe.hide_times`, `hide_patch`, `hide_channels`):
they are zero for the network, which answers a whole window; only hidden samples are looked at. What is hidden of a
window depends on the step and the number of the window, in evaluation on that number alone: on no batch and no device.
Windows without numbers are seen whole: those of which features are read.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jbench.models.model import Answer, Batch, Model
from jbench.models.torch_weights import Variables
from jbench.spec.model import Signal
from jbench.spec.recipe import Recipe


def width(signal: Signal) -> int:
    """Outputs of the network within: a window."""
    return signal.n_chans * signal.n_times


def drawn(key: jax.Array, signal: Signal, recipe: Recipe) -> jax.Array:
    """What is hidden of a window: bool [C, T], at least one patch, of several not all, nor all of several channels."""
    times, channels = jax.random.split(key)
    size = max(1, min(round(recipe.hide_patch * signal.sfreq), signal.n_times))
    n_patches = -(-signal.n_times // size)
    patches = _some(times, n_patches, max(1, min(round(recipe.hide_times * n_patches), n_patches - 1)))
    n_whole = min(round(recipe.hide_channels * signal.n_chans), signal.n_chans - 1)
    whole = _some(channels, signal.n_chans, n_whole)
    return jnp.repeat(patches, size)[None, : signal.n_times] | whole[:, None]


def _some(key: jax.Array, n: int, k: int) -> jax.Array:
    """k of n, at random: bool [n]."""
    return jnp.zeros(n, bool).at[jax.random.permutation(key, n)[:k]].set(True)


def hiding(network: Model, signal: Signal, recipe: Recipe) -> Model:
    """A network of `width(signal)` outputs as one that answers six sums over hidden samples (metrics/contrast.py):
    their number, the sums of the signal x, of what was put in its place r, of x x, r r and x r. A batch without `y`,
    the numbers of its windows, is answered by the network itself."""

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        if 'y' not in batch:
            return network.apply(variables, batch, train=train, key=key)
        x = batch['x']
        base = jax.random.PRNGKey(0) if key is None else key
        hidden = jax.vmap(lambda n: drawn(jax.random.fold_in(base, n), signal, recipe))(batch['y'][:, 0])
        answer = network.apply(variables, {**batch, 'x': jnp.where(hidden, 0, x)}, train=train, key=key)
        r = answer.outputs.reshape(x.shape)
        of = (jnp.ones_like(x), x, r, x * x, r * r, x * r)
        return answer._replace(outputs=jnp.stack([jnp.where(hidden, a, 0).sum((1, 2)) for a in of], 1))

    return network._replace(apply=apply, precompute=lambda x: {})  # of whole windows, which it does not see
