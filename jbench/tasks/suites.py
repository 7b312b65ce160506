"""Suites pin versions of tasks: name -> (task, version). `eeg-core-1.0` is NeuralBench's published Core protocol."""

from __future__ import annotations

CORE_TASKS = (
    'age', 'artifact', 'audiovisual_stimulus', 'clinical_event', 'cvep', 'dementia_diagnosis', 'depression_diagnosis',
    'emotion', 'ern', 'image', 'lrp', 'mental_arithmetic', 'mental_imagery', 'mental_workload', 'mismatch_negativity',
    'motor_execution', 'motor_imagery', 'n170', 'n2pc', 'n400', 'p3', 'parkinsons_diagnosis', 'pathology',
    'psychopathology', 'reaction_time', 'schizophrenia_diagnosis', 'seizure', 'sentence', 'sex', 'sleep_arousal',
    'sleep_stage', 'speech', 'ssvep', 'typing', 'video', 'word',
)
SUITES: dict[str, tuple[tuple[str, int], ...]] = {'eeg-core-1.0': tuple((name, 1) for name in CORE_TASKS)}
