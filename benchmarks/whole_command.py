"""Time the whole command, as a person runs it: from nothing, and prepared and compiled before.

    python benchmarks/whole_command.py --set=kalunga --data_dir=DIR [--repeats=5] [--peer='COMMAND']

--set=kalunga: ssvep/Kalunga2016Online; --set=zyma: mental_arithmetic@1 on the originals; EEGNet, seeds 33, 34, 35.
Every run is a process of its own. `from nothing` begins with an empty work folder (no prepared set, no compiled
program); `prepared` finds both, and no result. --peer times another command (NeuralBench on the same recordings, say)
in turns with ours, in the same run; its own caches are its own affair. Peak memory is the largest sum over the
processes of a command of their proportional share (PSS, sampled every 0.1 s).

On stdout a line a run, then medians, and as last line JSON rows {set, what, seconds, p10, peak_mb, load}.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TASKS = {'kalunga': 'ssvep@1/Kalunga2016Online', 'zyma': 'mental_arithmetic@1/Zyma2019Electroencephalograms'}


def descendants(pid: int) -> list[int]:
    """The process and all that it started."""
    found = [pid]
    for p in found:
        with contextlib.suppress(OSError):
            found += [int(c) for t in Path(f'/proc/{p}/task').iterdir() for c in (t / 'children').read_text().split()]
    return found


def memory(pid: int) -> float:
    """Megabytes of a process and all that it started, shared pages counted once."""
    kilobytes = 0
    for p in descendants(pid):
        with contextlib.suppress(OSError):
            lines = Path(f'/proc/{p}/smaps_rollup').read_text().splitlines()
            kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith('Pss:'))
    return kilobytes / 1024


def run(command: list[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a command. Raises SystemExit where it fails."""
    began, peak = time.monotonic(), 0.0
    with tempfile.TemporaryFile('w+') as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
                break
            peak = max(peak, memory(process.pid))
        seconds = time.monotonic() - began
        if process.returncode:
            log.seek(0)
            raise SystemExit(f'{shlex.join(command)} ended with status {process.returncode}:\n{log.read()[-2000:]}')
    return seconds, peak


def main(argv: list[str]) -> int:
    """Measure in turns and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--set', choices=TASKS, required=True)
    p.add_argument('--data_dir', required=True)
    p.add_argument('--repeats', type=int, default=5)
    p.add_argument('--peer', help='another command, timed in turns')
    args = p.parse_args(argv)
    taken: dict[str, list[tuple[float, float]]] = {'from nothing': [], 'prepared': []}
    ours = [sys.executable, '-m', 'jbench.run', f'--task={TASKS[args.set]}', '--model=eegnet']
    ours += [f'--data_dir={args.data_dir}']
    print(f'{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} at the start', flush=True)
    for _ in range(args.repeats):
        with tempfile.TemporaryDirectory(prefix='whole-command-') as folder:
            here = [*ours, f'--workdir={folder}']
            taken['from nothing'].append(run(here))
            taken['prepared'].append(run([*here, '--if_exists=overwrite']))
        if args.peer:
            taken.setdefault('peer', []).append(run(shlex.split(args.peer)))
        print(', '.join(f'{what} {v[-1][0]:.2f} s {v[-1][1]:.0f} MB' for what, v in taken.items()), flush=True)
    rows: list[dict[str, Any]] = []
    for what, found in taken.items():
        seconds = sorted(s for s, _ in found)
        row = {'set': args.set, 'what': what, 'seconds': statistics.median(seconds), 'p10': seconds[len(seconds) // 10]}
        rows.append(row | {'peak_mb': max(m for _, m in found), 'load': os.getloadavg()[0]})
        print(f'{args.set}, {what}: median {row["seconds"]:.2f} s, peak {rows[-1]["peak_mb"]:.0f} MB')
    print(json.dumps(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
