"""How much faster is a linear probe on kept features than one whose encoder answers again in every epoch?

    python benchmarks/probing.py [--model=labram] [--epochs=40] [--windows=1000]

Windows of the simulated motor imagery (SIMULATED: made for their size alone), 20 channels and 4 s at the encoder's
rate, random weights; training, validation and test together are as many as asked. Both ways train the same head from
the same start in the same batches for so many epochs and validate after each. The kept way is `train_probe` as the
command runs it from an empty work folder: it encodes every window once, writes the features, reads them, and answers
the test part at the end. The other way is `fit` on the whole network with the encoder frozen, without a test part; with
--again=N it stops after N epochs, and its time is multiplied up. Compiling is left out of both.

Last line on stdout: JSON {model, windows, epochs, again_epochs, kept_s, again_s, ratio, kept_cpu_s, again_cpu_s,
cpu_ratio, first_loss, loss, train_loss_difference and monitor_difference (largest of the epochs that both trained; the
monitor is balanced accuracy on the validation part), load}; cpu: the time of the cores, of all threads.
"""

from __future__ import annotations

import os

os.environ.setdefault('NPROC', '2')

import argparse
import contextlib
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jbench.context import Context
from jbench.data.load import loader, prepared_set
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.prepare import build_set
from jbench.models import MODELS
from jbench.models.foundation import probes
from jbench.plan import cells, select
from jbench.progress import Interrupted, Progress, StopSignal
from jbench.spec.cell import Cell
from jbench.spec.errors import unknown
from jbench.train import fit, optim, parallel, probe
from jbench.train.programs import Compiler, asked_signal, build

SEED = 33


def now() -> np.ndarray:
    """Seconds by the clock, and of the cores."""
    return np.array([time.perf_counter(), time.process_time()])


class Clock:
    """Seconds that some functions take, by the clock and of the cores; an outer call counts, not one inside it."""

    def __init__(self) -> None:
        self.seconds, self._deep = np.zeros(2), 0

    def timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            began, self._deep = now(), self._deep + 1
            try:
                return work(*args, **more)
            finally:
                self._deep -= 1
                self.seconds = self.seconds + (now() - began) * (not self._deep)

        return call


def prepared(cell: Cell, folder: Path, n: int) -> PreparedSet:
    """A set of which n windows, drawn from all, are in some part."""
    refs = build_set.find_recordings(cell.dataset, None)
    build_set.prepare(cell.task, cell.dataset, folder, refs, lambda *facts: None)
    data = prepared_set.open_set(folder, cell.task)
    rows = np.flatnonzero(data.split != '')
    if len(rows) < n:
        sys.exit(f'probing: {len(rows)} windows are there, not {n}')
    used = np.isin(np.arange(len(data.split)), np.random.default_rng(0).permutation(rows)[:n])
    return dataclasses.replace(data, split=np.where(used, data.split, ''))


def kept(cell: Cell, data: PreparedSet, folder: Path) -> dict[str, Any]:
    """The outcome of the probe as the command trains it."""
    context = Context(folder, None, Progress(), StopSignal(), 'resume')
    ((_, outcome),) = probe.train_probe(cell, data, [SEED], Compiler(), context)
    return dict(outcome)


def again(cell: Cell, data: PreparedSet, encoder: Any, n: int) -> list[dict[str, Any]]:
    """The first n epochs of the same probe whose encoder answers in each: facts of `fit`, and when each was over."""
    signal, recipe = asked_signal(cell.model, data.signal), cell.task.recipe
    whole = build(cell.model, signal, data.n_out, recipe)
    slow = dataclasses.replace(recipe, adaptation='full', trainable=(('encoder.*', 0.0),))
    programs = parallel.compile_programs(whole, optim.adamw(slow, 1), slow, signal, data.n_out)
    train, valid = (loader.Loader(data, (s,), slow.batch_size) for s in ('train', 'valid'))
    width = probes.width(build(cell.model, signal, data.n_out), signal)
    head = parallel.init_state(build(probes.head_of(recipe), probes.features(width), data.n_out), SEED)
    drawn = parallel.init_state(whole, SEED)
    drawn['params'] = {**drawn['params'], 'encoder': encoder, 'head': head['params']}
    batches = loader.n_batches(len(train), slow.batch_size)
    tx = optim.adamw(slow, batches * fit.length(slow, batches).most)
    state = parallel.new_state(drawn, tx, fit.loss_weights(slow, train))
    done: list[dict[str, Any]] = [{'at': now()}]
    watch = fit.Watch(lambda facts: done.append(facts | {'at': now()}), stop=lambda: len(done) > n)
    with contextlib.suppress(Interrupted):
        fit.fit(programs, state, train, valid, slow, fit.monitor_of(cell.task), watch)
    return done


def main(argv: list[str]) -> int:
    """Train both ways, compare, print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--model', default='labram')
    p.add_argument('--epochs', type=int, default=40)
    p.add_argument('--again', type=int, default=40, help='epochs of the other way that are measured, for all of them')
    p.add_argument('--windows', type=int, default=1000)
    args = p.parse_args(argv)
    encoders = [m.name for m in MODELS.values() if m.family == 'foundation']
    if args.model not in encoders:
        p.error(f'--model: {unknown("encoder", args.model, encoders)}')
    load, model = os.getloadavg()[0], dataclasses.replace(MODELS[args.model], weights='none')
    task, dataset = select.tasks()['motor_imagery'][-1], select.datasets()['SimulatedMotorImagery']
    asked = {'adaptation': 'probe', 'max_epochs': args.epochs, 'patience': args.epochs, 'lr': 1e-2}
    fields = tuple((f'recipe.{name}', value) for name, value in asked.items())
    cell = Cell(task=cells.apply(task, dataset, fields, model), dataset=dataset, model=model)
    clock = Clock()
    parallel.compile_programs = clock.timed(parallel.compile_programs)
    parallel.compile_predict = clock.timed(parallel.compile_predict)
    with tempfile.TemporaryDirectory(prefix='probing-') as folder:
        data = prepared(cell, Path(folder, 'set'), args.windows)
        began = now()
        fast = kept(cell, data, Path(folder, 'work'))
        of_kept, compiled = now() - began, clock.seconds
        done = again(cell, data, fast['variables']['params']['encoder'], args.again)
    of_kept, epochs = of_kept - compiled, done[1:]
    of_again = (done[-1]['at'] - done[0]['at']) * args.epochs / len(epochs)
    both = list(zip(epochs, fast['history'], strict=False))
    row = {'model': args.model, 'windows': args.windows, 'epochs': args.epochs, 'again_epochs': len(epochs)}
    for name, which in (('', 0), ('cpu_', 1)):
        row |= {f'kept_{name}s': of_kept[which], f'again_{name}s': of_again[which]}
        row |= {f'{name}ratio': of_again[which] / of_kept[which]}
    row |= {'loss': epochs[-1]['train_loss'], 'first_loss': epochs[0]['train_loss']}
    row |= {f'{name}_difference': max(abs(a[name] - b[name]) for a, b in both) for name in ('train_loss', 'monitor')}
    print(f'{cell.model.title}, {data.signal.n_chans} channels, {data.signal.n_times} samples (simulated)')
    print(json.dumps(row | {'load': load}))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
