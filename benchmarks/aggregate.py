"""How long a report of many result files takes, from the files to ranks, tables and a site, and how much memory.

The files are generated: copies of the one in tests/historic_results with other names, scores, subjects and learning
curves, all marked simulated, so that no table takes them for results. Each is about 15 kB.

Command: python benchmarks/aggregate.py [--n=50000] [--keep=FOLDER]     (a minute to generate)
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from jbench.report import summary
from jbench.report.site import build
from jbench.results import checked
from jbench.results.schema import as_text

ROOT = Path(__file__).resolve().parents[1]
MODELS, SEEDS, DATASETS = 17, 3, 27
CORES = len(os.sched_getaffinity(0))
N_SUBJECTS, N_CHANS, N_EPOCHS = 40, 64, 40


def original() -> dict[str, Any]:
    """A result of this schema."""
    (path,) = (ROOT / 'tests/historic_results/v3').rglob('eegnet/*/seed33.json')
    return json.loads(path.read_text(encoding='utf-8'))


def generate(folder: Path, n: int) -> int:
    """Write `n` result files; returns their bytes."""
    draw, first, size = random.Random(33), original(), 0
    subjects = [f'S{k:02}' for k in range(N_SUBJECTS)]
    for k in range(n):
        seed, rest = k % SEEDS, k // SEEDS
        model, rest = rest % MODELS, rest // MODELS
        dataset, task = rest % DATASETS, rest // DATASETS
        new = copy.deepcopy(first)
        value = draw.gauss(0.6 + model / 100 + task / 1000, 0.01)
        new |= {'task': f'generated_{task}', 'dataset': f'Generated{dataset}', 'model': f'model_{model}'}
        new |= {'seed': seed, 'key': f'{model:04}{dataset:06}{task:06}', 'status': 'done', 'simulated': True}
        new |= {'split_hash': f'{dataset:08}{task:08}', 'normalised': 2 * value - 1, 'warnings': ['generated']}
        new['protocol'] |= {'debug': False}
        new['headline'] |= {'value': value, 'interval': [value - 0.05, value + 0.05], 'n_subjects': N_SUBJECTS}
        new['metrics'] = {name: draw.random() for name in new['metrics']} | {'bal_acc': value}
        new['per_subject'] = {s: draw.gauss(value, 0.1) for s in subjects}
        new['subjects'] = dict.fromkeys(('train', 'valid', 'test'), subjects)
        new['signal'] |= {'n_chans': N_CHANS, 'ch_names': [f'E{c}' for c in range(N_CHANS)]}
        names = first['history'][0]
        new['history'] = [{name: draw.random() for name in names} | {'epoch': e} for e in range(N_EPOCHS)]
        config = new['config']
        config['task'] |= {'name': new['task'], 'datasets': [f'Generated{d}' for d in range(DATASETS)]}
        config['dataset']['name'], config['model']['name'] = new['dataset'], new['model']
        new['sha256'] = checked.digest(new)
        text = as_text(new)
        path = folder / f'{new["task"]}@2' / new['dataset'] / new['model'] / new['key'] / f'seed{seed}.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        size += len(text)
    return size


def peak() -> float:
    """Most memory that this process held, and CORES times what the largest of those that it started did: MiB."""
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (own + CORES * child) / 1024


def measure(folder: Path, out: Path) -> None:
    """Print how long it takes to index and average, to write the files and the site of a report, and the memory."""
    began = time.perf_counter()
    report = summary.collect([folder], also=('simulated',))
    collected = time.perf_counter()
    summary.write(report, out)
    written = time.perf_counter()
    print(
        f'{report.n_files} files, {len(report.left_out)} left out, '
        f'{len(report.scores)} scores: {collected - began:.1f} s'
    )
    print(f'ranks, and all files of the report: {written - collected:.1f} s; together {written - began:.1f} s')
    build.build(report, out)
    print(f'site: {time.perf_counter() - written:.1f} s')
    print(f'peak memory: {peak():.0f} MiB in this process and {CORES} workers')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--n', type=int, default=50_000, help='files [50000]')
    parser.add_argument('--keep', type=Path, help='a folder for the files, which stay; used again where it is there')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        folder = args.keep or Path(temp, 'results')
        if not any(folder.glob('*')):
            size = generate(folder, args.n)
            print(f'{args.n} files of {size / args.n / 1e3:.1f} kB on average')
        measure(folder, Path(temp, 'out'))


if __name__ == '__main__':
    main()
