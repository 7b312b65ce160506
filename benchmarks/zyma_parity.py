"""Run mental arithmetic on the complete originals beside the published table: exit 0 if it is reproduced, 1 if not.

    python benchmarks/zyma_parity.py FOLDER [WORKDIR]

FOLDER holds the 72 EDF files of PhysioNet's eegmat 1.0.0 (Subject00_1.edf ... Subject35_2.edf, 184 MB); WORKDIR, by
default a temporary folder, keeps what jbench writes, so that a second run only reads. Each model is a command of its
own, timed whole, after one that prepares. SimpleConvTimeAgg runs where there is a GPU: on two cores it takes hours.
The last line on stdout is the table as JSON. docs/parity.md tells what is matched and what is not.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from jbench.results import result_file

SUITE = 'eeg-core-1.0'  # which makes the published choices
DATASET = 'Zyma2019Electroencephalograms'
SEEDS = (33, 34, 35)
N_FILES = 72
# Of the published protocol (releases 0.2.0 and 0.2.3 of NeuralBench, whose reader begins with Subject01)
WINDOWS = {'train': 986, 'valid': 337, 'test': 336}
N_CHANS = 20
SUBJECTS = {
    'valid': ['10', '13', '14', '19', '24', '25', '29'],
    'test': ['06', '09', '18', '22', '30', '32', '35'],
}


class Published(NamedTuple):
    """A row of the published table, % balanced accuracy, and how near a reproduction must come."""

    mean: float
    sd: float  # over three seeds

    @property
    def near(self) -> float:
        """Points that a reproduction may be off: 3 sd, and half of what one of the 84 arithmetic windows is worth."""
        return max(3 * self.sd, 0.3)


# NeuralBench's published Core results, task mental_arithmetic (facebookresearch/neuroai, neuralbench-repo)
PUBLISHED = {
    'cov_ts_lr': Published(69.841, 0.0),
    'dummy': Published(50.0, 0.0),
    'chance': Published(49.603, 2.209),
    'eegnet': Published(48.479, 4.135),
    'shallow_fbcsp_net': Published(69.709, 2.582),
    'deep4net': Published(52.315, 6.564),
    'bdtcn': Published(50.198, 0.344),
    'atcnet': Published(56.151, 6.746),
    'eegconformer': Published(66.997, 9.787),
    'ctnet': Published(61.508, 4.666),
    'simpleconv_time_agg': Published(67.063, 3.118),
}
ON_GPU = ('simpleconv_time_agg',)


def mine(workdir: Path, model: str) -> list[dict[str, Any]]:
    """The results of a model that are there."""
    return [
        r
        for r in result_file.load_all(workdir)
        if r['model'] == model and r['seed'] in SEEDS and r['protocol']['suite'] == SUITE
    ]


def command(*words: str) -> float:
    """Seconds of a whole command of jbench. Raises SystemExit where it fails."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, '-m', 'jbench.run', *words], stdout=sys.stderr)
    if done.returncode != 0:
        raise SystemExit(f'jbench ended with exit status {done.returncode}')
    return time.monotonic() - began


def measure(folder: Path, workdir: Path) -> list[dict[str, Any]]:
    """Rows {model, seconds (None: they were there), found: results}. Raises SystemExit where files are missing."""
    files = sorted(folder.glob('Subject[0-9][0-9]_[12].edf'))
    if len(files) != N_FILES:
        raise SystemExit(f'{folder}: expected {N_FILES} files, Subject00_1.edf ... Subject35_2.edf, found {len(files)}')
    link = workdir / 'originals' / DATASET
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(folder.resolve(), target_is_directory=True)
    where = [f'--task={SUITE}/mental_arithmetic/{DATASET}', f'--data_dir={link.parent}', f'--workdir={workdir}']
    command(*where, '--prepare')
    rows = []
    for model in PUBLISHED:
        if model in ON_GPU and jax.default_backend() == 'cpu':
            continue
        new = len(mine(workdir, model)) < len(SEEDS)
        seconds = command(*where, f'--model={model}', f'--seeds={",".join(map(str, SEEDS))}')
        rows.append({'model': model, 'seconds': seconds if new else None, 'found': mine(workdir, model)})
    return rows


def compare(row: dict[str, Any]) -> dict[str, Any]:
    """One row: measured, published, verdict."""
    published = PUBLISHED[row['model']]
    values = [100 * r['headline']['value'] for r in row['found']]
    mean = statistics.mean(values)
    return {
        'model': row['model'], 'seeds': values, 'mean': mean, 'sd': statistics.stdev(values),
        'published_mean': published.mean, 'published_sd': published.sd, 'near': published.near,
        'agrees': abs(mean - published.mean) <= published.near, 'seconds': row['seconds'],
    }  # fmt: skip


def departures(result: dict[str, Any]) -> list[str]:
    """How split, counts and shape of a result depart from the published ones, in words."""
    counts = {name: result['n_records'][name] for name in WINDOWS}
    subjects = {k: [s.removeprefix('Subject') for s in result['subjects'][k]] for k in SUBJECTS}
    said = [f'windows {counts}, published {WINDOWS}'] if counts != WINDOWS else []
    said += [f'{k} subjects {subjects[k]}, published {v}' for k, v in SUBJECTS.items() if subjects[k] != v]
    said += [f'partial: {reason}' for reason in result['protocol']['partial']]
    return said


def show(rows: Sequence[dict[str, Any]], result: dict[str, Any], n_chans: int) -> None:
    """The comparison for a person."""
    print(f'\nmental_arithmetic@1 on {DATASET}, balanced accuracy in %')
    print(f'mean +- sd of seeds {", ".join(map(str, SEEDS))}\n')
    print(f'{"model":<17} {"measured":>17} {"published":>17}  {"seeds":<21} {"seconds":>7}  verdict')
    for r in rows:
        seeds = ' / '.join(f'{v:.2f}' for v in r['seeds'])
        here, there = (f'{r[k + "mean"]:.3f} +- {r[k + "sd"]:.3f}' for k in ('', 'published_'))
        verdict = f'{"agrees" if r["agrees"] else "DIFFERS"} (within {r["near"]:.1f})'
        seconds = f'{r["seconds"]:.1f}' if r['seconds'] else '-'
        print(f'{r["model"]:<17} {here:>17} {there:>17}  {seeds:<21} {seconds:>7}  {verdict}')
    counts = '/'.join(str(result['n_records'][name]) for name in WINDOWS)
    print(f'\nwindows train/valid/test {counts}, {n_chans} channels, split {result["split_hash"]}')
    for name in WINDOWS:
        subjects = result['subjects'][name]
        print(f'{name:<5} {len(subjects):2d} subjects: {" ".join(s.removeprefix("Subject") for s in subjects)}')


def main(argv: Sequence[str]) -> int:
    """Run, compare, print."""
    if len(argv) not in (1, 2) or argv[0].startswith('-'):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix='zyma-parity-') as temporary:
        workdir = Path(argv[1] if len(argv) == 2 else temporary)
        measured = measure(Path(argv[0]), workdir)
        (manifest,) = (workdir / 'prepared' / DATASET).glob('*/manifest.json')
        n_chans = len(json.loads(manifest.read_text())['ch_names'])
    rows, found = [compare(row) for row in measured], [r for row in measured for r in row['found']]
    said = [d for r in found for d in departures(r)]
    said += [f'{n_chans} channels, published {N_CHANS}'] if n_chans != N_CHANS else []
    show(rows, found[0], n_chans)
    for model in PUBLISHED.keys() - {r['model'] for r in rows}:
        print(f'not run, for there is no GPU: {model}')
    for line in dict.fromkeys(said):
        print(f'DIFFERS: {line}')
    print(json.dumps({
        'task': 'mental_arithmetic@1', 'dataset': DATASET, 'rows': rows, 'n_chans': n_chans,
        'windows': {name: found[0]['n_records'][name] for name in WINDOWS}, 'subjects': found[0]['subjects'],
        'differs': list(dict.fromkeys(said)), 'versions': found[0]['versions'],
    }))  # fmt: skip
    return 0 if all(r['agrees'] for r in rows) and not said else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
