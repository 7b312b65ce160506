"""The result file of a comparison."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jbench import files, processes
from jbench.alignment.ceiled import Scored
from jbench.results import origin, result_file
from jbench.results.versions import versions
from jbench.spec.benchmark import AlignmentCell
from jbench.spec.identity import to_json

SIMULATED = 'simulated: the recording was generated, not measured'


class Digests(NamedTuple):
    """SHA-256 of what a score rests on: equal ones on two machines mean that only arithmetic can differ."""

    recording: str
    stimuli: str  # '': the recording has none
    features: str  # of what the model answered
    model: str  # of its weights and of what it does to a stimulus


def folder(workdir: Path, comparison: AlignmentCell) -> Path:
    """Where its seeds lie: <workdir>/results/<task>@<version>/<data>/<model>/<key>."""
    names = (f'{comparison.task}@{comparison.benchmark.version}', comparison.benchmark.data, comparison.model)
    return Path(workdir, 'results', *map(files.slug, names), comparison.key)


def write(
    workdir: Path,
    comparison: AlignmentCell,
    seed: int,
    made: Scored,
    digests: Digests,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Write seed<k>.json, and seed<k>.npz with the values before aggregation; each is whole or absent.

    Args:
        seed: of the candidate.
        seconds: 'prepare' (stimuli and recording), 'test' (features and metric), 'total'.

    Raises: RequestError where the disk refuses.
    """
    benchmark, score = comparison.benchmark, made.score
    scale = 1 / 1024 if sys.platform != 'darwin' else 1 / 1024**2
    told = {name: getattr(score, name) for name in ('raw', 'raw_error', 'ceiling', 'ceiling_error', 'error')}
    result = {
        'kind': 'alignment',
        'task': comparison.task,
        'task_version': benchmark.version,
        'dataset': benchmark.data,
        'model': comparison.model,
        'seed': seed,
        'status': 'done',
        'simulated': benchmark.simulated,
        'protocol': {'suite': None, 'custom': [], 'partial': [], 'debug': False},
        'headline': {
            'name': benchmark.metric if benchmark.ceiled == 'none' else f'{benchmark.metric}, {benchmark.ceiled}',
            'value': score.value,
            'better': 'higher',
            'interval': None,
            'differs_from_chance': None,
        },
        'metrics': {name: value for name, value in told.items() if value is not None and not math.isnan(value)},
        'prepared_hash': _rests_on(digests),
        'key': comparison.key,
        'config': {**to_json(comparison), 'digests': digests._asdict()},
        'attachments': {},
        'date': origin.date(),
        'commit': origin.commit(),
        'versions': versions(),
        'devices': processes.devices(),
        'machine': origin.machine(),
        'memory': {'peak_rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale},
        'warnings': [*([SIMULATED] if benchmark.simulated else []), *score.notes],
        'timings': {'prepare': 0.0, 'compile': 0.0, 'fit': 0.0, 'test': 0.0, 'total': 0.0, **seconds},
    }
    own = {name: np.asarray(getattr(score, name)) for name in ('values', 'per_neuroid', 'per_split')}
    return result_file.write(folder(workdir, comparison), result, {**made.arrays, **own})


def finished(
    workdir: Path, comparison: AlignmentCell, seed: int, rests_on: Digests
) -> tuple[dict[str, Any] | None, str]:
    """Whether a seed need not run again: its result, or why there is none that counts ('': none is there); one of other
    responses, stimuli or another model does not."""
    return result_file.finished(folder(workdir, comparison), seed, _rests_on(rests_on))


def _rests_on(digests: Digests) -> str:
    return f'{digests.recording[:16]}-{digests.stimuli[:16]}-{digests.model[:16]}'
