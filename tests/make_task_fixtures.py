"""Write the published facts of the tasks that jbench holds, as the tests compare them.

Command: python tests/make_task_fixtures.py tasks.yaml > tests/fixtures/tasks_v1.json

`tasks.yaml` is a transcript of the task files of NeuralBench (commit af8ce00), one entry a task with defaults merged.
Window starts are those from the true onset of an event (`effective_window_from_true_onset_s`) where they are known.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TASKS = ('cvep', 'mental_arithmetic', 'mental_imagery', 'motor_execution', 'motor_imagery', 'p3', 'ssvep')
KEPT = ('class_weights', 'monitor', 'patience', 'max_epochs', 'grad_clip_norm', 'batch_size')
SIGNAL = ('picks', 'frequency', 'filter', 'notch_filter', 'baseline', 'scaler', 'clamp')


def facts(entry: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """What of an entry decides a score; of a dataset's entry (with `base`), what differs from the task's."""
    merged = {**(base or {}), **entry}
    window, span = dict(merged['window']), entry.get('effective_window_from_true_onset_s')
    if span:
        window |= {'start': span[0], 'duration': round(span[1] - span[0], 6)}
    optimizer = merged['optimizer']
    out = {
        'window': window,
        'target': {k: merged['target'][k] for k in ('event_types', 'event_field')},
        'split': merged['split'],
        'steps': [s for s in merged['pipeline_steps'] if s['step'] != 'split'],
        'signal': {k: merged['neuro'][k] for k in SIGNAL},
        'loss': {'name': merged['loss']['name'], **merged['loss'].get('kwargs', {})},
        'lr': optimizer['lr'],
        'weight_decay': optimizer['kwargs']['weight_decay'],
        'max_lr': merged['scheduler']['kwargs']['max_lr'],
        **{k: merged[k] for k in KEPT},
    }
    if base is None:
        return out
    whole = facts(base)
    return {k: v for k, v in out.items() if v != whole[k]}


def main(path: str) -> None:
    """Print the fixture as JSON."""
    import yaml

    entries = {e['task']: e for e in yaml.safe_load(Path(path).read_text())['tasks'] if e['modality'] == 'eeg'}
    out = {}
    for name in TASKS:
        entry = entries[name]
        own = {o['study']: facts(o, entry) for o in entry['dataset_overrides']}
        out[name] = {
            'datasets': [entry['default_dataset'], *entry['other_datasets']],
            **facts(entry),
            'dataset_overrides': {study: changed for study, changed in own.items() if changed},
        }
    print(json.dumps(out, indent=1, sort_keys=True))


if __name__ == '__main__':
    main(sys.argv[1])
