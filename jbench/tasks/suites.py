"""Suites pin versions of tasks, and the choices that go with them.

`eeg-core-1.0` is NeuralBench's published Core protocol, `eeg-full-1.0` its every task on every dataset; `jbench-core`
asks the same questions with the faults corrected that change a score (docs/differences.md).
"""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """Tasks, each at one version, and how they are run."""

    tasks: tuple[tuple[str, int], ...]  # (name, version)
    full: bool = False  # on every dataset of a task, else on the Core one
    published: bool = True  # with the reference's choices: recipe.published


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
CORRECTED = (  # tasks that have a version 2
    'age',
    'audiovisual_stimulus',
    'dementia_diagnosis',
    'depression_diagnosis',
    'image',
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
    'sentence',
    'sex',
    'sleep_arousal',
    'sleep_stage',
    'speech',
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
    'jbench-core': Suite(tuple((name, 2 if name in CORRECTED else 1) for name in CORE_TASKS), published=False),
}
