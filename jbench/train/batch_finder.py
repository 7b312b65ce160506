"""How many windows a training step can take at once: its memory as the compiler counts it, and its time as tried.

Batch sizes double from the least. Of each the step of the recipe is compiled (loss, gradient, AdamW); where it needs
less than SHARE of the memory that is free, it is run on training windows too. Free is what the accelerator has left of
its limit, or without one what Linux estimates that new processes may use. The windows of a set that lie in memory, and
what loading takes, come on top of the compiler's number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.prepare.workers import free_memory
from jbench.models.model import Model
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.recipe import Recipe
from jbench.train import adaptation, optim, parallel
from jbench.train.lr_finder import Found, require
from jbench.train.programs import asked_signal, build

SHARE = 0.8  # of the free memory
LARGEST = 8192  # windows
RUNS, PATIENCE = 3, 30.0  # timed steps of a size; s of a step beyond which no larger size is tried
RULE = (
    f'the largest of the sizes that were tried whose step needs at most {SHARE:.0%} of the free memory, and ran; no '
    'size beyond the training windows is tried. Which size learns best is another question'
)
Batch = dict[str, Any]


def find(cell: Cell, data: PreparedSet, seed: int, context: Context) -> Found:
    """The probe of the network of a cell.

    The curve has `batch_size, megabytes` (of one device; None where memory ran out before), `free_megabytes, fits,
    seconds` (of a step, the median; None where none ran), `windows_per_second`.

    Raises: RequestError for an estimator or a probe, or a network that its data do not fit; Interrupted.
    """
    require(cell, 'find_batch')
    rows = data.rows('train')
    if not len(rows):
        raise RequestError(f'{cell.title}: --stage=find_batch: the training part holds no window')
    recipe, curve, told = cell.task.recipe, list[dict[str, Any]](), list[str]()
    network = build(cell.model, asked_signal(cell.model, data.signal), data.n_out, recipe, recipe.frames)
    drawn = parallel.copy(parallel.draw_program(network)(np.uint32(seed)))
    free, size = free_bytes(), max(jax.device_count(), recipe.microbatch, 1)
    largest = min(LARGEST, max(len(rows), jax.device_count()))
    if size > largest:
        raise RequestError(
            f'{cell.title}: --stage=find_batch: recipe.microbatch={recipe.microbatch}, and the largest batch that it '
            f'tries is {largest}, of {len(rows)} training windows; set a smaller one'
        )
    while size <= largest:
        context.guard()
        context.progress.update(f'{cell.title} find_batch', len(curve), len(curve) + 1, f'{size} windows')
        curve.append(_try(cell, network, data, dataclasses.replace(recipe, batch_size=size), drawn, free))
        if not curve[-1]['fits'] or (curve[-1]['seconds'] or PATIENCE) >= PATIENCE:
            break
        size *= 2
    context.progress.update(f'{cell.title} find_batch', len(curve), len(curve))
    ran = [row for row in curve if row['seconds'] is not None]
    if curve and not curve[-1]['fits']:
        n_bytes = curve[-1]['megabytes']
        need = 'more memory than there is' if n_bytes is None else f'{n_bytes:.0f} MB, which is too much'
        told.append(f'{curve[-1]["batch_size"]} windows need {need}')
    if not ran:
        return Found(curve, None, RULE, [*told, 'no value: not even the smallest size fits, or ran'])
    fastest = max(ran, key=lambda row: row['windows_per_second'])
    told.append(f'most windows a second, {fastest["windows_per_second"]:.0f}, at {fastest["batch_size"]}')
    return Found(curve, ran[-1]['batch_size'], RULE, told)


def free_bytes() -> int:
    """Memory that one device has left: of an accelerator by its own count, else of this machine, shared by devices."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if 'bytes_limit' in stats:
        return int(stats['bytes_limit'] - stats.get('bytes_in_use', 0))
    return free_memory() // jax.local_device_count()


def needed(compiled: Any) -> int:
    """Bytes that a compiled program takes on a device: what it is given and gives, and what it needs meanwhile."""
    m = compiled.memory_analysis()
    given = m.argument_size_in_bytes + m.output_size_in_bytes - m.alias_size_in_bytes
    return int(given + m.temp_size_in_bytes)


def _try(cell: Cell, network: Model, data: PreparedSet, recipe: Recipe, drawn: Any, free: int) -> dict[str, Any]:
    """A row of the curve: the step of one batch size, compiled, and run where it fits."""
    learnt = adaptation.resolved(adaptation.stages(recipe, network)[-1], network)
    tx = optim.make(learnt, 1)
    n_bytes, fits, seconds = None, False, None
    with _enough_memory():  # where it runs out before a number is known, the size does not fit
        batch = _batch(cell, network, data, recipe.batch_size)
        state = parallel.new_state(parallel.copy(drawn), tx, np.ones(data.n_out, np.float32))
        step = parallel.one_step(network, tx, learnt).lower(state, batch).compile()
        n_bytes = needed(step)
        fits = n_bytes <= SHARE * free
        seconds = _timed(step, state, batch) if fits else None
    return {
        'batch_size': recipe.batch_size,
        'megabytes': None if n_bytes is None else n_bytes / 1e6,
        'free_megabytes': free / 1e6,
        'fits': fits,
        'seconds': seconds,
        'windows_per_second': None if seconds is None else recipe.batch_size / seconds,
    }


def _timed(step: Callable[..., Any], state: Any, batch: Batch) -> float | None:
    """Seconds of a step, the median of some after a first one; None where memory ran out."""
    seconds = []
    with _enough_memory():
        for _ in range(RUNS + 1):
            began = time.monotonic()
            state, sums = step(state, batch)
            float(sums['loss'])
            seconds.append(time.monotonic() - began)
            if seconds[-1] >= PATIENCE:
                break
        return float(np.median(seconds[1:] or seconds))
    return None


@contextlib.contextmanager
def _enough_memory() -> Iterator[None]:
    """What is inside ends where memory runs out."""
    try:
        yield
    except MemoryError:
        return
    except Exception as error:  # of XLA, whose class is no part of its interface
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise


def _batch(cell: Cell, network: Model, data: PreparedSet, size: int) -> Batch:
    """The first training windows, again and again until they are `size`, as devices get them."""
    rows = np.resize(data.rows('train')[:size], size)
    x = prepared_set.read(data, rows, data.clamp)
    batch = {'x': x, 'y': data.learnt(data.y[rows]), 'mask': np.ones(size, bool)}
    if 'channel_mask' in cell.model.asks:
        batch['channel_mask'] = np.ones(x.shape[:2], bool)
    if jax.eval_shape(network.precompute, x):
        batch |= {name: np.asarray(a) for name, a in jax.jit(network.precompute)(x).items()}
    d = jax.device_count()
    return {name: a.reshape(d, size // d, *a.shape[1:]) for name, a in batch.items()}
