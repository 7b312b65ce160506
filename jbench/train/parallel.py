"""The only place that knows devices: chunks of batches split over them with pmap, state kept whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jbench.data.load.loader import Chunk, Loader, chunk_batches
from jbench.metrics import keystrokes
from jbench.models.model import Model, compiled_to_draw
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import kept_memory, losses
from jbench.train.losses import AXIS
from jbench.train.step import State, check_microbatch, predict_step, train_step


class Programs(NamedTuple):
    """The compiled programs of one model under one recipe; shapes do not depend on the number of windows."""

    draw: Callable[..., Any]  # (u32 seed) -> first weights and statistics, and the key of dropout
    precompute: Callable[..., Any]  # (x [B, C, T]) -> what training needs of each window alone
    train: Callable[..., Any]  # (state, chunk arrays, n) -> (state, metrics summed over batches)
    predict: Callable[..., Any]  # (variables, chunk arrays, n) -> outputs [K, B, (frames,) n_out]


def shard(chunk: Chunk) -> dict[str, np.ndarray]:
    """A chunk [K, B, ...] as arrays [devices, K, B / devices, ...], the devices of this process alone."""
    d, here = jax.local_device_count(), jax.process_index()

    def split(a: np.ndarray) -> np.ndarray:
        rows = a.reshape(len(a), jax.device_count(), -1, *a.shape[2:])
        return rows[:, here * d : (here + 1) * d].swapaxes(0, 1)

    return {k: split(a) for k, a in {'x': chunk.x, 'y': chunk.y, 'mask': chunk.mask, **chunk.extra}.items()}


def compile_programs(
    model: Model,
    tx: optax.GradientTransformation,
    recipe: Recipe,
    signal: Signal,
    n_out: int,
    length: int = 0,
    *,
    single: bool = False,
) -> Programs:
    """Compile all programs from shapes alone, before any data are there (several processes: at the first call).

    `length` is that of a sequence of keys. `single`: training is `one_step`, not a chunk of them.

    Raises: RequestError if the batch cannot be split over the devices, or in microbatches.
    """
    check_microbatch(recipe, jax.device_count())
    chunk, rows = chunk_shapes(recipe, signal, n_out, length)
    shape, window = jax.ShapeDtypeStruct, (signal.n_chans, signal.n_times)
    draw = draw_program(model).lower(shape((), jnp.uint32)).compile()
    precompute = jax.jit(model.precompute).lower(shape((recipe.batch_size, *window), jnp.float32)).compile()
    train = one_step(model, tx, recipe) if single else _steps(model, tx, recipe)
    if jax.process_count() > 1:  # what the other processes hold cannot be said by a shape
        return Programs(draw, precompute, train, compile_predict(model, recipe, signal, n_out, length))
    arrays = chunk | {k: shape((*rows, *a.shape[1:]), a.dtype) for k, a in precompute.out_info.items()}
    given: tuple[Any, ...] = (arrays, shape((), jnp.int32))
    if single:
        given = ({k: shape((a.shape[0], *a.shape[2:]), a.dtype) for k, a in arrays.items()},)
    state = jax.eval_shape(lambda: new_state(init_state(model, 0), tx, jnp.ones(n_out)))
    compiled = train.lower(state, *given).compile()
    return Programs(draw, precompute, compiled, compile_predict(model, recipe, signal, n_out, length))


def _steps(model: Model, tx: optax.GradientTransformation, recipe: Recipe) -> Any:
    """The training steps of a chunk, (state, chunk arrays, n) -> (state, metrics): to be compiled, as `one_step`."""
    step = partial(train_step, model=model, tx=tx, recipe=recipe)
    program = partial(_train_chunk, step=step)
    return jax.pmap(program, axis_name=AXIS, in_axes=(None, 0, None), out_axes=None, donate_argnums=0)


def one_step(model: Model, tx: optax.GradientTransformation, recipe: Recipe) -> Any:
    """The training step by itself, (state, batch [devices, B / devices, ...]) -> (state, metrics): compiled when it is
    first called or, as any program of jax, by `lower` and `compile`.

    Raises: RequestError if the batch cannot be split in microbatches.
    """
    check_microbatch(recipe, jax.device_count())
    step = partial(train_step, model=model, tx=tx, recipe=recipe)
    return jax.pmap(step, axis_name=AXIS, in_axes=(None, 0), out_axes=None, donate_argnums=0)


def compile_predict(
    model: Model, recipe: Recipe, signal: Signal, n_out: int, length: int = 0, *, feature: str = ''
) -> Callable[..., jax.Array]:
    """`Programs.predict` alone: all that a network needs which is trained. With the name of a feature the program gives
    that, flattened [K, B, d], in the place of outputs."""
    chunk, _ = chunk_shapes(recipe, signal, n_out, length)
    program = partial(_predict_chunk, model=model, feature=feature)
    predict = jax.pmap(program, axis_name=AXIS, in_axes=(None, 0, None), out_axes=None)
    if jax.process_count() > 1:
        return predict
    state = jax.eval_shape(lambda: init_state(model, 0))
    variables = {name: state[name] for name in ('params', 'batch_stats')}
    return predict.lower(variables, chunk, jax.ShapeDtypeStruct((), jnp.int32)).compile()


def chunk_shapes(
    recipe: Recipe, signal: Signal, n_out: int, length: int = 0
) -> tuple[dict[str, jax.ShapeDtypeStruct], tuple[int, int, int]]:
    """Shapes of a chunk as `shard` gives it, and its rows (devices, K, B / devices), which begin each of them.

    Raises: RequestError if the batch cannot be split over the devices.
    """
    d, shape = jax.device_count(), jax.ShapeDtypeStruct
    if recipe.batch_size % d:
        raise RequestError(f'recipe.batch_size: {recipe.batch_size} cannot be split over {d} devices')
    rows = (d, chunk_batches(signal, recipe.batch_size), recipe.batch_size // d)
    tail, dtype = losses.TAUGHT[recipe.loss](n_out, length)
    y = shape((*rows, *tail), dtype)
    x = shape((*rows, signal.n_chans, signal.n_times), jnp.float32)
    chunk = {'x': x, 'y': y, 'mask': shape(rows, jnp.bool_)}
    if signal.channel_mask:
        chunk['channel_mask'] = shape((*rows, signal.n_chans), jnp.bool_)
    return chunk, rows


def _train_chunk(state: State, chunk: dict[str, jax.Array], n: jax.Array, *, step: Callable) -> tuple[State, Any]:
    """n training steps without Python between them."""

    def body(i: jax.Array, carry: tuple[State, Any]) -> tuple[State, Any]:
        new, metrics = step(carry[0], {k: v[i] for k, v in chunk.items()})
        return new, jax.tree.map(jnp.add, carry[1], metrics)

    return jax.lax.fori_loop(0, n, body, (state, {'loss': jnp.zeros(()), 'grad_norm': jnp.zeros(())}))


def _predict_chunk(
    variables: Any, chunk: dict[str, jax.Array], n: jax.Array, *, model: Model, feature: str = ''
) -> jax.Array:
    """Outputs of n batches [K, B, (frames,) n_out], or a feature of them, the rows of all devices; later ones stay
    zero."""

    def look(i: jax.typing.ArrayLike) -> jax.Array:
        return predict_step(variables, {k: v[i] for k, v in chunk.items()}, model=model, feature=feature)

    def body(i: jax.Array, out: jax.Array) -> jax.Array:
        return out.at[i].set(look(i))

    one = jax.eval_shape(look, 0)
    own = jax.lax.fori_loop(0, n, body, jnp.zeros((len(chunk['mask']), *one.shape)))
    return jax.lax.all_gather(own, AXIS, axis=1, tiled=True)


def init_state(model: Model, seed: int | jax.Array) -> State:
    """What chance decides of the state before the first step: variables, and the key of dropout."""
    init, dropout = jax.random.split(jax.random.key(seed, impl='threefry2x32'))
    return {**model.init(init), 'key': jax.random.key_data(dropout)}


def draw_program(model: Model) -> Any:
    """`init_state` of a seed (u32) as a program, see `compiled_to_draw`."""
    return compiled_to_draw(partial(init_state, model))


def new_state(drawn: State, tx: optax.GradientTransformation, loss_weights: jax.typing.ArrayLike) -> State:
    """The state before the first step."""
    rest = {'opt': tx.init(drawn['params']), 'step': np.zeros((), np.int32), 'loss_weights': loss_weights}
    return {**drawn, **rest}


def copy(tree: Any) -> Any:
    """Arrays on the host that no later step overwrites (a step takes the memory of the state that it is given)."""
    return jax.tree.map(np.array, tree)


def on_host(tree: Any) -> Any:
    """The arrays as numpy sees them, without a copy where that can be. Let go of them before the next step: while they
    are held, it cannot take the memory of the state."""
    return jax.tree.map(np.asarray, tree)


def release(state: State) -> None:
    """Free the memory of a state that no step will take."""
    for leaf in jax.tree.leaves(state):
        if isinstance(leaf, jax.Array):
            leaf.delete()


def predict(programs: Programs, variables: Any, loader: Loader, check: Callable[[], None] = lambda: None) -> np.ndarray:
    """Outputs f32 [N, n_out] for every window of a loader, in the unit of its targets, each exactly once, in canonical
    order; of keystrokes the best path f32 [N, frames] (metrics/keystrokes.py)."""
    if not len(loader):
        return np.zeros((0, loader.prepared.n_out), np.float32)
    return loader.prepared.unscaled(outputs(programs.predict, variables, loader.chunks(), len(loader), check))


def outputs(
    program: Callable[..., Any],
    variables: Any,
    chunks: Iterable[Chunk],
    n: int,
    check: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Outputs f32 [n, n_out] of a network for the first n rows of chunks, as it learnt them (values may be scaled); of
    keystrokes the best path f32 [n, frames]."""
    parts = []
    for chunk in chunks:
        check()
        kept_memory.make_room(program)
        out = np.asarray(program(variables, shard(chunk), np.int32(chunk.n)))
        out = out.reshape(-1, *out.shape[2:])
        parts.append(keystrokes.path(out) if out.ndim == 3 else out)
    return np.concatenate(parts)[:n]  # what fills the last batch lies at the end
