"""What a network makes of windows on its way to an answer: one of its named features, in evaluation mode.

Each window is encoded once, in batches of `recipe.batch_size` as training has them, on the first device. What comes out
lies in memory as a whole; where it does not fit there, that is refused before anything is computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jbench.context import Context
from jbench.data.load import prepared_set, protocols
from jbench.data.load.class_names import class_names
from jbench.data.load.loader import Loader
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.load.splits import SPLITS
from jbench.data.prepare.workers import free_memory
from jbench.data.stimuli import embed
from jbench.models import model as models
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import PROBES
from jbench.train import channels, parallel, probe, seeds
from jbench.train.programs import asked_signal, build

LAYER = 'penultimate'  # what the last layer of a network reads; every network of the table has it
MAPS = ('classic',)  # families whose features are maps over time, [windows, maps, times] ...
TOKENS = ('tokens', 'transformer')  # ... but these
ROWS = 'asked'  # what the windows that are read are called as a part

Batches = Iterator[tuple[dict[str, Any], int]]  # arrays [B, ...] of a batch, and how many of its first rows count


class Features(NamedTuple):
    """Features of windows, and what tells the windows apart; row i of each array is of one window."""

    values: np.ndarray  # f32 [windows, tokens, d], [windows, d], or as the layer has it
    ids: np.ndarray  # int64 [windows], as in batches and in predictions
    subjects: np.ndarray  # text [windows]
    y: np.ndarray  # int [windows] classes or stimuli, f32 [windows, K] labels, [windows, 1] values, int keys
    split: np.ndarray  # text [windows]: 'train', 'valid', 'test'
    classes: tuple[str, ...]  # what y = 0..K-1 stands for; () for values
    ch_names: tuple[str, ...]  # channels of the windows, in their order
    model: str  # with its options and weights
    layer: str


class Encoder(NamedTuple):
    """A network with its numbers, and the feature that is asked for."""

    title: str  # what messages call it
    family: str
    network: Model
    variables: Variables
    signal: Signal  # that the network is built for
    batch_size: int
    layer: str = LAYER
    pooled: bool = False  # the mean over tokens


def of_cell(cell: Cell, seed: int, context: Context, layer: str = LAYER, pooled: bool = False) -> Features:
    """Features of all windows of a cell's set, at the weights from which training starts.

    Args:
        cell: task, dataset and network; its set is prepared if it is not there.
        seed: of the numbers that are drawn: all of them, or those that the pretrained weights do not hold.
        context: folders, and where weights lie.
        layer: name of the feature.
        pooled: whether to take the mean over tokens.

    Raises: RequestError for an estimator, data or weights that are absent or bad, and as `of_set`.
    """
    if cell.model.kind != 'network':
        raise RequestError(f'{cell.model.name} is an estimator, which has no features; only networks do')
    channels.placed(cell, context.data_dir, context.workdir)
    where, progress = (context.data_dir, context.workdir), context.progress
    told = (progress.update, progress.say)
    folder = prepared_set.ready(cell.task, cell.dataset, *where, *told, own_band=cell.own_band)
    embed.provide(cell.task, cell.dataset, folder, *where, progress.update)
    data = prepared_set.open_set(folder, protocols.of_seed(cell.task, seed))
    signal, recipe = asked_signal(cell.model, data.signal), cell.task.recipe
    # of a probe the encoder alone starts from weights
    probed, model, n_out = recipe.adaptation in PROBES, cell.model, data.n_out
    network = probe.encoder_of(cell, signal, n_out) if probed else build(model, signal, n_out, recipe, recipe.frames)
    drawn = parallel.draw_program(network)(np.uint32(seed))
    state = seeds.begin_from(cell, network, context)(drawn)
    variables = {name: state[name] for name in ('params', 'batch_stats')}
    encoder = Encoder(
        cell.title, cell.model.family, network, variables, signal, recipe.batch_size, layer=layer, pooled=pooled
    )
    return of_set(encoder, data, cell)


def of_set(encoder: Encoder, data: PreparedSet, cell: Cell, names: tuple[str, ...] = ()) -> Features:
    """Features of the windows of a prepared set that are in some part, in canonical order.

    Args:
        encoder: the network.
        data: the set; windows in no part, and training windows that `recipe.few_shot` leaves out, are not read.
        cell: of which it is the set.
        names: parts; none: all.

    Raises: RequestError for a feature that the network lacks, that has no tokens to take the mean of, that does not fit
        in memory or is not finite; for a damaged file.
    """
    wanted = np.isin(data.split, names or SPLITS)
    rows = np.flatnonzero(wanted)
    loader = Loader(
        dataclasses.replace(data, split=np.where(wanted, ROWS, '')),
        (ROWS,),
        encoder.batch_size,
        resident_bytes=0,  # each window is read once
        channel_mask=encoder.signal.channel_mask,
    )

    def batches() -> Batches:
        left = len(rows)
        for chunk in loader.chunks():
            for k in range(chunk.n):
                batch = {'x': chunk.x[k], 'mask': chunk.mask[k]}
                batch |= {name: a[k] for name, a in chunk.extra.items()}
                yield batch, min(left, encoder.batch_size)
                left -= encoder.batch_size

    listed = class_names(cell.dataset, data) if data.classes else []
    return Features(
        _values(encoder, batches(), len(rows), lambda bad: f'window {data.ids[rows[bad]]}'),
        data.ids[rows],
        data.subjects[rows],
        np.asarray(data.y[rows]),
        data.split[rows],
        tuple(listed),
        data.signal.ch_names,
        cell.model.full_name,
        encoder.layer,
    )


def of_windows(encoder: Encoder, x: np.ndarray) -> np.ndarray:
    """Features f32 [N, ...] of windows x f32 [N, C, T] in which every channel is there. Raises: as `of_set`."""
    size = encoder.batch_size

    def batches() -> Batches:
        for first in range(0, len(x), size):
            part = x[first : first + size]
            filled = np.concatenate([part, np.repeat(x[:1], size - len(part), 0)])
            batch = {'x': filled, 'mask': np.arange(size) < len(part)}
            yield batch | _channel_mask(encoder, np.ones), len(part)

    return _values(encoder, batches(), len(x), lambda bad: f'window number {bad} of those handed in')


def _values(encoder: Encoder, batches: Batches, n: int, called: Callable[[int], str]) -> np.ndarray:
    """The feature of n windows; `called` says what the window of a row is called."""
    compute = models.features(encoder.network, encoder.layer)
    shape = _shape(encoder, compute, n)
    out, done = np.empty((n, *shape), np.float32), 0
    for batch, count in batches:
        found = np.asarray(compute(encoder.variables, **batch)[encoder.layer])[:count]
        out[done : done + count] = found.mean(1, dtype=np.float64) if found.ndim > 1 + len(shape) else found
        bad = ~np.isfinite(out[done : done + count]).reshape(count, -1).all(1)
        if bad.any():
            where = called(done + int(bad.argmax()))
            raise RequestError(f'{encoder.title}: the features of {where} are not finite; are its weights damaged?')
        done += count
    return out


def _shape(encoder: Encoder, compute: Callable[..., Any], n: int) -> tuple[int, ...]:
    """Shape of the feature of one window. Raises: RequestError where it is not there, has no tokens, is too large."""
    size, layer = encoder.batch_size, encoder.layer
    x = jax.ShapeDtypeStruct((size, encoder.signal.n_chans, encoder.signal.n_times), np.float32)
    mask = {'mask': jax.ShapeDtypeStruct((size,), np.bool_)} | _channel_mask(encoder, jax.ShapeDtypeStruct)
    shape = tuple(jax.eval_shape(compute, encoder.variables, x, **mask)[layer].shape[1:])
    if encoder.pooled and len(shape) > 1:
        known = encoder.family not in MAPS or layer in TOKENS
        if len(shape) != 2 or not known:
            raise RequestError(
                f'pooled: the mean is over tokens, and the feature {layer!r} of {encoder.title}, {[n, *shape]}, is not '
                'known to be [windows, tokens, d]; take it as it is'
            )
        shape = shape[1:]
    n_bytes, free = 4 * n * math.prod(shape), free_memory()
    if n_bytes > free:
        pooled = '' if encoder.pooled or len(shape) < 2 else '; pooled=True takes the mean over tokens'
        raise RequestError(
            f'{encoder.title}: the feature {layer!r}, f32 {[n, *shape]}, takes {n_bytes / 1e9:.1f} GB, and '
            f'{free / 1e9:.1f} GB of memory are free{pooled}'
        )
    return shape


def _channel_mask(encoder: Encoder, make: Callable[..., Any]) -> dict[str, Any]:
    """The mask of channels of a batch, of a network that asks for one."""
    signal = encoder.signal
    return {'channel_mask': make((encoder.batch_size, signal.n_chans), np.bool_)} if signal.channel_mask else {}
