"""How much memory do real fine-tuning steps of the large encoders take?

    python benchmarks/encoder_memory.py [--models=reve_base,luna_large] [--cells=small,large]

Each cell in a process of its own, which imports, compiles the programs of a run from shapes, draws the weights and
takes five training steps of 16 random windows, as a run does (clipping, AdamW and its schedule; weights, gradients and
both moments in float32): the peak of its resident memory (`ru_maxrss`) is in the table. Cells: small, 19 channels and
4 s; large, 64 channels and 10 s. Last line on stdout: JSON list of rows {model, batch, n_chans, seconds, peak_gb,
start_gb (after imports), step_s (the last step), loss}.
"""

from __future__ import annotations

import os

os.environ.setdefault('NPROC', '2')

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import time
from typing import Any

import encoders
import jax
import jax.numpy as jnp
import numpy as np
from encoders import Cell

from jbench.data.load.loader import chunk_batches
from jbench.models import MODELS
from jbench.spec.task import Recipe
from jbench.train import kept_memory, optim, parallel
from jbench.train.programs import build

STEPS = 5


def peak_gb() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measure(cell: Cell) -> dict[str, Any]:
    """The row of a cell, in this process."""
    kept_memory.keep()  # as a run does
    start, rng, signal = peak_gb(), np.random.default_rng(0), cell.signal
    recipe = dataclasses.replace(Recipe(), batch_size=cell.batch)
    model, tx = build(MODELS[cell.name], signal, encoders.N_OUT), optim.adamw(recipe, 1000)
    programs = parallel.compile_programs(model, tx, recipe, signal, encoders.N_OUT)
    rows = (1, chunk_batches(signal, cell.batch), cell.batch)
    x = rng.standard_normal((*rows, signal.n_chans, signal.n_times), np.float32)
    y = rng.integers(encoders.N_OUT, size=rows).astype(np.int32)
    extra = jax.tree.map(lambda a: jnp.broadcast_to(a, (*rows[:2], *a.shape)), programs.precompute(x[0, 0]))
    chunk = {'x': x, 'y': y, 'mask': np.ones(rows, bool), **extra}
    state = parallel.new_state(programs.draw(np.uint32(33)), tx, jnp.ones(encoders.N_OUT))
    for _ in range(STEPS):
        began = time.perf_counter()
        kept_memory.make_room(programs.train)
        state, sums = programs.train(state, chunk, np.int32(1))
        loss = float(jax.block_until_ready(sums)['loss'])
        step_s = time.perf_counter() - began
    assert np.isfinite(loss)
    row = {'model': cell.name, 'batch': cell.batch, 'n_chans': cell.n_chans, 'seconds': cell.seconds}
    return row | {'peak_gb': peak_gb(), 'start_gb': start, 'step_s': step_s, 'loss': loss}


def main(argv: list[str]) -> int:
    """Measure each cell in a process of its own and print; 1 where one did not end well."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--models', default='reve_base,luna_large')
    p.add_argument('--cells', default='small,large')
    p.add_argument('--here', action='store_true', help='measure one cell in this process and print its row alone')
    args = p.parse_args(argv)
    wanted = [(name, which) for name in args.models.split(',') for which in args.cells.split(',')]
    if args.here:
        name, which = wanted[0]
        print(json.dumps(measure(encoders.cells([name], which)[0])))
        return 0
    rows: list[dict[str, Any]] = []
    for name, which in wanted:
        command = [sys.executable, __file__, f'--models={name}', f'--cells={which}', '--here']
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(f'{name} {which}: exit status {done.returncode}', file=sys.stderr)
            return 1
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        r = rows[-1]
        what = f'{name} {r["batch"]} x {r["n_chans"]} channels x {r["seconds"]} s'
        print(f'{what}: peak {r["peak_gb"]:.2f} GB ({r["start_gb"]:.2f} after imports), a step {r["step_s"]:.1f} s')
    print(json.dumps(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
