"""How fast the metrics of alignment are, beside what else computes them, at equal scores; and in how much memory.

Ours and a peer run in one process, in turns. scikit-learn runs split by split: ours in front of its first split, in the
middle and behind its last, and the ratio is of the sum of its splits to the median of ours. Its BLAS gets the number of
threads, one or all, that is faster on its first split. A peer that is not installed is left out in a line of its own.

Command: python benchmarks/alignment.py [--only=pls,ridgecv,rdm,cka,rsatoolbox,memory] [--rounds=3] [--large]
         python benchmarks/alignment.py --peers=brainscore --python=PYTHON    (one with brainscore-vision installed)
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

os.environ.setdefault('NPROC', str(len(os.sched_getaffinity(0))))

import numpy as np
from threadpoolctl import threadpool_limits

from jbench.alignment.metrics import regression, ridge, similarity, splits
from jbench.alignment.metrics.correlation import pearson_columns
from jbench.alignment.metrics.features import Blocks

N, UNITS, NEUROIDS = 1200, 4096, 168
N_RDM, UNITS_RDM = 2000, 25_000
STREAMED, LARGE = (3000, 8000), (10_000, 25_000)
Timed = dict[str, Any]


def responses(n: int, p: int, q: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Units, rectified, and neuroids that share forty dimensions."""
    draw = np.random.default_rng(seed)
    shared = draw.standard_normal((n, 40))
    x = shared @ draw.standard_normal((40, p)) + 2 * draw.standard_normal((n, p))
    y = shared @ draw.standard_normal((40, q)) + 3 * draw.standard_normal((n, q))
    return np.maximum(x, 0), y


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what was returned."""
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def line(name: str, **facts: Any) -> Timed:
    """Print one row of the table as it is known."""
    shown = {k: f'{v:.3g}' if isinstance(v, float) else v for k, v in facts.items()}
    print(f'{name:24}', *(f'{k} {v}' for k, v in shown.items()), sep='  ', flush=True)
    return {'name': name, **facts}


# ---- regressions ----


def against_loop(name: str, make: Callable[[], Any], factor: float) -> list[Timed]:
    """Ten splits of ours in both dtypes, and of scikit-learn."""
    x, y = responses(N, UNITS, NEUROIDS)
    drawn = splits.splits(N)

    def ours(dtype: str) -> tuple[float, Any]:
        return timed(lambda: regression.regress_cv(name, x, y, dtype=dtype))

    def theirs(k: int, threads: int | None) -> tuple[float, np.ndarray]:
        train, test = drawn[k]
        with threadpool_limits(threads) if threads else nullcontext():
            seconds, said = timed(lambda: make().fit(x[train], y[train]).predict(x[test]))
        return seconds, pearson_columns(said, y[test])

    first = {dtype: ours(dtype)[0] for dtype in ('float64', 'float32')}  # with compilation
    rates = {threads: theirs(0, threads)[0] for threads in (None, 1)}
    threads = min(rates, key=lambda t: rates[t])
    times: dict[str, list[float]] = {'float64': [], 'float32': []}
    found: dict[str, Any] = {}
    peer: list[float] = []
    values = []
    for k in range(len(drawn)):
        if k in (0, len(drawn) // 2):
            for dtype in times:
                seconds, found[dtype] = ours(dtype)
                times[dtype].append(seconds)
        seconds, r = theirs(k, threads)
        peer.append(seconds)
        values.append(r)
    for dtype in times:
        times[dtype].append(ours(dtype)[0])
    rows = []
    for dtype in times:
        took = statistics.median(times[dtype])
        apart = float(np.abs(found[dtype].values - np.array(values)).max())
        rows.append(
            line(
                f'{name} {dtype}',
                ours_s=took,
                first_s=first[dtype],
                sklearn_s=sum(peer),
                sklearn_threads=threads or 'all',
                ratio=sum(peer) / took,
                wanted=factor,
                largest_difference_of_r=apart,
            )
        )
    return rows


def pls(rounds: int) -> list[Timed]:
    """PLS of 25 components; one round."""
    from sklearn.cross_decomposition import PLSRegression

    return against_loop('pls', lambda: PLSRegression(n_components=25, scale=False), 10)


def ridgecv(rounds: int) -> list[Timed]:
    """Ridge regression with 95 penalties; one round."""
    from sklearn.linear_model import RidgeCV

    return against_loop('ridgecv', lambda: RidgeCV(alphas=ridge.ALPHAS), 5)


# ---- similarities ----


def in_turns(name: str, ours: Callable[[str], float], theirs: Callable[[], float], rounds: int) -> list[Timed]:
    """Ours in both dtypes and the peer with all threads and with one, round by round; medians over rounds.

    The ratio is to the faster peer. That of processor time is to the peer in one thread, whose threads do not wait in
    a loop: it is the one to read where other work shares the machine.
    """
    ours('float32')
    runs: dict[str, Callable[[], float]] = {d: partial(ours, d) for d in ('float32', 'float64')}
    runs |= {'peer': theirs, 'peer in one thread': lambda: alone(theirs)}
    wall: dict[str, list[float]] = {who: [] for who in runs}
    cpu: dict[str, list[float]] = {who: [] for who in runs}
    values: dict[str, float] = {}
    for _ in range(rounds):
        for who, run in runs.items():
            began = time.process_time()
            seconds, values[who] = timed(run)
            wall[who].append(seconds)
            cpu[who].append(time.process_time() - began)
    took = {who: statistics.median(times) for who, times in wall.items()}
    used = {who: statistics.median(times) for who, times in cpu.items()}
    peer = min(took['peer'], took['peer in one thread'])
    return [
        line(
            f'{name} {dtype}',
            ours_s=took[dtype],
            peer_s=peer,
            ratio=peer / took[dtype],
            ours_cpu_s=used[dtype],
            peer_cpu_s=used['peer in one thread'],
            cpu_ratio=used['peer in one thread'] / used[dtype],
            wanted=3,
            difference=abs(values[dtype] - values['peer']),
        )
        for dtype in ('float32', 'float64')
    ]


def alone(run: Callable[[], float]) -> float:
    """What `run` returns with one thread."""
    with threadpool_limits(1):
        return run()


def both(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Two layers, float64."""
    x, y = responses(n, p, p)
    return x, y


def rdm(rounds: int) -> list[Timed]:
    """RDMs of two layers and their Spearman correlation, beside NumPy and SciPy."""
    from scipy.stats import spearmanr

    x, y = both(N_RDM, UNITS_RDM)
    pairs = np.triu_indices(N_RDM, 1)

    def plain() -> float:
        return float(spearmanr(*(1 - np.corrcoef(m)[pairs] for m in (x, y)))[0])

    return in_turns('rdm', lambda dtype: similarity.rdm_similarity(x, y, dtype=dtype).value, plain, rounds)


def plain_cka(x: np.ndarray, y: np.ndarray) -> float:
    """Unbiased CKA as it is usually written: each of three terms from its own two Gram matrices."""

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        n, k, m = len(a), a @ a.T, b @ b.T
        np.fill_diagonal(k, 0)
        np.fill_diagonal(m, 0)
        rows_k, rows_m = k.sum(1), m.sum(1)
        rest = rows_k.sum() * rows_m.sum() / ((n - 1) * (n - 2)) - 2 * (rows_k @ rows_m) / (n - 2)
        return ((k * m).sum() + rest) / (n * (n - 3))

    return hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))


def cka(rounds: int) -> list[Timed]:
    """Unbiased CKA of two layers, beside NumPy."""
    x, y = both(N_RDM, UNITS_RDM)
    return in_turns('cka', lambda dtype: similarity.cka(x, y, dtype=dtype), lambda: plain_cka(x, y), rounds)


def rsatoolbox(rounds: int) -> list[Timed]:
    """One RDM, beside rsatoolbox (once: it takes minutes)."""
    try:
        from rsatoolbox.data import Dataset
        from rsatoolbox.rdm import calc_rdm
    except ImportError as error:
        return [line('rdm rsatoolbox', left_out=f'{error}')]
    x, _ = both(N_RDM, UNITS_RDM)
    data = Dataset(x)

    def theirs() -> np.ndarray:
        return calc_rdm(data, method='correlation').get_vectors()[0]

    before, _ = timed(lambda: similarity.rdm(x))
    peer, vector = timed(theirs)
    after, ours = timed(lambda: similarity.rdm(x))
    apart = float(np.abs(similarity.upper(ours) - vector).max())
    took = min(before, after) if before > 2 * after else statistics.mean((before, after))  # the first may compile
    return [line('rdm rsatoolbox', ours_s=took, peer_s=peer, ratio=peer / took, wanted=3, difference=apart)]


# ---- memory ----


def drawn_blocks(n: int, p: int, seed: int) -> Blocks:
    """Features that exist one block at a time, 4,096 units each."""

    def read() -> Iterator[np.ndarray]:
        shared = np.random.default_rng(seed // 2).standard_normal((n, 40), dtype='float32')
        for k in range(0, p, 4096):
            draw = np.random.default_rng([seed, k])
            size = min(4096, p - k)
            mixed = shared @ draw.standard_normal((40, size), dtype='float32')
            yield np.maximum(mixed + draw.standard_normal((n, size), dtype='float32'), 0)

    return Blocks(n, read)


def streamed(which: str, n: int, p: int) -> None:
    """In a process of its own: one metric of two layers read by blocks, its time and this process's peak memory."""
    x, y = drawn_blocks(n, p, 0), drawn_blocks(n, p, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    run = {'cka': lambda: similarity.cka(x, y), 'rdm': lambda: similarity.rdm_similarity(x, y).value}[which]
    seconds, value = timed(run)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({'s': seconds, 'value': value, 'before_mib': before, 'peak_mib': peak}))


def memory(large: bool) -> list[Timed]:
    """Peak memory of CKA and RDM of features that are read by blocks, beside what both layers would take."""
    n, p = LARGE if large else STREAMED
    rows = []
    for which in ('cka', 'rdm'):
        command = [sys.executable, __file__, f'--streamed={which},{n},{p}']
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        layers = 2 * n * p * 8 / 2**20
        rows.append(line(f'{which} streamed', stimuli=n, units=p, both_layers_float64_mib=round(layers), **found))
    return rows


# ---- Brain-Score ----


def brainscore(python: str) -> list[Timed]:
    """Scores of Brain-Score's own metrics, computed by `python`, beside ours."""
    import brainscore_peer

    return [line(f'brainscore {name}', **facts) for name, facts in brainscore_peer.compare(python)]


PARTS: dict[str, Callable[[int], list[Timed]]] = {
    'pls': pls,
    'ridgecv': ridgecv,
    'rdm': rdm,
    'cka': cka,
    'rsatoolbox': rsatoolbox,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default=','.join((*PARTS, 'memory')), help='parts [all]')
    parser.add_argument('--rounds', type=int, default=3, help='of similarities [3]')
    parser.add_argument('--large', action='store_true', help='memory at 10,000 stimuli and 25,000 units: many minutes')
    parser.add_argument('--peers', choices=('brainscore',), help='instead: scores beside those of Brain-Score')
    parser.add_argument('--python', default=sys.executable, help='with --peers: a Python that has brainscore-vision')
    parser.add_argument('--streamed', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.streamed:
        which, n, p = args.streamed.split(',')
        streamed(which, int(n), int(p))
        return
    if args.peers:
        rows = brainscore(args.python)
    else:
        wanted = args.only.split(',')
        rows = [row for name, part in PARTS.items() if name in wanted for row in part(args.rounds)]
        rows += memory(args.large) if 'memory' in wanted else []
    print(json.dumps(rows))


if __name__ == '__main__':
    main()
