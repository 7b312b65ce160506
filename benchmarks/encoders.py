"""The pretrained encoders that `train_step.py` times: their cells, and our steps."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jbench.data import electrodes
from jbench.data.load.loader import chunk_batches
from jbench.data.prepare.workers import free_memory
from jbench.models import MODELS
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import kept_memory, optim, parallel
from jbench.train.programs import build
from jbench.train.step import own_parts

N_OUT = 4
SECONDS = 12.0  # for a row
# 64 electrodes of the 10-10 system that all encoders know; the first 19 are those of the 10-20 system
MONTAGE = (
    *'Fp1 Fp2 F3 F4 C3 C4 P3 P4 O1 O2 F7 F8 T7 T8 P7 P8 Fz Cz Pz'.split(),
    *'Fpz AF7 AF3 AFz AF4 AF8 F5 F1 F2 F6 FT9 FT7 FC5 FC3 FC1 FCz FC2 FC4 FC6 FT8 FT10'.split(),
    *'C5 C1 C2 C6 TP9 TP7 CP5 CP3 CP1 CPz CP2 CP4 CP6 TP8 TP10 P5 P1 P2 P6 PO7 PO3 POz PO4 PO8'.split(),
)
OF_19 = ('eegdino_small', 'eegdino_medium', 'codebrain')  # know no other channels
TOO_LARGE = ('luna_huge', 'reve_large', 'steegformer_large')  # both sides' weights, gradients and moments: 10 GB
# times what our step would take, with all windows at once as torch's, must fit into the free memory, as torch keeps
# more; other cells are left out
SHARE = 3


class Cell(NamedTuple):
    """One network on windows of one shape."""

    name: str
    batch: int
    n_chans: int
    seconds: int

    @property
    def sfreq(self) -> float:
        """The network's own rate (Hz)."""
        return float(dict(MODELS[self.name].overrides)['signal.sfreq'])

    @property
    def n_times(self) -> int:
        """Samples of a window."""
        return round(self.seconds * self.sfreq)

    @property
    def signal(self) -> Signal:
        """What our network is built for."""
        names = MONTAGE[: self.n_chans]
        places = electrodes.positions(names)
        return Signal(n_chans=self.n_chans, n_times=self.n_times, sfreq=self.sfreq, ch_names=names, positions=places)

    def __str__(self) -> str:
        return f'{self.name} {self.batch} x {self.n_chans} channels x {self.seconds} s'


def names() -> tuple[str, ...]:
    """Of all encoders but those that are too large."""
    return tuple(name for name, m in MODELS.items() if m.family == 'foundation' and name not in TOO_LARGE)


def cells(networks: Sequence[str], which: str) -> list[Cell]:
    """The cells of networks: 'small', 'large' (16 windows of as many channels as each takes and 10 s), 'all', or one of
    these by its numbers, '64x19x4' (windows, channels, seconds), of those networks that have it.

    Raises: RequestError for others.
    """
    numbers = list(itertools.product((16, 64), (19, 64), (4, 10)))
    one = {'x'.join(map(str, n)): n for n in numbers}
    if which not in ('small', 'large', 'all', *one):
        raise unknown('cell', which, ['small', 'large', 'all', *one])
    found = []
    for name in networks:
        every = [Cell(name, *n) for n in numbers if n[1] == 19 or name not in OF_19]
        groups = {'small': every[:1], 'large': every[len(every) // 2 - 1 : len(every) // 2], 'all': every}
        found += groups.get(which) or [cell for cell in every if cell[1:] == one[which]]
    if networks and not found:
        raise RequestError(f'cell {which}: {", ".join(networks)}: expected networks of 64 channels; these take 19')
    return found


class Own(NamedTuple):
    """Our programs, as calls of some steps."""

    train: Callable[[int], None]
    evaluate: Callable[[int], None]
    logits: np.ndarray  # of the first weights
    compile_s: float  # of all programs of a run


def ours(cell: Cell, x: np.ndarray, y: np.ndarray, weights: dict[str, np.ndarray]) -> Own | None:
    """Our steps from `weights` on windows x and labels y; None, said, where they would take too much memory."""
    recipe, signal = dataclasses.replace(Recipe(), batch_size=cell.batch), cell.signal
    model, tx = build(MODELS[cell.name], signal, N_OUT), optim.adamw(recipe, 1000)
    began = time.perf_counter()
    programs = parallel.compile_programs(model, tx, recipe, signal, N_OUT)
    compile_s = time.perf_counter() - began
    at_once = programs
    if own_parts(model, cell.batch) > 1:  # torch's step is not in parts
        at_once = parallel.compile_programs(model._replace(at_once=0), tx, recipe, signal, N_OUT)
    needed, free = at_once.train.memory_analysis().temp_size_in_bytes, free_memory()
    del at_once
    if SHARE * needed > free:
        print(f'{cell}: left out: a step takes {needed / 1e9:.1f} GB beside the weights, {free / 1e9:.1f} are free')
        return None
    n = chunk_batches(signal, cell.batch)
    batch = {'x': x, 'y': y.astype(np.int32), 'mask': np.ones(len(y), bool)} | programs.precompute(x)
    chunk = {k: jnp.broadcast_to(v, (1, n, *v.shape)) + jnp.zeros((), v.dtype) for k, v in batch.items()}
    seen = {k: chunk[k] for k in ('x', 'y', 'mask')}
    state = parallel.new_state(parallel.init_state(model, 0), tx, jnp.ones(N_OUT)) | model.from_torch(weights)
    state = jax.tree.map(jnp.asarray, state)
    variables = {k: jax.tree.map(jnp.copy, state[k]) for k in ('params', 'batch_stats')}

    def train(steps: int) -> None:
        nonlocal state
        kept_memory.make_room(programs.train)  # as a run does
        state, sums = programs.train(state, chunk, np.int32(steps))
        jax.block_until_ready(sums)

    def evaluate(steps: int) -> Any:
        kept_memory.make_room(programs.predict)
        return jax.block_until_ready(programs.predict(variables, seen, np.int32(steps)))

    return Own(train, evaluate, np.asarray(evaluate(1))[0], compile_s)
