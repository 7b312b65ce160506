"""Time one training step and one evaluation step beside the reference implementation, in one run.

    pip install -e '.[peers]'
    python benchmarks/train_step.py --models=eegnet --peers=braindecode
    python benchmarks/train_step.py --models=foundation --cells=small    # pretrained encoders; all: hours
    python benchmarks/train_step.py --models=simpleconv_time_agg    # minutes; needs neuraltrain and the extra `test`:
                                                                    # tests/fixtures/make_simpleconv_fixture.py says how

Batch 64, 480 samples, float32, two threads on each side, random windows that lie where the step expects them; what
jbench computes once a window (the moments of EEGNet's data) is stated apart. Ours is the whole step as it trains:
forward, backward, clipping, AdamW with its schedule. Theirs: forward, backward, torch's AdamW. A call is four steps,
each of windows of its own, its time divided by four: ours are one program, which in a run loops over up to 16. Each
side has a process of its own, set as its users have it: ours as a run sets it (freed memory stays with the process),
torch's as it comes, or, with --keep_memory, with the same allocator as ours, which no user of braindecode has, and
which tells how much of a ratio is the allocator's. Blocks of calls of the two sides take turns (A B A B ...); the
first 0.2 s of a block, one call at least, do not count. SimpleConvTimeAgg takes one step a call, of seconds. Both
start from the same weights, and the largest difference between what they compute is in the table: logits in
evaluation; loss, gradient and running statistics in training, without dropout.

Pretrained encoders (`encoders.py`) come at their own rate, on electrodes of the 10-10 system: batches of 16 and 64, 19
and 64 channels, windows of 4 and 10 s; --cells=small is 16, 19 and 4 s alone, large 16, 64 and 10 s. A call is four
steps here, too (a run has up to 16 in one, 3 of the largest cell), but one of a network whose step takes longer
than 2 s; a row has 12 s or three blocks (--blocks) of two calls, or, where a call of each side takes more than 20 s
together, the second of each alone, and the difference is that of logits in evaluation. A cell whose step would take
more than a third of the free memory is left out, and said; our process keeps the memory of the cells before it, so
large ones have a command each. Each row says how long our programs took to compile, and which ratio a program of the
same products could have at most: their time against that which their products and convolutions, as torch counts them,
take at the rate of the fastest product of large matrices that the run saw, torch's or XLA's (it prints both).

On stdout a table (medians, 10 % quantiles, load), and as last line a JSON list of rows {model, n_chans, n_times,
n_outputs, batch, phase, ours_ms, peer_ms, ratio, max_abs_difference, calls}, of encoders {seconds, steps, compile_s,
largest_ratio} too; times are medians in ms by the clock, which tell something of an idle machine alone.
"""

from __future__ import annotations

import os

os.environ['NPROC'] = os.environ['OMP_NUM_THREADS'] = '2'

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, NamedTuple

import encoders
import jax
import jax.numpy as jnp
import numpy as np
import peers
import products
from encoders import Cell
from peers import RECIPE, took

from jbench.data.load.loader import chunk_batches
from jbench.models import MODELS
from jbench.models.model import Model
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import Signal
from jbench.train import kept_memory, losses, optim, parallel
from jbench.train.programs import build

THREADS = 2  # as above
BATCH, N_TIMES, SFREQ = 64, 480, 120.0
SHAPES = ((8, 12), (64, 4))  # channels, classes
PHASES = ('train', 'eval')
LONG = 2.0  # s of a step of an encoder that is a call of its own
BLOCKS, CALLS = 9, 40  # blocks of each side, counted calls in a block, at most
WARM = 0.2  # s of calls that do not count before them, one at least: after a pause calls take longer, as no run's do
SECONDS = 20.0  # for a row; slower steps come in fewer and shorter blocks ...
LEAST, LEAST_CALLS = 3, 2  # ... but at least so many blocks, of at least so many calls ...
TOO_SLOW = 20.0  # ... or, where a call of each side takes longer, together (s), the second ones alone
GROUPS = {
    'classic': tuple(name for name in peers.NAMES if not MODELS[name].accelerator),
    'foundation': encoders.names(),
}
NEURALBENCH = tuple(name for name in GROUPS['classic'] if name != 'eegnex')
Timed = Callable[[], float]  # one call: its milliseconds


class Own(NamedTuple):
    """Our steps of a network, so many in a call, and what they find without dropout."""

    train: Callable[[int], None]
    evaluate: Callable[[int], Any]
    found: dict[str, dict[str, np.ndarray]]  # phase -> named arrays


def steps_of(name: str) -> int:
    """Steps of a call."""
    return 1 if MODELS[name].accelerator else peers.STEPS


def ours(model: Model, x: np.ndarray, y: np.ndarray, weights: dict[str, np.ndarray]) -> tuple[Own, float]:
    """jbench's steps from `weights`, and the ms that a batch's precomputed arrays take, once a window."""
    n_out = int(y.max()) + 1
    batch = {'x': jnp.asarray(x), 'y': jnp.asarray(y, jnp.int32), 'mask': jnp.ones(len(y), bool)}
    precompute = jax.jit(model.precompute)
    batch |= precompute(batch['x'])
    once = np.median([took(lambda: jax.block_until_ready(precompute(batch['x']))) for _ in range(9)])
    signal = Signal(n_chans=x.shape[1], n_times=x.shape[2], sfreq=SFREQ)
    tx = optim.adamw(RECIPE, 1000)
    programs = parallel.compile_programs(model, tx, RECIPE, signal, n_out)  # those of a run, with their loop
    n = chunk_batches(signal, len(y))
    chunk = {k: jnp.broadcast_to(v, (1, n, *v.shape)) + jnp.zeros((), v.dtype) for k, v in batch.items()}
    state = parallel.new_state(parallel.init_state(model, 0), tx, jnp.ones(n_out)) | model.from_torch(weights)
    state = jax.tree.map(jnp.asarray, state)
    variables = {k: jax.tree.map(jnp.copy, state[k]) for k in ('params', 'batch_stats')}
    seen = {k: chunk[k] for k in ('x', 'y', 'mask')}

    def train(n_steps: int) -> None:
        nonlocal state
        state, sums = programs.train(state, chunk, np.int32(n_steps))
        jax.block_until_ready(sums)

    def evaluate(n_steps: int) -> Any:
        return jax.block_until_ready(programs.predict(variables, seen, np.int32(n_steps)))

    def check(v: Any, batch: Any) -> Any:
        def loss(params: Any) -> Any:
            found = model.apply(v | {'params': params}, batch, train=True, key=None)
            loss, _ = losses.cross_entropy(found.outputs, batch, jnp.ones(n_out), 0.0)
            return loss.mean(), found.batch_stats

        return jax.value_and_grad(loss, has_aux=True)(v['params'])

    split = {k: v[None] for k, v in batch.items()}  # the axis of devices
    (loss, new), grads = jax.pmap(check, axis_name=losses.AXIS, in_axes=(None, 0), out_axes=None)(variables, split)
    found = {
        'eval': {'logits': np.asarray(evaluate(1))[0]},
        'train': {'loss': np.asarray(loss)} | model.to_torch({'params': grads, 'batch_stats': new}),
    }
    return Own(train, evaluate, found), float(once)


def take_turns(
    sides: tuple[Timed, Timed], n_steps: int, seconds: float = SECONDS, least: int = LEAST
) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds a step [n] of the counted calls of each side: of blocks, which take turns, or of one slow call."""
    taken: tuple[list[float], list[float]] = ([], [])
    for side in sides:
        side()
    again = [side() for side in sides]
    both = sum(again) / 1e3
    if both > TOO_SLOW:
        return np.array(again[:1]) / n_steps, np.array(again[1:]) / n_steps
    calls = int(np.clip(seconds / BLOCKS / both, LEAST_CALLS, CALLS))
    for _ in range(int(np.clip(seconds / (calls * both), least, BLOCKS))):
        for side, into in zip(sides, taken, strict=True):
            _warm(side)
            into += [side() / n_steps for _ in range(calls)]
    return np.array(taken[0]), np.array(taken[1])


def _warm(side: Timed) -> None:
    began = time.perf_counter()
    while True:
        side()
        if time.perf_counter() - began > WARM:
            return


def largest_difference(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """Over the arrays that both name (torch also counts the batches it has seen)."""
    names = [k for k in a if k in b and not k.endswith('num_batches_tracked')]
    assert {'loss', 'logits'} & set(names)
    return max(float(np.abs(a[k] - b[k]).max()) for k in names)


def measure(name: str, n_chans: int, n_out: int, call: peers.Call) -> list[dict[str, Any]]:
    """The rows of one network of a task at one shape; the peer's calls go through `call`."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, n_chans, N_TIMES)).astype(np.float32)
    y = np.arange(BATCH) % n_out
    positions = tuple(map(tuple, rng.uniform(-0.1, 0.1, (n_chans, 3)).tolist()))
    signal = Signal(n_chans=n_chans, n_times=N_TIMES, sfreq=SFREQ, positions=positions)
    weights = call(peers.begin, partial(peers.of_task, name, signal, n_out), x, y, THREADS)
    own, once = ours(build(MODELS[name], signal, n_out), x, y, weights)
    found = {phase: call(peers.found, phase) for phase in PHASES}
    rows, steps = [], steps_of(name)
    for phase in PHASES:
        a, b = take_turns(sides(own, call, phase, steps), steps)
        shape = {'n_chans': n_chans, 'n_times': N_TIMES, 'n_outputs': n_out, 'batch': BATCH, 'phase': phase}
        rows.append(line({'model': name} | shape, a, b, largest_difference(own.found[phase], found[phase])))
        said(
            f'{name} {n_chans} channels, {n_out} classes',
            rows[-1],
            a,
            b,
            f'once a window, the batch: {once:.1f} ms' if phase == 'train' else '',
        )
    return rows


def measure_encoder(cell: Cell, rate: float, least: int, call: peers.Call) -> list[dict[str, Any]]:
    """The rows of an encoder at one shape, on cores that do `rate` operations a ms; none where it is left out. The
    peer's calls go through `call`."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((cell.batch, cell.n_chans, cell.n_times)).astype(np.float32)
    y = np.arange(cell.batch) % encoders.N_OUT
    weights = call(peers.begin, partial(peers.encoder, cell), x, y, THREADS)
    own = encoders.ours(cell, x, y, weights)
    if own is None:
        return []
    expected = call(peers.found, 'eval')['logits']
    operations = call(peers.operations)
    off = float(np.abs(own.logits - expected).max())
    rows = []
    steps = min(peers.STEPS, chunk_batches(cell.signal, cell.batch))  # no more than in a run
    one = partial(took, partial(own.train, 1))
    if one() > 2e3 * LONG or one() > 1e3 * LONG:  # a first call may take twice as long as those that follow
        steps = 1
    for phase in PHASES:
        a, b = take_turns(sides(own, call, phase, steps), steps, encoders.SECONDS, least)
        shape = {'n_chans': cell.n_chans, 'n_times': cell.n_times, 'n_outputs': encoders.N_OUT, 'batch': cell.batch}
        more = {'phase': phase, 'seconds': cell.seconds, 'steps': steps, 'compile_s': own.compile_s}
        row = line({'model': cell.name} | shape | more, a, b, off)
        rows.append(row | {'largest_ratio': row['peer_ms'] * rate / operations[phase]})
        compiled = f', compiled in {own.compile_s:.0f} s' if phase == 'train' else ''
        said(str(cell), row, a, b, f'ratio at most {rows[-1]["largest_ratio"]:.2f}{compiled}')
    return rows


def sides(own: Own | encoders.Own, call: peers.Call, phase: str, n_steps: int) -> tuple[Timed, Timed]:
    """A call of ours and one of the peer."""
    mine = own.train if phase == 'train' else own.evaluate
    return partial(took, partial(mine, n_steps)), partial(call, peers.take, phase, n_steps)


def line(row: dict[str, Any], a: np.ndarray, b: np.ndarray, difference: float) -> dict[str, Any]:
    """A row with its times."""
    ours_ms, peer_ms = float(np.median(a)), float(np.median(b))
    return row | {
        'ours_ms': ours_ms,
        'peer_ms': peer_ms,
        'ratio': peer_ms / ours_ms,
        'max_abs_difference': difference,
        'calls': len(a),
    }


def said(what: str, row: dict[str, Any], a: np.ndarray, b: np.ndarray, more: str) -> None:
    """Prints a row."""
    print(
        f'{what}, {row["phase"]:<5}  ours {np.median(a):7.2f} (p10 {np.quantile(a, 0.1):7.2f})  peer '
        f'{np.median(b):7.2f} (p10 {np.quantile(b, 0.1):7.2f}) ms  ratio {row["ratio"]:5.2f}  '
        f'largest difference {row["max_abs_difference"]:.1e}  {more}'.rstrip(),
        flush=True,
    )


def main(argv: list[str]) -> int:
    """Measure and print; 2 for an unknown model or cell or a missing peer, 1 where the process of one has died."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--models', default='eegnet', help='names, or classic or foundation for all of these')
    p.add_argument('--cells', default='all', help='of pretrained encoders: all, small, large, or one as 64x19x4')
    p.add_argument('--blocks', type=int, default=LEAST, help='of a slow pretrained encoder, at least')
    p.add_argument('--peers', default='braindecode', choices=('braindecode',))
    p.add_argument('--keep_memory', action='store_true', help="set the peer's allocator as jbench sets its own")
    args = p.parse_args(argv)
    names = [n for word in args.models.split(',') for n in GROUPS.get(word, (word,))]
    kept_memory.keep()  # as a run does
    apart = partial(peers.apart, args.keep_memory)
    rows, died = [], False
    try:
        for n in names:
            if n not in MODELS or n not in (*peers.NAMES, *GROUPS['foundation']):
                raise unknown('model', n, [*peers.NAMES, *GROUPS['foundation'], *GROUPS])
        if args.blocks < 1:
            raise RequestError(f'--blocks={args.blocks}: expected a positive number')
        every = encoders.cells([n for n in names if n not in peers.NAMES], args.cells)
        peers.check(names)
    except RequestError as error:
        print(f'train_step: {error}', file=sys.stderr)
        return 2
    print(f'jax {jax.__version__}, {THREADS} threads, load {os.getloadavg()[0]:.2f} at the start', flush=True)
    jobs: dict[str, Callable[[peers.Call], list[dict[str, Any]]]] = {}
    for n, (n_chans, n_out) in itertools.product([n for n in names if n in peers.NAMES], SHAPES):
        jobs[f'{n} {n_chans} channels, {n_out} classes'] = partial(measure, n, n_chans, n_out)
    if every:
        with apart() as call:
            rates = call(products.rates_of_cores)
        rate, each = max(rates.values()), ', '.join(f'{name} {r / 1e6:.0f}' for name, r in rates.items())
        print(f'fastest product of large matrices, GFLOP/s: {each}', flush=True)
        jobs |= {str(cell): partial(measure_encoder, cell, rate, args.blocks) for cell in every}
    for what, job in jobs.items():
        try:
            with apart() as call:
                rows += job(call)
        except BrokenProcessPool:
            died = True
            print(f'train_step: {what}: the process of the peer has died (of memory?): left out', file=sys.stderr)
    print(f'load {os.getloadavg()[0]:.2f} at the end (both sides of this run included)')
    groups = {'networks of NeuralBench': NEURALBENCH, 'pretrained encoders': GROUPS['foundation']}
    kinds = {'ratio': '', 'largest_ratio': ', the largest possible'}
    for phase, (what, group), (kind, words) in itertools.product(PHASES, groups.items(), kinds.items()):
        ratios = [r[kind] for r in rows if r['phase'] == phase and r['model'] in group and kind in r]
        if ratios:
            mean = np.exp(np.mean(np.log(ratios)))
            print(
                f'{phase}: geometric mean {mean:.2f} of {len(ratios)} ratios{words} ({what}), least {min(ratios):.2f}'
            )
    print(json.dumps(rows))
    return 1 if died else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
