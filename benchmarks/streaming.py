"""How fast windows stream from array-record, beside grain's default pipeline, and how long a training step waits.

    NPROC=2 python benchmarks/streaming.py [N_WINDOWS]        # 4096 by default: 0.8 GB of disk, about two minutes

Windows of 64 channels x 480 samples, generated (noise; nothing about brains follows), in 8 shards; they are read from
the page cache. Three ways take turns in one process, an epoch each:

    loader         jbench.data.load.loader.Loader with resident_bytes=0: batches of 64 in a shuffled order, float32
    grain          MapDataset.source(ArrayRecordDataSource(paths)).shuffle().map(parse).batch(64).to_iter_dataset()
                   on the same files, parsed record by record by jbench's plain decoder
    grain_float32  the same on records as a user would write them: a tf.Example with a float_list

Windows per second are those of whole epochs, none of whose windows were read before they began; `cpu_us` is the
processor time of a window over all threads, which other programs on the machine disturb less. Then EEGNet trains in
the loop of train/fit.py, streamed epochs and, to compare, epochs of windows in memory in turns. Per chunk of batches it
is printed how long the step waited for data and how long it computed; as in a fit, the first chunk of an epoch is made
before that begins. The last line on stdout holds the rows as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grain
import numpy as np

from jbench.data.load import loader, prepared_set
from jbench.data.prepare import codec
from jbench.models import MODELS
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import optim, parallel
from jbench.train.programs import build

N_CHANS, N_TIMES, N_OUT, BATCH, N_SHARDS = 64, 480, 4, 64, 8
ROUNDS, EPOCHS = 10, 3
SETTLE = 0.5  # s: what the loader makes ahead for its next epoch should not disturb the other ways
CLAMP = 5.0


def generate(folder: Path, n: int) -> tuple[prepared_set.PreparedSet, list[str]]:
    """A prepared set of n training windows, and the paths of the same windows as plain float32 records."""
    rng = np.random.default_rng(0)
    names, plain = [f'E{k}' for k in range(N_CHANS)], []
    recordings = [
        {'shard': f's{k}.array_record', 'n_windows': n // N_SHARDS, 'ch_names': names} for k in range(N_SHARDS)
    ]
    text = {'session': '', 'run': '', 'target': '"rest"'}
    for k, recording in enumerate(recordings):
        x = rng.normal(size=(n // N_SHARDS, N_CHANS, N_TIMES)).astype(np.float32)
        encoded = (codec.encode_window(w, i, {'subject': str(k), **text}) for i, w in enumerate(x))
        codec.write_shard(folder / recording['shard'], encoded, x.nbytes // 2)
        plain.append(str(folder / f'f{k}.array_record'))
        codec.write_shard(Path(plain[-1]), (codec.encode({'x': w.ravel()}) for w in x), x.nbytes)
    y = rng.integers(N_OUT, size=n)
    return prepared_set.PreparedSet(
        folder=folder,
        manifest={'recordings': recordings, 'ch_names': names},
        signal=Signal(n_chans=N_CHANS, n_times=N_TIMES, sfreq=120.0, ch_names=tuple(names)),
        clamp=CLAMP,
        kind='classes',
        y=y,
        classes=tuple(map(str, range(N_OUT))),
        ids=np.arange(n),
        subjects=np.repeat([str(k) for k in range(N_SHARDS)], n // N_SHARDS),
        split=np.full(n, 'train'),
        warnings=(),
    ), plain  # fmt: skip


def by_loader(data: prepared_set.PreparedSet) -> Callable[[int], Iterator[int]]:
    """The epochs of our loader: the number of windows of each chunk as it comes."""
    made = loader.Loader(data, ('train',), BATCH, resident_bytes=0)
    return lambda k: (int(chunk.mask.sum()) for chunk in made.chunks(2 * k))  # none that was made ahead


def by_grain(paths: list[str], parse: Callable[[bytes], np.ndarray]) -> Callable[[int], Iterator[int]]:
    """The epochs of grain's default pipeline: the number of windows of each batch as it comes."""
    source = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(paths))

    def epoch(k: int) -> Iterator[int]:
        return (len(batch) for batch in source.shuffle(seed=k).map(parse).batch(BATCH).to_iter_dataset())

    return epoch


def parse_int16(record: bytes) -> np.ndarray:
    """A window f32 [C, T] of our records, clamped."""
    return np.clip(codec.decode_window(record)[0], -CLAMP, CLAMP)


def parse_float32(record: bytes) -> np.ndarray:
    """A window f32 [C, T] of plain records, clamped."""
    x = codec.decode(record)['x']
    assert isinstance(x, np.ndarray)
    return np.clip(x.reshape(N_CHANS, N_TIMES), -CLAMP, CLAMP)


def rate(counts: Iterator[int]) -> tuple[float, float]:
    """Windows per second over an epoch, and microseconds of processor time per window."""
    began, cpu = time.perf_counter(), time.process_time()
    total = sum(counts)
    return total / (time.perf_counter() - began), 1e6 * (time.process_time() - cpu) / total


def throughput(data: prepared_set.PreparedSet, plain: list[str]) -> list[dict[str, Any]]:
    """A row for each way to read."""
    shards = [str(data.folder / r['shard']) for r in data.manifest['recordings']]
    ways = {
        'loader': by_loader(data),
        'grain': by_grain(shards, parse_int16),
        'grain_float32': by_grain(plain, parse_float32),
    }
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for k in range(ROUNDS + 1):
        for name, way in ways.items():
            measured[name].append(rate(way(k)))
            time.sleep(SETTLE)
    rows = []
    for name, rounds in measured.items():
        found, cpu = np.array(rounds[1:]).T  # the first round warms up
        rows.append(
            {
                'what': name,
                'windows_per_s': round(float(np.median(found))),
                'p10': round(float(np.percentile(found, 10))),
                'cpu_us': round(float(np.median(cpu)), 1),
                'load': round(os.getloadavg()[0], 2),
            }
        )
    return rows


def training(data: prepared_set.PreparedSet) -> list[dict[str, Any]]:
    """Train EEGNet, epochs streamed and held in memory in turns; print the traces and return a row for each way."""
    recipe, signal, n = Recipe(batch_size=BATCH), data.signal, 1 << 62
    ways = {k: loader.Loader(data, ('train',), BATCH, b) for k, b in (('train_streamed', 0), ('train_resident', n))}
    model = build(MODELS['eegnet'], signal, N_OUT)
    tx = optim.adamw(recipe, len(ways) * (EPOCHS + 1) * loader.n_batches(len(data.y), BATCH))
    programs = parallel.compile_programs(model, tx, recipe, signal, N_OUT)
    for made in ways.values():
        made.carry(programs.precompute)
    state = parallel.new_state(parallel.init_state(model, 33), tx, np.ones(N_OUT, np.float32))
    traces: dict[str, list[tuple[float, float, int]]] = {name: [] for name in ways}
    for epoch in range(EPOCHS + 1):
        for name, made in ways.items():
            state, trace = one_epoch(programs, state, made, epoch)
            traces[name] += trace if epoch else []  # the first one warms up
            time.sleep(SETTLE)
    return [waiting(name, trace) for name, trace in traces.items()]


def one_epoch(
    programs: parallel.Programs, state: Any, made: loader.Loader, epoch: int
) -> tuple[Any, list[tuple[float, float, int]]]:
    """The state after an epoch, and (seconds waited, seconds computed, steps) of every chunk, as train.fit has it."""
    trace, began = [], time.perf_counter()
    for chunk in made.chunks(epoch):
        came = time.perf_counter()
        state, sums = programs.train(state, parallel.shard(chunk), np.int32(chunk.n))
        assert np.isfinite(float(sums['loss']))
        done = time.perf_counter()
        trace.append((came - began, done - came, chunk.n))
        began = done
    return state, trace


def waiting(what: str, trace: list[tuple[float, float, int]]) -> dict[str, Any]:
    """Print the trace of a training and sum it up."""
    print(f'\n{what}: chunk, steps, s waited, s computed')
    for k, (wait, compute, n) in enumerate(trace):
        print(f'{k:4d} {n:4d} {wait:8.4f} {compute:8.4f}')
    waited, computed = sum(t[0] for t in trace), sum(t[1] for t in trace)
    row = {
        'what': what,
        'steps': sum(t[2] for t in trace),
        'waited_s': round(waited, 4),
        'computed_s': round(computed, 4),
        'waited_share': round(waited / (waited + computed), 4),
        'median_step_ms': round(1e3 * float(np.median([compute / n for _, compute, n in trace])), 2),
        'load': round(os.getloadavg()[0], 2),
    }
    print('  '.join(f'{k} {v}' for k, v in row.items()), flush=True)
    return row


def main(argv: Sequence[str]) -> int:
    """Generate, measure, print."""
    n = int(argv[0]) if argv else 4096
    with tempfile.TemporaryDirectory(prefix='generated-') as root:
        data, plain = generate(Path(root), n)
        rows = throughput(data, plain)
        for row in rows:
            print('  '.join(f'{k} {v}' for k, v in row.items()), flush=True)
        rows += training(data)
    print(json.dumps(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
