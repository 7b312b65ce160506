"""What `accelerator_rows.py` measures with jax: steps of training as a run compiles them, of one seed or several, and
how far apart precisions are."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import encoders
import jax
import jax.numpy as jnp
import numpy as np
import products
from accelerator_rows import Row, timed, times_of

from jbench.data.load.loader import chunk_batches
from jbench.models import MODELS
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.tasks.emg import TYPING
from jbench.tasks.fmri import IMAGE
from jbench.train import losses, optim, parallel, step
from jbench.train.programs import asked_signal, build

NUMERIC_ROWS = 4  # windows whose outputs and gradients are compared
CALL = 0.5  # s of a call, if its chunk has so many batches


class Case(NamedTuple):
    """A network on windows of one shape, under the recipe of its tasks."""

    signal: Signal
    n_out: int
    recipe: Recipe
    length: int = 0  # of a sequence of keys


@cache
def case(name: str, toy: bool) -> Case:
    """What a network is measured on: 64 windows of 64 channels x 480 samples; of an encoder 64 of 19 channels x 4 s at
    its own rate; of keystrokes 16 of 32 electrodes x 5 s; of volumes 64 of 4 x 20,484 vertices. A toy has 4 small
    ones."""
    spec, batch = MODELS[name], 4 if toy else 64
    if spec.family == 'foundation':
        signal = encoders.Cell(name, batch, 19, 2 if toy else 4).signal
        return Case(asked_signal(spec, signal), encoders.N_OUT, Recipe(batch_size=batch))
    if 'keystrokes' in spec.targets:
        recipe = dataclasses.replace(TYPING.recipe, batch_size=min(batch, TYPING.recipe.batch_size))
        return Case(Signal(n_chans=32, n_times=2064 if toy else 10_000, sfreq=2000.0), 99, recipe, 4 if toy else 32)
    if spec.paradigms == ('fmri',):
        recipe = dataclasses.replace(IMAGE.recipe, batch_size=batch)
        return Case(Signal(n_chans=200 if toy else 20_484, n_times=4, sfreq=0.5), 1536, recipe)
    n_chans, n_times = (8, 240) if toy else (64, 480)
    places = tuple(map(tuple, np.random.default_rng(0).uniform(-0.1, 0.1, (n_chans, 3)).tolist()))
    names = tuple(f'E{i}' for i in range(n_chans))
    signal = Signal(n_chans=n_chans, n_times=n_times, sfreq=120.0, ch_names=names, positions=places)
    return Case(asked_signal(spec, signal), 4, Recipe(batch_size=batch))


def windows(found: Case, rows: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Random windows [*rows, C, T], and what they are to be told as."""
    rng = np.random.default_rng(0)
    tail, dtype = losses.TAUGHT[found.recipe.loss](found.n_out, found.length)
    shape = (*rows, *tail)
    y = rng.integers(found.n_out - 1, size=shape) if dtype == jnp.int32 else rng.standard_normal(shape)
    x = rng.standard_normal((*rows, found.signal.n_chans, found.signal.n_times), np.float32)
    return {'x': x, 'y': y.astype(dtype), 'mask': np.ones(rows, bool)}


def network_of(row: Row, found: Case) -> tuple[Model, Recipe]:
    """The network of a row, and its recipe. Raises: RequestError where it has no such precision."""
    recipe = dataclasses.replace(found.recipe, precision='bfloat16' if row.what == 'bfloat16' else 'float32')
    return build(MODELS[row.model], found.signal, found.n_out, recipe, found.length > 0), recipe


class Program(NamedTuple):
    """A compiled training of some steps, and what it needs."""

    run: Any  # (state, chunk, n) -> (state, sums)
    begin: Callable[[], tuple[Any, Any]]  # state and chunk on the device
    steps: int  # of a call, at most: the batches of a chunk
    operations: float  # of products, a step of all seeds
    compile_s: float


def program(row: Row, toy: bool) -> Program:
    """What a run compiles for its training, of `row.seeds` seeds at once: they see the same batches, as in a run."""
    found = case(row.model, toy)
    network, recipe = network_of(row, found)
    tx, device = optim.adamw(recipe, 1000), jax.local_devices()[:1]
    n = chunk_batches(found.signal, recipe.batch_size)
    one = partial(parallel._train_chunk, step=partial(step.train_step, model=network, tx=tx, recipe=recipe))
    one = one if row.seeds == 1 else jax.vmap(one, in_axes=(0, None, None))
    one = products.by_default(one) if row.what == 'default' else one
    trained = jax.pmap(
        one, axis_name=losses.AXIS, in_axes=(None, 0, None), out_axes=None, devices=device, donate_argnums=0
    )

    def states(seeds: jax.Array) -> Any:
        def drawn(seed: jax.Array) -> Any:
            return parallel.new_state(parallel.init_state(network, seed), tx, jnp.ones(found.n_out))

        return drawn(seeds[0]) if row.seeds == 1 else jax.vmap(drawn)(seeds)

    def chunk() -> dict[str, jax.Array]:
        made = windows(found, (n, recipe.batch_size))
        extra = jax.jit(network.precompute)(made['x'][0])
        made |= {k: jnp.broadcast_to(v, (n, *v.shape)) for k, v in extra.items()}
        return {k: jax.device_put(jnp.asarray(v)[None], device[0]) for k, v in made.items()}

    numbers = jnp.arange(row.seeds)
    shapes = jax.eval_shape(states, numbers), jax.eval_shape(chunk), jax.ShapeDtypeStruct((), jnp.int32)
    operations = products.operations(jax.make_jaxpr(trained)(*shapes))
    began = time.perf_counter()
    run = trained.lower(*shapes).compile()
    compile_s = time.perf_counter() - began
    return Program(run, lambda: (jax.jit(states)(numbers), chunk()), n, operations, compile_s)


def stepped(row: Row, made: Program, toy: bool) -> dict[str, Any]:
    """The row of a compiled training: times of a step of all seeds, what it computes and moves, what it needs."""
    memory, cost = made.run.memory_analysis(), made.run.cost_analysis() or {}
    needed = memory.argument_size_in_bytes + memory.temp_size_in_bytes
    has = (jax.local_devices()[0].memory_stats() or {}).get('bytes_limit', 0)
    if has and needed > has:
        return {'failed': f'needs {needed / 1e9:.0f} GB, {has / 1e9:.0f} can be had'}
    state, chunk = made.begin()
    loss = np.zeros(0)

    def call(n: int) -> None:
        nonlocal state, loss
        state, sums = made.run(state, chunk, np.int32(n))
        loss = np.asarray(sums['loss'])  # waits

    call(1)
    began = time.perf_counter()
    call(1)
    n = int(np.clip(CALL / (time.perf_counter() - began), 1, made.steps))
    times = timed(partial(call, n), toy) / n
    if not np.isfinite(loss).all():
        return {'failed': 'its loss is not finite'}
    found = case(row.model, toy)
    return times_of(times) | {
        'steps': n,
        'n_chans': found.signal.n_chans,
        'n_times': found.signal.n_times,
        'batch': found.recipe.batch_size,
        'operations': made.operations,
        'bytes': float(cost.get('bytes accessed', 0)),  # of what XLA has fused, as it says; 0: it does not
        'memory_gb': needed / 1e9,
        'compile_s': made.compile_s,
    }


def measured_step(row: Row, toy: bool) -> dict[str, Any]:
    """The row of a training: compiled, then timed. Nothing compiles beside it: on a GPU XLA tries kernels out while it
    compiles, and eight programs side by side had not compiled after 160 s on an H200 with 16 cores."""
    try:
        return stepped(row, program(row, toy), toy)
    finally:
        jax.clear_caches()  # which hold programs that nobody asks for again


def numerics(row: Row, toy: bool) -> dict[str, Any]:
    """Outputs and gradients of one batch, without dropout: of the device against the processor, both in full float32;
    of shortened products and of bfloat16 against full float32, on the device.

    Each is a pair: largest difference over largest value of the outputs, norm of the difference over norm of the
    gradient.
    """
    found = case(row.model, toy)
    batch = windows(found, (1, NUMERIC_ROWS))
    plain, _ = network_of(row, found)
    variables = jax.jit(partial(parallel.init_state, plain))(np.uint32(0))
    variables = jax.tree.map(np.asarray, {k: variables[k] for k in ('params', 'batch_stats')})
    device = jax.local_devices()[0]

    def computed(network: Model, device: Any, change: Callable[[Any], Any] = lambda f: f) -> tuple[Any, Any]:
        program = jax.jit(change(_answers(network, found)))
        outputs, grads = program(*jax.device_put((variables, batch), device))
        return np.asarray(outputs), np.concatenate([np.ravel(g) for g in jax.tree.leaves(grads)])

    full = computed(plain, device)
    apart = {'default': _apart(computed(plain, device, products.by_default), full)}
    try:
        apart['bfloat16'] = _apart(computed(network_of(row._replace(what='bfloat16'), found)[0], device), full)
    except RequestError as error:
        apart['without'] = str(error)
    if device.platform != 'cpu':
        apart['processor'] = _apart(full, computed(plain, jax.local_devices(backend='cpu')[0]))
    return apart


def _answers(network: Model, found: Case) -> Callable[[Any, Any], Any]:
    """(variables, batch of one device) -> outputs in evaluation, and the gradient of the loss in training."""

    def loss(params: Any, v: Any, b: Any) -> jax.Array:
        outputs = network.apply(v | {'params': params}, b, train=True, key=None).outputs
        values, _ = losses.LOSSES[found.recipe.loss](outputs, b, jnp.ones(found.n_out), 0.0)
        return values.mean()

    def both(v: Any, b: Any) -> Any:
        return network.apply(v, b, train=False, key=None).outputs, jax.grad(loss)(v['params'], v, b)

    return jax.vmap(both, in_axes=(None, 0), axis_name=losses.AXIS)


def _apart(a: tuple[Any, Any], b: tuple[Any, Any]) -> list[float]:
    outputs = np.abs(a[0] - b[0]).max() / np.abs(b[0]).max()
    return [float(outputs), float(np.linalg.norm(a[1] - b[1]) / np.linalg.norm(b[1]))]
