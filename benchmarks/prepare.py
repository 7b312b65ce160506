"""How fast recordings are prepared, and in how much memory. The last line on stdout holds the rows as JSON.

    python benchmarks/prepare.py kalunga DATA_DIR       # DATA_DIR/Kalunga2016Online/..., a few seconds
    python benchmarks/prepare.py zyma DATA_DIR          # DATA_DIR/Zyma2019Electroencephalograms/..., 72 EDF files
    python benchmarks/prepare.py generated 1,2,4,8      # hours of 64 channels at 512 Hz, in minutes; 1.9 GB of disk
    python benchmarks/prepare.py long 24x8,1x256        # one recording of hours x channels at 512 Hz; see below

A row is one whole process with its workers, from the start of Python to its end. Memory is sampled ten times a
second over all of them: `peak_rss_mb` is the largest sum of their proportional set sizes, `peak_bound_mb` the sum of
what each one ever held, shared pages counted several times. A machine that is busy elsewhere shows where
`seconds` is well above `cpu_seconds` over the cores. `raw_mb` are the bytes of the files as they lie, and
`float32_bytes` what the windows alone would take as plain arrays. Generated recordings are noise in EDF files of one
hour each, read by the reader of Zyma2019Electroencephalograms; nothing about brains follows from them. Linux only.

A long recording of H x C takes 3.7 MB of disk an hour and channel as a file, 14.7 MB while it is prepared (at most
16 GB of that), and 3 MB afterwards: 24x256 needs 23 + 16 + 18 GB, and an hour or two of one core.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench.data.prepare import build_set
from jbench.data.windows import n_samples
from jbench.plan import cells, select
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Task

N_CHANS, SFREQ = 64, 512
KALUNGA, ZYMA = (select.datasets()[name] for name in ('Kalunga2016Online', 'Zyma2019Electroencephalograms'))
GENERATED = dataclasses.replace(
    ZYMA,
    name='Generated',
    title='Noise, generated for this benchmark',
    n_chans=N_CHANS,
    sfreq=(float(SFREQ),),
    seconds=3600.0,
    simulated=True,
)
SETS = {
    'kalunga': ('ssvep', KALUNGA),
    'zyma': ('mental_arithmetic', ZYMA),
    'generated': ('mental_arithmetic', GENERATED),
}
FORMS = {'generated': 'H', 'long': 'HxC'}  # hours, channels


def chosen(name: str) -> tuple[Task, Dataset]:
    """The task of a set as applied to its dataset."""
    task, dataset = SETS[name]
    return cells.apply(select.tasks()[task][0], dataset, ()), dataset


def prepare(name: str, data_dir: Path, workdir: Path) -> None:
    """What is measured, in a process of its own."""
    task, dataset = chosen(name)
    folder, refs = build_set.locate(task, dataset, data_dir, workdir)
    if not folder or not refs:
        raise SystemExit(f'{data_dir / dataset.name}: no recordings there; expected {dataset.layout}')
    build_set.prepare(task, dataset, folder, refs, lambda *facts: None)


def measure(name: str, data_dir: Path) -> dict[str, Any]:
    """Prepare a set from nothing in a fresh process and watch it: one row."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix='prepare-') as workdir:
        began, used = time.monotonic(), cpu_seconds()
        child = subprocess.Popen([sys.executable, __file__, '--child', name, str(data_dir), workdir])
        peak, bound = watch(child)
        seconds, used = time.monotonic() - began, cpu_seconds() - used
        if child.returncode:
            raise SystemExit(child.returncode)
        (path,) = Path(workdir).glob('prepared/*/*/manifest.json')
        manifest = json.loads(path.read_text())
    task, dataset = chosen(name)
    _, refs = build_set.locate(task, dataset, data_dir, Path(workdir))
    raw = sum(os.path.getsize(p) for p in {p for r in refs for p in r.files}) / 1e6
    n_times = n_samples(task.window.duration, task.signal.sfreq)
    recordings = manifest['recordings']
    return {
        'set': dataset.name,
        'generated': dataset.simulated,
        'recordings': len(refs),
        'hours': round(sum(r['seconds'] for r in recordings) / 3600, 3),
        'windows': manifest['n_windows'],
        'raw_mb': round(raw, 1),
        'seconds': round(seconds, 2),
        'cpu_seconds': round(used, 2),
        'mb_per_s': round(raw / seconds, 1),
        'peak_rss_mb': round(peak / 1e6),
        'peak_bound_mb': round(bound / 1e6),
        'stored_bytes': sum(f['bytes'] for f in manifest['files'].values()),
        'float32_bytes': sum(
            4 * r['n_windows'] * len(r['ch_names'] or manifest['ch_names']) * n_times for r in recordings
        ),
        'cores': len(os.sched_getaffinity(0)),
        'load_before': round(load, 2),
    }


def cpu_seconds() -> float:
    """What all ended children have used of the cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watch(child: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Wait for a process; the largest sum of PSS over its tree, and the sum of all that each process ever held."""
    peak, most = 0, {}
    while child.poll() is None:
        sizes = 0
        for pid in family(child.pid):
            try:
                sizes += kilobytes(Path(f'/proc/{pid}/smaps_rollup'), 'Pss')
                most[pid] = kilobytes(Path(f'/proc/{pid}/status'), 'VmHWM')
            except (OSError, KeyError):  # it ended
                continue
        peak = max(peak, sizes)
        time.sleep(0.1)
    return peak << 10, sum(most.values()) << 10


def family(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    for path in Path(f'/proc/{pid}/task').glob('*/children'):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def kilobytes(path: Path, field: str) -> int:
    """A field of a file in /proc."""
    lines = dict(line.split(':', 1) for line in path.read_text().splitlines() if ':' in line)
    return int(lines[field].split()[0])


def write_edf(path: Path, seed: int, hours: int = 1, n_chans: int = N_CHANS) -> None:
    """Noise, 20 microvolts in size, as EDF with a record each second; written a minute at a time."""
    signals = [
        [f'EEG E{k + 1}' for k in range(n_chans)],
        *([value] * n_chans for value in ('', 'uV', -500, 500, -32768, 32767, '', SFREQ, '')),
    ]
    widths = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
    head = [('0', 8), ('X X X X', 80), ('Startdate 01-JAN-2020 X X X', 80), ('01.01.20', 8), ('00.00.00', 8)]
    head += [(256 * (n_chans + 1), 8), ('generated', 44), (3600 * hours, 8), (1, 8), (n_chans, 4)]
    head += [(value, width) for values, width in zip(signals, widths, strict=True) for value in values]
    rng = np.random.default_rng(seed)
    with open(path, 'wb') as file:
        file.write(''.join(str(value).ljust(width) for value, width in head).encode())
        for _ in range(60 * hours):
            file.write(rng.normal(0, 1300, (60, n_chans, SFREQ)).astype('<i2').tobytes())


def numbers(text: str, form: str) -> list[tuple[int, ...]]:
    """`24x8,1x256` by the form `HxC`, as (24, 8), (1, 256). Raises: RequestError for another form, and for zeros."""
    one = re.sub('[A-Z]', '([1-9][0-9]*)', form)
    found = [re.fullmatch(one, word) for word in text.split(',')]
    if not all(found):
        raise RequestError(f'{text!r}: expected {form}, whole numbers of at least 1, or several of them with commas')
    return [tuple(map(int, match.groups())) for match in found if match]


def generate_long(root: Path, sizes: Sequence[tuple[int, ...]]) -> Iterator[Path]:
    """For each (hours, channels) a data folder with one recording, removed when the next is asked for."""
    for hours, n_chans in sizes:
        folder = root / f'{hours}x{n_chans}' / GENERATED.name
        folder.mkdir(parents=True)
        write_edf(folder / 'Subject00_1.edf', 0, hours, n_chans)
        yield folder.parent
        shutil.rmtree(folder)


def generate(root: Path, hours: Sequence[int]) -> Iterator[Path]:
    """For each number of hours a data folder with so many recordings, each written once."""
    files: list[Path] = []
    for n in sorted(hours):
        folder = root / f'{n}h' / GENERATED.name
        folder.mkdir(parents=True)
        while len(files) < n:
            k = len(files)
            files.append(root / f'Subject{k // 2:02d}_{k % 2 + 1}.edf')
            write_edf(files[-1], seed=k)
        for path in files[:n]:
            os.link(path, folder / path.name)
        yield folder.parent


def main(argv: Sequence[str]) -> int:
    """Measure, print; 2 for arguments of another form."""
    if argv[:1] == ['--child']:
        prepare(argv[1], Path(argv[2]), Path(argv[3]))
        return 0
    if len(argv) != 2 or argv[0] not in (*SETS, 'long'):
        print(__doc__, file=sys.stderr)
        return 2
    rows = []
    try:
        made = numbers(argv[1], FORMS[argv[0]]) if argv[0] in FORMS else []
    except RequestError as error:
        print(f'prepare: {error}', file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix='generated-') as root:
        folders: Iterable[Path] = [Path(argv[1])]
        if argv[0] == 'generated':
            folders = generate(Path(root), [hours for (hours,) in made])
        if argv[0] == 'long':
            folders = generate_long(Path(root), made)
        for data_dir in folders:
            rows.append(measure('generated' if argv[0] == 'long' else argv[0], data_dir))
            print('  '.join(f'{k} {v}' for k, v in rows[-1].items()), flush=True)
    print(json.dumps(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
