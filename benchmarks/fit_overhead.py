"""What share of a fit is not compiled code? EEGNet on simulated recordings, at least 1,000 steps.

    python benchmarks/fit_overhead.py [--steps=1000]

The whole `jbench.train.fit.fit` as the command runs it (training, validation, selection, progress, checkpoints by
time), on the simulated P3 recordings of ten subjects (SIMULATED: made for their size alone). Time inside is that
between the call of a compiled program and the moment its result is read; all the rest is outside. Last line on stdout:
JSON {steps, epochs, fit_s, inside_s, outside_share, load}.
"""

from __future__ import annotations

import os

os.environ.setdefault('NPROC', '2')

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jbench.data.load import loader, prepared_set
from jbench.data.prepare import build_set
from jbench.models import MODELS
from jbench.plan import select
from jbench.train import fit, optim, parallel
from jbench.train.programs import build

N_SUBJECTS = 10


def timed(program: Callable[..., Any], taken: list[float]) -> Callable[..., Any]:
    """The program, whose seconds until its results are there are noted."""

    def call(*args: Any) -> Any:
        began = time.perf_counter()
        found = jax.block_until_ready(program(*args))
        taken.append(time.perf_counter() - began)
        return found

    return call


def main(argv: list[str]) -> int:
    """Fit, measure, print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--steps', type=int, default=1000)
    steps = p.parse_args(argv).steps
    if steps < 1:
        p.error('--steps: expected a number above 0')
    load = os.getloadavg()[0]
    task, dataset = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']
    with tempfile.TemporaryDirectory(prefix='fit-overhead-') as folder:
        refs = build_set.find_recordings(dataset, None)[:N_SUBJECTS]
        few = dataclasses.replace(dataset, n_subjects=N_SUBJECTS)
        build_set.prepare(task, few, Path(folder, 'set'), refs, lambda *facts: None)
        data = prepared_set.open_set(Path(folder, 'set'), task)
        train, valid = (loader.Loader(data, (s,), task.recipe.batch_size) for s in ('train', 'valid'))
        per_epoch = loader.n_batches(len(train), task.recipe.batch_size)
        epochs = -(-steps // per_epoch)
        recipe = dataclasses.replace(task.recipe, max_epochs=epochs, patience=epochs)
        model, tx = build(MODELS['eegnet'], data.signal, data.n_out), optim.adamw(recipe, epochs * per_epoch)
        programs = parallel.compile_programs(model, tx, recipe, data.signal, data.n_out)
        taken: list[float] = []
        measured = programs._replace(train=timed(programs.train, taken), predict=timed(programs.predict, taken))
        start = parallel.new_state(programs.draw(np.uint32(33)), tx, fit.loss_weights(recipe, train))
        watch = fit.Watch(folder=Path(folder, 'checkpoints'))
        found = fit.fit(measured, start, train, valid, recipe, task.metric, watch)
    row = {'steps': per_epoch * len(found.history), 'epochs': len(found.history), 'fit_s': found.seconds}
    row |= {'inside_s': sum(taken), 'outside_share': 1 - sum(taken) / found.seconds, 'load': load}
    print(f'{data.signal.n_chans} channels, {data.signal.n_times} samples, {len(train)} windows (simulated)')
    print(json.dumps(row))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
