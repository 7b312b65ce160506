"""Two small tasks of one's own on six people, as files: what a grid of cells runs on in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edfio
import numpy as np
from places import ROOT

NAMES, SFREQ, BLOCK = ('C3', 'C4', 'O1', 'O2'), 100, 20
TASKS = """
from jbench.spec import Classes, Dataset, Recipe, Task, Window

DATASETS = (
    Dataset(
        name='SixPeople', title='Six people', source='jbench.data.sources.folder', n_subjects=6, n_recordings=6,
        n_chans=4, sfreq=(100.0,), licence='mine', citation='me (2026)', host='here', layout='S<NN>_rest.edf',
    ),
)
TASKS = tuple(
    Task(
        name=name, category='mine', paradigm='rstate', title=name, datasets=('SixPeople',),
        window=Window(duration=2.0, stride=2.0), target=Classes(field=field),
        recipe=Recipe(max_epochs=EPOCHS, patience=EPOCHS, lr=1e-2),
    )
    for name, field in (('eyes', 'trial_type'), ('side', 'side'))
)
"""
ABOUT = ('date', 'timings', 'memory', 'machine', 'resumed_at', 'sha256')  # what may differ between two runs
LEFT_OUT = ('JBENCH', 'PYTHONSAFEPATH')


def write(home: Path, epochs: int = 4) -> list[str]:
    """The recordings and the file of the tasks, in `home`; the flags that name them."""
    root, n = home / 'data' / 'SixPeople', SFREQ * (4 * BLOCK + 4)
    root.mkdir(parents=True)
    (home / 'tasks.py').write_text(TASKS.replace('EPOCHS', str(epochs)))
    t = np.arange(n) / SFREQ
    rows = [(2 + BLOCK * b, ('open', 'closed')[b % 2], ('left', 'right')[b // 2]) for b in range(4)]
    for k in range(1, 7):
        x = 10 * np.random.default_rng(k).normal(size=(len(NAMES), n))
        for onset, eyes, side in rows:
            part = slice(onset * SFREQ, (onset + BLOCK) * SFREQ)
            x[2:, part] += (eyes == 'closed') * 15 * np.sin(2 * np.pi * 10 * t[part])
            x[int(side == 'right'), part] *= 0.5
        signals = [
            edfio.EdfSignal(v, SFREQ, label=name, physical_dimension='uV', physical_range=(-500, 500))
            for name, v in zip(NAMES, x.clip(-499, 499), strict=True)
        ]
        edfio.Edf(signals).write(root / f'S{k:02d}_rest.edf')
        lines = [f'{onset}\t{BLOCK}\t{eyes}\t{side}' for onset, eyes, side in rows]
        (root / f'S{k:02d}_rest_events.tsv').write_text('\n'.join(['onset\tduration\ttrial_type\tside', *lines]))
    return [f'--task={home}/tasks.py', f'--data_dir={home}/data']


def start(*flags: str, **how: Any) -> subprocess.Popen[str]:
    """The command in a process of its own, `how` as Popen has it; its stdout and stderr are pipes."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)} | {'PYTHONPATH': str(ROOT)}
    pipes: dict[str, Any] = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **how}
    return subprocess.Popen([sys.executable, '-m', 'jbench.run', *flags], **pipes, text=True, env=env)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, and what was shown and said."""
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def outcome(workdir: Path) -> dict[str, Any]:
    """All result files by path: JSON without what may differ, the others as bytes."""
    found: dict[str, Any] = {}
    for path in sorted((workdir / 'results').rglob('seed*')):
        name = str(path.relative_to(workdir))
        if path.suffix == '.json':
            found[name] = {k: v for k, v in json.loads(path.read_text()).items() if k not in ABOUT}
        else:
            found[name] = path.read_bytes()
    return found


def pid_of(text: str) -> int | None:
    """The first process of ours whose command line holds a text."""
    for place in Path('/proc').glob('[0-9]*'):
        try:
            line = (place / 'cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace')
        except OSError:
            continue
        if text in line and 'setpriv' not in line.split(' ')[0] and int(place.name) != os.getpid():
            return int(place.name)
    return None


def until(what: Callable[[], Any], seconds: float = 400) -> Any:
    """What a function gives, once that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError('it did not come')
