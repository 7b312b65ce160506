"""The only place that knows devices: chunks of batches split over them with pmap, state kept without a device axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jbench.data.loader import Chunk, Loader, chunk_batches
from jbench.models.blocks import Model
from jbench.spec import Recipe, RequestError, Signal
from jbench.step import AXIS, State, predict_step, train_step


class Programs(NamedTuple):
    """The compiled programs of one model under one recipe; shapes do not depend on the number of windows."""

    train: Callable[..., Any]  # (state, chunk arrays, n) -> (state, metrics summed over batches)
    predict: Callable[..., Any]  # (variables, chunk arrays, n) -> outputs [devices, K, B, n_out]


def shard(chunk: Chunk) -> dict[str, np.ndarray]:
    """A chunk [K, B, ...] as arrays [devices, K, B / devices, ...]."""
    d = jax.local_device_count()

    def split(a: np.ndarray) -> np.ndarray:
        k, b, *rest = a.shape
        return a.reshape(k, d, b // d, *rest).swapaxes(0, 1)

    return {'x': split(chunk.x), 'y': split(chunk.y), 'mask': split(chunk.mask)}


def compile_programs(
    model: Model, tx: optax.GradientTransformation, recipe: Recipe, signal: Signal, n_out: int
) -> Programs:
    """Compile training and prediction from shapes alone, before any data are there.

    Raises: RequestError if the batch cannot be split over the devices.
    """
    d = jax.local_device_count()
    if recipe.batch_size % d:
        raise RequestError(f'recipe.batch_size: {recipe.batch_size} cannot be split over {d} devices')
    k = chunk_batches(signal, recipe.batch_size)
    rows = (d, k, recipe.batch_size // d)
    shape, count = jax.ShapeDtypeStruct, jax.ShapeDtypeStruct((), jnp.int32)
    y = shape(rows, jnp.int32) if recipe.loss == 'cross_entropy' else shape((*rows, n_out), jnp.float32)
    chunk = {'x': shape((*rows, signal.n_chans, signal.n_times), jnp.float32), 'y': y, 'mask': shape(rows, jnp.bool_)}
    state = jax.eval_shape(lambda: new_state(model, tx, 0, jnp.ones(n_out)))
    step = partial(train_step, model=model, tx=tx, loss=recipe.loss, smoothing=recipe.label_smoothing)
    train = jax.pmap(
        partial(_train_chunk, step=step), axis_name=AXIS, in_axes=(None, 0, None), out_axes=None, donate_argnums=0
    )
    predict = jax.pmap(partial(_predict_chunk, model=model, n_out=n_out), axis_name=AXIS, in_axes=(None, 0, None))
    variables = {name: state[name] for name in ('params', 'state')}
    return Programs(train.lower(state, chunk, count).compile(), predict.lower(variables, chunk, count).compile())


def _train_chunk(state: State, chunk: dict[str, jax.Array], n: jax.Array, *, step: Callable) -> tuple[State, Any]:
    """n training steps without Python between them."""

    def body(i: jax.Array, carry: tuple[State, Any]) -> tuple[State, Any]:
        new, metrics = step(carry[0], {k: v[i] for k, v in chunk.items()})
        return new, jax.tree.map(jnp.add, carry[1], metrics)

    return jax.lax.fori_loop(0, n, body, (state, {'loss': jnp.zeros(()), 'grad_norm': jnp.zeros(())}))


def _predict_chunk(variables: Any, chunk: dict[str, jax.Array], n: jax.Array, *, model: Model, n_out: int) -> jax.Array:
    """Outputs of n batches [K, B, n_out]; later ones stay zero."""

    def body(i: jax.Array, out: jax.Array) -> jax.Array:
        return out.at[i].set(predict_step(variables, {k: v[i] for k, v in chunk.items()}, model=model))

    return jax.lax.fori_loop(0, n, body, jnp.zeros((*chunk['mask'].shape, n_out)))


def new_state(model: Model, tx: optax.GradientTransformation, seed: int | jax.Array, loss_weights: jax.Array) -> State:
    """The state before the first step: one key for the initial weights, one for dropout."""
    init, dropout = jax.random.split(jax.random.key(seed, impl='threefry2x32'))
    variables = model.init(init)
    return {
        'params': variables['params'],
        'state': variables['state'],
        'opt': tx.init(variables['params']),
        'step': jnp.zeros((), jnp.int32),
        'key': jax.random.key_data(dropout),
        'loss_weights': loss_weights,
    }


def predict(programs: Programs, variables: Any, loader: Loader, check: Callable[[], None] = lambda: None) -> np.ndarray:
    """Outputs f32 [N, n_out] for every window of a loader, each exactly once, in canonical order."""
    parts = [np.zeros((0, loader.prepared.n_out), np.float32)]
    for chunk in loader.chunks():
        check()
        out = np.asarray(programs.predict(variables, shard(chunk), np.int32(chunk.n)))
        out = out.swapaxes(0, 1).reshape(-1, out.shape[-1])
        parts.append(out[chunk.mask.ravel()])
    return np.concatenate(parts)
