"""Train several seeds together (vmap) or one after another: which is faster here?

    python benchmarks/seeds.py [--seeds=1,3,8,16]

EEGNet's whole training step as jbench runs it, batch 64, 480 samples, float32, the same batch for every seed. Blocks
of the two ways take turns in one process. On stdout a table of ms per seed and step (medians, 10 % quantiles, load),
and as last line a JSON list of rows {n_chans, n_outputs, seeds, loop_ms, vmap_ms, ratio, device}; ratio > 1: together
is faster. jbench trains seeds one after another; docs/speed.md has the figures that say so.
"""

from __future__ import annotations

import os

os.environ.setdefault('NPROC', '2')

import argparse
import json
import sys
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import MODELS
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import losses, optim, parallel, step
from jbench.train.programs import build

BATCH, N_TIMES, SHAPES = 64, 480, ((8, 12), (64, 4))  # channels, classes
BLOCKS, STEPS, WARM = 7, 5, 1


def measure(n_chans: int, n_out: int, n_seeds: int) -> dict[str, Any]:
    """One row: ms per seed and step, looped and vmapped."""
    model = build(MODELS['eegnet'], Signal(n_chans=n_chans, n_times=N_TIMES, sfreq=120.0), n_out)
    tx, recipe, rng = optim.adamw(Recipe(), 1000), Recipe(), np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((BATCH, n_chans, N_TIMES)), jnp.float32)
    batch = {'x': x, 'y': jnp.arange(BATCH) % n_out, 'mask': jnp.ones(BATCH, bool)} | jax.jit(model.precompute)(x)
    batch = {k: v[None] for k, v in batch.items()}  # the axis of devices
    one = partial(step.train_step, model=model, tx=tx, recipe=recipe)
    options: dict[str, Any] = {'axis_name': losses.AXIS, 'in_axes': (None, 0), 'out_axes': None, 'donate_argnums': 0}
    loop, together = jax.pmap(one, **options), jax.pmap(jax.vmap(one, in_axes=(0, None)), **options)
    states = [parallel.new_state(parallel.init_state(model, seed), tx, jnp.ones(n_out)) for seed in range(n_seeds)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *states)
    taken: dict[str, list[float]] = {'loop': [], 'vmap': []}
    for _ in range(BLOCKS):
        for k in range(STEPS):
            began = time.perf_counter()
            for i in range(n_seeds):
                states[i], _ = loop(states[i], batch)
            jax.block_until_ready(states)
            taken['loop'] += [time.perf_counter() - began] if k >= WARM else []
        for k in range(STEPS):
            began = time.perf_counter()
            stacked, _ = together(stacked, batch)
            jax.block_until_ready(stacked)
            taken['vmap'] += [time.perf_counter() - began] if k >= WARM else []
    ms = {k: 1e3 * np.array(v) / n_seeds for k, v in taken.items()}
    row = {'n_chans': n_chans, 'n_outputs': n_out, 'seeds': n_seeds}
    row |= {f'{k}_ms': float(np.median(v)) for k, v in ms.items()}
    row |= {'ratio': row['loop_ms'] / row['vmap_ms'], 'device': jax.devices()[0].device_kind}
    p10 = {k: np.quantile(v, 0.1) for k, v in ms.items()}
    print(
        f'{n_chans:>3} channels {n_seeds:>3} seeds: one after another {row["loop_ms"]:6.2f} (p10 {p10["loop"]:6.2f}), '
        f'together {row["vmap_ms"]:6.2f} (p10 {p10["vmap"]:6.2f}) ms a seed and step, ratio {row["ratio"]:.2f}',
        flush=True,
    )
    return row


def main(argv: list[str]) -> int:
    """Measure and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--seeds', default='1,3,8,16', help='numbers of seeds')
    seeds = [int(s) if s.isdecimal() else 0 for s in p.parse_args(argv).seeds.split(',')]
    if min(seeds) < 1:
        p.error('--seeds: expected numbers above 0, as in 1,3,8,16')
    print(f'jax {jax.__version__}, {jax.devices()[0].device_kind}, NPROC={os.environ["NPROC"]}')
    print(f'load {os.getloadavg()[0]:.2f} at the start', flush=True)
    rows = [measure(*shape, n) for shape in SHAPES for n in seeds]
    print(f'load {os.getloadavg()[0]:.2f} at the end')
    print(json.dumps(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
