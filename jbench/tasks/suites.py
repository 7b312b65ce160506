"""Suites pin versions of tasks.

`eeg-core-1.0` is NeuralBench's published Core protocol, `eeg-full-1.0` its every task on every dataset: version 1.
`jbench-core` asks the same questions with the faults corrected that change a score (docs/differences.md): version 2.
The suites of challenges are their tasks (docs/challenges.md).
"""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """Tasks, each at one version."""

    tasks: tuple[tuple[str, int], ...]  # (name, version)
    full: bool = False  # on every dataset of a task, else on the Core one


CORE_TASKS = (
    'age',
    'artifact',
    'audiovisual_stimulus',
    'clinical_event',
    'cvep',
    'dementia_diagnosis',
    'depression_diagnosis',
    'emotion',
    'ern',
    'image',
    'lrp',
    'mental_arithmetic',
    'mental_imagery',
    'mental_workload',
    'mismatch_negativity',
    'motor_execution',
    'motor_imagery',
    'n170',
    'n2pc',
    'n400',
    'p3',
    'parkinsons_diagnosis',
    'pathology',
    'psychopathology',
    'reaction_time',
    'schizophrenia_diagnosis',
    'seizure',
    'sentence',
    'sex',
    'sleep_arousal',
    'sleep_stage',
    'speech',
    'ssvep',
    'typing',
    'video',
    'word',
)
SUITES = {
    'eeg-core-1.0': Suite(tuple((name, 1) for name in CORE_TASKS)),
    'eeg-full-1.0': Suite(tuple((name, 1) for name in sorted((*CORE_TASKS, 'sleep_onset'))), full=True),
    'meg-1.0': Suite((('meg/image', 1), ('meg/typing', 1))),
    'fmri-1.0': Suite((('fmri/image', 1),)),
    'emg-1.0': Suite((('emg/typing', 1),)),
    'challenge2026-1.0': Suite(tuple((f'challenge2026/{track}', 1) for track in ('image', 'bci', 'sleep', 'pose'))),
    'challenge2025-1.0': Suite((('challenge2025/response_time', 1), ('challenge2025/externalizing', 1))),
    'jbench-core': Suite(tuple((name, 2) for name in CORE_TASKS)),
}
