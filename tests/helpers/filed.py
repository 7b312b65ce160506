"""A published source of small files for tests: `<subject>_<state>.npy` with a table beside it, noise as in `tiny`.

Each reading adds a line to the file that FILED_LOG names. A state `ragged` holds an event that is too short for windows
with a stride.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import mne
import numpy as np
import tiny

from jbench.data.recording import Recording, RecordingRef
from jbench.plan import select
from jbench.spec.dataset import Dataset
from jbench.spec.task import SignalSpec, Task, Window

DATASET: Dataset = dataclasses.replace(tiny.DATASET, name='Filed', source=__name__)
DATASETS = (DATASET,)
WHOLE = True
SIGNAL = SignalSpec(sfreq=64.0, band=(1.0, 30.0), notch=())


def task(window: Window, signal: SignalSpec = SIGNAL) -> Task:
    """A task on these files."""
    return dataclasses.replace(select.tasks()['ssvep'][0], window=window, signal=signal, exclude=())


def write(data_dir: Path, subjects: int = 2, states: tuple[str, ...] = ('open', 'closed')) -> Path:
    """Make the files; returns data_dir."""
    root = data_dir / DATASET.name
    for k in range(subjects):
        (root / f'{k:02d}').mkdir(parents=True)
        for n, state in enumerate(states):
            x = np.random.default_rng([k, n]).integers(-100, 101, (3, 20 * 256))
            np.save(root / f'{k:02d}' / f'{k:02d}_{state}.npy', x)
            (root / f'{k:02d}' / f'{k:02d}_{state}.tsv').write_text(f'onset\n{k + 1}\n8\n')
    (root / 'README').write_text('read me')
    (root / 'images').mkdir()
    (root / 'images' / 'a.png').write_text('an image')
    return data_dir


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file of samples."""
    return [
        RecordingRef(
            'Filed', p.stem[:2], '0', p.stem[3:], (str(p), str(p.with_suffix('.tsv'))), (('state', p.stem[3:]),)
        )
        for p in sorted(root.glob('[0-9]*/*.npy'))
    ]


def read(ref: RecordingRef) -> Recording:
    """The samples of a file, and its events."""
    if log := os.environ.get('FILED_LOG'):
        with open(log, 'a') as file:
            file.write(f'{ref.name}\n')
    x = np.load(ref.files[0]) * 1e-7
    onset = np.array([float(t) for t in Path(ref.files[1]).read_text().split()[1:]])
    info = mne.create_info(list(tiny.CHANNELS), 256.0, 'eeg', verbose='ERROR')
    n = len(onset)
    return Recording(
        mne.io.RawArray(x, info, verbose='ERROR'),
        {
            'onset': onset,
            'duration': np.full(n, 0.5 if ref.run == 'ragged' else 4.0),
            'type': np.full(n, 'Stimulus'),
            'code': np.arange(n) % 2 + 1,
        },
    )
