"""Write what preparation stores of one tiny recording, as tests/test_prepare.py compares it.

Command: cd tests && python make_prepared_fixture.py

Whoever changes what is stored raises `jbench.data.cache.PREPARATION`, so that no old set is taken for a new one; the
fixture of a number is therefore never replaced by another one of the same number.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np
import tiny
from array_record.python.array_record_module import ArrayRecordReader

from jbench import plan
from jbench.data import cache, parts, records
from jbench.spec import Task, Window

PATH = Path(__file__).parent / 'fixtures' / 'prepared.npz'
STEP = 1 / records.INT16


def task() -> Task:
    """A second of signal from 0.3 s before each event, with everything that a signal may ask for."""
    chosen = plan.tasks()['ssvep'][0]
    return dataclasses.replace(
        chosen,
        window=Window(start=-0.3, duration=1.0),
        signal=dataclasses.replace(chosen.signal, baseline=(0.0, 0.3)),
    )


def stored() -> dict[str, np.ndarray]:
    """The windows of one tiny recording as int16 [N, C, T] with their scales [N, C], onsets and targets."""
    with tempfile.TemporaryDirectory() as folder:
        part = parts.make(task(), tiny.DATASET, tiny.ref(7), Path(folder))
        (shard,) = Path(folder).glob('*.array_record')
        examples = [records.decode(r) for r in ArrayRecordReader(str(shard)).read_all()]
    return {
        'preparation': np.array(cache.PREPARATION),
        'x': np.stack([np.frombuffer(e['x'], '<i2').reshape(e['shape']) for e in examples]),
        'scale': np.stack([e['scale'] for e in examples]),
        'id': np.concatenate([e['id'] for e in examples]),
        'onset': np.array(part['windows']['onset']),
        'target': np.array(part['windows']['target']),
        'ch_names': np.array(part['ch_names']),
    }


def differences(found: dict[str, np.ndarray], golden: dict[str, np.ndarray]) -> list[str]:
    """Names of what differs by more than one step of the stored form, which other versions of libraries may cost."""
    near = {'x': (0.0, 1.0), 'scale': (2 * STEP, 0.0), 'onset': (0.0, 1e-9)}
    said = [n for n in golden if n not in found or found[n].shape != golden[n].shape]
    for name in set(golden) - set(said):
        a, b = found[name], golden[name]
        same = np.allclose(a, b, *near[name]) if name in near else np.array_equal(a, b)
        said += [] if same else [name]
    return sorted(said)


if __name__ == '__main__':
    made = stored()
    if PATH.exists():
        with np.load(PATH) as file:
            old = dict(file)
        if old['preparation'] == made['preparation'] and differences(made, old):
            sys.exit(f'{", ".join(differences(made, old))} of what is stored changed: raise cache.PREPARATION first')
    np.savez_compressed(PATH, **made)
