"""Run mental arithmetic on the complete originals beside the published table: exit 0 if it is reproduced, 1 if not.

    python benchmarks/zyma_parity.py FOLDER [WORKDIR]

FOLDER holds the 72 EDF files of PhysioNet's eegmat 1.0.0 (Subject00_1.edf ... Subject35_2.edf, 176 MB); WORKDIR, by
default a temporary folder, keeps what jbench writes, so that a second run only reads. Half a minute on two cores.
The last line on stdout is the table as JSON. docs/parity.md tells what is matched and what is not.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench import results, run

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
    near: float  # points


# NeuralBench's published Core results, task mental_arithmetic (facebookresearch/neuroai, neuralbench-repo)
PUBLISHED = {
    'cov_ts_lr': Published(69.841, 0.0, 0.3),  # one of the 84 arithmetic windows is 0.60 points
    'dummy': Published(50.0, 0.0, 0.0),
    'chance': Published(49.603, 2.209, 3 * 2.209),
    'eegnet': Published(48.479, 4.135, 3 * 4.135),
}


def measure(folder: Path, workdir: Path) -> list[dict[str, Any]]:
    """The results of every model and seed. Raises SystemExit where the files are not all there, or a run failed."""
    files = sorted(folder.glob('Subject[0-9][0-9]_[12].edf'))
    if len(files) != N_FILES:
        raise SystemExit(f'{folder}: expected {N_FILES} files, Subject00_1.edf ... Subject35_2.edf, found {len(files)}')
    link = workdir / 'originals' / DATASET
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(folder.resolve(), target_is_directory=True)
    models, seeds = ','.join(PUBLISHED), ','.join(map(str, SEEDS))
    cells = [f'--task={SUITE}/mental_arithmetic/{DATASET}', f'--model={models}', f'--seeds={seeds}']
    status = run.main([*cells, f'--data_dir={link.parent}', f'--workdir={workdir}'])
    if status != 0:
        raise SystemExit(f'jbench ended with exit status {status}')
    return [r for r in results.load_all(workdir) if r['model'] in PUBLISHED and r['seed'] in SEEDS
            and r['protocol']['suite'] == SUITE]  # fmt: skip


def compare(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a model: measured, published, verdict."""
    rows = []
    for model, published in PUBLISHED.items():
        values = [100 * r['headline']['value'] for r in found if r['model'] == model]
        mean = statistics.mean(values)
        rows.append({
            'model': model, 'seeds': values, 'mean': mean, 'sd': statistics.stdev(values),
            'published_mean': published.mean, 'published_sd': published.sd, 'near': published.near,
            'agrees': abs(mean - published.mean) <= published.near,
        })  # fmt: skip
    return rows


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
    print(f'{"model":<10} {"measured":>17} {"published":>17}  {"seeds":<21} verdict')
    for r in rows:
        seeds = ' / '.join(f'{v:.2f}' for v in r['seeds'])
        here, there = (f'{r[k + "mean"]:.3f} +- {r[k + "sd"]:.3f}' for k in ('', 'published_'))
        verdict = f'{"agrees" if r["agrees"] else "DIFFERS"} (within {r["near"]:.1f})' if r['near'] else (
            'agrees (exactly)' if r['agrees'] else 'DIFFERS')  # fmt: skip
        print(f'{r["model"]:<10} {here:>17} {there:>17}  {seeds:<21} {verdict}')
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
        found = measure(Path(argv[0]), workdir)
        (manifest,) = (workdir / 'prepared' / DATASET).glob('*/manifest.json')
        n_chans = len(json.loads(manifest.read_text())['ch_names'])
    rows, said = compare(found), [d for r in found for d in departures(r)]
    said += [f'{n_chans} channels, published {N_CHANS}'] if n_chans != N_CHANS else []
    show(rows, found[0], n_chans)
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
